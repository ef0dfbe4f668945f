/**
 * A loop that runs until it is interrupted: the same step again and again. The step brings its own pause; this handles
 * its failures.
 *
 * - While a store does not answer, the loop pauses and tries again. It warns when that begins, not at every try.
 * - A defect is logged, and the loop goes on after the same pause: a bug in one step may not end the steps after it.
 */
import { type Duration, Effect } from "effect"

interface Unavailable {
  readonly _tag: `${string}Unavailable`
}

/** `task` names the loop in the log: "renewing leases". */
export const background = <E extends Unavailable, R>(
  task: string,
  step: Effect.Effect<unknown, E, R>,
  pause: Duration.Input = "1 second"
): Effect.Effect<never, never, R> =>
  Effect.suspend(() => {
    let isWaiting = false
    const works = Effect.sync(() => {
      isWaiting = false
    })
    return Effect.andThen(step, works).pipe(
      Effect.catch((error: E) => {
        const warning = isWaiting ? Effect.void : Effect.logWarning(`${task} waits for the store`, error)
        isWaiting = true
        return Effect.andThen(warning, Effect.sleep(pause))
      }),
      Effect.catchDefect((defect) => Effect.andThen(Effect.logError(`${task} failed`, defect), Effect.sleep(pause))),
      Effect.forever
    )
  })
