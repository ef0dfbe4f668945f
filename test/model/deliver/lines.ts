/**
 * The line of each lane and ordering key. Its head is given to the queue; whoever stands behind it waits here,
 * and moves up when the head steps out. A dead letter steps out too, unless its lane says that it blocks.
 */
import type { AbandonedMessage } from "../../../src/application/ports/Queue.ts"
import type { DestinationId, MessageId } from "../../../src/domain/ids.ts"
import type { Memory } from "../Memory.ts"
import { laneOf } from "./lanes.ts"
import { putWaiting } from "./waiting.ts"

export interface Turn {
  readonly message: AbandonedMessage
  readonly state: "WAITING" | "GIVEN" | "DEAD"
}

const nameOf = (lane: DestinationId, line: string) => `${lane}/${line}`

export const standInLine = (memory: Memory["Service"], line: string, message: AbandonedMessage): void => {
  const name = nameOf(message.lane, line)
  const turns = memory.tables.lines.get(name) ?? []
  const turn: Turn = { message, state: "WAITING" }
  const place = turns.findIndex((each) => each.message.messageId === message.messageId)
  moveUp(memory, name, place === -1 ? [...turns, turn] : turns.with(place, turn))
}

export const stepOut = (
  memory: Memory["Service"],
  lane: DestinationId,
  line: string,
  messageId: MessageId,
  dead: boolean
): void => {
  const name = nameOf(lane, line)
  const blocks = dead && laneOf(memory.tables, lane).blocks
  const left = (memory.tables.lines.get(name) ?? []).flatMap((turn): ReadonlyArray<Turn> => {
    if (turn.message.messageId !== messageId) return [turn]
    return blocks ? [{ ...turn, state: "DEAD" }] : []
  })
  moveUp(memory, name, left)
}

/** Dead letters of this lane block nothing any more. */
export const freeLines = (memory: Memory["Service"], lane: DestinationId): void => {
  for (const [name, turns] of [...memory.tables.lines]) {
    if (!name.startsWith(nameOf(lane, ""))) continue
    moveUp(
      memory,
      name,
      turns.filter(({ state }) => state !== "DEAD")
    )
  }
}

/** Gives the head of a line to the queue, if nobody has. */
export const giveHead = (memory: Memory["Service"], name: string): boolean => {
  const turns = memory.tables.lines.get(name)
  if (turns?.[0]?.state !== "WAITING") return false
  moveUp(memory, name, turns)
  return true
}

const moveUp = (memory: Memory["Service"], name: string, turns: ReadonlyArray<Turn>): void => {
  const [head] = turns
  if (head === undefined) memory.tables.lines.delete(name)
  else if (head.state !== "WAITING") memory.tables.lines.set(name, turns)
  else {
    memory.tables.lines.set(name, turns.with(0, { ...head, state: "GIVEN" }))
    putWaiting(memory, head.message)
  }
}
