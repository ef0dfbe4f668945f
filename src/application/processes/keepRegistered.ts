/** Keeps this process listed among the processes of this Posthaste for as long as it runs, and takes it off when it stops. */
import { Effect } from "effect"
import { background } from "../background.ts"
import { OwnClock } from "../ports/OwnClock.ts"
import { Processes, type Registration, SEEN_EVERY_MS } from "../ports/Processes.ts"

/** A stop does not wait for a store that does not answer: the row then runs out by itself. */
const LEAVE_WITHIN = "1 second"

export const keepRegistered = Effect.fnUntraced(function* (self: Omit<Registration, "clockOffsetMs">) {
  const processes = yield* Processes
  const { offsetMs } = yield* OwnClock
  const step = Effect.suspend(() => {
    const offset = offsetMs()
    return processes.register({ ...self, clockOffsetMs: offset === null ? null : Math.round(offset) })
  }).pipe(Effect.andThen(Effect.sleep(SEEN_EVERY_MS)))
  return yield* Effect.ensuring(
    background("registering this process", step),
    processes.leave(self.id).pipe(Effect.timeout(LEAVE_WITHIN), Effect.ignore)
  )
})
