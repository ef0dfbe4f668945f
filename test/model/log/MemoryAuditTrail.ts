/** The projection `audit` over a map: every question is a filter and a sort. */
import { DateTime, Effect, Layer } from "effect"
import { type AuditFilter, type AuditRow, AuditTrail } from "../../../src/application/ports/AuditTrail.ts"
import { streamOf } from "../../../src/domain/streams.ts"
import { Memory } from "../Memory.ts"
import { addRows, newestFirst, placeOf } from "../store/entries.ts"
import { clearRows, liveRows, moveRun } from "./runs.ts"

const matches = (row: AuditRow, { from, to, messageId, ...equal }: AuditFilter): boolean =>
  (from === undefined || DateTime.isGreaterThanOrEqualTo(row.at, from)) &&
  (to === undefined || DateTime.isLessThan(row.at, to)) &&
  (messageId === undefined || row.stream === streamOf(messageId)) &&
  Object.entries(equal).every(([field, wanted]) => row[field as keyof typeof equal] === wanted)

export const layer = Layer.effect(
  AuditTrail,
  Effect.gen(function* () {
    const memory = yield* Memory
    const { tables } = memory

    return AuditTrail.of({
      list: (orgId, filter, page) =>
        Effect.sync(() => {
          const rows = [...liveRows(tables, "audit", tables.audit).values()]
          const { items, nextCursor } = newestFirst(
            rows.filter((row) => row.orgId === orgId && matches(row, filter)),
            page
          )
          return {
            items: items.map(({ stream, version, ...item }) => ({
              ...item,
              id: placeOf({ stream, version, at: item.at })
            })),
            nextCursor
          }
        }),
      project: (step, rows) =>
        Effect.sync(() => {
          if (!moveRun(memory, "audit", step)) return false
          addRows(tables, tables.audit, step, rows)
          return true
        }),
      clear: () => Effect.sync(() => clearRows(tables, "audit", tables.audit))
    })
  })
)
