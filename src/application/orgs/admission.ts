/**
 * How much an org may ask of this process, and have in all.
 *
 * Rates are counted by each process for itself: a request passes while the org has any of its second's worth left, and what it took
 * beyond has to pass first. So a large batch passes too, and the next request waits for it. What the org has is counted by the store
 * and remembered for a moment: a limit may be passed by what comes within it.
 */
import { Clock, Context, Effect, Layer, Schema } from "effect"
import type { OrgId } from "../../domain/ids.ts"
import type { StoreUnavailable } from "../errors.ts"
import { type LimitName, type Limits, type OrgCounts, Orgs } from "../ports/Orgs.ts"

/** The org has used up a limit. */
export class LimitReached extends Schema.TaggedError<LimitReached>()("LimitReached", {
  limit: Schema.String,
  allowed: Schema.Number,
  /** When it may be worth asking again; null: not before somebody makes room. */
  afterSeconds: Schema.NullOr(Schema.Int)
}) {}

export class Admission extends Context.Service<
  Admission,
  {
    /** To accept so many messages or events of so many bytes in all. */
    readonly accept: (org: OrgId, count: number, bytes: number) => Effect.Effect<void, LimitReached | StoreUnavailable>
    /** To have one more. */
    readonly another: (
      org: OrgId,
      what: "destinations" | "replays"
    ) => Effect.Effect<void, LimitReached | StoreUnavailable>
  }
>()("posthaste/application/orgs/Admission") {}

/** How long counts are remembered. */
const COUNTED_MS = 2_000
const WAITING_AFTER_SECONDS = 5
const ORGS_MAX = 10_000

interface Bucket {
  left: number
  at: number
}

/** `standard` holds for an org that has no limit of its own. */
export const layer = (standard: Limits) =>
  Layer.effect(
    Admission,
    Effect.gen(function* () {
      const orgs = yield* Orgs
      const clock = yield* Clock.Clock
      const buckets = new Map<string, Bucket>()
      const counts = new Map<OrgId, { readonly until: number; readonly counts: OrgCounts; since: number }>()
      const now = () => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
      const bounded = <A>(known: Map<A, unknown>) => {
        if (known.size >= ORGS_MAX) known.clear()
      }

      /** Refuses while what was taken before has not passed. */
      const bucketOf = (org: OrgId, limit: LimitName, perSecond: number): Bucket => {
        const name = `${limit} ${org}`
        const at = now()
        let bucket = buckets.get(name)
        if (bucket === undefined) {
          bounded(buckets)
          bucket = { left: perSecond, at }
          buckets.set(name, bucket)
        }
        bucket.left = Math.min(perSecond, bucket.left + ((at - bucket.at) / 1_000) * perSecond)
        bucket.at = at
        return bucket
      }

      const countsOf = Effect.fnUntraced(function* (org: OrgId) {
        const known = counts.get(org)
        if (known !== undefined && known.until > now()) return known
        const found = { until: now() + COUNTED_MS, counts: yield* orgs.get(org), since: 0 }
        bounded(counts)
        counts.set(org, found)
        return found
      })

      const accept = Effect.fnUntraced(function* (org: OrgId, count: number, bytes: number) {
        const limits = { ...standard, ...(yield* orgs.settingsOf(org)).limits }
        const rates = [
          ["acceptsPerSecond", limits.acceptsPerSecond, count],
          ["bytesPerSecond", limits.bytesPerSecond, bytes]
        ] as const
        const taken: Array<() => void> = []
        for (const [limit, perSecond, wanted] of rates) {
          if (perSecond === undefined) continue
          const bucket = bucketOf(org, limit, perSecond)
          if (bucket.left <= 0) {
            const afterSeconds = Math.floor(-bucket.left / perSecond) + 1
            return yield* new LimitReached({ limit, allowed: perSecond, afterSeconds })
          }
          taken.push(() => {
            bucket.left -= wanted
          })
        }
        if (limits.waiting !== undefined) {
          const counted = yield* countsOf(org)
          if (counted.counts.waiting + counted.since >= limits.waiting) {
            const allowed = limits.waiting
            return yield* new LimitReached({ limit: "waiting", allowed, afterSeconds: WAITING_AFTER_SECONDS })
          }
          counted.since += count
        }
        for (const take of taken) take()
      })

      const another = Effect.fnUntraced(function* (org: OrgId, what: "destinations" | "replays") {
        const allowed = { ...standard, ...(yield* orgs.settingsOf(org)).limits }[what]
        if (allowed === undefined || (yield* orgs.get(org))[what] < allowed) return
        return yield* new LimitReached({ limit: what, allowed, afterSeconds: null })
      })

      return Admission.of({ accept, another })
    })
  )
