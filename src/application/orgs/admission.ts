/**
 * Limits of orgs and keys. Rates are counted by each process: a request passes while anything of the second is left,
 * and its excess delays the next one, so a large batch passes too. Repeats count, because finding them costs as much.
 * Counts come from the store and may be two seconds old; a repeat adds nothing to them and always passes.
 */
import { Clock, Context, Effect, Layer, Schema } from "effect"
import type { OrgId } from "../../domain/ids.ts"
import type { StoreUnavailable } from "../ports/errors.ts"
import { type Limits, type OrgCounts, Orgs, type Rates, rateNames } from "../ports/Orgs.ts"
import { LATER_SECONDS, makeBuckets } from "./buckets.ts"

export class LimitReached extends Schema.TaggedError<LimitReached>()("LimitReached", {
  of: Schema.Literals(["org", "key"]),
  limit: Schema.String,
  allowed: Schema.Number,
  afterSeconds: Schema.Int
}) {}

export interface Asked {
  readonly count: number
  readonly bytes: number
  /** Null: no key with limits. */
  readonly key: { readonly id: string; readonly limits: Rates } | null
  /** True if all of it was accepted before. */
  readonly isRepeat: Effect.Effect<boolean, StoreUnavailable>
}

export class Admission extends Context.Service<
  Admission,
  {
    readonly accept: (org: OrgId, asked: Asked) => Effect.Effect<void, LimitReached | StoreUnavailable>
    readonly another: (
      org: OrgId,
      what: "destinations" | "replays",
      isRepeat: Asked["isRepeat"]
    ) => Effect.Effect<void, LimitReached | StoreUnavailable>
    /** Admits one more feed of a process that follows `followed`; `share` is for an org without a limit. */
    readonly follow: (
      org: OrgId,
      followed: number,
      share: number
    ) => Effect.Effect<void, LimitReached | StoreUnavailable>
  }
>()("posthaste/application/orgs/Admission") {}

const COUNTED_MS = 2_000
const afterSecondsOf = { waiting: 5, replays: 30, feeds: 30, destinations: LATER_SECONDS } as const

const hasAsMany = (limit: keyof typeof afterSecondsOf, allowed: number) =>
  new LimitReached({ of: "org", limit, allowed, afterSeconds: allowed === 0 ? LATER_SECONDS : afterSecondsOf[limit] })

const ORGS_MAX = 10_000

const ratesOf = (of: "org" | "key", id: string, rates: Rates) =>
  rateNames.flatMap((limit) => {
    const perSecond = rates[limit]
    return perSecond === undefined ? [] : [{ of, limit, bucket: `${limit} of ${of} ${id}`, rate: { perSecond } }]
  })

export const layer = (standard: Limits) =>
  Layer.effect(
    Admission,
    Effect.gen(function* () {
      const orgs = yield* Orgs
      const clock = yield* Clock.Clock
      const now = () => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
      const buckets = makeBuckets(now)
      const counts = new Map<OrgId, { readonly until: number; readonly counts: OrgCounts; since: number }>()

      const countsOf = Effect.fnUntraced(function* (org: OrgId) {
        const known = counts.get(org)
        if (known !== undefined && known.until > now()) return known
        const found = { until: now() + COUNTED_MS, counts: yield* orgs.get(org), since: 0 }
        if (counts.size >= ORGS_MAX) counts.clear()
        counts.set(org, found)
        return found
      })

      const accept = Effect.fnUntraced(function* (org: OrgId, { count, bytes, key, isRepeat }: Asked) {
        const limits = { ...standard, ...(yield* orgs.settingsOf(org)).limits }
        const wanted = { acceptsPerSecond: count, bytesPerSecond: bytes }
        const rates = [...ratesOf("org", org, limits), ...(key === null ? [] : ratesOf("key", key.id, key.limits))]
        for (const { of, limit, bucket, rate } of rates) {
          const afterSeconds = buckets.waitOf(bucket, rate)
          if (afterSeconds > 0) return yield* new LimitReached({ of, limit, allowed: rate.perSecond, afterSeconds })
        }
        if (limits.waiting !== undefined) {
          const counted = yield* countsOf(org)
          if (counted.counts.waiting + counted.since < limits.waiting) counted.since += count
          else if (!(yield* isRepeat)) return yield* hasAsMany("waiting", limits.waiting)
        }
        for (const { limit, bucket, rate } of rates) buckets.take(bucket, rate, wanted[limit])
      })

      const another = Effect.fnUntraced(function* (
        org: OrgId,
        what: "destinations" | "replays",
        isRepeat: Asked["isRepeat"]
      ) {
        const allowed = { ...standard, ...(yield* orgs.settingsOf(org)).limits }[what]
        if (allowed === undefined || (yield* orgs.get(org))[what] < allowed || (yield* isRepeat)) return
        return yield* hasAsMany(what, allowed)
      })

      const follow = Effect.fnUntraced(function* (org: OrgId, followed: number, share: number) {
        const allowed = { feeds: share, ...standard, ...(yield* orgs.settingsOf(org)).limits }.feeds
        if (followed < allowed) return
        return yield* hasAsMany("feeds", allowed)
      })

      return Admission.of({ accept, another, follow })
    })
  )
