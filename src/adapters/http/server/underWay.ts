/**
 * How many requests of a kind one org has under way in this process. Those beyond wait in the order they came, with their bodies unread;
 * and where as many wait as may, the next is refused, so that it holds no memory either.
 */
import { Context, Effect, Exit, Layer, Semaphore } from "effect"
import { AskedFor } from "../../../application/askedFor.ts"
import { ActingOrg } from "./auth.ts"
import { type Problem, tooManyBatches, tooManyLists } from "./problem.ts"

export const limits = {
  /** The store shares its connections for lists out by org, so those that are under way wait there. */
  list: { atOnce: 20, waiting: 0, refusal: tooManyLists },
  /** What is over the size of a single request, up to 8 MiB. */
  batch: { atOnce: 4, waiting: 60, refusal: tooManyBatches }
} as const

export type Kind = keyof typeof limits

interface OfOrg {
  count: number
  readonly places: Semaphore.Semaphore
}

export class UnderWay extends Context.Service<
  UnderWay,
  {
    /** `isKept` tells whether the place is kept beyond the effect, and then gives it back itself. */
    readonly asOne: <A, E, R>(
      kind: Kind,
      org: string,
      effect: Effect.Effect<A, E, R>,
      isKept?: (answer: A, giveBack: () => void) => boolean
    ) => Effect.Effect<A, E | Problem, R>
  }
>()("posthaste/adapters/http/server/underWay/UnderWay") {}

export const layer = Layer.sync(UnderWay, () => {
  const known: Readonly<Record<Kind, Map<string, OfOrg>>> = { list: new Map(), batch: new Map() }
  const asOne = <A, E, R>(
    kind: Kind,
    org: string,
    effect: Effect.Effect<A, E, R>,
    isKept: (answer: A, giveBack: () => void) => boolean = () => false
  ): Effect.Effect<A, E | Problem, R> =>
    Effect.suspend((): Effect.Effect<A, E | Problem, R> => {
      const { atOnce, waiting, refusal } = limits[kind]
      const own = known[kind].get(org) ?? { count: 0, places: Semaphore.makeUnsafe(atOnce) }
      if (own.count >= atOnce + waiting) return Effect.fail(refusal(atOnce + waiting))
      known[kind].set(org, own)
      const giveBack = () => {
        own.count -= 1
        if (own.count === 0) known[kind].delete(org)
      }
      return Effect.acquireUseRelease(
        Effect.sync(() => {
          own.count += 1
        }),
        () => own.places.withPermit(effect),
        (_, exit) =>
          Effect.sync(() => {
            if (Exit.isFailure(exit) || !isKept(exit.value, giveBack)) giveBack()
          })
      )
    })
  return { asOne }
})

const of = (kind: Kind) =>
  Effect.fnUntraced(function* <A, E, R>(
    effect: Effect.Effect<A, E, R>,
    isKept?: (answer: A, giveBack: () => void) => boolean
  ) {
    const { asOne } = yield* UnderWay
    // Keys are listed in no org's name, and are asked for by one all the same.
    return yield* asOne(kind, (yield* AskedFor) ?? (yield* ActingOrg), effect, isKept)
  })

/** A list or a count of the org that asks. */
export const asReader = of("list")
/** A large batch of the org that asks. */
export const asLargeBatch = of("batch")
