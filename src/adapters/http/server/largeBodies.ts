/**
 * Large batches, each in the turn of its org. A batch may hold 8 MiB, and to read its JSON takes the one thread that everybody shares for a good
 * part of a second: so an org has few of them in memory, they are read one after the other, and after one that took long, as much time
 * is everybody else's. What comes after the reading, such as the commit, is no part of the turn.
 */
import { Context, Effect, Layer, Semaphore } from "effect"
import { ActingOrg } from "./auth.ts"
import { type Problem, tooManyBatches } from "./problem.ts"

/** Of one org, being received or read. */
export const BATCHES_OF_ORG_MAX = 8
/** What takes less is nothing to wait for. */
const SHORT_MS = 20
const PAUSE_MAX_MS = 2_000

interface Turn {
  batches: number
  readonly reading: Semaphore.Semaphore
}

export class LargeBodies extends Context.Service<
  LargeBodies,
  {
    /** Receives at once, and reads when those are read that the org sent before. */
    readonly inTurn: <A, B, E, R, E2, R2>(
      org: string,
      receive: Effect.Effect<A, E, R>,
      read: (received: A) => Effect.Effect<B, E2, R2>
    ) => Effect.Effect<B, E | E2 | Problem, R | R2>
  }
>()("posthaste/adapters/http/server/largeBodies/LargeBodies") {}

export const layer = Layer.sync(LargeBodies, () => {
  const turns = new Map<string, Turn>()
  const inTurn = <A, B, E, R, E2, R2>(
    org: string,
    receive: Effect.Effect<A, E, R>,
    read: (received: A) => Effect.Effect<B, E2, R2>
  ): Effect.Effect<B, E | E2 | Problem, R | R2> =>
    Effect.suspend((): Effect.Effect<B, E | E2 | Problem, R | R2> => {
      const turn = turns.get(org) ?? { batches: 0, reading: Semaphore.makeUnsafe(1) }
      if (turn.batches >= BATCHES_OF_ORG_MAX) return Effect.fail(tooManyBatches())
      turns.set(org, turn)
      const count = (change: 1 | -1) =>
        Effect.sync(() => {
          turn.batches += change
          if (turn.batches === 0) turns.delete(org)
        })
      return Effect.acquireUseRelease(
        count(1),
        () => Effect.flatMap(receive, (received) => turn.reading.withPermit(paced(read(received)))),
        () => count(-1)
      )
    })
  return { inTurn }
})

/** Then everybody else has as much time as it took, also when its caller has gone. */
const paced = <A, E, R>(reading: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const since = performance.now()
    const pause = Effect.suspend(() => {
      const took = performance.now() - since
      return took < SHORT_MS ? Effect.void : Effect.sleep(Math.min(took, PAUSE_MAX_MS))
    })
    return Effect.ensuring(reading, pause)
  })

/** A large batch of the org that asks. */
export const inItsTurn = Effect.fnUntraced(function* <A, B, E, R, E2, R2>(
  receive: Effect.Effect<A, E, R>,
  read: (received: A) => Effect.Effect<B, E2, R2>
) {
  const { inTurn } = yield* LargeBodies
  return yield* inTurn(yield* ActingOrg, receive, read)
})
