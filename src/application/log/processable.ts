/**
 * Work on facts of the log that leaves out the streams it fails on: a fact that this release can't read, a history that no law
 * allows, a bug. It is done for the facts of all other streams, and whoever reads owes those of these (see StreamsAside.ts).
 */
import { Effect, Result } from "effect"
import type { MessageId } from "../../domain/ids.ts"
import { UnreadableFact } from "../../domain/recorded.ts"
import { messageOf } from "../../domain/streams.ts"
import { Archive } from "../ports/Archive.ts"
import type { LoggedFact } from "../ports/EventStore.ts"
import type { SetAsideReason } from "../ports/SetAside.ts"
import type { OwedFacts, StreamAside } from "../ports/StreamsAside.ts"
import { judgeJournal, judgeMessage } from "../store/laws.ts"
import { LogReader } from "./LogReader.ts"

export interface Processed<A> {
  readonly answer: A
  /** Of the facts that were left out. */
  readonly asides: ReadonlyArray<StreamAside>
}

/** `work` may be done several times, with ever fewer facts, so it must change nothing. */
export const processable = Effect.fnUntraced(function* <A, E, R>(
  facts: ReadonlyArray<LoggedFact>,
  work: (facts: ReadonlyArray<LoggedFact>) => Effect.Effect<A, E, R>
) {
  const whole = yield* tried(work(facts))
  if (Result.isSuccess(whole)) return { answer: whole.success, asides: [] } satisfies Processed<A>
  const defects = yield* defectsAmong(facts, [...new Set(facts.map(({ stream }) => stream))], work)
  // What fails whatever it is given is no stream's fault.
  const answer = yield* work(facts.filter(({ stream }) => !defects.has(stream)))
  const blamed = yield* (yield* LogReader).blamed(defects)
  const versions = Map.groupBy(facts, ({ stream }) => stream)
  const asides = [...blamed].map(([stream, blame]) => ({
    ...{ stream, ...blame },
    versions: versions.get(stream)!.map(({ version }) => version)
  }))
  return { answer, asides } satisfies Processed<A>
})

const tried = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<Result.Result<A, unknown>, E, R> =>
  work.pipe(
    Effect.map((answer) => Result.succeed(answer)),
    Effect.catchDefect((defect) => Effect.succeed(Result.fail(defect)))
  )

/** By halves: most pages have one such stream among hundreds. */
const defectsAmong = <A, E, R>(
  facts: ReadonlyArray<LoggedFact>,
  streams: ReadonlyArray<string>,
  work: (facts: ReadonlyArray<LoggedFact>) => Effect.Effect<A, E, R>
): Effect.Effect<ReadonlyMap<string, unknown>, E, R> =>
  Effect.gen(function* () {
    const chosen = new Set(streams)
    const result = yield* tried(work(facts.filter(({ stream }) => chosen.has(stream))))
    if (Result.isSuccess(result)) return new Map<string, unknown>()
    if (streams.length <= 1) return new Map(streams.map((stream) => [stream, result.failure] as const))
    const half = streams.length >> 1
    const before = yield* defectsAmong(facts, streams.slice(0, half), work)
    return new Map([...before, ...(yield* defectsAmong(facts, streams.slice(half), work))])
  })

export interface Blame {
  readonly reason: SetAsideReason
  readonly detail: string
}

/** The facts of a page without those of streams that are set aside already, and what the reader owes of these. */
export const withoutAsides = (facts: ReadonlyArray<LoggedFact>, asides: ReadonlyMap<string, Blame>) => {
  if (asides.size === 0) return { others: facts, behind: [] }
  const later = facts.filter(({ stream }) => asides.has(stream))
  if (later.length === 0) return { others: facts, behind: [] }
  const behind = [...Map.groupBy(later, ({ stream }) => stream)].map(
    ([stream, owed]): StreamAside => ({
      ...{ stream, ...asides.get(stream)! },
      versions: owed.map(({ version }) => version)
    })
  )
  return { others: facts.filter(({ stream }) => !asides.has(stream)), behind }
}

/** The streams of what is owed, as they are stored. */
export const archived = (owed: ReadonlyArray<OwedFacts>) =>
  Effect.flatMap(Archive, (archive) => archive.streams(owed.map(({ stream }) => stream)))

/** The facts that are owed; none of a message that was forgotten meanwhile. */
export const factsOf = (
  { stream, versions }: OwedFacts,
  streams: ReadonlyMap<string, ReadonlyArray<LoggedFact>>
): ReadonlyArray<LoggedFact> => (streams.get(stream) ?? []).filter(({ version }) => versions.includes(version))

/** More streams are judged and named again. */
const NAMED_MAX = 10_000

/** Why a reader fails on these streams, which `forget` drops from memory. The log names each once, whichever readers of this process ask. */
export const blaming = (archive: Archive["Service"], forget: (id: MessageId) => void) => {
  const known = new Map<string, Blame>()
  return Effect.fnUntraced(function* (defects: ReadonlyMap<string, unknown>) {
    const blamed = new Map<string, Blame>()
    const unknown = [...defects.keys()].filter((stream) => !known.has(stream))
    const streams = unknown.length === 0 ? new Map() : yield* archive.streams(unknown)
    for (const [stream, defect] of defects) {
      const id = messageOf(stream)
      if (id !== null) forget(id)
      const blame = known.get(stream) ?? blameOf(stream, streams.get(stream) ?? [], defect)
      blamed.set(stream, blame)
      if (known.has(stream)) continue
      known.set(stream, blame)
      if (known.size > NAMED_MAX) known.delete(known.keys().next().value!)
      yield* Effect.logError(`${stream} is set aside: readers of the log can't process it`).pipe(
        Effect.annotateLogs({ stream, reason: blame.reason })
      )
    }
    return blamed
  })
}

const blameOf = (stream: string, facts: ReadonlyArray<LoggedFact>, defect: unknown): Blame => {
  const judgement = messageOf(stream) === null ? judgeJournal(stream, facts, []) : judgeMessage(facts)
  if (Result.isFailure(judgement)) {
    const { rule, version, detail } = judgement.failure
    return { reason: rule === "unreadable-fact" ? "unreadable" : "unlawful", detail: `version ${version}: ${detail}` }
  }
  const detail = defect instanceof Error ? `${defect.name}: ${defect.message}` : String(defect)
  return { reason: defect instanceof UnreadableFact ? "unreadable" : "failed", detail }
}
