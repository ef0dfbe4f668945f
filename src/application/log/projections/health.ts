/** The projection `health`: the ends of attempts, counted for each destination. */
import { Effect } from "effect"
import type { DestinationId } from "../../../domain/ids.ts"
import { type AttemptEnd, attemptEndOf, changeOf } from "../../../domain/message/health.ts"
import { DestinationHealth } from "../../ports/DestinationHealth.ts"
import type { Step } from "../../ports/Projections.ts"
import { LogReader } from "../LogReader.ts"
import type { Projection } from "./Projection.ts"

/** Facts between two yields: about a millisecond. */
const YIELD_EVERY = 500

export const health: Projection<DestinationHealth> = {
  name: "health",
  version: 1,
  project: Effect.fnUntraced(function* (facts) {
    const ends = new Map<DestinationId, Array<AttemptEnd>>()
    // By the history and not the stored name, which may be broken while another reader has the fact in memory.
    const streams = yield* (yield* LogReader).streams(facts)
    for (const [index, { messageId, version }] of facts.entries()) {
      if (index % YIELD_EVERY === YIELD_EVERY - 1) yield* Effect.yieldNow
      const history = messageId === null ? undefined : streams.get(messageId)
      const opening = history?.[0]?.fact
      const stored = history?.[version - 1]
      if (opening?.type !== "MessageQueued" || stored === undefined) continue
      const end = attemptEndOf(stored.fact, stored.at)
      if (end === null) continue
      const known = ends.get(opening.destination)
      if (known === undefined) ends.set(opening.destination, [end])
      else known.push(end)
    }
    const changes = new Map([...ends].map(([destination, each]) => [destination, changeOf(each)] as const))
    const { project } = yield* DestinationHealth
    return (step: Step) => project(step, changes)
  }),
  clear: (limit) => Effect.flatMap(DestinationHealth, ({ clear }) => clear(limit))
}
