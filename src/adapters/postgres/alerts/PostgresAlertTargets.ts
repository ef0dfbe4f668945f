/** Alert targets in PostgreSQL: rows beside those of their destinations, living as long as these. */
import { DateTime, Effect, Layer } from "effect"
import {
  type AlertTarget,
  type AlertTargetSettings,
  AlertTargets,
  type AlertTargetType,
  channelOfType
} from "../../../application/ports/AlertTargets.ts"
import { changesOf, journalOf } from "../../../domain/destination/changes.ts"
import { type DestinationId, isUuid, type OrgId } from "../../../domain/ids.ts"
import { Postgres, unavailable } from "../Postgres.ts"
import { appendToJournalSql, configurationFactValues } from "../store/appendToJournal.ts"

interface TargetRow {
  readonly id: DestinationId
  readonly org_id: OrgId
  readonly type: AlertTargetType
  readonly settings: AlertTargetSettings
  readonly created_at: Date
  readonly updated_at: Date
}

const columns = "id, org_id, type, settings, created_at, updated_at"
const addStatement = {
  name: "add_alert_target",
  text: `insert into alert_target (${columns}) values ($1, $2, $3, $4, $5, $5) returning ${columns}`
}
const getStatement = {
  name: "get_alert_target",
  text: `select ${columns} from living_alert_target where org_id = $1 and id = $2`
}
const listStatement = {
  name: "list_alert_targets",
  text: `select ${columns} from living_alert_target
    where org_id = $1 and ($2::uuid is null or id > $2) order by id limit $3`
}
const updateStatement = {
  name: "update_alert_target",
  text: `with target as (
      update alert_target set settings = settings || $3, updated_at = $4
      where id = (select id from living_alert_target where org_id = $1 and id = $2) returning ${columns}
    )
    select target.*, ${appendToJournalSql(5)} from target`
}
const allStatement = {
  name: "all_alert_targets",
  text: `select ${columns} from living_alert_target order by id`
}

const targetOf = (row: TargetRow): AlertTarget => ({
  ...row.settings,
  id: row.id,
  orgId: row.org_id,
  type: row.type,
  createdAt: DateTime.fromDateUnsafe(row.created_at),
  updatedAt: DateTime.fromDateUnsafe(row.updated_at)
})

const firstOf = (rows: ReadonlyArray<TargetRow>): AlertTarget | null =>
  rows[0] === undefined ? null : targetOf(rows[0])

export const layer = Layer.effect(
  AlertTargets,
  Effect.gen(function* () {
    const { durable, reads } = yield* Postgres

    const get = (orgId: OrgId, id: DestinationId) =>
      isUuid(id)
        ? Effect.map(unavailable(reads.query<TargetRow>(getStatement, [orgId, id])), firstOf)
        : Effect.succeed(null)

    const update = Effect.fnUntraced(function* (orgId: OrgId, id: DestinationId, change: Partial<AlertTargetSettings>) {
      const before = yield* get(orgId, id)
      if (before === null) return null
      const channel = channelOfType[before.type]
      const now = yield* DateTime.now
      const facts = yield* configurationFactValues(journalOf(channel, id), changesOf({ orgId, channel }, change), now)
      const values = [orgId, id, JSON.stringify(change), DateTime.formatIso(now), ...facts]
      return firstOf(yield* unavailable(durable.query<TargetRow>(updateStatement, values)))
    })

    return AlertTargets.of({
      add: Effect.fnUntraced(function* (orgId, id, type, settings) {
        const now = DateTime.formatIso(yield* DateTime.now)
        const values = [id, orgId, type, JSON.stringify(settings), now]
        return firstOf(yield* unavailable(durable.query<TargetRow>(addStatement, values)))!
      }),
      get,
      list: (orgId, { cursor, limit }) =>
        unavailable(reads.query<TargetRow>(listStatement, [orgId, cursor, limit + 1])).pipe(
          Effect.map((rows) => {
            const items = rows.slice(0, limit).map(targetOf)
            return { items, nextCursor: rows.length > limit ? items.at(-1)!.id : null }
          })
        ),
      update,
      all: Effect.map(unavailable(reads.query<TargetRow>(allStatement, [])), (rows) => rows.map(targetOf))
    })
  })
)
