/**
 * The runs of projections: a row each, moved by `advance_projection` in the transaction that writes the rows
 * it stands for.
 */
import { DateTime, Duration, Effect, Layer } from "effect"
import { Projections, type Run } from "../../../application/ports/Projections.ts"
import { Postgres, unavailable } from "../Postgres.ts"

const columns =
  "name, generation, version, live, position, facts::float8 as facts, total::float8 as total, rate, started_at"
const runsStatement = {
  name: "projection_runs",
  text: `select ${columns} from projection order by name, live desc`
}
const buildStatement = {
  name: "build_projection",
  text: `select ${columns} from build_projection($1, $2, $3)`
}
const swapStatement = { name: "swap_projection", text: "select swap_projection($1, $2) as done" }
// The oldest transaction that may still write is where the log ends for all its readers, whatever database of the
// server it is in.
const stallStatement = {
  name: "log_stall",
  text: `select pid, application_name, coalesce(xact_start, clock_timestamp()) as since from pg_stat_activity
    where backend_xid::text::bigint = pg_snapshot_xmin(pg_current_snapshot())::text::bigint % 4294967296
      and xact_start < clock_timestamp() - $1::int * interval '1 millisecond'`
}

interface Row {
  readonly name: string
  readonly generation: number
  readonly version: number
  readonly live: boolean
  readonly position: string | null
  readonly facts: number
  readonly total: number
  readonly rate: number | null
  readonly started_at: Date
}

const runOf = ({ rate, started_at, ...row }: Row): Run => ({
  ...row,
  factsPerSecond: rate,
  startedAt: DateTime.fromDateUnsafe(started_at)
})

export const layer = Layer.effect(
  Projections,
  Effect.gen(function* () {
    const { derived, reads } = yield* Postgres
    return Projections.of({
      runs: unavailable(reads.query<Row>(runsStatement, [])).pipe(Effect.map((rows) => rows.map(runOf))),
      build: (name, version, total) =>
        unavailable(derived.query<Row>(buildStatement, [name, version, Math.round(total)])).pipe(
          Effect.map((rows) => runOf(rows[0]!))
        ),
      swap: (name, generation) =>
        unavailable(derived.query<{ done: boolean }>(swapStatement, [name, generation])).pipe(
          Effect.map((rows) => rows[0]!.done)
        ),
      stall: (longerThan) =>
        unavailable(
          reads.query<{ pid: number; application_name: string; since: Date }>(stallStatement, [
            Math.round(Duration.toMillis(longerThan))
          ])
        ).pipe(
          Effect.map(([row]) =>
            row === undefined
              ? null
              : { pid: row.pid, application: row.application_name, since: DateTime.fromDateUnsafe(row.since) }
          )
        )
    })
  })
)
