/** Keeps this process listed among the processes of this Posthaste for as long as it runs, and takes it off when it stops. */
import { Clock, DateTime, Effect } from "effect"
import { background } from "../background.ts"
import { Processes, type Registration, SEEN_EVERY_MS } from "../ports/Processes.ts"

/** A stop does not wait for a store that does not answer: the row then runs out by itself. */
const LEAVE_WITHIN = "1 second"

export const keepRegistered = Effect.fnUntraced(function* (self: Omit<Registration, "clockOffsetMs">) {
  const processes = yield* Processes
  let clockOffsetMs: number | null = null
  const step = Effect.gen(function* () {
    const before = yield* Clock.currentTimeMillis
    const at = yield* processes.register({ ...self, clockOffsetMs })
    // The store read its clock somewhere between the two: half-way is wrong by half the round trip at most.
    const middle = (before + (yield* Clock.currentTimeMillis)) / 2
    const isFirst = clockOffsetMs === null
    clockOffsetMs = Math.round(middle - DateTime.toEpochMillis(at))
    if (!isFirst) yield* Effect.sleep(SEEN_EVERY_MS)
  })
  return yield* Effect.ensuring(
    background("registering this process", step),
    processes.leave(self.id).pipe(Effect.timeout(LEAVE_WITHIN), Effect.ignore)
  )
})
