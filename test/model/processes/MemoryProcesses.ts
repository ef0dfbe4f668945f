import { DateTime, Duration, Effect, Layer } from "effect"
import { KEPT_FOR_MS, Processes, SEEN_WITHIN_MS } from "../../../src/application/ports/Processes.ts"
import { Memory } from "../Memory.ts"

/** A map by id. */
export const layer = Layer.effect(
  Processes,
  Effect.gen(function* () {
    const { tables, now } = yield* Memory
    const { processes } = tables
    const silentFor = (lastSeen: DateTime.Utc) => Duration.toMillis(DateTime.distance(lastSeen, now()))
    return Processes.of({
      register: (given) =>
        Effect.sync(() => {
          const lastSeen = now()
          for (const [id, known] of processes) if (silentFor(known.lastSeen) > KEPT_FOR_MS) processes.delete(id)
          processes.set(given.id, { ...given, since: processes.get(given.id)?.since ?? lastSeen, lastSeen })
          return lastSeen
        }),
      leave: (id) => Effect.sync(() => void processes.delete(id)),
      list: Effect.sync(() =>
        [...processes.values()].map((known) => ({ ...known, alive: silentFor(known.lastSeen) < SEEN_WITHIN_MS }))
      )
    })
  })
)
