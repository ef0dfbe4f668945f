/**
 * The order of messages that share a destination and an ordering key, as its promises tell it: who is accepted first goes
 * first, one at a time; a dead letter steps aside or, where its destination says so, blocks; a replay goes to the end,
 * or to the place that its dead letter kept.
 */
import type { DestinationId, MessageId } from "../../../src/domain/ids.ts"

interface Turn {
  readonly id: MessageId
  /** Its place among all who ever stood in this line. */
  readonly rank: number
  dead: boolean
}

interface Line {
  readonly lane: DestinationId
  turns: Array<Turn>
  ranks: number
  /** The rank of the last message that was taken for the first time. */
  lastTaken: number
}

/** A line by its destination and ordering key. */
export const lineName = (lane: DestinationId, key: string) => `${lane} ${key}`

export class Lines {
  readonly #lines = new Map<string, Line>()
  readonly #ranks = new Map<MessageId, number>()

  /** Accepted or replayed: at its old place if its dead letter kept it, else at the end. */
  join(lane: DestinationId, name: string, id: MessageId): void {
    const line = this.#lines.get(name) ?? { lane, turns: [], ranks: 0, lastTaken: 0 }
    this.#lines.set(name, line)
    const kept = line.turns.find((turn) => turn.id === id)
    if (kept !== undefined) {
      kept.dead = false
      return
    }
    const rank = ++line.ranks
    this.#ranks.set(id, rank)
    line.turns.push({ id, rank, dead: false })
  }

  leave(name: string, id: MessageId): void {
    const line = this.#lines.get(name)
    if (line !== undefined) line.turns = line.turns.filter((turn) => turn.id !== id)
  }

  die(name: string, id: MessageId, blocks: boolean): void {
    const turn = this.#lines.get(name)?.turns.find((each) => each.id === id)
    if (!blocks) this.leave(name, id)
    else if (turn !== undefined) turn.dead = true
  }

  /** Dead letters of this destination block nothing any more. */
  free(lane: DestinationId): void {
    for (const line of this.#lines.values()) {
      if (line.lane === lane) line.turns = line.turns.filter(({ dead }) => !dead)
    }
  }

  isHead(name: string, id: MessageId): boolean {
    const head = this.#lines.get(name)?.turns[0]
    return head?.id === id && !head.dead
  }

  /** Whether a message waits behind somebody. */
  isBehind(name: string, id: MessageId): boolean {
    return (this.#lines.get(name)?.turns.findIndex((turn) => turn.id === id) ?? -1) > 0
  }

  /** The dead letters that others wait behind. */
  blockers(): ReadonlyArray<MessageId> {
    return [...this.#lines.values()].flatMap(({ turns: [head, next] }) =>
      head?.dead === true && next !== undefined ? [head.id] : []
    )
  }

  isBlocked(name: string): boolean {
    return this.#lines.get(name)?.turns[0]?.dead === true
  }

  /** A receiver took the message for the first time in this run of it: false when one behind it was taken before. */
  taken(name: string, id: MessageId): boolean {
    const line = this.#lines.get(name)!
    const rank = this.#ranks.get(id)!
    const inOrder = rank >= line.lastTaken
    line.lastTaken = Math.max(line.lastTaken, rank)
    return inOrder
  }
}
