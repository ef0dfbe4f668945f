/**
 * The lag of projections behind the facts, for lists, counts, metrics and troubles. It goes by the facts, so it is
 * right without a living projector too, and 0 while nothing happens.
 */
import { Context, DateTime, Duration, Effect, Exit, Layer } from "effect"
import { EventStore } from "../ports/EventStore.ts"
import type { FromStore } from "../ports/errors.ts"
import { Projections } from "../ports/Projections.ts"
import { projections } from "./projections/all.ts"
import type { ProjectionName } from "./projections/Projection.ts"
import { viewOf } from "./projections/rebuild.ts"

export interface AsOf {
  readonly asOf: DateTime.Utc
  readonly behindSeconds: number
}

/** Of every projection. One without a run lacks every fact. */
export const readFreshness = Effect.gen(function* () {
  const store = yield* EventStore
  // Before the look, which may miss facts that are committed during it.
  const now = yield* DateTime.now
  const runs = yield* (yield* Projections).runs
  const positions = projections.map(({ name }) => viewOf(name, runs).live?.position ?? null)
  const unread = new Map(
    yield* Effect.forEach(
      new Set(positions),
      (position) => Effect.map(store.unreadSince(position), (since) => [position, since] as const),
      { concurrency: "unbounded" }
    )
  )
  return new Map(projections.map(({ name }, nth) => [name, asOfIn(unread.get(positions[nth]!) ?? null, now)]))
})

const asOfIn = (unreadSince: DateTime.Utc | null, now: DateTime.Utc): AsOf =>
  unreadSince === null || DateTime.isGreaterThan(unreadSince, now)
    ? { asOf: now, behindSeconds: 0 }
    : { asOf: unreadSince, behindSeconds: Duration.toSeconds(DateTime.distance(unreadSince, now)) }

const HOLDS = Duration.seconds(1)

/** Ask before the rows are read: the answer is then true of them. */
export class Freshness extends Context.Service<
  Freshness,
  { readonly of: (projection: ProjectionName) => FromStore<AsOf> }
>()("posthaste/application/log/Freshness") {
  static readonly layer: Layer.Layer<Freshness, never, EventStore | Projections> = Layer.effect(
    Freshness,
    Effect.gen(function* () {
      const services = yield* Effect.context<EventStore | Projections>()
      const latest = yield* Effect.cachedWithTTL(Effect.provide(readFreshness, services), (exit) =>
        Exit.isSuccess(exit) ? HOLDS : Duration.zero
      )
      return Freshness.of({ of: (projection) => Effect.map(latest, (all) => all.get(projection)!) })
    })
  )
}
