/**
 * One statement every two seconds: it keeps this process listed, makes it the leader where there is none, rings the
 * topics with something due, and brings the figures of the installation. An idle process asks for nothing else.
 */
import { Clock, Duration, Effect } from "effect"
import { background } from "../background.ts"
import { StoreUnavailable } from "../ports/errors.ts"
import { OwnClock } from "../ports/OwnClock.ts"
import { BEAT_EVERY_MS, type Figures, Processes, type Registration } from "../ports/Processes.ts"
import { Pulse } from "../ports/Pulse.ts"
import { Leadership } from "./leader.ts"

/** A stop does not wait for a store that does not answer: the row then runs out by itself. */
const LEAVE_WITHIN = "1 second"
/** A connection that went silent must not end the heartbeat. */
const ANSWER_WITHIN = Duration.seconds(15)

export interface LatestFigures {
  readonly figures: Figures | null
  readonly ageSeconds: number
  readonly fetchedAtNanos: bigint
  readonly clockOffsetSeconds: number
}

export interface HeartbeatSettings {
  readonly self: Omit<Registration, "clockOffsetMs" | "brokerAway">
  readonly brokerAway: () => boolean | null
  /** Told of every answer of the store, and of its silence by null. */
  readonly fetched: (latest: LatestFigures | null) => void
}

export const heartbeat = Effect.fnUntraced(function* ({ self, brokerAway, fetched }: HeartbeatSettings) {
  const processes = yield* Processes
  const { offsetMs } = yield* OwnClock
  const pulse = yield* Pulse
  const leadership = yield* Leadership
  const clock = yield* Clock.Clock
  const beat = Effect.gen(function* () {
    const askedAt = clock.monotonicTimeNanosUnsafe()
    const offset = offsetMs()
    const { leads, due, figures, figuresAgeSeconds } = yield* processes
      .beat({ ...self, brokerAway: brokerAway(), clockOffsetMs: offset === null ? null : Math.round(offset) })
      .pipe(
        Effect.timeoutOrElse({
          duration: ANSWER_WITHIN,
          orElse: () => Effect.fail(new StoreUnavailable({ cause: new Error("no answer in time") }))
        })
      )
    leadership.told(leads, askedAt)
    for (const topic of due) pulse.ring(topic)
    fetched({
      ...{ figures, ageSeconds: figuresAgeSeconds, clockOffsetSeconds: (offset ?? 0) / 1000 },
      fetchedAtNanos: clock.monotonicTimeNanosUnsafe()
    })
  }).pipe(Effect.tapError(() => Effect.sync(() => fetched(null))))
  return yield* Effect.ensuring(
    background("the heartbeat", Effect.andThen(beat, Effect.sleep(BEAT_EVERY_MS))),
    processes.leave(self.id).pipe(Effect.timeout(LEAVE_WITHIN), Effect.ignore)
  )
})
