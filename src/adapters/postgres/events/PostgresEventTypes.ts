import { randomUUID } from "node:crypto"
import { Cache, DateTime, Duration, Effect, Exit, Layer } from "effect"
import { type EventType, type EventTypeDefinition, EventTypes } from "../../../application/ports/EventTypes.ts"
import type { ConfigurationFact } from "../../../domain/destination/facts.ts"
import { ALL } from "../../../domain/event/eventTypes.ts"
import type { OrgId } from "../../../domain/ids.ts"
import { boundedRows, type Looked, pageOfRows } from "../boundedPages.ts"
import { Postgres, prepared, reading, type Statement, unavailable } from "../Postgres.ts"
import { appendToJournalSql, configurationFactValues } from "../store/appendToJournal.ts"

const columns = `id, org_id as "orgId", name, version, description, schema::text, example::text, enforce,
    archived_at is not null as archived, created_at as "createdAt", updated_at as "updatedAt"`
const SIZE = "coalesce(octet_length(schema::text), 0) + coalesce(octet_length(example::text), 0)"
const createStatement = prepared`with changed as (
      insert into event_type (id, org_id, name, version, description, schema, example, enforce, created_at, updated_at)
      values ($1, $2, $3, 1, $4, $5::json, $6::json, $7, $8, $8) on conflict (org_id, name) do nothing returning *
    )
    select ${columns}, ${appendToJournalSql(9)} as noted from changed`
const changeStatement = prepared`with changed as (
      update event_type set version = version + 1, description = $2, schema = $3::json, example = $4::json, enforce = $5,
        updated_at = $6, archived_at = null
      where id = $1 returning *
    )
    select ${columns}, ${appendToJournalSql(7)} as noted from changed`
const archiveStatement = prepared`with changed as (
      update event_type set version = version + 1, updated_at = $2, archived_at = $2
      where id = $1 and archived_at is null returning *
    )
    select ${columns}, ${appendToJournalSql(3)} as noted from changed`
const getStatement = prepared`select ${columns} from event_type where org_id = $1 and name = $2`
const enforcedStatement = prepared`select exists (select 1 from event_type where org_id = $1 and enforce and archived_at is null) as enforced`
// Any name with this beginning fulfils it.
const unfulfilledStatement = prepared`select w.wish from unnest($2::text[]) w(wish)
    where w.wish <> '${ALL}' and exists (select 1 from event_type where org_id = $1 and enforce and archived_at is null)
      and not exists (
        select 1 from event_type t where t.org_id = $1 and t.archived_at is null
          and (t.name = w.wish or (w.wish like '%*' and starts_with(t.name, left(w.wish, -1)))))`

const FRESH = Duration.millis(900)
const REMEMBERED = 10_000

const definitionValues = ({ description, schema, example, enforce }: EventTypeDefinition) => [
  description,
  schema,
  example,
  enforce
]

export const layer = Layer.effect(
  EventTypes,
  Effect.gen(function* () {
    const { durable, lookups, reads } = yield* Postgres

    const get = (orgId: OrgId, name: string) =>
      Effect.map(unavailable(lookups.query<EventType>(getStatement, [orgId, name])), ([row]) => row ?? null)

    const read = Effect.fnUntraced(function* (key: string) {
      const { org, name } = JSON.parse(key) as { readonly org: OrgId; readonly name: string }
      const [found, [row]] = yield* Effect.all(
        [get(org, name), unavailable(lookups.query<{ readonly enforced: boolean }>(enforcedStatement, [org]))],
        { concurrency: 2 }
      )
      return { isEnforced: row!.enforced, type: found === null || found.archived ? null : found }
    })
    const entries = yield* Cache.makeWith(read, {
      capacity: REMEMBERED,
      timeToLive: (exit) => (Exit.isSuccess(exit) ? FRESH : Duration.zero)
    })

    const write = Effect.fnUntraced(function* (
      statement: Statement,
      id: string,
      fact: ConfigurationFact,
      values: (now: string) => ReadonlyArray<unknown>
    ) {
      const now = yield* DateTime.now
      const facts = yield* configurationFactValues(`event-type-${id}`, [fact], now)
      const rows = yield* unavailable(
        durable.query<EventType & { readonly noted: "" }>(statement, [id, ...values(DateTime.formatIso(now)), ...facts])
      )
      // All entries: a change may enforce the org's catalogue.
      yield* Cache.invalidateAll(entries)
      if (rows[0] === undefined) return null
      const { noted: _, ...type } = rows[0]
      return type
    })

    return EventTypes.of({
      create: (orgId, name, definition) =>
        Effect.map(
          write(createStatement, randomUUID(), { type: "EventTypeCreated", orgId, name }, (now) => [
            orgId,
            name,
            ...definitionValues(definition),
            now
          ]),
          (made) => made ?? ("Taken" as const)
        ),
      change: Effect.fnUntraced(function* (orgId, name, definition) {
        const before = yield* get(orgId, name)
        if (before === null) return null
        const fact = { type: "EventTypeChanged", orgId, name } as const
        return yield* write(changeStatement, before.id, fact, (now) => [...definitionValues(definition), now])
      }),
      archive: Effect.fnUntraced(function* (orgId, name) {
        const before = yield* get(orgId, name)
        if (before === null) return null
        return yield* write(archiveStatement, before.id, { type: "EventTypeArchived", orgId, name }, (now) => [now])
      }),
      get,
      list: (orgId, archived, page) => {
        const after = page.cursor === null ? "true" : "name > $2"
        const rows = (most: number) =>
          `select * from event_type where org_id = $1 and ${after} order by name limit ${most}`
        const wanted = archived ? [] : ["archived_at is null"]
        const text = boundedRows({ rows, wanted, order: "name", columns, size: SIZE }, page)
        const values = page.cursor === null ? [orgId] : [orgId, page.cursor]
        return reading(reads.query<EventType & Looked>({ text }, values), (rows) =>
          pageOfRows(
            rows,
            page,
            ({ wanted: _, cut: __, ...type }): EventType => type,
            ({ name }) => name
          )
        )
      },
      entry: (orgId, name) => Cache.get(entries, JSON.stringify({ org: orgId, name })),
      unfulfilled: (orgId, wishes) =>
        Effect.map(
          unavailable(lookups.query<{ readonly wish: string }>(unfulfilledStatement, [orgId, wishes])),
          (rows) => rows.map(({ wish }) => wish)
        )
    })
  })
)
