/**
 * Streams in PostgreSQL. A call of `append` serves all waiting callers (groupCommit.ts): facts, queue changes, bodies and idempotency keys
 * commit together.
 */
import { DateTime, Effect, Layer, Result } from "effect"
import { type Append, type AppendResult, EventStore, type Position } from "../../../application/ports/EventStore.ts"
import { Pulse } from "../../../application/ports/Pulse.ts"
import type { MessageId, OrgId } from "../../../domain/ids.ts"
import { fromRecorded } from "../../../domain/message/recorded.ts"
import type { StoredFact } from "../../../domain/message/view.ts"
import { groupCommit } from "../groupCommit.ts"
import { literal } from "../literal.ts"
import { type Connections, Postgres, prepared, reading, unavailable } from "../Postgres.ts"
import { appendStatement, appendValues, resultsOf, saysWork, weightOf } from "./append.ts"
import { logged, loggedOf, wholeColumns } from "./logged.ts"

type EventRow = ReadonlyArray<string | null>

/** Throws on a fact that this release can't read: a bug, or a downgrade. */
const storedFact = ([version, atMs, actor, name, data, forgettable]: EventRow): StoredFact => ({
  version: Number(version),
  at: DateTime.makeUnsafe(Number(atMs)),
  actor: actor ?? null,
  fact: Result.getOrThrow(fromRecorded({ name: name!, data: data!, forgettable: forgettable ?? null }))
})

const factsIn = (rows: ReadonlyArray<EventRow>) => rows.map(storedFact)

const streamOf = (facts: ReadonlyArray<StoredFact>) => ({ version: facts.at(-1)?.version ?? 0, facts })

const columns = `e.version, (extract(epoch from e.at) * 1000)::bigint, coalesce(d.actor, e.actor), e.name, e.data,
    case when m.id is null then d.data else m.data end`
const loadStatement = prepared`select ${columns} from ${logged} where e.stream_id = $1 order by e.version`
// By the key of each stream: for all together the planner may read the whole table.
const loadManyStatement = prepared`select each_fact.*, asked.id from unnest($1::uuid[]) asked(id)
    cross join lateral (select ${columns} from ${logged} where e.stream_id = asked.id order by e.version) each_fact
    order by asked.id, each_fact.version`
const readAllStatement = prepared`select ${wholeColumns} from ${logged}
    where (e.tx, e.position) > ($1::bigint, $2::bigint) and e.tx < (select log_end())
    order by e.tx, e.position limit $3`
// Also beyond log_end(): a reader lacks that, too.
const unreadSinceStatement = prepared`select (extract(epoch from at) * 1000)::bigint from event
    where (tx, position) > ($1::bigint, $2::bigint) order by tx, position limit 1`
// Counting ten million rows takes a second; beyond, vacuum's figure is near enough.
const extentStatement = prepared`select head.tx, head.position,
      case when known.facts < 10000000 then (select count(*) from event) else known.facts end
    from (select reltuples::bigint as facts from pg_class where oid = 'event'::regclass) known
    left join lateral (
      select tx, position from event where tx < (select log_end())
      order by tx desc, position desc limit 1
    ) head on true`

const placeOf = (after: Position | null) => (after === null ? ["0", "0"] : after.split(":"))

const acceptedUnderStatement = prepared`select message_id, request_hash from idempotency where org_id = $1 and key = $2`

export const acceptedUnder = (lookups: Connections) => (orgId: OrgId, key: string) =>
  reading(lookups.rows(acceptedUnderStatement, [orgId, key]), ([row]) =>
    row === undefined ? null : { messageId: row[0] as MessageId, requestHash: row[1]! }
  )

export const layer = Layer.effect(
  EventStore,
  Effect.gen(function* () {
    const postgres = yield* Postgres
    const pulse = yield* Pulse

    const load = (id: MessageId) =>
      reading(postgres.lookups.rows(loadStatement, [id]), (rows) => streamOf(factsIn(rows)))

    const loadMany = Effect.fnUntraced(function* (ids: ReadonlyArray<MessageId>) {
      const rows = yield* unavailable(postgres.lookups.rows(loadManyStatement, [literal(ids)]))
      const facts = factsIn(rows)
      const streams = Map.groupBy(facts.keys(), (nth) => rows[nth]![6] as MessageId)
      return new Map([...streams].map(([id, places]) => [id, streamOf(places.map((nth) => facts[nth]!))] as const))
    })

    const readAll = (after: Position | null, limit: number) =>
      reading(postgres.reads.rows(readAllStatement, [...placeOf(after), limit]), (rows) => rows.map(loggedOf))

    const unreadSince = (after: Position | null) =>
      reading(postgres.reads.rows(unreadSinceStatement, placeOf(after)), ([row]) =>
        row === undefined ? null : DateTime.makeUnsafe(Number(row[0]))
      )

    const extent = reading(postgres.reads.rows(extentStatement, []), ([row]) => ({
      head: row![0] === null ? null : `${row![0]}:${row![1]}`,
      facts: Number(row![2])
    }))

    const commit = yield* groupCommit<Append, AppendResult>({
      keyOf: ({ messageId }) => messageId,
      atOnce: 2,
      max: 1_000,
      weightOf,
      run: (entries) =>
        postgres.appends.rows(appendStatement, appendValues(entries)).pipe(
          Effect.tap((rows) => (rows.some(saysWork) ? pulse.wake("queue", "log") : pulse.wake("log"))),
          Effect.map((rows) => resultsOf(entries, rows))
        )
    })
    const append = (entries: ReadonlyArray<Append>) => unavailable(commit(entries))

    const lookup = acceptedUnder(postgres.lookups)
    return EventStore.of({ load, loadMany, append, acceptedUnder: lookup, readAll, unreadSince, extent })
  })
)
