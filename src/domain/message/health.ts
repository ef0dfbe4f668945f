/**
 * The health of a destination, from the ends of its attempts. Not counted: deferrals, attempts that Posthaste
 * abandoned, erased bodies, unreadable settings.
 */
import { DateTime } from "effect"
import { missingCodes } from "../delivery/classify.ts"
import type { MessageFact } from "./facts.ts"

export interface AttemptEnd {
  readonly at: DateTime.Utc
  readonly succeeded: boolean
  readonly durationMs: number
}

const ours: ReadonlySet<string> = new Set([
  "store_unavailable",
  "channel_unavailable",
  "channel_failed",
  "body_erased",
  "payload_invalid",
  ...missingCodes
])

export const attemptEndOf = (fact: MessageFact, at: DateTime.Utc): AttemptEnd | null => {
  switch (fact.type) {
    case "AttemptSucceeded":
      return { at, succeeded: true, durationMs: fact.durationMs }
    case "AttemptFailed":
      return ours.has(fact.error.code) ? null : { at, succeeded: false, durationMs: fact.durationMs }
    default:
      return null
  }
}

/** Upper bounds in milliseconds, each 41 % above the one before, which bounds the error. The last bucket has none. */
export const latencyBoundsMs: ReadonlyArray<number> = Array.from({ length: 31 }, (_, n) => Math.round(Math.SQRT2 ** n))

const placeOf = (durationMs: number): number => {
  const place = latencyBoundsMs.findIndex((bound) => durationMs <= bound)
  return place === -1 ? latencyBoundsMs.length : place
}

export const BUCKET_MS = 300_000
/** Buckets are kept for this long before the newest one of their destination. */
export const KEPT_MS = 25 * 3_600_000

export interface HealthBucket {
  readonly startsAt: DateTime.Utc
  readonly succeeded: number
  readonly failed: number
  readonly latencies: ReadonlyArray<number>
}

export interface HealthChange {
  readonly failingSince: DateTime.Utc | null
  readonly lastFailedAt: DateTime.Utc | null
  readonly lastSucceededAt: DateTime.Utc | null
  readonly buckets: ReadonlyArray<HealthBucket>
}

export const changeOf = (ends: ReadonlyArray<AttemptEnd>): HealthChange => {
  const last = (succeeded: boolean) => ends.findLast((end) => end.succeeded === succeeded)?.at ?? null
  const failing = ends.slice(ends.findLastIndex(({ succeeded }) => succeeded) + 1)
  const buckets = new Map<number, { succeeded: number; failed: number; latencies: Array<number> }>()
  for (const { at, succeeded, durationMs } of ends) {
    const start = Math.floor(DateTime.toEpochMillis(at) / BUCKET_MS) * BUCKET_MS
    const bucket = buckets.get(start) ?? {
      succeeded: 0,
      failed: 0,
      latencies: Array.from({ length: latencyBoundsMs.length + 1 }, () => 0)
    }
    bucket[succeeded ? "succeeded" : "failed"] += 1
    bucket.latencies[placeOf(durationMs)]! += 1
    buckets.set(start, bucket)
  }
  return {
    failingSince: failing[0]?.at ?? null,
    lastFailedAt: last(false),
    lastSucceededAt: last(true),
    buckets: [...buckets].map(([start, bucket]) => ({ startsAt: DateTime.makeUnsafe(start), ...bucket }))
  }
}

export interface HealthSummary {
  readonly attempts: number
  readonly succeeded: number
  readonly failed: number
  readonly successRate: number | null
  readonly latencyMs: { readonly p50: number; readonly p95: number; readonly p99: number } | null
}

export const summaryOf = (buckets: ReadonlyArray<HealthBucket>, since: DateTime.Utc): HealthSummary => {
  const chosen = buckets.filter(({ startsAt }) => DateTime.isGreaterThan(startsAt, since))
  const sum = (of: (bucket: HealthBucket) => number) => chosen.reduce((total, bucket) => total + of(bucket), 0)
  const [succeeded, failed] = [sum((bucket) => bucket.succeeded), sum((bucket) => bucket.failed)]
  const attempts = succeeded + failed
  const counts = Array.from({ length: latencyBoundsMs.length + 1 }, (_, n) => sum(({ latencies }) => latencies[n] ?? 0))
  const quantile = (share: number): number => {
    const rank = Math.ceil(attempts * share)
    let seen = 0
    for (const [place, count] of counts.entries()) {
      seen += count
      if (seen >= rank) return latencyBoundsMs[Math.min(place, latencyBoundsMs.length - 1)]!
    }
    return latencyBoundsMs.at(-1)!
  }
  return {
    ...{ attempts, succeeded, failed },
    successRate: attempts === 0 ? null : succeeded / attempts,
    latencyMs: attempts === 0 ? null : { p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99) }
  }
}

/** True when every attempt since it was last enabled has failed for `limitMs`, with an attempt at either end. */
export const hasFailedFor = (
  { failingSince, lastFailedAt }: Pick<HealthChange, "failingSince" | "lastFailedAt">,
  enabledAt: DateTime.Utc | null,
  limitMs: number
): boolean => {
  if (failingSince === null || lastFailedAt === null) return false
  const since = enabledAt === null ? failingSince : DateTime.max(failingSince, enabledAt)
  return DateTime.toEpochMillis(lastFailedAt) - DateTime.toEpochMillis(since) >= limitMs
}
