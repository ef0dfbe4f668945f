/** Runs of projections: `advance_projection` moves a row in the transaction that writes its derived rows. */
import { Duration, Effect, Layer } from "effect"
import { Projections, type Run, type Stall } from "../../../application/ports/Projections.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"

const columns = `name, generation, version, live, position, facts::float8 as facts, total::float8 as total,
  rate as "factsPerSecond", started_at as "startedAt"`
const runsStatement = prepared`select ${columns} from projection order by name, live desc`
const buildStatement = prepared`select ${columns} from build_projection($1, $2, $3)`
const swapStatement = prepared`select swap_projection($1, $2) as done`
// The oldest writing transaction of any database of the server is the end of the log.
const stallStatement = prepared`select pid, application_name as application, coalesce(xact_start, clock_timestamp()) as since from pg_stat_activity
    where backend_xid::text::bigint = pg_snapshot_xmin(pg_current_snapshot())::text::bigint % 4294967296
      and xact_start < clock_timestamp() - $1::int * interval '1 millisecond'`

export const layer = Layer.effect(
  Projections,
  Effect.gen(function* () {
    const { derived, reads } = yield* Postgres
    return Projections.of({
      runs: unavailable(reads.query<Run>(runsStatement, [])),
      build: (name, version, total) =>
        reading(derived.query<Run>(buildStatement, [name, version, Math.round(total)]), (rows) => rows[0]!),
      swap: (name, generation) =>
        reading(derived.query<{ done: boolean }>(swapStatement, [name, generation]), (rows) => rows[0]!.done),
      stall: (longerThan) =>
        reading(
          reads.query<Stall>(stallStatement, [Math.round(Duration.toMillis(longerThan))]),
          ([stall = null]) => stall
        )
    })
  })
)
