import { Effect, Layer } from "effect"
import { DestinationHealth, type HealthState } from "../../../application/ports/DestinationHealth.ts"
import type { DestinationId } from "../../../domain/ids.ts"
import { type HealthBucket, KEPT_MS } from "../../../domain/message/health.ts"
import { pageOf } from "../filtering.ts"
import { clearing, liveGeneration, stepping } from "../log/generations.ts"
import { Postgres, prepared, reading } from "../Postgres.ts"

const CALL = "project_health($1, $2, $3, $4, $5, $6, $7)"
const live = `generation = ${liveGeneration("health")}`
const state = `failing_since as "failingSince", last_failed_at as "lastFailedAt", last_succeeded_at as "lastSucceededAt"`
const readStatement = prepared`select ${state} from health where ${live} and destination = $1`
const bucketsStatement = prepared`select starts_at as "startsAt", succeeded, failed, latencies from health_bucket
    where ${live} and destination = $1 order by starts_at`
const failingStatement = prepared`select destination, ${state} from health
    where ${live} and failing_since is not null and last_failed_at - failing_since >= interval '1 minute'
      and ($1::uuid is null or destination > $1) order by destination limit $2`
interface FailingRow extends HealthState {
  readonly destination: DestinationId
}

export const layer = Layer.effect(
  DestinationHealth,
  Effect.gen(function* () {
    const { derived, reads } = yield* Postgres
    const write = stepping(derived, CALL)

    return DestinationHealth.of({
      read: (id) =>
        reading(
          Effect.all([
            reads.query<HealthState>(readStatement, [id]),
            reads.query<HealthBucket>(bucketsStatement, [id])
          ]),
          ([[found], buckets]) => (found === undefined ? null : { ...found, buckets })
        ),
      failing: (page) =>
        reading(reads.query<FailingRow>(failingStatement, [page.cursor, page.limit + 1]), (rows) =>
          pageOf(
            rows,
            page,
            (row) => row,
            ({ destination }) => destination
          )
        ),
      project: (step, changes) => {
        const states = [...changes].map(([destination, { failingSince, lastFailedAt, lastSucceededAt }]) => ({
          destination,
          failing_since: failingSince,
          last_failed_at: lastFailedAt,
          last_succeeded_at: lastSucceededAt
        }))
        const buckets = [...changes].flatMap(([destination, change]) =>
          change.buckets.map(({ startsAt, ...bucket }) => ({ destination, starts_at: startsAt, ...bucket }))
        )
        return write(step, [JSON.stringify(states), JSON.stringify(buckets), KEPT_MS])
      },
      clear: clearing(derived, "health", ["health", "health_bucket"])
    })
  })
)
