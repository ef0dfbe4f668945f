/**
 * Reads the figures of the whole installation for the metrics of all processes, so that a scrape costs the store
 * nothing.
 */
import { DateTime, Duration, Effect } from "effect"
import type { DestinationId } from "../../domain/ids.ts"
import { Processes } from "../ports/Processes.ts"
import { Projections } from "../ports/Projections.ts"
import { readInstallation } from "../processes/Troubles.ts"

const STALL_FROM = Duration.seconds(1)

export const readFigures = (self: string, destinations: ReadonlyArray<DestinationId>) => ({
  name: "reading figures for the metrics",
  every: Duration.seconds(10),
  step: Effect.gen(function* () {
    const processes = yield* Processes
    const counts = yield* processes.counts(destinations)
    const now = yield* DateTime.now
    const secondsSince = (at: DateTime.Utc) => Math.max(0, Duration.toSeconds(DateTime.distance(at, now)))
    const { freshness, troubles, oldest } = yield* readInstallation
    const stall = yield* (yield* Projections).stall(STALL_FROM)
    yield* processes.publish(self, {
      ...counts,
      projectionLagSeconds: Object.fromEntries(
        [...freshness].map(([name, { behindSeconds }]) => [name, behindSeconds])
      ),
      stallSeconds: stall === null ? 0 : secondsSince(stall.since),
      troubles: troubles.map(({ reason }) => reason),
      oldestTransactionSeconds: oldest?.since == null ? 0 : secondsSince(oldest.since),
      brokerAway: (yield* processes.brokerReach)?.away ?? null
    })
  })
})
