/** Readiness: every part that can't work, why, and since when. */
import { DateTime, Effect } from "effect"
import { ready } from "../adapters/http/server/health.ts"
import type { Readiness } from "../adapters/http/server/operationsServer.ts"
import { EventStore } from "../application/ports/EventStore.ts"
import { Troubles } from "../application/processes/Troubles.ts"
import type { StoreHealthService } from "../application/storeHealth.ts"

/** Asks the store each time: other parts notice an outage at their next use. */
export const readinessOf = (health: StoreHealthService) =>
  Effect.map(Effect.all([EventStore, Troubles]), ([store, installation]): Effect.Effect<Readiness> => {
    const asked = ready.pipe(
      Effect.provideService(EventStore, store),
      Effect.andThen(installation.now),
      Effect.map((troubles) => ({ status: "ok" as const, troubles })),
      Effect.catch((error) =>
        Effect.as(health.failed("answering /readyz", error), {
          status: "unavailable" as const,
          troubles: []
        })
      )
    )
    return Effect.map(asked, ({ status, troubles }) => {
      const outage = health.outage()
      const parts = [...(outage?.parts ?? [])].map(([part, sinceMs]) => ({
        part,
        reason: outage!.reason,
        since: DateTime.formatIso(DateTime.makeUnsafe(sinceMs))
      }))
      return { status, parts, ...(troubles.length > 0 && { troubles }) }
    })
  })
