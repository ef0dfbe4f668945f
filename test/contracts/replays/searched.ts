/** The search of a replay, step by step to its end, for the suites of what is found. */
import { Effect } from "effect"
import { type ReplayJob, Replays } from "../../../src/application/ports/Replays.ts"

export const searched = Effect.fnUntraced(function* (job: ReplayJob, limit: number) {
  const replays = yield* Replays
  let now = job
  while (now.searching) now = yield* replays.search(job, limit)
  return now
})
