/**
 * How much an org, and a key of it, may ask of this process, and how much an org may have in all.
 *
 * Rates are counted by each process for itself: a request passes while org and key have any of their second's worth left, and what it
 * took beyond has to pass first. So a large batch passes too, and the next request waits for it. They hold for what is repeated under
 * its idempotency key as well, because to find that costs as much: after the named seconds it is answered.
 *
 * What the org has is counted by the store and remembered for a moment: a limit may be passed by what comes within it. A repeat adds
 * nothing to it, and is answered however much there is.
 */
import { Clock, Context, Effect, Layer, Schema } from "effect"
import type { OrgId } from "../../domain/ids.ts"
import type { StoreUnavailable } from "../errors.ts"
import { type Limits, type OrgCounts, Orgs, type Rates, rateNames } from "../ports/Orgs.ts"
import { LATER_SECONDS, makeBuckets } from "./buckets.ts"

/** A limit is used up: of the org, or of the key that asks. */
export class LimitReached extends Schema.TaggedError<LimitReached>()("LimitReached", {
  of: Schema.Literals(["org", "key"]),
  limit: Schema.String,
  allowed: Schema.Number,
  /** When it may be worth asking again. */
  afterSeconds: Schema.Int
}) {}

/** What is to be accepted. */
export interface Asked {
  /** Messages or events. */
  readonly count: number
  /** In all. */
  readonly bytes: number
  /** The key it is asked with; null: none that has limits. */
  readonly key: { readonly id: string; readonly limits: Rates } | null
  /** Whether all of it was accepted before, so that nothing is added to what the org has. */
  readonly isRepeat: Effect.Effect<boolean, StoreUnavailable>
}

export class Admission extends Context.Service<
  Admission,
  {
    readonly accept: (org: OrgId, asked: Asked) => Effect.Effect<void, LimitReached | StoreUnavailable>
    /** To have one more. */
    readonly another: (
      org: OrgId,
      what: "destinations" | "replays",
      isRepeat: Asked["isRepeat"]
    ) => Effect.Effect<void, LimitReached | StoreUnavailable>
    /** To follow one more feed of a process, where it follows `followed`; `share` is what an org without a limit may follow. */
    readonly follow: (
      org: OrgId,
      followed: number,
      share: number
    ) => Effect.Effect<void, LimitReached | StoreUnavailable>
  }
>()("posthaste/application/orgs/Admission") {}

/** How long counts are remembered. */
const COUNTED_MS = 2_000
/** When it may be worth asking for one more. */
const afterSecondsOf = { waiting: 5, replays: 30, feeds: 30, destinations: LATER_SECONDS } as const

const hasAsMany = (limit: keyof typeof afterSecondsOf, allowed: number) =>
  new LimitReached({ of: "org", limit, allowed, afterSeconds: allowed === 0 ? LATER_SECONDS : afterSecondsOf[limit] })

const ORGS_MAX = 10_000

const ratesOf = (of: "org" | "key", id: string, rates: Rates) =>
  rateNames.flatMap((limit) => {
    const perSecond = rates[limit]
    return perSecond === undefined ? [] : [{ of, limit, bucket: `${limit} of ${of} ${id}`, rate: { perSecond } }]
  })

/** `standard` holds for an org that has no limit of its own. */
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
