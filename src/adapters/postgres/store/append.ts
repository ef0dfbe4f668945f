/**
 * Entries as the parameters of `append`, and its answer as results. Ids and numbers go as array literals, texts of facts joined by U+001E,
 * which JSON text can't hold. `jsonb_to_recordset` would read better, but takes the server 10 µs an entry where arrays take 3, of 39 in all.
 */
import { DateTime } from "effect"
import type { Append, AppendResult, Gate } from "../../../application/ports/EventStore.ts"
import type { MessageId } from "../../../domain/ids.ts"
import { toRecorded, wholeOfQueued } from "../../../domain/message/recorded.ts"
import { keptActor } from "../../../domain/recorded.ts"
import { literal } from "../literal.ts"

/** PostgreSQL text can't hold NUL. */
export const storedText = (answer: string): string => answer.replaceAll("\u0000", "\ufffd")

const SEPARATOR = "\u001e"

const parameterTypes = `
  uuid[] int[] bigint[] text uuid[]
  int[] int[] text text
  int[] text[] uuid[] text[] bigint[] int[] int[] int[]
  int[] text text[] uuid[] uuid[] text[] text[] text[]
  int[] int[] text text int[] int[] text[] text[]
  int[] uuid[] int[]`
  .trim()
  .split(/\s+/)

/** SQL for the parameters from `$first` on. */
export const appendParameters = (first: number): string =>
  parameterTypes.map((type, i) => `$${first + i}::${type}`).join(", ")

export const appendStatement = {
  name: "append",
  text: `select stream, verdict, other, hash from append(${appendParameters(1)})`
}

/** The words of `move_in_queue`. */
type QueueMove = "wait" | "leave" | "over" | "pass" | "dead"

const moveOf = (queue: NonNullable<Append["queue"]>): QueueMove => {
  switch (queue.type) {
    case "Wait":
      return "wait"
    case "Leave":
      return queue.dead ? "over" : "leave"
    case "LeaveLine":
      return queue.dead ? "dead" : "pass"
  }
}

export const appendValues = (entries: ReadonlyArray<Append>): ReadonlyArray<unknown> => {
  const streams: Array<string> = []
  const expected: Array<number> = []
  const at: Array<number> = []
  const actors: Array<string> = []
  const fences: Array<string> = []
  const fact = {
    entry: [] as Array<number>,
    nth: [] as Array<number>,
    names: [] as Array<string>,
    data: [] as Array<string>
  }
  const move = {
    entry: [] as Array<number>,
    moves: [] as Array<QueueMove>,
    lanes: [] as Array<string>,
    lines: [] as Array<string | null>,
    dues: [] as Array<number | "null">,
    versions: [] as Array<number>,
    epochs: [] as Array<number | "null">,
    attempts: [] as Array<number | "null">
  }
  const open = {
    entry: [] as Array<number>,
    data: [] as Array<string>,
    bodies: [] as Array<string | null>,
    events: [] as Array<string>,
    lanes: [] as Array<string>,
    orgs: [] as Array<string | null>,
    keys: [] as Array<string | null>,
    hashes: [] as Array<string | null>
  }
  const detail = {
    entry: [] as Array<number>,
    nth: [] as Array<number>,
    data: [] as Array<string>,
    actors: [] as Array<string>,
    epochs: [] as Array<number | "null">,
    attempts: [] as Array<number | "null">,
    bodies: [] as Array<string | null>,
    headers: [] as Array<string | null>
  }
  const gates = gatesOf()

  entries.forEach((entry, index) => {
    const i = index + 1
    streams.push(entry.messageId)
    expected.push(entry.expected)
    at.push(DateTime.toEpochMillis(entry.at))
    const actor = keptActor(entry.actor)
    actors.push(actor ?? "")
    fences.push(entry.fence ?? "null")
    gates.add(entry.gate)
    entry.facts.forEach((each, n) => {
      const recorded = toRecorded(each)
      const opens = n === 0 && entry.expected === 0 && entry.opening !== null
      fact.entry.push(i)
      fact.nth.push(n + 1)
      fact.names.push(recorded.name)
      fact.data.push(recorded.data)
      if (opens) open.data.push(wholeOfQueued(recorded))
      const forgettable = opens ? null : (recorded.forgettable ?? null)
      const response = n === 0 ? entry.response : null
      if (forgettable === null && response === null && actor === entry.actor) return
      detail.entry.push(i)
      detail.nth.push(n + 1)
      detail.data.push(forgettable ?? "")
      detail.actors.push(actor === entry.actor ? "" : entry.actor!)
      detail.epochs.push(response?.epoch ?? "null")
      detail.attempts.push(response?.attempt ?? "null")
      detail.bodies.push(response === null ? null : storedText(response.body))
      detail.headers.push(response?.headers == null ? null : JSON.stringify(response.headers))
    })
    if (entry.queue !== null) {
      const { queue } = entry
      move.entry.push(i)
      move.moves.push(moveOf(queue))
      move.lanes.push(queue.lane)
      move.lines.push(queue.line)
      move.dues.push(queue.type === "LeaveLine" ? "null" : DateTime.toEpochMillis(queue.dueAt))
      move.versions.push(entry.expected + entry.facts.length)
      move.epochs.push(queue.type === "Wait" ? queue.epoch : "null")
      move.attempts.push(queue.type === "Wait" ? queue.attempt : "null")
    }
    if (entry.opening !== null) {
      open.entry.push(i)
      if (entry.expected > 0) open.data.push("")
      const { body, idempotency } = entry.opening
      open.bodies.push(typeof body === "string" ? body : null)
      open.events.push(typeof body === "string" ? "null" : body.ofEvent)
      open.lanes.push(entry.queue?.lane ?? "null")
      open.orgs.push(idempotency?.orgId ?? null)
      open.keys.push(idempotency?.key ?? null)
      open.hashes.push(idempotency?.requestHash ?? null)
    }
  })

  return [
    literal(streams),
    literal(expected),
    literal(at),
    entries.some(({ actor }) => actor !== null) ? actors.join(SEPARATOR) : null,
    literal(fences),
    literal(fact.entry),
    literal(fact.nth),
    fact.names.join(SEPARATOR),
    fact.data.join(SEPARATOR),
    literal(move.entry),
    literal(move.moves),
    literal(move.lanes),
    move.lines.some((line) => line !== null) ? move.lines : null,
    literal(move.dues),
    literal(move.versions),
    literal(move.epochs),
    literal(move.attempts),
    literal(open.entry),
    open.data.join(SEPARATOR),
    open.bodies,
    ...(open.events.some((event) => event !== "null") ? [literal(open.events), literal(open.lanes)] : [null, null]),
    open.orgs,
    open.keys,
    open.hashes,
    literal(detail.entry),
    literal(detail.nth),
    detail.data.join(SEPARATOR),
    detail.actors.join(SEPARATOR),
    literal(detail.epochs),
    literal(detail.attempts),
    detail.bodies,
    detail.headers,
    ...gates.values()
  ]
}

/** Characters that take as long, to the disk, as the rest of an entry. */
const TEXT_OF_WEIGHT = 4_096

export const weightOfText = (text: string): number => Math.floor(text.length / TEXT_OF_WEIGHT)

export const weightOf = ({ opening, response }: Append): number =>
  1 +
  (typeof opening?.body === "string" ? weightOfText(opening.body) : 0) +
  (response === null ? 0 : weightOfText(response.body))

/** The gate of each entry, as its place among the distinct ones. */
const gatesOf = () => {
  const places = new Map<string, number>()
  const lanes: Array<string> = []
  const generations: Array<number> = []
  const perEntry: Array<number | "null"> = []
  return {
    add: (gate: Gate | null) => {
      if (gate === null) return perEntry.push("null")
      const key = `${gate.lane}/${gate.generation}`
      let place = places.get(key)
      if (place === undefined) {
        place = lanes.push(gate.lane)
        generations.push(gate.generation)
        places.set(key, place)
      }
      return perEntry.push(place)
    },
    values: () => [lanes.length === 0 ? "{}" : literal(perEntry), literal(lanes), literal(generations)]
  }
}

/** True for the row that says there may be more to claim. */
export const saysWork = ([stream]: ReadonlyArray<string | null>): boolean => stream === null

/** The function answers only for entries it did not write. */
export const resultsOf = (
  entries: ReadonlyArray<Append>,
  refusals: ReadonlyArray<ReadonlyArray<string | null>>
): ReadonlyArray<AppendResult> => {
  const refused = new Map(refusals.map((row) => [row[0]!, row]))
  return entries.map((entry): AppendResult => {
    const row = refused.get(entry.messageId)
    switch (row?.[1]) {
      case undefined:
        return { type: "Appended", version: entry.expected + entry.facts.length }
      case "fence":
        return { type: "FenceLost" }
      case "gate":
        return { type: "GateClosed" }
      case "duplicate":
        return { type: "DuplicateKey", messageId: row![2] as MessageId, requestHash: row![3]! }
      default:
        return { type: "VersionConflict" }
    }
  })
}
