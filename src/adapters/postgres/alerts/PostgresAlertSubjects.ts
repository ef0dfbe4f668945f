/** What can be alerted about, in PostgreSQL: every kind of destination, but those of alert targets, dead or alive. */
import { DateTime, Effect, Layer } from "effect"
import { type AlertSubject, AlertSubjects } from "../../../application/ports/AlertSubjects.ts"
import type { ChannelName, DestinationId, MessageId, OrgId } from "../../../domain/ids.ts"
import { Postgres, unavailable } from "../Postgres.ts"

const kinds: ReadonlyArray<readonly [channel: ChannelName, table: string]> = [
  ["webhook", "endpoint"],
  ["http", "http_target"],
  ["whatsapp", "whatsapp_account"]
]

interface SubjectRow {
  readonly id: DestinationId
  readonly org_id: OrgId
  readonly channel: ChannelName
  readonly url: string | null
  readonly removed: boolean
}

const isNoAlertTarget = (id: string) => `not exists (select 1 from alert_target t where t.id = ${id})`

const amongStatement = {
  name: "alert_subjects",
  text: kinds
    .map(
      ([
        channel,
        table
      ]) => `select id, org_id, '${channel}' as channel, settings ->> 'url' as url, removed_at is not null as removed
        from ${table} d where d.id = any ($1::uuid[]) and ${isNoAlertTarget("d.id")}`
    )
    .join(" union all ")
}

// The first waiting message of each lane that has due work. `ready_at` says where to look: it is never later than the
// lane's first due message, or the lane is being visited.
const oldestDueStatement = {
  name: "oldest_due_of_orgs",
  text: `select distinct on (d.org_id) d.org_id, d.id, r.message_id, r.due_at
    from (${kinds.map(([_, table]) => `select id, org_id from ${table} where org_id = any ($1::text[])`).join(" union all ")}) d
    join lane l on l.lane = d.id and l.ready_at <= clock_timestamp()
    cross join lateral (
      select r.due_at, r.message_id from ready r where r.lane = l.lane and r.due_at <= clock_timestamp()
      order by r.lane, r.due_at, r.message_id limit 1
    ) r
    where ${isNoAlertTarget("d.id")}
    order by d.org_id, r.due_at, r.message_id`
}

interface OldestRow {
  readonly org_id: OrgId
  readonly id: DestinationId
  readonly message_id: MessageId
  readonly due_at: Date
}

export const layer = Layer.effect(
  AlertSubjects,
  Effect.gen(function* () {
    const { reads } = yield* Postgres
    return AlertSubjects.of({
      among: (destinations) =>
        unavailable(reads.query<SubjectRow>(amongStatement, [destinations])).pipe(
          Effect.map(
            (rows) =>
              new Map(
                rows.map(({ org_id, ...row }): readonly [DestinationId, AlertSubject] => [
                  row.id,
                  { ...row, orgId: org_id }
                ])
              )
          )
        ),
      oldestDue: (orgs) =>
        unavailable(reads.query<OldestRow>(oldestDueStatement, [orgs])).pipe(
          Effect.map(
            (rows) =>
              new Map(
                rows.map((row) => [
                  row.org_id,
                  { messageId: row.message_id, destination: row.id, dueAt: DateTime.fromDateUnsafe(row.due_at) }
                ])
              )
          )
        )
    })
  })
)
