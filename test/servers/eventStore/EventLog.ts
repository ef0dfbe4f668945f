/**
 * The streams of the stand-in: one log in memory, with the rules of EventStoreDB that a client can observe.
 *
 * - A write names the state it expects of its stream. The same event ids at that very place again are a
 *   success that writes nothing.
 * - A deleted stream reads as unknown, its events stay in `$all`, and its revisions go on where they were; a
 *   tombstoned one never opens again.
 * - `$all` is in the order of writing. Its positions are sparse, like the real ones: nobody may count with them.
 */
export interface Proposed {
  readonly id: string
  readonly type: string
  readonly contentType: string
  readonly data: Uint8Array
  readonly metadata: Uint8Array
}

export interface Recorded extends Proposed {
  readonly stream: string
  readonly revision: number
  readonly position: bigint
  readonly createdMs: number
}

export type Expected = number | "any" | "noStream" | "streamExists"

export type Written =
  | { readonly type: "Written"; readonly revision: number; readonly position: bigint | null }
  /** `current` null: there is no stream. */
  | { readonly type: "WrongExpectedVersion"; readonly current: number | null }
  | { readonly type: "Tombstoned" }

interface Stream {
  readonly events: Array<Recorded>
  /** Revisions below it are deleted. */
  from: number
  /** Until the next event. */
  deleted: boolean
  tombstoned: boolean
}

const newStream = (): Stream => ({ events: [], from: 0, deleted: false, tombstoned: false })

const POSITIONS_APART = 137n

export class EventLog {
  readonly all: Array<Recorded> = []
  readonly #streams = new Map<string, Stream>()
  readonly #listeners = new Set<() => void>()

  stream(name: string): ReadonlyArray<Recorded> | "unknown" | "tombstoned" {
    const found = this.#streams.get(name)
    if (found === undefined) return "unknown"
    if (found.tombstoned) return "tombstoned"
    const visible = found.events.slice(found.from)
    return visible.length === 0 ? "unknown" : visible
  }

  /** Null of a stream without events. */
  lastRevision(name: string): number | null {
    const events = this.#streams.get(name)?.events ?? []
    return events.length === 0 ? null : events.length - 1
  }

  append(name: string, expected: Expected, events: ReadonlyArray<Proposed>, forgetsIds = false): Written {
    const stream = this.#streams.get(name)
    if (stream?.tombstoned === true) return { type: "Tombstoned" }
    const known = stream?.events ?? []
    const last = known.length - 1
    const isThere = stream !== undefined && !stream.deleted && known.length > 0
    const holds =
      expected === "any" ||
      (expected === "streamExists" && isThere) ||
      (expected === "noStream" && !isThere) ||
      (isThere && expected === last)
    // A write that was made before is looked for where it would stand.
    const at = typeof expected === "number" ? expected + 1 : expected === "noStream" ? (stream?.from ?? 0) : null
    const before = at === null ? known.findIndex(({ id }) => id === events[0]?.id) : at
    const isRepeat =
      !forgetsIds && events.length > 0 && before >= 0 && events.every(({ id }, n) => known[before + n]?.id === id)
    if (isRepeat) {
      return {
        type: "Written",
        revision: before + events.length - 1,
        position: known[before + events.length - 1]!.position
      }
    }
    if (!holds) return { type: "WrongExpectedVersion", current: isThere ? last : null }
    const target = stream ?? newStream()
    this.#streams.set(name, target)
    for (const event of events) {
      const recorded: Recorded = {
        ...event,
        stream: name,
        revision: target.events.length,
        position: BigInt(this.all.length + 1) * POSITIONS_APART,
        createdMs: Date.now()
      }
      target.events.push(recorded)
      this.all.push(recorded)
    }
    if (events.length > 0) target.deleted = false
    if (events.length > 0) for (const listener of [...this.#listeners]) listener()
    return {
      type: "Written",
      revision: target.events.length - 1,
      position: events.length === 0 ? null : this.all.at(-1)!.position
    }
  }

  /** Takes back what stands at a revision and beyond, which no real server does: as if it had never been written. */
  repair(name: string, revision: number): void {
    const events = this.#streams.get(name)!.events
    for (const event of events.splice(revision)) this.all[this.all.indexOf(event)] = { ...event, stream: "repaired" }
  }

  delete(name: string, how: "softly" | "forEver"): void {
    const stream = this.#streams.get(name) ?? newStream()
    this.#streams.set(name, stream)
    stream.from = stream.events.length
    stream.deleted = true
    if (how === "forEver") stream.tombstoned = true
  }

  /** Where in `all` the first event at or after (or, `beyond`, after) a position stands. */
  indexOf(position: bigint, beyond: boolean): number {
    const index = Number(position / POSITIONS_APART) - 1
    const exact = this.all[index]?.position === position
    return Math.max(0, exact && !beyond ? index : index + 1)
  }

  /** Returns how to stop listening. */
  onAppend(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}
