import { DateTime, Effect, BigInt as Integers, Layer, Order } from "effect"
import { Archive, type ArchivedFact, NotContinued } from "../../../application/ports/Archive.ts"
import type { StoreUnavailable } from "../../../application/ports/errors.ts"
import type { JournalName } from "../../../application/ports/Journals.ts"
import { Streams } from "../../../application/ports/Streams.ts"
import { orgTold } from "../../../domain/audit/entry.ts"
import type { MessageId } from "../../../domain/ids.ts"
import { keptActor } from "../../../domain/recorded.ts"
import { messageOf } from "../../../domain/streams.ts"
import { literal } from "../literal.ts"
import { Postgres, prepared, type QueryFailed, reading, unavailable } from "../Postgres.ts"
import { logged, loggedOf, wholeColumns } from "./logged.ts"
import { streamIdOf } from "./PostgresJournals.ts"

const facts = `select ${wholeColumns} from ${logged}`
const byStreamStatement = prepared`${facts} where (e.stream_id, e.version) > ($1::uuid, $2::int) order by e.stream_id, e.version limit $3`
const streamsStatement = prepared`${facts} where e.stream_id = any ($1::uuid[]) order by e.stream_id, e.version`
const restorationsStatement = prepared`select noticed_at, saved_at from restoration order by nth`
// `wrong` are facts that don't continue their stream; the primary key refuses the second of two racers.
const restoreStatement = prepared`with fact as materialized (
      select * from unnest($1::uuid[], $2::text[], $3::text[], $4::int[], $5::bigint[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[])
        with ordinality f(stream_id, stream, journal, version, at_ms, actor, name, data, forgettable, whole_actor, org, n)
    ), wrong as materialized (
      select f.stream, f.version, f.n from (
          select g.*, row_number() over (partition by g.stream_id order by g.n) as nth from fact g
        ) f
        where f.version <> f.nth + coalesce((select max(e.version) from event e where e.stream_id = f.stream_id), 0)
    ), written as (
      insert into event (stream_id, stream, tx, at, actor, version, name, data, org_id)
        select f.stream_id, f.journal, log_tx(),
          'epoch'::timestamptz + f.at_ms * interval '1 millisecond', f.actor, f.version, f.name, f.data::json,
          case f.org when '' then coalesce(
            (select d.org_id from destination d where f.journal = 'circuit-' || d.id),
            (select case when e.stream is null then e.data ->> 'orgId' else e.org_id end
              from event e where e.stream_id = f.stream_id and e.version = 1)) else f.org end
        from fact f where not exists (select 1 from wrong) order by f.n
    ), details as (
      insert into detail (stream_id, version, data, actor)
        select f.stream_id, f.version, f.forgettable::json, f.whole_actor from fact f
        where (f.forgettable is not null or f.whole_actor is not null) and not exists (select 1 from wrong)
      on conflict (stream_id, version) do update set data = excluded.data, actor = excluded.actor
    ), opened as (
      insert into withdrawal (stream) select unnest($12::text[]) where not exists (select 1 from wrong) on conflict do nothing
    ), closed as (
      delete from withdrawal where stream = any ($3::text[]) and stream <> all ($12::text[]) and not exists (select 1 from wrong)
    )
    select stream, version from wrong order by n limit 1`

const STREAMS_AT_ONCE = 32
const NOBODY = "00000000-0000-0000-0000-000000000000"
const UNIQUE_VIOLATION = "23505"

const idOf = (stream: string): string => messageOf(stream) ?? streamIdOf(stream as JournalName)

const orgIdIn = (data: string): string | null => {
  const said = JSON.parse(data) as { readonly orgId?: unknown } | null
  return typeof said?.orgId === "string" ? said.orgId : null
}

/** For each fact the org whose audit lists it, and "" where a stored row says it. */
const orgsIn = (facts: ReadonlyArray<ArchivedFact>): ReadonlyArray<string | null> => {
  const firsts = new Map<string, string | null>()
  return facts.map((fact) => {
    const { stream, version, data, actor } = fact
    const isMessage = messageOf(stream) !== null
    const first = isMessage
      ? version > 1 && actor !== null
        ? ""
        : null
      : stream.startsWith("circuit-") && actor === null
        ? null
        : orgTold(fact)
    if (version === 1) firsts.set(stream, isMessage ? orgIdIn(data) : first)
    return first === "" ? (firsts.get(stream) ?? "") : first
  })
}

const withdrawnIn = (facts: ReadonlyArray<ArchivedFact>): ReadonlyArray<string> =>
  [...new Map(facts.map(({ stream, name }) => [stream, name]))].flatMap(([stream, name]) =>
    name === "ConsentWithdrawn@1" ? [stream] : []
  )

/** Positions are `tx:position`. */
const order: Order.Order<string> = Order.mapInput(
  Order.Tuple([Integers.Order, Integers.Order]),
  (place: string) => place.split(":").map(BigInt) as [bigint, bigint]
)

export const layer = Layer.effect(
  Archive,
  Effect.gen(function* () {
    const { durable, lookups, reads } = yield* Postgres

    const restore = Effect.fnUntraced(function* (
      given: ReadonlyArray<ArchivedFact>
    ): Effect.fn.Return<void, NotContinued | StoreUnavailable> {
      if (given.length === 0) return
      const values = [
        given.map(({ stream }) => idOf(stream)),
        given.map(({ stream }) => stream),
        given.map(({ stream }) => (messageOf(stream) === null ? stream : null)),
        given.map(({ version }) => version),
        given.map(({ at }) => DateTime.toEpochMillis(at)),
        given.map(({ actor }) => keptActor(actor)),
        given.map(({ name }) => name),
        given.map(({ data }) => data),
        // The first fact of a message is whole in its row.
        given.map(({ stream, version, forgettable = null }) =>
          version === 1 && messageOf(stream) !== null ? null : forgettable
        ),
        given.map(({ actor }) => (keptActor(actor) === actor ? null : actor)),
        orgsIn(given),
        withdrawnIn(given)
      ]
      const [wrong] = yield* durable.rows(restoreStatement, values).pipe(
        Effect.catchIf(
          (error: QueryFailed) => error.code === UNIQUE_VIOLATION,
          () => Effect.succeed([[given[0]!.stream, String(given[0]!.version)]])
        ),
        unavailable
      )
      if (wrong !== undefined) return yield* new NotContinued({ stream: wrong[0]!, version: Number(wrong[1]) })
    })

    return Archive.of({
      order,
      restorations: reading(
        lookups.query<{ noticed_at: DateTime.Utc; saved_at: DateTime.Utc }>(restorationsStatement, []),
        (rows) => rows.map(({ noticed_at: noticedAt, saved_at: savedAt }) => ({ noticedAt, savedAt }))
      ),
      restore,
      byStream: (after, limit) =>
        reading(
          reads.rows(byStreamStatement, [after === null ? NOBODY : idOf(after.stream), after?.version ?? 0, limit]),
          (rows) => rows.map(loggedOf)
        ),
      streams: (names) =>
        reading(reads.rows(streamsStatement, [literal(names.map(idOf))]), (rows) =>
          Map.groupBy(rows.map(loggedOf), ({ stream }) => stream)
        )
    })
  })
)

/** Writes restored facts to the streams first: the follower passes over them until they are here. */
export const layerOverStreams = Layer.effect(
  Archive,
  Effect.gen(function* () {
    const local = yield* Archive
    const streams = yield* Streams
    const write = Effect.fnUntraced(function* (messageId: MessageId, facts: ReadonlyArray<ArchivedFact>) {
      for (const { stream, version, at, actor, name, data } of facts) {
        const fact = {
          messageId,
          expected: version - 1,
          writing: `import-${version}`,
          at,
          actor,
          facts: [{ name, data }]
        }
        if ((yield* streams.append(fact)) !== "Appended") return yield* new NotContinued({ stream, version })
      }
    })
    const restore = Effect.fnUntraced(function* (facts: ReadonlyArray<ArchivedFact>) {
      const messages = Map.groupBy(facts, ({ stream }) => messageOf(stream))
      yield* Effect.forEach(messages, ([id, facts]) => (id === null ? Effect.void : write(id, facts)), {
        concurrency: STREAMS_AT_ONCE,
        discard: true
      })
      yield* local.restore(facts)
    })
    return Archive.of({ ...local, restore })
  })
).pipe(Layer.provide(layer))
