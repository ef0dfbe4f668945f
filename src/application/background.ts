/**
 * A loop that repeats a step until it is interrupted. While a store does not answer, it pauses, tries again and tells
 * `StoreHealth`. A defect is logged, and the loop goes on after the same pause.
 */
import { type Duration, Effect } from "effect"
import { storePauses } from "./command.ts"
import type { StoreUnavailable } from "./ports/errors.ts"
import { Pulse, type Topic } from "./ports/Pulse.ts"
import { outageOf, StoreHealth } from "./storeHealth.ts"

interface Unavailable {
  readonly _tag: `${string}Unavailable`
}

export const background = <E extends Unavailable, R>(
  task: string,
  step: Effect.Effect<unknown, E, R>,
  pause: Duration.Input = "1 second"
): Effect.Effect<never, never, R> =>
  Effect.flatMap(StoreHealth, (store) => {
    const outage = outageOf(store, task)
    const works = Effect.suspend(() => {
      outage.over()
      return store.answered
    })
    return Effect.andThen(step, works).pipe(
      Effect.catch((error: E) => outage.failed(error).pipe(Effect.andThen(Effect.sleep(pause)))),
      Effect.catchDefect((defect) => Effect.andThen(Effect.logError(`${task} failed`, defect), Effect.sleep(pause))),
      Effect.forever
    )
  })

/** For a heartbeat that fails: else it rings. */
const LOOK_EVERY = "30 seconds"

/** Repeats a step until it answers false, then waits until the topic is rung. */
export const backgroundOn = <E extends Unavailable, R>(
  topic: Topic,
  task: string,
  step: Effect.Effect<boolean, E, R>
): Effect.Effect<never, never, R> =>
  Effect.flatMap(Pulse, ({ listener }) => {
    const { wait } = listener(topic)
    return background(
      task,
      Effect.flatMap(step, (more) => (more ? Effect.void : wait(LOOK_EVERY)))
    )
  })

/**
 * Repeats a call until the store answers, for callers that have nobody to tell of an outage. `task` is for the log: "obeying
 * commands from RabbitMQ".
 */
export const untilAnswered = <A, R>(
  task: string,
  call: Effect.Effect<A, StoreUnavailable, R>
): Effect.Effect<A, never, R> =>
  Effect.flatMap(StoreHealth, (store) => {
    const outage = outageOf(store, task)
    return call.pipe(Effect.tapError(outage.failed), Effect.retry(storePauses), Effect.orDie)
  })
