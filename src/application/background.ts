/**
 * A loop that runs until it is interrupted: the same step again and again. The step brings its own pause; this handles
 * its failures.
 *
 * - While a store does not answer, the loop pauses and tries again. `StoreHealth` is told; without one that keeps count
 *   the loop warns when that begins, not at every try.
 * - A defect is logged, and the loop goes on after the same pause: a bug in one step may not end the steps after it.
 */
import { type Duration, Effect } from "effect"
import { Pulse, type Topic } from "./ports/Pulse.ts"
import { outageOf, StoreHealth } from "./storeHealth.ts"

interface Unavailable {
  readonly _tag: `${string}Unavailable`
}

/** `task` names the loop in the log: "renewing leases". */
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

/** The heartbeat rings what is due: this is only for a heartbeat that fails. */
const LOOK_EVERY = "30 seconds"

/** Repeats a step as long as it answers that there may be more, then waits until the topic is rung. */
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
