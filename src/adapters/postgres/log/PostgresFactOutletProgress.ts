import { Duration, Effect, Layer } from "effect"
import { FactOutletProgress } from "../../../application/ports/FactOutletProgress.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"

const beginStatement = prepared`update fact_outlet set begun = true, position = $1 where not begun`
const holdStatement = prepared`update fact_outlet set holder = $1::uuid, lease_until = clock_timestamp() + $2::int * interval '1 ms'
    where holder = $1::uuid or lease_until < clock_timestamp() returning position`
const advanceStatement = prepared`update fact_outlet set position = $4, lease_until = clock_timestamp() + $2::int * interval '1 ms'
    where holder = $1::uuid and position is not distinct from $3 returning true`

/** One row. */
export const layer = Layer.effect(
  FactOutletProgress,
  Effect.gen(function* () {
    const { durable } = yield* Postgres
    return FactOutletProgress.of({
      begin: (position) => Effect.asVoid(unavailable(durable.rows(beginStatement, [position]))),
      hold: (holder, lease) =>
        reading(durable.rows(holdStatement, [holder, Duration.toMillis(lease)]), ([row]) =>
          row === undefined ? null : { position: row[0] ?? null }
        ),
      advance: (holder, lease, from, to) =>
        reading(durable.rows(advanceStatement, [holder, Duration.toMillis(lease), from, to]), (rows) => rows.length > 0)
    })
  })
)
