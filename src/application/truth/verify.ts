/**
 * Checks that each stream is lawful (laws.ts), each message waits exactly where its facts say, each row of the list is
 * the fold of its stream, each lane obeys its circuit's facts, and no row is a stray (DerivedRows.ts). It changes
 * nothing, and may run beside a working service: a disagreement is looked at twice.
 */
import { Duration, Effect, Result } from "effect"
import { stateOf } from "../../domain/circuit/state.ts"
import type { DestinationId, MessageId } from "../../domain/ids.ts"
import { placeOf } from "../../domain/message/place.ts"
import { viewOf } from "../../domain/message/view.ts"
import { streamOf } from "../../domain/streams.ts"
import { Archive } from "../ports/Archive.ts"
import { Channels } from "../ports/Channels.ts"
import { Circuits } from "../ports/Circuits.ts"
import { DerivedRows, type Finding, type ReadyRow } from "../ports/DerivedRows.ts"
import type { LoggedFact } from "../ports/EventStore.ts"
import { rowOf } from "../ports/MessageViews.ts"
import { eachStream } from "./archiveStreams.ts"
import { judgeCircuit, judgeJournal, judgeMessage, type Lawful } from "./laws.ts"

export interface Verified {
  readonly facts: number
  readonly streams: number
  readonly messages: number
  readonly waiting: number
  /** Messages without a body and without a fact that erased it, as an import without bodies leaves them. */
  readonly bodiless: number
  readonly findings: ReadonlyArray<Finding>
}

const LOOK_AGAIN_AFTER = Duration.millis(200)
const ROWS_AT_ONCE = 1_000
const EXAMPLES_MAX = 5

interface Judged {
  readonly messageId: MessageId
  readonly facts: ReadonlyArray<LoggedFact>
  readonly lawful: Lawful
}

export const verify = Effect.fnUntraced(function* (
  progress: (facts: number) => Effect.Effect<void>,
  examplesMax = EXAMPLES_MAX
) {
  const journals = [...(yield* Channels).values()].map(({ journal }) => journal)
  const found = new Map<string, { count: number; readonly examples: Array<string> }>()
  const add = (table: string, example: string) => addTo(table, 1, [example])
  const addTo = (table: string, count: number, examples: ReadonlyArray<string>) => {
    const finding = found.get(table) ?? { count: 0, examples: [] }
    finding.count += count
    finding.examples.push(...examples.slice(0, examplesMax - finding.examples.length))
    found.set(table, finding)
  }
  const counts = { facts: 0, streams: 0, messages: 0, waiting: 0, bodiless: 0 }
  yield* eachStream(
    Effect.fnUntraced(function* (streams) {
      const messages: Array<Judged> = []
      for (const facts of streams) {
        const { stream, messageId } = facts[0]!
        counts.facts += facts.length
        const judgement = messageId === null ? judgeJournal(stream, facts, journals) : judgeMessage(facts)
        if (Result.isFailure(judgement)) {
          const { version, detail } = judgement.failure
          add("laws", `${stream}, version ${version}: ${detail}`)
        } else if (messageId !== null) {
          messages.push({ messageId, facts, lawful: judgement.success as Lawful })
        } else if (yield* isCircuitWrong(stream, facts)) {
          if (yield* Effect.delay(isStillWrong(stream), LOOK_AGAIN_AFTER)) add("circuits", stream)
        }
      }
      const { wrong, bodiless } = yield* compared(messages)
      const again = wrong.length === 0 ? [] : yield* Effect.delay(lookAgain(wrong), LOOK_AGAIN_AFTER)
      for (const { table, stream } of again) add(table, stream)
      counts.streams += streams.length
      counts.messages += messages.length
      counts.waiting += messages.filter(({ lawful }) => placeOf(lawful.tracked).type === "Waiting").length
      counts.bodiless += bodiless
      yield* progress(counts.facts)
    })
  )
  yield* eachStray((row) => Effect.sync(() => add("queue", streamOf(row.messageId))))
  for (const { table, count, examples } of yield* (yield* DerivedRows).strays) addTo(table, count, examples)
  return { ...counts, findings: [...found].map(([table, finding]) => ({ table, ...finding })) } satisfies Verified
})

interface Wrong {
  readonly table: "queue" | "list" | "bodies"
  readonly stream: string
}

const compared = Effect.fnUntraced(function* (messages: ReadonlyArray<Judged>) {
  const rows = yield* (yield* DerivedRows).compare(
    messages.map(({ messageId, facts, lawful: { tracked } }) => ({
      ...{ messageId, version: facts.at(-1)!.version, place: placeOf(tracked) }
    }))
  )
  let bodiless = 0
  const wrong = messages.flatMap(({ messageId, lawful: { tracked, history } }): ReadonlyArray<Wrong> => {
    const row = rows.get(messageId)
    // It has gone on since its facts were read.
    if (row === undefined) return []
    const { erased } = tracked.message.progress
    if (!row.hasBody && !erased) bodiless += 1
    const { listed } = row
    const isListedRight =
      listed === null ||
      (listed.version <= history.length &&
        sorted(rowOf(viewOf(messageId, history.slice(0, listed.version))!)) === sorted(listed.row))
    const tables: ReadonlyArray<Wrong["table"]> = [
      ...(row.isPlaced ? [] : ["queue" as const]),
      ...(isListedRight ? [] : ["list" as const]),
      ...(row.hasBody && erased ? ["bodies" as const] : [])
    ]
    return tables.map((table) => ({ table, stream: streamOf(messageId) }))
  })
  return { wrong, bodiless }
})

const sorted = (value: unknown): string =>
  JSON.stringify(value, (_, each) =>
    typeof each === "object" && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : each
  )

const lookAgain = Effect.fnUntraced(function* (suspects: ReadonlyArray<Wrong>) {
  const streams = yield* (yield* Archive).streams([...new Set(suspects.map(({ stream }) => stream))])
  const messages = [...streams.values()].flatMap((facts): ReadonlyArray<Judged> => {
    const lawful = judgeMessage(facts)
    return Result.isFailure(lawful) ? [] : [{ messageId: facts[0]!.messageId!, facts, lawful: lawful.success }]
  })
  const { wrong } = yield* compared(messages)
  return wrong.filter((one) => suspects.some(({ table, stream }) => table === one.table && stream === one.stream))
})

const CIRCUIT = "circuit-"

/** A lane's count of failures is no fact, and it may open earlier than planned: only what facts decide is compared. */
const isCircuitWrong = Effect.fnUntraced(function* (stream: string, facts: ReadonlyArray<LoggedFact>) {
  const circuit = stream.startsWith(CIRCUIT) ? judgeCircuit(facts) : null
  if (circuit === null || Result.isFailure(circuit)) return false
  const [state] = yield* (yield* Circuits).states([stream.slice(CIRCUIT.length) as DestinationId])
  const { status, generation } = stateOf(circuit.success, facts.at(-1)!.version)
  return state!.status !== status || state!.generation !== generation
})

const isStillWrong = Effect.fnUntraced(function* (stream: string) {
  const facts = (yield* (yield* Archive).streams([stream])).get(stream)
  return facts !== undefined && (yield* isCircuitWrong(stream, facts))
})

/** Visits the rows of lanes that are elsewhere than the facts of their messages say, at two looks. */
export const eachStray = Effect.fnUntraced(function* <E, R>(visit: (row: ReadyRow) => Effect.Effect<void, E, R>) {
  const derived = yield* DerivedRows
  const straysIn = Effect.fnUntraced(function* (rows: ReadonlyArray<ReadyRow>) {
    const streams = yield* (yield* Archive).streams([...new Set(rows.map(({ messageId }) => streamOf(messageId)))])
    return rows.filter((row) => isStray(row, streams.get(streamOf(row.messageId))))
  })
  for (let after: string | null = null; ; ) {
    const page: Page = yield* derived.ready(after, ROWS_AT_ONCE)
    if (page.next === null) return
    const suspects = yield* straysIn(page.rows)
    if (suspects.length > 0) {
      yield* Effect.sleep(LOOK_AGAIN_AFTER)
      const still: Page = yield* derived.ready(after, ROWS_AT_ONCE)
      const kept = suspects.filter((row) => still.rows.some((each) => sorted(each) === sorted(row)))
      yield* Effect.forEach(yield* straysIn(kept), visit, { discard: true })
    }
    after = page.next
  }
})

type Page = Effect.Success<ReturnType<DerivedRows["Service"]["ready"]>>

const isStray = (row: ReadyRow, facts: ReadonlyArray<LoggedFact> | undefined): boolean => {
  if (facts === undefined) return true
  const judgement = judgeMessage(facts)
  if (Result.isFailure(judgement)) return false
  const place = placeOf(judgement.success.tracked)
  return (
    place.type !== "Waiting" ||
    place.lane !== row.lane ||
    place.version !== row.version ||
    place.epoch !== row.epoch ||
    place.attempt !== row.attempt ||
    place.dueAt.epochMilliseconds !== row.dueAt.epochMilliseconds
  )
}
