import { DateTime, type Duration, Effect, Layer } from "effect"
import { FactOutletProgress } from "../../../src/application/ports/FactOutletProgress.ts"
import { Memory } from "../Memory.ts"

/** A position and a lease. */
export const layer = Layer.effect(
  FactOutletProgress,
  Effect.gen(function* () {
    const { tables, now } = yield* Memory
    const { factOutlet } = tables
    const renew = (holder: string, lease: Duration.Duration) => {
      factOutlet.holder = holder
      factOutlet.until = DateTime.addDuration(now(), lease)
    }
    return FactOutletProgress.of({
      begin: (position) =>
        Effect.sync(() => {
          if (factOutlet.begun) return
          factOutlet.begun = true
          factOutlet.position = position
        }),
      hold: (holder, lease) =>
        Effect.sync(() => {
          const isFree = factOutlet.until === null || DateTime.isLessThan(factOutlet.until, now())
          if (factOutlet.holder !== holder && !isFree) return null
          renew(holder, lease)
          return { position: factOutlet.position }
        }),
      advance: (holder, lease, from, to) =>
        Effect.sync(() => {
          if (factOutlet.holder !== holder || factOutlet.position !== from) return false
          renew(holder, lease)
          factOutlet.position = to
          return true
        })
    })
  })
)
