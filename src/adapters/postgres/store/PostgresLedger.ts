/**
 * The ledger in PostgreSQL. What settles each race is in schema/0009_event_store.sql, `functions/reserve_appends.sql` and `functions/apply_stored.sql`.
 *
 * A reservation reaches the disk before it is answered: the body of a message must be there when its first fact is.
 * What is applied need not. If a crash of the server takes it back, it also takes back every later position of the
 * follower, who then applies it again.
 */
import { DateTime, Effect, Layer } from "effect"
import type { Append } from "../../../application/ports/EventStore.ts"
import type { JournalFact, JournalName } from "../../../application/ports/Journals.ts"
import { type Intent, Ledger, type Reservation, type Stored } from "../../../application/ports/Ledger.ts"
import { Pulse } from "../../../application/ports/Pulse.ts"
import type { EventId, MessageId } from "../../../domain/ids.ts"
import { toRecorded } from "../../../domain/message/recorded.ts"
import { messageOf } from "../../../domain/streams.ts"
import { publishedEvent, publishingBy } from "../events/PostgresEvents.ts"
import { groupCommit } from "../groupCommit.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"
import { SealedTexts, type Texts } from "../SealedTexts.ts"
import { moveOf, weightOf } from "./append.ts"
import { acceptedUnder } from "./PostgresEventStore.ts"
import { streamIdOf } from "./PostgresJournals.ts"
import { newKey, openedKey } from "./PostgresStreamKeys.ts"
import { openedHash, storedAnswer, storedHash } from "./storedTexts.ts"

const LEASE_MS = 5_000
const TIDY_AT_ONCE = 5_000
/** How long a line waits for a fact that a place was reserved for. Longer than an append takes whose caller is answered. */
const RESERVED_MS = 6_000

const reserveStatement = prepared`select n, verdict, other, hash, age_ms, null from reserve_appends($1) union all select null, null, null, null, null, clock_timestamp()::text`
const withdrawStatement = prepared`select withdraw_intents($1::uuid[])`
const applyStatement = prepared`select apply_stored($1, $2::timestamptz)`
const expireStatement = prepared`select expire_reservations(${RESERVED_MS})`
const advanceStatement = prepared`select advance_follower($1, $2, $3, $4, $5, $6)`
// Streams that are being moved may still be in the log of Postgres itself.
const knownStatement = prepared`select u.id from unnest($1::uuid[]) u(id)
    where exists (select 1 from event e where e.stream_id = u.id)
      or exists (select 1 from copied_fact k where k.stream_id = u.id)
      or exists (select 1 from append_intent i where i.message_id = u.id)`
const knownJournalsStatement = prepared`select u.name from unnest($1::uuid[], $2::text[]) u(id, name)
    where exists (select from event e where e.stream_id = u.id)`
const followStatement = prepared`update log_follower set holder = $2, lease_until = statement_timestamp() + ${LEASE_MS} * interval '1 millisecond'
    where name = $1 and (holder = $2 or lease_until < statement_timestamp()) returning position`
const followedStatement = prepared`select sum(facts) from log_follower`
const leaveStatement = prepared`update log_follower set lease_until = '-infinity' where holder = $1`
const tidyStatement = prepared`delete from applied_change where message_id = any (array(
    select message_id from applied_change
    where at < statement_timestamp() - interval '2 minutes' and log_at <= $1 order by at limit ${TIDY_AT_ONCE}))`
const journalsStatement = prepared`select stream, version, (extract(epoch from at) * 1000)::bigint, actor, name, data, tx || ':' || position
    from event
    where stream is not null and (tx, position) > ($1::bigint, $2::bigint)
      and tx < (select log_end())
    order by tx, position limit $3`
const messagesAfterStatement = prepared`select 'message-' || stream_id from message_fact
    where version = 1 and stream_id > $1::uuid order by stream_id limit $2`
const journalNamesStatement = prepared`select stream from event where stream is not null and version = 1 and stream_id > $1::uuid
    order by stream_id limit $2`
const expectHistoryStatement = prepared`with copies as (
      insert into copied_fact (stream_id, at, version, name, data, actor)
        select $1, 'epoch'::timestamptz + c.at_ms * interval '1 millisecond', c.version, c.name, c.data, c.actor
        from json_to_recordset($3) c(version int, name text, data json, at_ms bigint, actor text)
        where not exists (select 1 from event e where e.stream_id = $1 and e.version = c.version)
      on conflict do nothing
    ), counted as (
      update log_follower set facts = facts + $4 where name = 'queue'
    )
    insert into applied_change as a (message_id, version) values ($1, $2)
    on conflict (message_id) do update set version = greatest(a.version, excluded.version)`
const oweStatement = prepared`select event, other, hash from owe_messages($1, $2)`
// Far longer than whoever published takes to store them, or to find that it can't.
const owedStatement = prepared`select message_id, event_id, name, data, actor, (extract(epoch from at) * 1000)::bigint from owed_message
    where kept_at < statement_timestamp() - interval '6 seconds' order by kept_at limit $1`
const settledStatement = prepared`delete from owed_message where message_id = any ($1::uuid[])`
const adoptStatement = prepared`with copies as (
        insert into copied_fact (stream_id, at, version, name, data, actor)
          select stream_id, at, version, name, data, actor from event
          where stream is null and (version = 1 or data ->> 'providerMessageId' is not null)
        on conflict do nothing
      ),
      moved as (delete from event where stream is null),
      past as (update applied_change set log_at = 0 where log_at is null)
    update log_follower set position = $1 where name = 'queue'`
const NOBODY = "00000000-0000-0000-0000-000000000000"
const forgottenStatement = prepared`select message_id, coalesce(stream, 'message-' || message_id) from forgotten_stream limit $1`
const forgotStatement = prepared`delete from forgotten_stream where message_id = any ($1::uuid[])`
const leftBehindStatement = prepared`select event_id, message_id from append_intent where at < statement_timestamp() - interval '1 day' order by at limit $1`

export const layer = Layer.effect(
  Ledger,
  Effect.gen(function* () {
    const { appends, durable, queue, lookups, reads } = yield* Postgres
    const pulse = yield* Pulse
    const texts = yield* SealedTexts
    const reserving = texts.writing(reserveStatement)
    const owing = texts.writing(oweStatement)

    const reserve = yield* groupCommit<Intent, Reservation>({
      keyOf: ({ id }) => id,
      atOnce: 2,
      max: 1_000,
      weightOf: ({ entry }) => weightOf(entry),
      run: (intents) => {
        const given = intents.map((intent, n) => asked(texts, intent, n))
        return appends.rows(...reserving([JSON.stringify(given)])).pipe(
          Effect.tap((rows) => texts.prepare(rows.map(([_n, _verdict, _other, hash]) => hash))),
          Effect.map((rows) => reservationsOf(texts, intents, given, rows))
        )
      }
    })

    const apply = yield* groupCommit<{ readonly stored: Stored; readonly begun: string }, void>({
      keyOf: ({ stored }) => stored.messageId,
      atOnce: 2,
      max: 500,
      run: (batch) => {
        // The one that began first speaks for all: none of them may come too late.
        const begun = batch.map((each) => each.begun).reduce((a, b) => (a < b ? a : b))
        const stored = batch.map((each) => each.stored)
        return queue.rows(applyStatement, [JSON.stringify(stored.map(meant)), begun]).pipe(
          Effect.tap(([row]) => (row![0] === "t" ? pulse.wake("queue") : Effect.void)),
          Effect.as(batch.map(() => undefined))
        )
      }
    })

    const owe = yield* publishingBy(texts, (events) =>
      appends.rows(
        ...owing([
          JSON.stringify(events.map((event) => publishedEvent(texts, event))),
          JSON.stringify(events.flatMap(({ id, messages }) => messages.map((entry) => owedMessage(id, entry))))
        ])
      )
    )

    return Ledger.of({
      reserve: (intents) => unavailable(reserve(intents)),
      owe: (events) => unavailable(owe(events)),
      owed: (limit) =>
        reading(reads.rows(owedStatement, [limit]), (rows) =>
          rows.map(([id, event, name, data, actor, at]) => ({
            messageId: id as MessageId,
            eventId: event as EventId,
            name: name!,
            data: data!,
            actor: actor ?? null,
            at: DateTime.makeUnsafe(Number(at))
          }))
        ),
      settled: (ids) => unavailable(queue.rows(settledStatement, [ids])).pipe(Effect.asVoid),
      withdraw: (ids) => unavailable(durable.rows(withdrawStatement, [ids])).pipe(Effect.asVoid),
      apply: (stored, begun) => unavailable(apply([{ stored, begun }])).pipe(Effect.asVoid),
      takenBy: acceptedUnder(lookups, texts),
      known: (ids) =>
        reading(lookups.rows(knownStatement, [ids]), (rows) => new Set(rows.map(([id]) => id as MessageId))),
      knownJournals: (names) =>
        reading(
          lookups.rows(knownJournalsStatement, [names.map((name) => streamIdOf(name as JournalName)), names]),
          (rows) => new Set(rows.map(([name]) => name!))
        ),
      follow: (follower, holder) =>
        reading(queue.rows(followStatement, [follower, holder]), ([row]) =>
          row === undefined ? null : { position: row[0] ?? null }
        ),
      advance: (follower, holder, { from, to, facts, stored }) =>
        unavailable(
          queue.rows(advanceStatement, [follower, holder, from, to, facts, JSON.stringify(stored.map(meant))])
        ).pipe(
          Effect.tap(([row]) => (row![0] === "t" ? pulse.wake("queue") : Effect.void)),
          Effect.map(([row]) => row![0] !== null)
        ),
      followed: reading(reads.rows(followedStatement, []), ([row]) => Number(row![0])),
      leave: (holder) => unavailable(queue.rows(leaveStatement, [holder])).pipe(Effect.asVoid),
      expireReservations: reading(queue.rows(expireStatement, []), ([row]) => row![0] === "t").pipe(
        Effect.tap((isWork) => (isWork ? pulse.wake("queue") : Effect.void)),
        Effect.asVoid
      ),
      tidy: (followedTo) => unavailable(queue.rows(tidyStatement, [String(followedTo)])).pipe(Effect.asVoid),
      journalsAfter: (position, limit) => {
        const [tx, nth] = position === null ? ["0", "0"] : position.split(":")
        return reading(reads.rows(journalsStatement, [tx, nth, limit]), (rows) =>
          rows.map(([journal, version, at, actor, name, data, at_]) => ({
            journal: journal!,
            version: Number(version),
            at: DateTime.makeUnsafe(Number(at)),
            actor: actor ?? null,
            name: name!,
            data: data!,
            position: at_!
          }))
        )
      },
      streamsAfter: Effect.fnUntraced(function* (stream: string | null, limit: number) {
        const message = stream === null ? NOBODY : messageOf(stream)
        const messages =
          message === null ? [] : yield* unavailable(reads.rows(messagesAfterStatement, [message, limit]))
        if (messages.length === limit) return messages.map(([name]) => name!)
        const journal = message === null ? streamIdOf(stream as JournalName) : NOBODY
        const journals = yield* unavailable(reads.rows(journalNamesStatement, [journal, limit - messages.length]))
        return [...messages, ...journals].map(([name]) => name!)
      }),
      expectHistory: (messageId, version, facts, copies) =>
        unavailable(
          durable.rows(expectHistoryStatement, [messageId, version, JSON.stringify(copies.map(copied)), facts])
        ).pipe(Effect.asVoid),
      adopt: (head) => unavailable(durable.rows(adoptStatement, [head])).pipe(Effect.asVoid),
      forgotten: (limit) =>
        reading(reads.rows(forgottenStatement, [limit]), (rows) =>
          rows.map(([id, stream]) => ({ id: id!, stream: stream! }))
        ),
      forgot: (streams) => unavailable(queue.rows(forgotStatement, [streams.map(({ id }) => id)])).pipe(Effect.asVoid),
      leftBehind: (limit) =>
        reading(reads.rows(leftBehindStatement, [limit]), (rows) =>
          rows.map(([id, messageId]) => ({ id: id!, messageId: messageId as MessageId }))
        )
    })
  })
)

/** A `reservation`. */
const asked = (texts: Texts, { id, entry, isPersonal }: Intent, n: number) => ({
  n,
  id,
  message: entry.messageId,
  expected: entry.expected,
  fence: entry.fence,
  ...entered(entry),
  lane: entry.gate?.lane ?? null,
  generation: entry.gate?.generation ?? null,
  opens: entry.opening !== null,
  queued: entry.opening !== null && entry.expected === 0 ? JSON.parse(toRecorded(entry.facts[0]!).data) : null,
  ...bodyIn(texts, entry),
  org: entry.opening?.idempotency?.orgId ?? null,
  key: entry.opening?.idempotency?.key ?? null,
  hash: entry.opening?.idempotency == null ? null : storedHash(texts, entry.opening.idempotency),
  ...answered(texts, entry),
  ...keyed(texts, entry, isPersonal)
})

/** Where streams get no keys, some may have one from when they did: whoever has one is told it. */
const keyed = (texts: Texts, { messageId }: Append, isPersonal: () => boolean) => {
  if (!texts.makesKeys) return { personal: true, fact_key: null }
  const personal = isPersonal()
  return { personal, fact_key: personal ? newKey(texts, messageId) : null }
}

/** The line that the message enters with this entry; whoever stands in one already keeps the place. */
const entered = ({ facts, queue }: Append) =>
  queue?.type === "Wait" &&
  queue.line !== null &&
  facts.some(({ type }) => type === "MessageQueued" || type === "MessageReplayed")
    ? { line_lane: queue.lane, line: queue.line }
    : { line_lane: null, line: null }

const bodyIn = (texts: Texts, { messageId, opening }: Append) => {
  const body = opening?.body ?? null
  if (body === null) return { body, event: null }
  return typeof body === "string"
    ? { body: texts.seal("body", messageId, body), event: null }
    : { body: null, event: body.ofEvent }
}

const answered = (texts: Texts, { messageId, response }: Append) => {
  if (response === null) return { epoch: null, attempt: null, response: null, headers: null }
  const { epoch, attempt } = response
  const { body, headers } = storedAnswer(texts, messageId, response)
  return { epoch, attempt, response: body, headers }
}

/** Only those are named that may not be appended, or whose message has another key than the entry brought; the last row is the time. */
const reservationsOf = (
  texts: Texts,
  intents: ReadonlyArray<Intent>,
  given: ReadonlyArray<{ readonly message: MessageId; readonly fact_key: string | null }>,
  rows: ReadonlyArray<ReadonlyArray<string | null>>
): ReadonlyArray<Reservation> => {
  const begun = rows.at(-1)![5]!
  const keyed = (n: number, sealed: string | null): Reservation => ({
    ...{ type: "Reserved", begun },
    key: openedKey(texts, given[n]!.message, sealed)
  })
  const answers = given.map(
    ({ fact_key }, n): Reservation => (fact_key === null ? { type: "Reserved", begun, key: null } : keyed(n, fact_key))
  )
  for (const [n, verdict, other, hash, age] of rows.slice(0, -1)) {
    answers[Number(n)] =
      verdict === "fence"
        ? { type: "FenceLost" }
        : verdict === "gate"
          ? { type: "GateClosed" }
          : verdict === "key"
            ? keyed(Number(n), hash ?? null)
            : {
                type: "Taken",
                messageId: other as MessageId,
                requestHash: openedHash(texts, hash!, intents[Number(n)]!.entry.opening!.idempotency!),
                sinceMs: Number(age)
              }
  }
  return answers
}

const owedMessage = (event: EventId, { messageId, facts, at, actor, queue }: Append) => ({
  message: messageId,
  event,
  destination: queue!.lane,
  ...toRecorded(facts[0]!),
  actor,
  at_ms: DateTime.toEpochMillis(at)
})

const copied = ({ version, name, data, at, actor }: JournalFact) => ({
  version,
  name,
  data: JSON.parse(data),
  at_ms: DateTime.toEpochMillis(at),
  actor
})

/** A `stored`. */
const meant = ({ ids, messageId, copies, erased, queue, version, expected, logAt }: Stored) => ({
  ids,
  message: messageId,
  expected,
  version,
  log_at: logAt === null ? null : String(logAt),
  copies: copies.map(copied),
  erased,
  move: queue === null ? null : moveOf(queue),
  lane: queue?.lane ?? null,
  line: queue?.line ?? null,
  due_ms: queue === null || queue.type === "LeaveLine" ? null : DateTime.toEpochMillis(queue.dueAt),
  epoch: queue?.type === "Wait" ? queue.epoch : null,
  attempt: queue?.type === "Wait" ? queue.attempt : null
})
