/**
 * Streams for contracts. A busy machine may answer later than callers of the product are kept waiting: a call without an answer is made
 * again, which every call of the port allows.
 */
import { Effect, Layer, Schedule } from "effect"
import type { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { Streams } from "../../../src/application/ports/Streams.ts"

const again = Schedule.spaced("100 millis").pipe(Schedule.upTo({ duration: "1 minute" }))
const retried =
  <Args extends ReadonlyArray<unknown>, A>(ask: (...args: Args) => Effect.Effect<A, StoreUnavailable>) =>
  (...args: Args) =>
    Effect.retry(ask(...args), again)

export const insisting = Layer.effect(
  Streams,
  Effect.map(Streams, (inner) =>
    Streams.of({
      append: retried(inner.append),
      read: retried(inner.read),
      remove: retried(inner.remove),
      follow: inner.follow
    })
  )
)

const SEED = 17

/** Each answer is late, every third append is made twice, as after a lost answer, and every fifth read comes before the append that is under way. */
export const troubled = Layer.effect(
  Streams,
  Effect.map(Streams, (inner) => {
    let state = SEED
    const drawn = () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      return state / 2 ** 32
    }
    const late = Effect.suspend(() => Effect.sleep(drawn() * 12))
    const append = retried(inner.append)
    return Streams.of({
      append: (writing) =>
        Effect.suspend(() => {
          const once = Effect.andThen(late, Effect.tap(append(writing), late))
          return drawn() < 1 / 3 ? Effect.andThen(once, once) : once
        }),
      read: (...asked) => Effect.andThen(late, retried(inner.read)(...asked)),
      remove: retried(inner.remove),
      follow: inner.follow
    })
  })
)
