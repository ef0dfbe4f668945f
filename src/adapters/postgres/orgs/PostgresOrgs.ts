import { Clock, DateTime, Effect, Layer } from "effect"
import { type Org, type OrgSettings, Orgs, unset } from "../../../application/ports/Orgs.ts"
import type { OrgId } from "../../../domain/ids.ts"
import { pageOf } from "../filtering.ts"
import { liveGeneration } from "../log/generations.ts"
import { Postgres, prepared, unavailable } from "../Postgres.ts"
import { appendToJournalSql, configurationFactValues } from "../store/appendToJournal.ts"

const counted = (id: string, statuses: string) => `coalesce((
      select sum(count) from message_count
      where generation = ${liveGeneration("messages")}
        and org_id = ${id} and status in (${statuses})
    ), 0)::float8`

const columns = `i.id, o.name, o.suspended, coalesce(o.limits, '{}') as limits, o.retry,
    coalesce(o.retention, '{}') as retention, o.updated_at as "updatedAt",
    (select count(*) from destination d where d.org_id = i.id and d.removed_at is null)::int as destinations,
    (select count(*) from replay r where r.org_id = i.id and r.next_at < 'infinity')::int as replays,
    ${counted("i.id", "'QUEUED', 'SENDING'")} as waiting,
    ${counted("i.id", "'FAILED', 'DEAD_LETTER'")} as "deadLetters"`

const getStatement = prepared`select ${columns} from (values ($1::text)) i(id) left join org o on o.id = i.id`
const listStatement = prepared`select ${columns} from (
      select id from (
        select id from org union select org_id from destination union select org_id from api_key
        union select org_id from message_count
      ) known(id) where $1::text is null or id > $1 order by id limit $2
    ) i(id) left join org o on o.id = i.id order by i.id`
const settingsStatement = prepared`select name, suspended, limits, retry, retention from org where id = $1`
const setStatement = prepared`with changed as (select set_org($1, $2, $3, $4::jsonb, $5::jsonb, $6::jsonb, $7::timestamptz))
    select ${appendToJournalSql(8)} from changed`

const FRESH_MS = 900
const KEPT = 10_000

export const layer = Layer.effect(
  Orgs,
  Effect.gen(function* () {
    const { durable, lookups, reads } = yield* Postgres
    const known = new Map<OrgId, { readonly until: number; readonly settings: OrgSettings }>()

    const settingsOf = Effect.fnUntraced(function* (id: OrgId) {
      const now = yield* Clock.currentTimeMillis
      const remembered = known.get(id)
      if (remembered !== undefined && now < remembered.until && remembered.until - now <= FRESH_MS)
        return remembered.settings
      const [settings = unset] = yield* unavailable(lookups.query<OrgSettings>(settingsStatement, [id]))
      if (known.size >= KEPT) known.clear()
      known.set(id, { until: now + FRESH_MS, settings })
      return settings
    })

    return Orgs.of({
      get: (id) => Effect.map(unavailable(lookups.query<Org>(getStatement, [id])), ([org]) => org!),
      set: Effect.fnUntraced(function* (id, { name, suspended, limits, retry, retention }) {
        const now = yield* DateTime.now
        const fact = { type: "OrgChanged", orgId: id, name, suspended, limits, retry, retention } as const
        const facts = yield* configurationFactValues(`org-${id}`, [fact], now)
        const json = [JSON.stringify(limits), retry === null ? null : JSON.stringify(retry), JSON.stringify(retention)]
        const values = [id, name, suspended, ...json, DateTime.formatIso(now), ...facts]
        yield* unavailable(durable.query(setStatement, values))
        known.delete(id)
      }),
      list: (page) =>
        Effect.map(unavailable(reads.query<Org>(listStatement, [page.cursor, page.limit + 1])), (rows) =>
          pageOf(
            rows,
            page,
            (org) => org,
            ({ id }) => id
          )
        ),
      settingsOf
    })
  })
)
