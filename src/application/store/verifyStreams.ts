/**
 * Checks the facts against their laws, and everything derived from the facts against the facts:
 *
 *   streams   each is a history that its law allows (laws.ts), and what is sealed in it opens
 *   queue     each message waits exactly where its facts say, and no other row waits
 *   views     each row of the list is the fold of its stream, as far as it has been read
 *   bodies    erased bodies are gone, and no row belongs to a message without a stream
 *   keys      each stored text that is sealed names a data key that is there
 *   events    each is in the list, its body is there as long as somebody has it, and no longer
 *   circuits  each lane obeys the circuit that its facts tell
 *
 * It may run beside a working service. A disagreement is looked at again, stream and rows together, before it is
 * reported as a violation: a change between the two reads is none. It repairs nothing (see repair.ts).
 *
 * Memory does not grow with the store: a page of facts is held at a time. It can't check whether a body is the one that
 * was sent, nor find an entry of a stream that is gone; and it leaves out the health of destinations.
 */
import { Duration, Effect, Result } from "effect"
import { stateOf } from "../../domain/circuit/state.ts"
import type { DestinationId, MessageId } from "../../domain/ids.ts"
import { placeOf } from "../../domain/message/place.ts"
import { eventOf, messageOf, streamOf } from "../../domain/streams.ts"
import type { StoreUnavailable } from "../errors.ts"
import type { LogReader } from "../log/LogReader.ts"
import { Archive } from "../ports/Archive.ts"
import { Channels } from "../ports/Channels.ts"
import { Circuits } from "../ports/Circuits.ts"
import { DerivedRows, type DerivedState, type Lookup, type ReadyRow } from "../ports/DerivedRows.ts"
import type { LoggedFact } from "../ports/EventStore.ts"
import { eachStream } from "./archiveStreams.ts"
import { disagreements, type Judged, judged, strayDetail, twice, type Violation } from "./disagreements.ts"
import { judgeCircuit, judgeJournal, judgeMessage } from "./laws.ts"

export interface Verified {
  readonly facts: number
  readonly streams: number
  readonly messages: number
  readonly waiting: number
  /** Messages without a body and without a fact that erased it: an import without bodies leaves them so. */
  readonly bodiless: number
}

/** How often a stream that is being written is looked at again, and the pause between. */
const LOOKS_MAX = 5
const LOOK_AGAIN_AFTER = Duration.millis(200)
const LOOKS_AT_ONCE = 100
const ROWS_AT_ONCE = 1_000

type Needs = Archive | DerivedRows | Circuits | Channels | LogReader

export interface Hooks<E, R> {
  /** Called for each violation as it is found; a failure ends the check. */
  readonly violation: (violation: Violation) => Effect.Effect<void, E, R>
  readonly progress: (verified: Verified) => Effect.Effect<void>
}

export const verifyStreams = Effect.fnUntraced(function* <E, R>(
  hooks: Hooks<E, R>
): Effect.fn.Return<Verified, E | StoreUnavailable, R | Needs> {
  const journals = [...(yield* Channels).values()].map(({ journal }) => journal)
  let verified: Verified = { facts: 0, streams: 0, messages: 0, waiting: 0, bodiless: 0 }
  yield* eachStream(
    Effect.fnUntraced(function* (streams) {
      const suspects: Array<string> = []
      const messages: Array<Judged> = []
      const events: Array<ReadonlyArray<LoggedFact>> = []
      for (const facts of streams) {
        const { stream, messageId } = facts[0]!
        if (messageId === null) {
          const judgement = judgeJournal(stream, facts, journals)
          if (Result.isFailure(judgement)) yield* hooks.violation({ stream, ...judgement.failure })
          else if (yield* isCircuitWrong(stream, facts)) suspects.push(stream)
          else if (eventOf(stream) !== null) events.push(facts)
          continue
        }
        const judgement = judgeMessage(facts)
        if (Result.isFailure(judgement)) yield* hooks.violation({ stream, ...judgement.failure })
        else messages.push(judged(messageId, facts, judgement.success))
      }
      suspects.push(...(yield* wrongEvents(events)).map(({ stream }) => stream))
      const found = yield* lookAt(messages)
      const order = (yield* Archive).order
      let bodiless = 0
      for (const message of messages) {
        const there = found.get(message.messageId)!
        if (disagreements(message, there, order).length > 0) suspects.push(message.facts[0]!.stream)
        if (!there.hasBody && !message.lawful.tracked.message.progress.erased) bodiless += 1
      }
      const again = yield* Effect.forEach(new Set(suspects), lookAgain, { concurrency: LOOKS_AT_ONCE })
      for (const violation of again.flat()) yield* hooks.violation(violation)
      verified = {
        facts: verified.facts + streams.reduce((sum, facts) => sum + facts.length, 0),
        streams: verified.streams + streams.length,
        messages: verified.messages + messages.length,
        waiting: verified.waiting + messages.filter(({ place }) => place.type === "Waiting").length,
        bodiless: verified.bodiless + bodiless
      }
      yield* hooks.progress(verified)
    })
  )
  yield* verifyQueue(hooks.violation)
  yield* verifyOwners(hooks.violation)
  const derived = yield* DerivedRows
  for (const { lane, line } of yield* derived.brokenLines) {
    const detail = `of the ordering key ${JSON.stringify(line)} not exactly the head is given to the queue`
    yield* hooks.violation({ rule: "broken-line", stream: `lane ${lane}`, version: null, detail })
  }
  for (const { eventId, detail } of yield* derived.brokenBodies) {
    yield* hooks.violation({ rule: "wrong-event", stream: `event-${eventId}`, version: null, detail })
  }
  for (const { key, detail } of yield* derived.lostKeys) {
    yield* hooks.violation({ rule: "no-data-key", stream: `data key ${key}`, version: null, detail })
  }
  for (const detail of yield* derived.wrongCounts) {
    yield* hooks.violation({ rule: "wrong-counts", stream: "stats", version: null, detail })
  }
  return verified
})

// -------------------------------------------------------------------------------------- one message

const lookupOf = ({ messageId, place }: Judged): Lookup => ({ messageId, wait: place.type === "Out" ? null : place })

const lookAt = Effect.fnUntraced(function* (messages: ReadonlyArray<Judged>) {
  return messages.length === 0
    ? new Map<MessageId, DerivedState>()
    : yield* (yield* DerivedRows).look(messages.map(lookupOf))
})

// ------------------------------------------------------------------------------------- a second look

/** The violations of a stream, read while no writer changes it. */
const lookAgain = Effect.fnUntraced(function* (stream: string) {
  const archive = yield* Archive
  for (let looks = 0; looks < LOOKS_MAX; looks++) {
    const facts = (yield* archive.streams([stream])).get(stream) ?? []
    const said = yield* violationsOf(stream, facts)
    const after = (yield* archive.streams([stream])).get(stream) ?? []
    if (after.length === facts.length) {
      if (said.length === 0 || looks > 0) return said
    }
    yield* Effect.sleep(LOOK_AGAIN_AFTER)
  }
  // The stream changes all the time, so the message is not lost.
  return []
})

const violationsOf = Effect.fnUntraced(function* (stream: string, facts: ReadonlyArray<LoggedFact>) {
  const messageId = messageOf(stream)
  // The whole message or event was forgotten meanwhile.
  if (facts.length === 0) return []
  if (messageId === null) {
    if (eventOf(stream) !== null) return yield* wrongEvents([facts])
    return (yield* isCircuitWrong(stream, facts)) ? [wrongCircuit(stream, facts)] : []
  }
  const judgement = judgeMessage(facts)
  if (Result.isFailure(judgement)) return [{ stream, ...judgement.failure }]
  const message = judged(messageId, facts, judgement.success)
  const found = (yield* lookAt([message])).get(messageId)!
  return disagreements(message, found, (yield* Archive).order).map((each): Violation => ({ stream, ...each }))
})

// ------------------------------------------------------------------------------------------ circuits

const CIRCUIT = "circuit-"

/** A lane's count of failures is no fact, and it may open earlier than planned: only what facts decide is compared. */
const isCircuitWrong = Effect.fnUntraced(function* (stream: string, facts: ReadonlyArray<LoggedFact>) {
  if (!stream.startsWith(CIRCUIT)) return false
  const circuit = judgeCircuit(facts)
  if (Result.isFailure(circuit)) return false
  const [state] = yield* (yield* Circuits).states([stream.slice(CIRCUIT.length) as DestinationId])
  const { status, generation } = stateOf(circuit.success, facts.at(-1)!.version)
  return state!.status !== status || state!.generation !== generation
})

const wrongCircuit = (stream: string, facts: ReadonlyArray<LoggedFact>): Violation => ({
  rule: "wrong-circuit",
  stream,
  version: facts.at(-1)!.version,
  detail: "its lane obeys another state than its facts tell"
})

// -------------------------------------------------------------------------------------------- events

/** The first fault of each: it is not in the list, or its erased body is there. */
const wrongEvents = Effect.fnUntraced(function* (journals: ReadonlyArray<ReadonlyArray<LoggedFact>>) {
  if (journals.length === 0) return []
  const rows = yield* (yield* DerivedRows).eventRows(journals.map(([first]) => eventOf(first!.stream)!))
  return journals.flatMap((facts): ReadonlyArray<Violation> => {
    const { stream } = facts[0]!
    const { isListed, hasBody } = rows.get(eventOf(stream)!)!
    const wrong = { rule: "wrong-event", stream, version: facts.length } as const
    if (!isListed) return [{ ...wrong, detail: "it is not in the list of events" }]
    const isErased = facts.some(({ name }) => name.startsWith("EventErased@"))
    return isErased && hasBody ? [{ ...wrong, detail: "its facts say that its body was erased, and there is one" }] : []
  })
})

// -------------------------------------------------------------------------- what the facts do not know

type Page = Effect.Success<ReturnType<DerivedRows["Service"]["ready"]>>

/** The facts must explain every row of the queue and of its lines. */
const verifyQueue = Effect.fnUntraced(function* <E, R>(report: (violation: Violation) => Effect.Effect<void, E, R>) {
  const archive = yield* Archive
  const derived = yield* DerivedRows
  for (let after: string | null = null; ; ) {
    const { rows, next }: Page = yield* derived.ready(after, ROWS_AT_ONCE)
    if (next === null) break
    after = next
    const streams = yield* archive.streams([...new Set(rows.map(({ messageId }) => streamOf(messageId)))])
    const strays = rows.filter((row) => strayDetail(row, streams.get(streamOf(row.messageId))) !== null)
    const still = yield* Effect.forEach(strays, stillStray, { concurrency: LOOKS_AT_ONCE })
    for (const violation of still) if (violation !== null) yield* report(violation)
  }
  for (let after: MessageId | null = null; ; ) {
    const ids: ReadonlyArray<MessageId> = yield* derived.messagesInLines(after, ROWS_AT_ONCE)
    if (ids.length === 0) break
    after = ids.at(-1)!
    const known = yield* archive.known(ids)
    for (const id of ids) {
      if (!known.has(id)) yield* report(noStream(id, "it stands in a line"))
    }
  }
})

const stillStray = Effect.fnUntraced(function* (row: ReadyRow) {
  yield* Effect.sleep(LOOK_AGAIN_AFTER)
  const { messageId } = row
  const derived = yield* DerivedRows
  const stream = streamOf(messageId)
  const facts = (yield* (yield* Archive).streams([stream])).get(stream)
  const said = strayDetail(row, facts)
  const isThere = (yield* derived.look([{ messageId, wait: { ...row, line: null } }])).get(messageId)!.isReady
  if (said === null || !isThere) return null
  const violation: Violation = { ...said, stream, version: facts?.length ?? null }
  const judgement = judgeMessage(facts ?? [])
  const place = Result.isSuccess(judgement) ? placeOf(judgement.success.tracked) : null
  if (place?.type !== "Waiting") return violation
  const { isReady, held } = (yield* derived.look([{ messageId, wait: place }])).get(messageId)!
  return isReady || held > 0 ? { ...violation, ...twice("it waits where its facts say, and once more") } : violation
})

/** Every row of a message must belong to a message with a stream. */
const verifyOwners = Effect.fnUntraced(function* <E, R>(report: (violation: Violation) => Effect.Effect<void, E, R>) {
  const archive = yield* Archive
  const derived = yield* DerivedRows
  for (let after: MessageId | null = null; ; ) {
    const ids: ReadonlyArray<MessageId> = yield* derived.owners(after, ROWS_AT_ONCE)
    if (ids.length === 0) return
    const before: MessageId | null = after
    after = ids.at(-1)!
    const known = yield* archive.known(ids)
    const strange = ids.filter((id) => !known.has(id))
    if (strange.length === 0) continue
    // A message that was forgotten a moment ago is gone from both.
    yield* Effect.sleep(LOOK_AGAIN_AFTER)
    const still = new Set(yield* derived.owners(before, ROWS_AT_ONCE))
    for (const id of strange) {
      if (still.has(id)) yield* report(noStream(id, "a body, an answer, a key or a row of the list belongs to it"))
    }
  }
})

const noStream = (id: MessageId, detail: string): Violation => ({
  rule: "no-stream",
  stream: streamOf(id),
  version: null,
  detail: `there are no facts of it, and ${detail}`
})
