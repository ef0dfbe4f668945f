/** The projection `audit` in rows, written by `project_audit`. */
import { Effect, Layer } from "effect"
import { type AuditFilter, type AuditItem, type AuditRow, AuditTrail } from "../../../application/ports/AuditTrail.ts"
import type { Step } from "../../../application/ports/Projections.ts"
import { beyond } from "../filtering.ts"
import { Postgres, readingInPieces } from "../Postgres.ts"
import { type Looked, pageOfStretch, searched, stretch } from "../stretches.ts"
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
    const write = stepping(derived, CALL)

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
        const values: Array<unknown> = [orgId]
        const { found, wanted } = searched(filter, conditionsFor(filter), values)
        const where = [
          `generation = ${liveGeneration("audit")}`,
          "org_id = $1",
          ...found,
          ...beyond("at, stream_id, version", ["timestamptz", "uuid", "int"], page, values)
        ].join(" and ")
        const order = "at desc, stream_id desc, version desc"
        const rows = (most: number) => `select * from audit where ${where} order by ${order} limit ${most}`
        const columns = `stream_id, version, at, org_id as "orgId", operation,
            json_build_object('type', subject_type, 'id', subject_id) as subject, channel, actor,
            correlation_id as "correlationId", dossier_id as "dossierId", details`
        const text = stretch({ rows, wanted, order, columns, size: "octet_length(details::text)" }, page)
        return readingInPieces(reads.query<Row & Looked>({ text }, values), (rows) =>
          pageOfStretch(rows, page, ({ wanted: _, cut: __, ...row }) => placedItem(row), cursorOf)
        )
      },
      project,
      clear: clearing(derived, "audit", ["audit"])
    })
  })
)

const OPERATION = ["operation", "operation ="] as const

/** What nearly every message does has no index: it is found by the list itself. */
const isOfEveryMessage = (operation: AuditFilter["operation"]) =>
  operation === "CREATED" || operation === "SENT" || operation === "UPDATED"

const conditionsFor = ({ operation }: AuditFilter) => {
  const [indexed, others] = isOfEveryMessage(operation) ? [[], [OPERATION]] : [[OPERATION], []]
  return {
    ranges: [
      ["from", "at >="],
      ["to", "at <"]
    ],
    indexed: [
      ["messageId", "stream_id ="],
      ["correlationId", "correlation_id ="],
      ["dossierId", "dossier_id ="],
      ...indexed
    ],
    others: [...others, ["actor", "actor ="], ["channel", "channel ="]]
  } satisfies Readonly<Record<string, ReadonlyArray<readonly [keyof AuditFilter, string]>>>
}
