/**
 * Derives rows where only the facts were moved: queue, lines, circuits, lists of events and replays. Existing rows
 * stay, so it may be repeated. A message under way is recovered as after any crash. A running replay goes no further:
 * its selection is not among the facts.
 */
import { Effect, Result, Schema } from "effect"
import { stateOf } from "../../domain/circuit/state.ts"
import { fromRecorded as eventFact } from "../../domain/event/facts.ts"
import type { DestinationId, MessageId, ReplayId } from "../../domain/ids.ts"
import { placeOf } from "../../domain/message/place.ts"
import { fromRecorded as replayFact } from "../../domain/replay/facts.ts"
import { eventOf } from "../../domain/streams.ts"
import { Archive } from "../ports/Archive.ts"
import { DerivedRows, type Restored, type RestoredMessageOfEvent } from "../ports/DerivedRows.ts"
import type { LoggedFact, Position } from "../ports/EventStore.ts"
import { eachStream } from "./archiveStreams.ts"
import { type Breach, judgeCircuit, judgeMessage, type Lawful } from "./laws.ts"

export class Unlawful extends Schema.TaggedError<Unlawful>()("Unlawful", {
  stream: Schema.String,
  version: Schema.Int,
  detail: Schema.String
}) {
  override get message(): string {
    return `${this.stream}, version ${this.version}: ${this.detail}`
  }
}

const ROWS_AT_ONCE = 1_000

interface InLine {
  readonly row: Restored
  readonly enteredAt: Position
}

/** `unlawful` decides about a stream whose history its law does not allow: nothing is derived from it. */
export const restoreDerived = Effect.fnUntraced(function* <E, R>(
  unlawful: (stream: string, breach: Breach) => Effect.Effect<void, E, R>
) {
  const derived = yield* DerivedRows
  const { order } = yield* Archive
  const lined: Array<InLine> = []
  yield* eachStream(
    Effect.fnUntraced(function* (streams) {
      const rows: Array<Restored> = []
      const told: Array<RestoredMessageOfEvent> = []
      for (const facts of streams) {
        const { stream, messageId } = facts[0]!
        if (messageId === null) {
          yield* restoreJournal(stream, facts, unlawful)
          continue
        }
        const lawful = judgeMessage(facts)
        if (Result.isFailure(lawful)) {
          yield* unlawful(stream, lawful.failure)
          continue
        }
        told.push(...toldBy(messageId, lawful.success))
        const row = restoredOf(messageId, facts.at(-1)!.version, lawful.success)
        const { place } = row
        if (place.type === "Out") continue
        if (place.line === null) rows.push(row)
        else lined.push({ row, enteredAt: facts[lawful.success.tracked.enteredAt - 1]!.position })
      }
      yield* derived.restoreFanOut(told)
      yield* derived.restoreQueue(rows)
    })
  )
  lined.sort((a, b) => order(a.enteredAt, b.enteredAt))
  for (let from = 0; from < lined.length; from += ROWS_AT_ONCE) {
    yield* derived.restoreQueue(lined.slice(from, from + ROWS_AT_ONCE).map(({ row }) => row))
  }
})

const toldBy = (messageId: MessageId, { history }: Lawful): ReadonlyArray<RestoredMessageOfEvent> => {
  const opening = history[0]?.fact
  if (opening?.type !== "MessageQueued" || opening.eventId === undefined) return []
  return [{ eventId: opening.eventId, destination: opening.destination, messageId }]
}

export const restoredOf = (messageId: MessageId, read: number, lawful: Lawful): Restored => ({
  messageId,
  read,
  place: standOf(lawful)
})

const standOf = ({ tracked, history }: Lawful): Restored["place"] => {
  const place = placeOf(tracked)
  if (place.type !== "Out") return place
  const { destination, line } = tracked.message.progress
  if (!place.dead || destination === null || line === null) return { type: "Out" }
  // A receipt comes after the message was taken, and its line had moved on by then.
  const last = history.findLast(({ fact }) => fact.type === "MessageFailed" || fact.type === "MessageDeadLettered")
  return last?.fact.type === "MessageFailed" && last.fact.by === "receipt"
    ? { type: "Out" }
    : { type: "Dead", lane: destination, line }
}

const restoreJournal = Effect.fnUntraced(function* <E, R>(
  stream: string,
  facts: ReadonlyArray<LoggedFact>,
  unlawful: (stream: string, breach: Breach) => Effect.Effect<void, E, R>
) {
  const derived = yield* DerivedRows
  if (stream.startsWith("circuit-")) {
    const circuit = judgeCircuit(facts)
    if (Result.isFailure(circuit)) return yield* unlawful(stream, circuit.failure)
    const destination = stream.slice("circuit-".length) as DestinationId
    yield* derived.restoreCircuits([{ destination, state: stateOf(circuit.success, facts.at(-1)!.version) }])
  }
  const event = eventOf(stream)
  if (event !== null) {
    const first = eventFact(facts[0]!)
    if (Result.isSuccess(first) && first.success.type === "EventPublished") {
      yield* derived.restoreEvents([{ id: event, fact: first.success, at: facts[0]!.at }])
    }
  }
  if (stream.startsWith("replay-")) {
    const first = replayFact(facts[0]!)
    if (Result.isSuccess(first) && first.success.type === "ReplayRequested") {
      yield* derived.restoreReplays([{ id: stream.slice("replay-".length) as ReplayId, request: first.success }])
    }
  }
})
