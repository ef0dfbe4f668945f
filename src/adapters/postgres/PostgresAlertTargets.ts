/** Alert targets in PostgreSQL: rows beside those of their destinations, living as long as these. */
import { DateTime, Effect, Layer } from "effect"
import {
  type AlertTarget,
  type AlertTargetSettings,
  AlertTargets,
  type AlertTargetType
} from "../../application/ports/AlertTargets.ts"
import { type DestinationId, isUuid, type OrgId } from "../../domain/ids.ts"
import { Postgres, unavailable } from "./Postgres.ts"

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
  text: `insert into posthaste.alert_target (${columns}) values ($1, $2, $3, $4, $5, $5) returning ${columns}`
}
const getStatement = {
  name: "get_alert_target",
  text: `select ${columns} from posthaste.living_alert_target where org_id = $1 and id = $2`
}
const listStatement = {
  name: "list_alert_targets",
  text: `select ${columns} from posthaste.living_alert_target
    where org_id = $1 and ($2::uuid is null or id > $2) order by id limit $3`
}
const updateStatement = {
  name: "update_alert_target",
  text: `update posthaste.alert_target set settings = settings || $3, updated_at = $4
    where id = (select id from posthaste.living_alert_target where org_id = $1 and id = $2) returning ${columns}`
}
const allStatement = {
  name: "all_alert_targets",
  text: `select ${columns} from posthaste.living_alert_target order by id`
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
    const write = Effect.fnUntraced(function* (statement: typeof addStatement, values: ReadonlyArray<unknown>) {
      const now = DateTime.formatIso(yield* DateTime.now)
      return firstOf(yield* unavailable(durable.query<TargetRow>(statement, [...values, now])))
    })
    return AlertTargets.of({
      add: (orgId, id, type, settings) =>
        Effect.map(write(addStatement, [id, orgId, type, JSON.stringify(settings)]), (target) => target!),
      get: (orgId, id) =>
        isUuid(id)
          ? Effect.map(unavailable(reads.query<TargetRow>(getStatement, [orgId, id])), firstOf)
          : Effect.succeed(null),
      list: (orgId, { cursor, limit }) =>
        unavailable(reads.query<TargetRow>(listStatement, [orgId, cursor, limit + 1])).pipe(
          Effect.map((rows) => {
            const items = rows.slice(0, limit).map(targetOf)
            return { items, nextCursor: rows.length > limit ? items.at(-1)!.id : null }
          })
        ),
      update: (orgId, id, change) =>
        isUuid(id) ? write(updateStatement, [orgId, id, JSON.stringify(change)]) : Effect.succeed(null),
      all: Effect.map(unavailable(reads.query<TargetRow>(allStatement, [])), (rows) => rows.map(targetOf))
    })
  })
)
