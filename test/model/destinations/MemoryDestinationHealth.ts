/** The projection `health` over maps. */
import { DateTime, Effect, Layer } from "effect"
import { DestinationHealth, type HealthState } from "../../../src/application/ports/DestinationHealth.ts"
import type { DestinationId } from "../../../src/domain/ids.ts"
import { type HealthBucket, KEPT_MS } from "../../../src/domain/message/health.ts"
import { clearRows, liveRows, moveRun, rowsOf } from "../log/runs.ts"
import { Memory } from "../Memory.ts"

export interface HealthRow extends HealthState {
  readonly buckets: ReadonlyArray<HealthBucket>
}

const added = (known: ReadonlyArray<HealthBucket>, news: ReadonlyArray<HealthBucket>): ReadonlyArray<HealthBucket> => {
  const buckets = new Map(known.map((bucket) => [DateTime.toEpochMillis(bucket.startsAt), bucket]))
  for (const bucket of news) {
    const start = DateTime.toEpochMillis(bucket.startsAt)
    const before = buckets.get(start)
    buckets.set(
      start,
      before === undefined
        ? bucket
        : {
            startsAt: bucket.startsAt,
            succeeded: before.succeeded + bucket.succeeded,
            failed: before.failed + bucket.failed,
            latencies: bucket.latencies.map((count, n) => count + before.latencies[n]!)
          }
    )
  }
  const newest = Math.max(...buckets.keys())
  return [...buckets]
    .toSorted(([a], [b]) => a - b)
    .flatMap(([start, bucket]) => (start > newest - KEPT_MS ? [bucket] : []))
}

type Moment = DateTime.Utc | null

/** Of nothing, nothing is before or after. */
const isAfter = (a: Moment | undefined, b: Moment): boolean => a != null && (b === null || DateTime.isGreaterThan(a, b))
const latest = (a: Moment, b: Moment): Moment => (a === null || b === null ? (a ?? b) : DateTime.max(a, b))
const earliest = (a: Moment, b: Moment): Moment => (a === null || b === null ? (a ?? b) : DateTime.min(a, b))

export const layer = Layer.effect(
  DestinationHealth,
  Effect.gen(function* () {
    const memory = yield* Memory
    const { tables } = memory
    const rows = () => liveRows(tables, "health", tables.health)

    return DestinationHealth.of({
      read: (id) => Effect.sync(() => rows().get(id) ?? null),
      failing: ({ cursor, limit }) =>
        Effect.sync(() => {
          const left = [...rows()]
            .flatMap(([destination, { failingSince, lastFailedAt, lastSucceededAt }]) =>
              failingSince !== null &&
              DateTime.toEpochMillis(lastFailedAt!) - DateTime.toEpochMillis(failingSince) >= 60_000 &&
              (cursor === null || destination > cursor)
                ? [{ destination, failingSince, lastFailedAt, lastSucceededAt }]
                : []
            )
            .toSorted((a, b) => (a.destination < b.destination ? -1 : 1))
          const items = left.slice(0, limit)
          return { items, nextCursor: left.length > limit ? items.at(-1)!.destination : null }
        }),
      project: (step, changes) =>
        Effect.sync(() => {
          if (!moveRun(memory, "health", step)) return false
          const states = rowsOf<DestinationId, HealthRow>(tables.health, step.generation)
          for (const [id, { failingSince, lastFailedAt, lastSucceededAt, buckets }] of changes) {
            const before = states.get(id)
            states.set(id, {
              failingSince: earliest(
                isAfter(before?.failingSince, lastSucceededAt) ? before!.failingSince : null,
                isAfter(before?.lastSucceededAt, failingSince) ? null : failingSince
              ),
              lastFailedAt: latest(lastFailedAt, before?.lastFailedAt ?? null),
              lastSucceededAt: latest(lastSucceededAt, before?.lastSucceededAt ?? null),
              buckets: added(before?.buckets ?? [], buckets)
            })
          }
          return true
        }),
      clear: () => Effect.sync(() => clearRows(tables, "health", tables.health))
    })
  })
)
