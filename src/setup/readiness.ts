/** Whether this process can work: every part that can't, why, and since when. */
import { DateTime, Effect } from "effect"
import { ready } from "../adapters/http/server/health.ts"
import type { Readiness } from "../adapters/http/server/operationsServer.ts"
import { EventStore } from "../application/ports/EventStore.ts"
import type { StoreHealthService } from "../application/storeHealth.ts"

/** Asks the store each time: the parts of a process meet an outage only when they next need the store. */
export const readinessOf = (health: StoreHealthService) =>
  Effect.map(EventStore, (store): Effect.Effect<Readiness> => {
    const asked = ready.pipe(
      Effect.provideService(EventStore, store),
      Effect.as("ok" as const),
      Effect.catch((error) => Effect.as(health.failed("answering /readyz", error), "unavailable" as const))
    )
    return Effect.map(asked, (status) => {
      const parts = [...(health.outage()?.parts ?? [])].map(([part, sinceMs]) => ({
        part,
        reason: "the store does not answer",
        since: DateTime.formatIso(DateTime.makeUnsafe(sinceMs))
      }))
      return { status, parts }
    })
  })
