/**
 * Checks the ground truth against its own rules and everything derived from it against the ground truth:
 *
 *   streams   each is a history that its law allows (laws.ts)
 *   queue     each message waits exactly where its facts say, and nothing else waits
 *   views     each row of the list is the fold of its stream, as far as it has been read
 *   bodies    what history says was erased is gone, and nothing belongs to a message that is not there
 *   circuits  each lane obeys the circuit that its facts tell
 *
 * It may run beside a working service. What does not agree is looked at again, stream and rows together, before it
 * is called a violation: what has changed in between was only on its way. It repairs nothing.
 *
 * Memory does not grow with the store: a page of facts is held at a time. It leaves out what can't be folded (is a
 * body the one that was sent?) and the projections that have no list of their own to compare.
 */
import { Duration, Effect, Result } from "effect"
import { stateOf } from "../../domain/circuit/state.ts"
import type { DestinationId, MessageId } from "../../domain/ids.ts"
import { type Place, placeOf } from "../../domain/message/place.ts"
import { viewOf } from "../../domain/message/view.ts"
import { messageOf, streamOf } from "../../domain/streams.ts"
import type { StoreUnavailable } from "../errors.ts"
import { Archive } from "../ports/Archive.ts"
import { Circuits } from "../ports/Circuits.ts"
import { DerivedRows, type DerivedState, type Lookup, type ReadyRow } from "../ports/DerivedRows.ts"
import type { LoggedFact } from "../ports/EventStore.ts"
import { eachStream } from "./archiveStreams.ts"
import { type Breach, judgeCircuit, judgeJournal, judgeMessage, type Lawful } from "./laws.ts"

export type Rule =
  | Breach["rule"]
  /** It waits, and nobody would find it; or it is under way, and nobody has it. */
  | "not-in-queue"
  | "twice-in-queue"
  /** Something stands in the queue, or in a line, that the facts do not put there. */
  | "misplaced"
  | "broken-line"
  | "wrong-view"
  | "wrong-counts"
  | "body-not-erased"
  | "no-stream"
  | "wrong-circuit"

export interface Violation {
  readonly rule: Rule
  /** A stream, or what else it is about. */
  readonly stream: string
  readonly version: number | null
  readonly detail: string
}

export interface Verified {
  readonly facts: number
  readonly streams: number
  readonly messages: number
  readonly waiting: number
  /** Messages without a body though no fact says that it was erased: an import without bodies leaves them so. */
  readonly bodiless: number
}

/** How often a stream that is being written is looked at again, and how long apart. */
const LOOKS_MAX = 5
const LOOK_AGAIN_AFTER = Duration.millis(200)
const LOOKS_AT_ONCE = 100
const ROWS_AT_ONCE = 1_000

type Needs = Archive | DerivedRows | Circuits

export interface Hooks<E, R> {
  /** Called as they are found; failing ends the check. */
  readonly violation: (violation: Violation) => Effect.Effect<void, E, R>
  readonly progress: (verified: Verified) => Effect.Effect<void>
}

export const verifyStreams = Effect.fnUntraced(function* <E, R>(
  hooks: Hooks<E, R>
): Effect.fn.Return<Verified, E | StoreUnavailable, R | Needs> {
  let verified: Verified = { facts: 0, streams: 0, messages: 0, waiting: 0, bodiless: 0 }
  yield* eachStream(
    Effect.fnUntraced(function* (streams) {
      const suspects: Array<string> = []
      const messages: Array<Judged> = []
      for (const facts of streams) {
        const { stream, messageId } = facts[0]!
        if (messageId === null) {
          const judgement = judgeJournal(stream, facts)
          if (Result.isFailure(judgement)) yield* hooks.violation({ stream, ...judgement.failure })
          else if (yield* isCircuitWrong(stream, facts)) suspects.push(stream)
          continue
        }
        const judgement = judgeMessage(facts)
        if (Result.isFailure(judgement)) yield* hooks.violation({ stream, ...judgement.failure })
        else messages.push(judged(messageId, facts, judgement.success))
      }
      const found = yield* lookAt(messages)
      const order = (yield* Archive).order
      let bodiless = 0
      for (const message of messages) {
        const there = found.get(message.messageId)!
        if (disagreements(message, there, order).length > 0) suspects.push(message.facts[0]!.stream)
        if (!there.hasBody && !message.lawful.tracked.message.progress.erased) bodiless += 1
      }
      const again = yield* Effect.forEach(suspects, lookAgain, { concurrency: LOOKS_AT_ONCE })
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
  for (const detail of yield* derived.wrongCounts) {
    yield* hooks.violation({ rule: "wrong-counts", stream: "stats", version: null, detail })
  }
  return verified
})

// -------------------------------------------------------------------------------------- one message

interface Judged {
  readonly messageId: MessageId
  readonly facts: ReadonlyArray<LoggedFact>
  readonly lawful: Lawful
  readonly place: Place
}

const judged = (messageId: MessageId, facts: ReadonlyArray<LoggedFact>, lawful: Lawful): Judged => ({
  messageId,
  facts,
  lawful,
  place: placeOf(lawful.tracked)
})

const lookupOf = ({ messageId, place }: Judged): Lookup => ({ messageId, wait: place.type === "Out" ? null : place })

const lookAt = Effect.fnUntraced(function* (messages: ReadonlyArray<Judged>) {
  return messages.length === 0
    ? new Map<MessageId, DerivedState>()
    : yield* (yield* DerivedRows).look(messages.map(lookupOf))
})

type Disagreement = Pick<Violation, "rule" | "version" | "detail">

const disagreements = (
  message: Judged,
  found: DerivedState,
  order: Archive["Service"]["order"]
): ReadonlyArray<Disagreement> => {
  const { version } = message.facts.at(-1)!
  const said = [queueDisagreement(message, found), viewDisagreement(message, found, order)]
  if (found.hasBody && message.lawful.tracked.message.progress.erased) {
    said.push({ rule: "body-not-erased", detail: "its facts say that its body was erased, and there is one" })
  }
  return said.flatMap((each) => (each === null ? [] : [{ version, ...each }]))
}

type Said = Pick<Violation, "rule" | "detail"> | null

const queueDisagreement = ({ place }: Judged, { isReady, held, linePlace }: DerivedState): Said => {
  const places = held + (isReady ? 1 : 0)
  if (place.type === "Out") {
    const mayStandDead = place.dead && linePlace?.state === "DEAD"
    return linePlace === null || mayStandDead
      ? null
      : misplaced(`nothing is to be done, and it stands in line ${linePlace.line}`)
  }
  if (place.line === null) {
    if (linePlace !== null) return misplaced(`it has no ordering key, and stands in line ${linePlace.line}`)
  } else {
    if (linePlace === null) return missing(`it has the ordering key ${place.line}, and stands in no line`)
    if (linePlace.line !== place.line || linePlace.lane !== place.lane)
      return misplaced(`it stands in line ${linePlace.line}`)
    if (linePlace.state === "DEAD") return misplaced("it stands dead in its line, and is not")
    if (linePlace.state === "WAITING") {
      if (place.type === "UnderWay") return missing("an attempt is under way, and its line has it waiting")
      return places === 0 ? null : twice("behind somebody in its line and in its lane")
    }
  }
  if (place.type === "UnderWay") {
    if (isReady) return twice("an attempt is under way, and it waits in its lane")
    return held === 0 ? missing("an attempt is under way, and no worker holds it") : null
  }
  if (places === 0) return missing("it waits, and is neither in its lane nor in a worker's hands")
  return places === 1 ? null : twice(`it waits once, and was found ${places} times`)
}

const misplaced = (detail: string): Said => ({ rule: "misplaced", detail })
const missing = (detail: string): Said => ({ rule: "not-in-queue", detail })
const twice = (detail: string) => ({ rule: "twice-in-queue" as const, detail })

const viewDisagreement = (
  { messageId, facts, lawful }: Judged,
  found: DerivedState,
  order: Archive["Service"]["order"]
): Said => {
  const { view, viewsAt } = found
  const seen = view === null ? 0 : Number((view as { readonly version?: unknown }).version)
  const unseen = facts[seen]
  if (unseen !== undefined && viewsAt !== null && order(unseen.position, viewsAt) <= 0) {
    return wrongView(view === null ? "it is not in the list" : `the list knows it up to version ${seen}`)
  }
  if (view === null) return null
  if (seen > facts.length) return wrongView(`the list knows version ${seen}, and there are ${facts.length}`)
  const difference = differenceOf(viewOf(messageId, lawful.history.slice(0, seen)), view)
  if (difference !== null) return wrongView(difference)
  return found.isViewFindable ? null : wrongView("what lists are searched by is not what the view says")
}

const wrongView = (detail: string): Said => ({ rule: "wrong-view", detail })

/** In words; null when they say the same. */
const differenceOf = (fold: unknown, row: unknown): string | null => {
  const text = JSON.stringify(fold)
  if (text === JSON.stringify(row)) return null
  const [one, other] = [JSON.parse(text) as Fields, row as Fields]
  for (const field of new Set([...Object.keys(one), ...Object.keys(other)])) {
    const [folded, listed] = [sorted(one[field]), sorted(other[field])]
    if (folded !== listed) return `${field} is ${folded} by the facts and ${listed} in the list`
  }
  return null
}

type Fields = Readonly<Record<string, unknown>>

const sorted = (value: unknown): string | undefined =>
  JSON.stringify(value, (_, each) =>
    typeof each === "object" && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : each
  )

// ------------------------------------------------------------------------------------- a second look

/** What is wrong with a stream while nobody writes to it. */
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
  // Somebody writes to it all the time: it is not lost.
  return []
})

const violationsOf = Effect.fnUntraced(function* (stream: string, facts: ReadonlyArray<LoggedFact>) {
  const messageId = messageOf(stream)
  if (messageId === null) return (yield* isCircuitWrong(stream, facts)) ? [wrongCircuit(stream, facts)] : []
  // Forgotten as a whole meanwhile.
  if (facts.length === 0) return []
  const judgement = judgeMessage(facts)
  if (Result.isFailure(judgement)) return [{ stream, ...judgement.failure }]
  const message = judged(messageId, facts, judgement.success)
  const found = (yield* lookAt([message])).get(messageId)!
  return disagreements(message, found, (yield* Archive).order).map((each): Violation => ({ stream, ...each }))
})

// ------------------------------------------------------------------------------------------ circuits

const CIRCUIT = "circuit-"

/** A lane's count of failures is no fact, and its silence may be shorter than planned: only what facts decide is compared. */
const isCircuitWrong = Effect.fnUntraced(function* (stream: string, facts: ReadonlyArray<LoggedFact>) {
  if (!stream.startsWith(CIRCUIT)) return false
  const circuit = judgeCircuit(facts)
  if (Result.isFailure(circuit)) return false
  const [state] = yield* (yield* Circuits).states([stream.slice(CIRCUIT.length) as DestinationId])
  const { status, generation } = stateOf(circuit.success, facts.length)
  return state!.status !== status || state!.generation !== generation
})

const wrongCircuit = (stream: string, facts: ReadonlyArray<LoggedFact>): Violation => ({
  rule: "wrong-circuit",
  stream,
  version: facts.length,
  detail: "its lane obeys another state than its facts tell"
})

// -------------------------------------------------------------------------- what the facts do not know

type Page = Effect.Success<ReturnType<DerivedRows["Service"]["ready"]>>

/** Every row of the queue and of its lines is one that the facts put there. */
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

/** Null when the row is where its facts put it, or when its facts can't tell, which was reported with them. */
const strayDetail = (row: ReadyRow, facts: ReadonlyArray<LoggedFact> | undefined): Said => {
  if (facts === undefined) return { rule: "no-stream", detail: "it waits in a lane" }
  const judgement = judgeMessage(facts)
  if (Result.isFailure(judgement)) return null
  const place = placeOf(judgement.success.tracked)
  if (place.type === "Out") return misplaced("nothing is to be done, and it waits in a lane")
  if (place.type === "UnderWay") return twice("an attempt is under way, and it waits in a lane")
  const same =
    place.lane === row.lane &&
    place.version === row.version &&
    place.epoch === row.epoch &&
    place.attempt === row.attempt &&
    place.dueAt.epochMilliseconds === row.dueAt.epochMilliseconds
  return same ? null : misplaced("it waits in its lane otherwise than its facts say")
}

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

/** Everything that belongs to a message belongs to one that is there. */
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
    // One that was forgotten a moment ago is gone from both.
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
