/** The projection `audit` in rows, written by `project_audit`. */
import { Effect, Layer } from "effect"
import { type AuditFilter, type AuditItem, type AuditRow, AuditTrail } from "../../../application/ports/AuditTrail.ts"
import type { Step } from "../../../application/ports/Projections.ts"
import { beyond, conditionsOf, pageOf } from "../filtering.ts"
import { Postgres, reading } from "../Postgres.ts"
import { clearing, liveGeneration } from "./generations.ts"
import { cursorOf, joined, type Place, placed, placedItem, stepping } from "./projectionRows.ts"

const CALL =
  "project_audit($1, $2, $3, $4, $5::uuid[], $6::int[], $7::bigint[], $8, $9, $10, $11, $12, $13, $14, $15, $16)"

/** An entry as it is selected, with the place of its fact in place of an id. */
interface Row extends Place, Omit<AuditItem, "id" | "at"> {}

export const layer = Layer.effect(
  AuditTrail,
  Effect.gen(function* () {
    const { derived, reads } = yield* Postgres
    const write = stepping(derived, "audit", CALL)

    const project = (step: Step, rows: ReadonlyArray<AuditRow>) =>
      write(step, [
        ...placed(rows),
        joined(rows, ({ orgId }) => orgId),
        joined(rows, ({ operation }) => operation),
        joined(rows, ({ subject }) => subject.type),
        joined(rows, ({ subject }) => subject.id),
        joined(rows, ({ channel }) => channel),
        joined(rows, ({ actor }) => actor),
        joined(rows, ({ correlationId }) => correlationId),
        joined(rows, ({ dossierId }) => dossierId),
        joined(rows, ({ details }) => JSON.stringify(details))
      ])

    return AuditTrail.of({
      list: (orgId, filter, page) => {
        const values: Array<unknown> = [orgId, page.limit + 1]
        const where = [
          `generation = ${liveGeneration("audit")}`,
          "org_id = $1",
          ...conditionsOf(conditions, filter, values),
          ...beyond("at, stream_id, version", ["timestamptz", "uuid", "int"], page, values)
        ]
        const text = `select stream_id, version, at, org_id as "orgId", operation,
            json_build_object('type', subject_type, 'id', subject_id) as subject, channel, actor,
            correlation_id as "correlationId", dossier_id as "dossierId", details
          from audit where ${where.join(" and ")} order by at desc, stream_id desc, version desc limit $2`
        return reading(reads.query<Row>({ text }, values), (rows) => pageOf(rows, page, placedItem, cursorOf))
      },
      project,
      clear: clearing(derived, "audit", ["audit"])
    })
  })
)

const conditions: ReadonlyArray<readonly [keyof AuditFilter, string]> = [
  ["operation", "operation ="],
  ["actor", "actor ="],
  ["correlationId", "correlation_id ="],
  ["dossierId", "dossier_id ="],
  ["messageId", "stream_id ="],
  ["channel", "channel ="],
  ["from", "at >="],
  ["to", "at <"]
]
