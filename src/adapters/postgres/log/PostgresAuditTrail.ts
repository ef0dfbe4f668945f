/** The projection `audit` in rows, written by `project_audit`. */
import { DateTime, Effect, Layer } from "effect"
import { type AuditFilter, type AuditItem, type AuditRow, AuditTrail } from "../../../application/ports/AuditTrail.ts"
import type { Step } from "../../../application/ports/Projections.ts"
import type { Details, Operation, Subject } from "../../../domain/audit/entry.ts"
import type { ChannelName, OrgId } from "../../../domain/ids.ts"
import { beyond, conditionsOf, pageOf } from "../filtering.ts"
import { Postgres, prepared, reading } from "../Postgres.ts"
import { clearing, liveGeneration } from "./generations.ts"
import { joined, placed, stepped } from "./projectionRows.ts"

const projectStatement = prepared`select project_audit($1, $2, $3, $4, $5::uuid[], $6::int[], $7::bigint[], $8, $9, $10, $11, $12, $13, $14, $15, $16) as done`

interface Row {
  readonly stream_id: string
  readonly version: number
  readonly org_id: string
  readonly at: Date
  readonly operation: string
  readonly subject_type: string
  readonly subject_id: string
  readonly channel: string | null
  readonly actor: string | null
  readonly correlation_id: string | null
  readonly dossier_id: string | null
  readonly details: Details
}

export const layer = Layer.effect(
  AuditTrail,
  Effect.gen(function* () {
    const { derived, reads } = yield* Postgres

    const project = (step: Step, rows: ReadonlyArray<AuditRow>) =>
      reading(
        derived.query<{ done: boolean }>(projectStatement, [
          ...stepped(step),
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
        ]),
        ([row]) => row!.done
      )

    return AuditTrail.of({
      list: (orgId, filter, page) => {
        const values: Array<unknown> = [orgId, page.limit + 1]
        const where = [
          `generation = ${liveGeneration("audit")}`,
          "org_id = $1",
          ...conditionsOf(conditions, filter, values),
          ...beyond("at, stream_id, version", ["timestamptz", "uuid", "int"], page, values)
        ]
        const text = `select stream_id, version, org_id, at, operation, subject_type, subject_id, channel, actor,
            correlation_id, dossier_id, details
          from audit where ${where.join(" and ")} order by at desc, stream_id desc, version desc limit $2`
        return reading(reads.query<Row>({ text }, values), (rows) => pageOf(rows, page, itemOf, cursorOf))
      },
      project,
      clear: clearing(derived, "audit", ["audit"])
    })
  })
)

const itemOf = (row: Row): AuditItem => ({
  id: `${row.stream_id}.${row.version}`,
  orgId: row.org_id as OrgId,
  at: DateTime.fromDateUnsafe(row.at),
  operation: row.operation as Operation,
  subject: { type: row.subject_type as Subject["type"], id: row.subject_id },
  actor: row.actor,
  channel: row.channel as ChannelName | null,
  correlationId: row.correlation_id,
  dossierId: row.dossier_id,
  details: row.details
})

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

const cursorOf = ({ at, stream_id, version }: Row): string => `${at.toISOString()}/${stream_id}/${version}`
