/**
 * The event store where streams of messages live elsewhere (application/ports/Streams.ts) and PostgreSQL has a copy of every fact. No
 * transaction spans the two, so an append has three steps; docs/decisions/0005 has the crashes:
 *
 *   reserve   one statement checks fence and gate, takes the key, and keeps what comes with the facts as an `append_intent`
 *   append    the facts, there, on the exact version: from here on they are true. Messages of one line go one by one
 *   copy      the same entries here: facts, queue changes, body and answer in one transaction
 *
 * The primary key (stream, version) makes a copy repeatable. `catchUp` makes missing ones: before a load, when an append meets a copy that
 * is behind, and in the follower. It decides queue changes again from the facts, so that nothing stored disagrees with them.
 */
import { randomUUID } from "node:crypto"
import { DateTime, Effect, Result } from "effect"
import { entryOf } from "../../../application/entry.ts"
import type { Append, AppendResult, EventStore, StreamVersion } from "../../../application/ports/EventStore.ts"
import type { Events, NewEvent, PublishResult } from "../../../application/ports/Events.ts"
import { StoreUnavailable } from "../../../application/ports/errors.ts"
import { Streams, type Writing } from "../../../application/ports/Streams.ts"
import type { MessageId } from "../../../domain/ids.ts"
import { initial, replay } from "../../../domain/message/decider.ts"
import { fromRecorded, toRecorded } from "../../../domain/message/recorded.ts"
import { keptActor } from "../../../domain/recorded.ts"
import { publishedEvent, publishingBy } from "../events/PostgresEvents.ts"
import { groupCommit } from "../groupCommit.ts"
import { literal } from "../literal.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"
import { weightOf } from "../store/append.ts"

const reserveStatement = prepared`select n, verdict, other, hash from reserve_appends(
    $1::text[], $2::uuid[], $3::uuid[], $4::uuid[], $5::int[], $6::boolean[], $7::text[], $8::text[], $9::text[], $10::text[])`
const oweStatement = prepared`select event, other, hash from owe_messages($1, $2::text[], $3::uuid[], $4::text[])`
const intentColumns = "writing, message_id, entry"
const intentsStatement = prepared`select ${intentColumns} from append_intent where writing = any ($1::text[])`
const openingsStatement = prepared`select ${intentColumns} from append_intent i
    where opens and message_id = any ($1::uuid[]) and not exists (select from event e where e.stream_id = i.message_id) order by at, writing`
const versionsStatement = prepared`select u.id, v.version from unnest($1::uuid[]) u(id)
    cross join lateral (select e.version from event e where e.stream_id = u.id order by e.version desc limit 1) v`

const STREAMS_AT_ONCE = 32

interface Intent {
  readonly writing: string
  readonly entry: Append
}

/** The stored part of an entry; the rest is decided anew from its facts. */
const keptOf = ({ expected, facts, at, actor, opening, response }: Append) => ({
  ...{ expected, facts: facts.map(toRecorded), at: DateTime.toEpochMillis(at), actor, response },
  opening: opening === null ? null : { ...opening, idempotency: null }
})

const intentOf = (writing: string, messageId: MessageId, text: string): Intent => {
  const { facts, at, ...kept } = JSON.parse(text) as ReturnType<typeof keptOf>
  const said = { facts: facts.map((fact) => Result.getOrThrow(fromRecorded(fact))), at: DateTime.makeUnsafe(at) }
  return { writing, entry: { ...kept, ...said, messageId, queue: null, fence: null, gate: null } }
}

const intentsIn = (rows: ReadonlyArray<ReadonlyArray<string | null>>) =>
  rows.map(([writing, id, entry]) => intentOf(writing!, id as MessageId, entry!))

const writingOf = ({ messageId, expected, at, actor, facts }: Append, writing: string): Writing => ({
  ...{ messageId, expected, writing, at },
  actor: keptActor(actor),
  facts: facts.map((fact) => ({ ...toRecorded(fact), forgettable: null }))
})

/** Without fence, gate and key, which the reservation checked. */
const copyOf = (entry: Append): Append => ({
  ...entry,
  ...{ fence: null, gate: null },
  opening: entry.opening === null ? null : { ...entry.opening, idempotency: null }
})

/** True when an entry brings more than its facts. */
const isKept = ({ opening, response, actor, facts }: Append) =>
  opening !== null ||
  response !== null ||
  keptActor(actor) !== actor ||
  facts.some((fact) => toRecorded(fact).forgettable != null)

type Reserved = { readonly type: "Reserved" } | { readonly type: "There" } | Exclude<AppendResult, { type: "Appended" }>

/** `local` is the store of PostgreSQL alone. */
export const overStreams = Effect.fnUntraced(function* (local: EventStore["Service"]) {
  const streams = yield* Streams
  const { appends, lookups } = yield* Postgres
  const reserve = yield* groupCommit<Intent, Reserved>({
    keyOf: ({ entry }) => entry.messageId,
    atOnce: 2,
    max: 1_000,
    weightOf: ({ entry }) => weightOf(entry),
    run: Effect.fnUntraced(function* (intents) {
      const entries = intents.map(({ entry }) => entry)
      const keys = entries.map(({ opening }) => opening?.idempotency ?? null)
      const rows = yield* appends.rows(reserveStatement, [
        intents.map(({ writing }) => writing),
        entries.map(({ messageId }) => messageId),
        entries.map(({ fence }) => fence),
        entries.map(({ gate }) => gate?.lane ?? null),
        entries.map(({ gate }) => gate?.generation ?? null),
        entries.map(({ opening, expected }) => opening !== null && expected === 0),
        keys.map((key) => key?.orgId ?? null),
        keys.map((key) => key?.key ?? null),
        keys.map((key) => key?.requestHash ?? null),
        intents.map(({ entry }) => (isKept(entry) ? JSON.stringify(keptOf(entry)) : null))
      ])
      const refused = new Map(rows.map((row) => [Number(row[0]) - 1, row]))
      return entries.map((_, n): Reserved => {
        const [, verdict, other, hash] = refused.get(n) ?? []
        if (verdict === undefined) return { type: "Reserved" }
        if (verdict === "there") return { type: "There" }
        if (verdict !== "duplicate") return { type: verdict === "fence" ? "FenceLost" : "GateClosed" }
        return { type: "DuplicateKey", messageId: other as MessageId, requestHash: hash! }
      })
    })
  })

  /** Copies facts that are missing here. Answers messages whose streams begin without an intent, which are unknown here. */
  const catchUp = Effect.fnUntraced(function* (
    ids: ReadonlyArray<MessageId>,
    unlawful: (id: MessageId, version: StreamVersion, defect: unknown) => Effect.Effect<void, StoreUnavailable> = (
      _id,
      _version,
      defect
    ) => Effect.die(defect)
  ): Effect.fn.Return<ReadonlySet<MessageId>, StoreUnavailable> {
    const strangers = new Set<MessageId>()
    const copied = new Map(
      yield* reading(lookups.rows(versionsStatement, [literal(ids)]), (rows) =>
        rows.map(([id, version]) => [id as MessageId, Number(version)] as const)
      )
    )
    const tails = (yield* Effect.forEach(ids, (id) => streams.read(id, copied.get(id) ?? 0), {
      concurrency: STREAMS_AT_ONCE
    })).filter((tail) => tail.length > 0)
    if (tails.length === 0) return strangers
    const names = tails.flatMap((tail) => tail.map(({ writing }) => writing))
    const intents = new Map(
      intentsIn(yield* unavailable(lookups.rows(intentsStatement, [names]))).map(({ writing, entry }) => [
        writing,
        entry
      ])
    )
    const known = yield* local.loadMany(tails.flatMap(([first]) => (first!.expected === 0 ? [] : [first!.messageId])))
    const found: Array<ReadonlyArray<Append>> = []
    const wrong: Array<Parameters<typeof unlawful>> = []
    for (const tail of tails) {
      const [{ messageId, expected: from, writing: first }] = tail as [Writing]
      const stream = known.get(messageId) ?? { version: 0, facts: [] }
      // Another installation's, or forgotten here.
      if (from === 0 && !intents.has(first)) {
        strangers.add(messageId)
        continue
      }
      const entries: Array<Append> = []
      yield* Effect.catchDefect(
        Effect.sync(() => {
          let message = stream.version === 0 ? initial : replay(stream.facts.map(({ fact }) => fact))
          for (const { writing, at, actor, expected, facts } of tail) {
            if (expected < stream.version) continue
            const kept = intents.get(writing)
            const said = kept?.facts ?? facts.map((fact) => Result.getOrThrow(fromRecorded(fact)))
            const beside = {
              ...{ actor: kept?.actor ?? actor, opening: kept?.opening ?? null, response: kept?.response ?? null }
            }
            const step = entryOf(messageId, message, expected, said, at, beside)
            entries.push(step.entry)
            message = step.after
          }
        }),
        (defect) => Effect.sync(() => wrong.push([messageId, versionAfter(entries, from) + 1, defect]))
      )
      found.push(entries)
    }
    // The first writings of all, then the second ones: one entry of a stream in each.
    for (let n = 0; ; n++) {
      const entries = found.flatMap((each) => each[n] ?? [])
      if (entries.length === 0) break
      yield* local.append(entries)
    }
    // Last: what is put in the queue is taken to be processable.
    for (const each of wrong) yield* unlawful(...each)
    return strangers
  })

  /** Appends reserved openings of these messages that are missing there. */
  const complete = Effect.fnUntraced(function* (ids: ReadonlyArray<MessageId>) {
    if (ids.length === 0) return
    const rows = yield* unavailable(lookups.rows(openingsStatement, [ids]))
    const intents = intentsIn(rows)
    if (intents.length === 0) return
    for (const { entry, writing } of intents) {
      if ((yield* streams.append(writingOf(entry, writing))) === "Removed") return yield* Effect.fail(givenUp())
    }
    yield* catchUp(intents.map(({ entry }) => entry.messageId))
  })

  /** Appends reserved intents there, in order, and copies them here. */
  const appendReserved = Effect.fnUntraced(function* (reserved: ReadonlyArray<Intent>) {
    const answers = new Map<Intent, "Appended" | "VersionConflict" | "Removed">()
    const lines = Map.groupBy(reserved, (intent) => lineOf(intent.entry) ?? intent)
    const ends = yield* Effect.forEach(
      lines.values(),
      (line) =>
        Effect.result(
          Effect.forEach(line, (intent) =>
            Effect.map(streams.append(writingOf(intent.entry, intent.writing)), (answer) => {
              answers.set(intent, answer)
            })
          )
        ),
      { concurrency: "unbounded" }
    )
    const appended = reserved.filter((intent) => answers.get(intent) === "Appended")
    if (appended.length > 0) {
      const copies = yield* local.append(appended.map(({ entry }) => copyOf(entry)))
      const behind = appended.filter((_, n) => copies[n]!.type !== "Appended").map(({ entry }) => entry.messageId)
      const strangers = behind.length === 0 ? new Set() : yield* catchUp(behind)
      for (const intent of appended) if (strangers.has(intent.entry.messageId)) answers.set(intent, "VersionConflict")
    }
    for (const end of ends) if (Result.isFailure(end)) return yield* Effect.fail(end.failure)
    return answers
  })

  const append = Effect.fnUntraced(function* (entries: ReadonlyArray<Append>) {
    const results = new Array<AppendResult>(entries.length)
    for (const round of roundsOf(entries)) {
      const intents = round.map((i): Intent => ({ writing: randomUUID(), entry: entries[i]! }))
      const verdicts = yield* unavailable(reserve(intents))
      const begun = verdicts.flatMap((verdict, n) =>
        verdict.type === "DuplicateKey"
          ? [verdict.messageId]
          : verdict.type === "There"
            ? [intents[n]!.entry.messageId]
            : []
      )
      const answers = yield* appendReserved(intents.filter((_, n) => verdicts[n]!.type === "Reserved"))
      yield* complete(begun)
      for (const [n, i] of round.entries()) {
        const verdict = verdicts[n]!
        const { expected, facts } = entries[i]!
        if (expected === 0 && answers.get(intents[n]!) === "Removed") return yield* Effect.fail(givenUp())
        results[i] =
          verdict.type === "There"
            ? { type: "VersionConflict" }
            : verdict.type !== "Reserved"
              ? verdict
              : answers.get(intents[n]!) === "Appended"
                ? { type: "Appended", version: expected + facts.length }
                : { type: "VersionConflict" }
      }
    }
    return results as ReadonlyArray<AppendResult>
  })

  const owe = yield* publishingBy((events) => {
    const messages = events.flatMap((event) => event.messages.map((entry) => ({ entry, writing: openingOf(entry) })))
    return appends.rows(oweStatement, [
      JSON.stringify(events.map(publishedEvent)),
      messages.map(({ writing }) => writing),
      messages.map(({ entry }) => entry.messageId),
      messages.map(({ entry }) => JSON.stringify(keptOf(entry)))
    ])
  })
  /** Stored events owe their messages: a store that does not answer gets them later. */
  const publish: Events["Service"]["publish"] = Effect.fnUntraced(function* (events: ReadonlyArray<NewEvent>) {
    const results: ReadonlyArray<PublishResult> = yield* unavailable(owe(events))
    const messages = events.flatMap((event, n) => (results[n]!.type === "Published" ? event.messages : []))
    yield* appendReserved(messages.map((entry) => ({ entry, writing: openingOf(entry) }))).pipe(
      Effect.catch((error) => Effect.logWarning("messages of an event are stored later", error.cause))
    )
    return results
  })

  const store: EventStore["Service"] = {
    ...local,
    append,
    load: (id) => Effect.andThen(catchUp([id]), local.load(id)),
    loadMany: (ids) => Effect.andThen(catchUp(ids), local.loadMany(ids)),
    acceptedUnder: (orgId, key) =>
      Effect.tap(local.acceptedUnder(orgId, key), (holder) =>
        holder === null ? Effect.void : complete([holder.messageId])
      )
  }
  return { store, publish, catchUp, complete }
})

const versionAfter = (entries: ReadonlyArray<Append>, from: StreamVersion) =>
  entries.reduce((_, { expected, facts }) => expected + facts.length, from)

/** The follower took the append for abandoned and ended its stream. */
const givenUp = () =>
  new StoreUnavailable({ cause: "the message was given up", says: "the message was given up before it was stored" })

const openingOf = ({ messageId }: Append): string => messageId

const lineOf = ({ queue }: Append): string | null => (queue?.line == null ? null : `${queue.lane}/${queue.line}`)

/** The indices of entries, in rounds: two entries of one stream, or with one key, are never in the same round. */
const roundsOf = (entries: ReadonlyArray<Append>): ReadonlyArray<ReadonlyArray<number>> => {
  const rounds: Array<Array<number>> = []
  const next = new Map<string, number>()
  for (const [i, { messageId, opening }] of entries.entries()) {
    const key = opening?.idempotency ?? null
    const names = key === null ? [messageId] : [messageId, `${key.orgId}/${key.key}`]
    const round = Math.max(...names.map((name) => next.get(name) ?? 0))
    for (const name of names) next.set(name, round + 1)
    const mates = rounds[round]
    if (mates === undefined) rounds.push([i])
    else mates.push(i)
  }
  return rounds
}
