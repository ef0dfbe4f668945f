/**
 * Repeats a call until the store answers, for callers that have nobody to tell of an outage. `task` is for the log:
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
