/**
 * A call that has nobody to answer while the store is away, and all the time: it is made again until the store answers.
 * `StoreHealth` is told; without one that keeps count, the log has one line when the waiting begins. `task` is for the log:
 * "obeying commands from RabbitMQ".
 */
import { Effect } from "effect"
import { storePauses } from "./command.ts"
import type { StoreUnavailable } from "./errors.ts"
import { outageOf, StoreHealth } from "./storeHealth.ts"

export const untilAnswered = <A, R>(
  task: string,
  call: Effect.Effect<A, StoreUnavailable, R>
): Effect.Effect<A, never, R> =>
  Effect.flatMap(StoreHealth, (store) => {
    const outage = outageOf(store, task)
    return call.pipe(Effect.tapError(outage.failed), Effect.retry(storePauses), Effect.orDie)
  })
