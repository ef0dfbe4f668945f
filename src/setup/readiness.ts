/** Whether this process can work: every part that can't, why, and since when. */
import { DateTime, Effect } from "effect"
import { ready } from "../adapters/http/server/health.ts"
import type { Readiness } from "../adapters/http/server/operationsServer.ts"
import { EventStore } from "../application/ports/EventStore.ts"
import { SetAside } from "../application/ports/SetAside.ts"
import { Troubles } from "../application/processes/Troubles.ts"
import type { StoreHealthService } from "../application/storeHealth.ts"

/** Of the messages that can't be processed; the API lists all. */
const NAMED_MAX = 10

/** Asks the store each time: the parts of a process meet an outage only when they next need the store. */
export const readinessOf = (health: StoreHealthService) =>
  Effect.map(
    Effect.all([EventStore, SetAside, Troubles]),
    ([store, { list }, installation]): Effect.Effect<Readiness> => {
      const asked = ready.pipe(
        Effect.provideService(EventStore, store),
        Effect.andThen(Effect.all([list({ cursor: null, limit: NAMED_MAX }), installation.now])),
        Effect.map(([{ items }, troubles]) => ({ status: "ok" as const, aside: items, troubles })),
        Effect.catch((error) =>
          Effect.as(health.failed("answering /readyz", error), {
            status: "unavailable" as const,
            aside: [],
            troubles: []
          })
        )
      )
      return Effect.map(asked, ({ status, aside, troubles }) => {
        const outage = health.outage()
        const parts = [...(outage?.parts ?? [])].map(([part, sinceMs]) => ({
          part,
          reason: outage!.reason,
          since: DateTime.formatIso(DateTime.makeUnsafe(sinceMs))
        }))
        const setAside = aside.map(({ messageId, stream, parts, reason, since }) => ({
          ...(messageId === null ? { stream } : { message: messageId }),
          parts,
          reason,
          since: DateTime.formatIso(since)
        }))
        return { status, parts, ...(setAside.length > 0 && { setAside }), ...(troubles.length > 0 && { troubles }) }
      })
    }
  )
