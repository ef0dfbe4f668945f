/**
 * Parks open messages that are in no place of the queue, so that they are shown and can be brought back. Also retries
 * parked messages that this release can read: a process of an older release may have parked them.
 */
import { Duration, Effect } from "effect"
import { streamOf } from "../../domain/streams.ts"
import { Archive } from "../ports/Archive.ts"
import { Parked } from "../ports/Parked.ts"
import { isMessage, placeOf, retryParked } from "../truth/repair.ts"

const LOST_MAX = 1_000
/** A message that is missing for longer did not just move. */
const MISSING_FOR = Duration.minutes(1)

export const parkLost = Effect.gen(function* () {
  const { lost, park } = yield* Parked
  const suspects = yield* lost(null, LOST_MAX)
  if (suspects.length === 0) return
  yield* Effect.sleep(MISSING_FOR)
  const still = yield* lost(suspects, LOST_MAX)
  const facts = yield* (yield* Archive).streams(still.map(streamOf))
  // The list may lag by more than that.
  const open = still.filter((id) => {
    const place = placeOf(streamOf(id), facts.get(streamOf(id)))
    return typeof place === "object" && (place.place.type === "Waiting" || place.place.type === "UnderWay")
  })
  for (const stream of yield* park(new Map(open.map((id) => [streamOf(id), "lost"])))) {
    yield* Effect.logError(`${stream} is parked: it is in no place of the queue`).pipe(Effect.annotateLogs({ stream }))
  }
})

export const lookForLost = {
  name: "looking for messages that the queue has lost",
  every: "1 hour",
  step: Effect.andThen(
    retryParked((parked) => isMessage(parked) && parked.reason === "unreadable"),
    parkLost
  )
} as const
