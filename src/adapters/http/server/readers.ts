/**
 * How many lists one org may ask of this process at once. The store shares its connections for lists out by org, so those that wait hold
 * up nobody else; beyond these they are refused, so that they hold no memory either.
 */
import { Context, Effect, Layer } from "effect"
import { ActingOrg } from "./auth.ts"
import { type Problem, tooManyLists } from "./problem.ts"

export const LISTS_OF_ORG_MAX = 20

export class Readers extends Context.Service<
  Readers,
  {
    readonly reading: <A, E, R>(org: string, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | Problem, R>
  }
>()("posthaste/adapters/http/server/readers/Readers") {}

export const layer = Layer.sync(Readers, () => {
  const ofOrg = new Map<string, number>()
  const count = (org: string, change: 1 | -1) => {
    const own = (ofOrg.get(org) ?? 0) + change
    if (own === 0) ofOrg.delete(org)
    else ofOrg.set(org, own)
  }
  const reading = <A, E, R>(org: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | Problem, R> =>
    Effect.suspend((): Effect.Effect<A, E | Problem, R> => {
      if ((ofOrg.get(org) ?? 0) >= LISTS_OF_ORG_MAX) return Effect.fail(tooManyLists())
      return Effect.acquireUseRelease(
        Effect.sync(() => count(org, 1)),
        () => effect,
        () => Effect.sync(() => count(org, -1))
      )
    })
  return { reading }
})

/** A list or a count of the org that asks. */
export const asReader = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const { reading } = yield* Readers
  return yield* reading(yield* ActingOrg, effect)
})
