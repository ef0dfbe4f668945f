import { type DateTime, Duration, Effect, Layer } from "effect"
import { FactOutletProgress } from "../../../application/ports/FactOutletProgress.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"

const holdStatement = prepared`update fact_outlet set holder = $1::uuid, lease_until = clock_timestamp() + $2::int * interval '1 ms'
    where holder = $1::uuid or lease_until < clock_timestamp() returning position`
const advanceStatement = prepared`update fact_outlet set position = $4, lease_until = clock_timestamp() + $2::int * interval '1 ms'
    where holder = $1::uuid and position is not distinct from $3 returning true`
const reportStatement = prepared`update fact_outlet set away = $1::boolean, since = clock_timestamp() where away is distinct from $1::boolean`
const stateStatement = prepared`select away, since from fact_outlet where away is not null`

/** One row. */
export const layer = Layer.effect(
  FactOutletProgress,
  Effect.gen(function* () {
    const { durable, reads } = yield* Postgres
    return FactOutletProgress.of({
      hold: (holder, lease) =>
        reading(durable.rows(holdStatement, [holder, Duration.toMillis(lease)]), ([row]) =>
          row === undefined ? null : { position: row[0] ?? null }
        ),
      advance: (holder, lease, from, to) =>
        reading(
          durable.rows(advanceStatement, [holder, Duration.toMillis(lease), from, to]),
          (rows) => rows.length > 0
        ),
      report: (away) => Effect.asVoid(unavailable(durable.rows(reportStatement, [away]))),
      state: reading(reads.query<{ away: boolean; since: DateTime.Utc }>(stateStatement, []), ([row]) => row ?? null)
    })
  })
)
