/**
 * How far behind the facts a projection is: the one source for lists, counts, metrics and whoever warns. It goes by the
 * facts, not by the projectors, so it is right without a living projector too, and nothing is behind while nothing happens.
 */
import { Context, DateTime, Duration, Effect, Exit, Layer } from "effect"
import type { FromStore } from "../errors.ts"
import { EventStore } from "../ports/EventStore.ts"
import { Projections } from "../ports/Projections.ts"
import { projections } from "./projections/all.ts"
import type { ProjectionName } from "./projections/Projection.ts"
import { viewOf } from "./projections/rebuild.ts"

export interface AsOf {
  /** Whatever was committed before is in the projection. */
  readonly asOf: DateTime.Utc
  /** How old the oldest fact is that it lacks; 0 when it lacks none. */
  readonly behindSeconds: number
}

/** Of every projection, now. One that nobody has begun with lacks every fact there is. */
export const readFreshness = Effect.gen(function* () {
  const store = yield* EventStore
  // Before the look: what is committed during the look may be missed by it.
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

/** What was read is good for so long: a projection only gets nearer to what was stored by then. */
const HOLDS = Duration.seconds(1)

/** Ask before the rows are read: what is answered is then true of them. */
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
