/**
 * The health of destinations, for their owners, and a watch that disables those at which every attempt has failed for
 * longer than channel and settings allow. The watch reads the projection, which lags: a destination that recovered a
 * moment ago is disabled too. One that answers that it is gone is disabled by deliver.ts.
 */
import { DateTime, Duration, Effect } from "effect"
import type { DestinationId } from "../../domain/ids.ts"
import { hasFailedFor, summaryOf } from "../../domain/message/health.ts"
import { Backlogs } from "../ports/Backlogs.ts"
import { Channels } from "../ports/Channels.ts"
import { Circuits } from "../ports/Circuits.ts"
import { DestinationHealth } from "../ports/DestinationHealth.ts"
import { type Destination, Destinations } from "../ports/Destinations.ts"

const PAUSE = Duration.seconds(10)
const AT_ONCE = 500

export const healthOf = Effect.fnUntraced(function* (id: DestinationId) {
  const health = yield* DestinationHealth
  const [found, { waiting, oldestDueAt }, [circuit]] = yield* Effect.all(
    [
      health.read(id),
      Effect.flatMap(Backlogs, (backlogs) => backlogs.of(id)),
      Effect.flatMap(Circuits, ({ states }) => states([id]))
    ],
    { concurrency: 3 }
  )
  const now = yield* DateTime.now
  const buckets = found?.buckets ?? []
  return {
    circuit: circuit!.status,
    failingSince: found?.failingSince ?? null,
    lastFailedAt: found?.lastFailedAt ?? null,
    lastSucceededAt: found?.lastSucceededAt ?? null,
    waiting,
    oldestDueAt,
    lastHour: summaryOf(buckets, DateTime.subtract(now, { hours: 1 })),
    lastDay: summaryOf(buckets, DateTime.subtract(now, { hours: 24 }))
  }
})

export const disableFailingOnce = Effect.fnUntraced(function* () {
  const health = yield* DestinationHealth
  const destinations = yield* Destinations
  const channels = yield* Channels
  let disabled = 0
  let cursor: string | null = null
  do {
    const page: Effect.Success<ReturnType<typeof health.failing>> = yield* health.failing({ cursor, limit: AT_ONCE })
    cursor = page.nextCursor
    if (page.items.length === 0) break
    const known = yield* destinations.among(page.items.map(({ destination }) => destination))
    for (const state of page.items) {
      const destination = known.get(state.destination)
      if (destination === undefined || destination.removed || destination.disabledReason !== null) continue
      const channel = channels.get(destination.channel)
      const limitMs = channel?.disableAfterMs?.(destination.settings) ?? null
      if (channel === undefined || limitMs === null) continue
      if (!hasFailedFor(state, destination.enabledAt, limitMs)) continue
      yield* destinations.setDisabled(channel, destination.orgId, destination.id, reasonOf(destination, state))
      disabled += 1
    }
  } while (cursor !== null)
  return disabled
})

const reasonOf = ({ enabledAt }: Destination, { failingSince }: { readonly failingSince: DateTime.Utc | null }) => {
  const since = enabledAt === null ? failingSince! : DateTime.max(failingSince!, enabledAt)
  return `every attempt has failed since ${DateTime.formatIso(since)}`
}

export const disableFailing = {
  name: "looking for destinations that fail",
  every: PAUSE,
  step: Effect.suspend(disableFailingOnce)
}
