import { DateTime, Effect, Layer } from "effect"
import { AlertProgress, type Notice } from "../../../src/application/ports/AlertProgress.ts"
import { Memory } from "../Memory.ts"

const keyOf = ({ target, destination }: Notice) => `${target} ${destination}`

/** A position and a map of notices. */
export const layer = Layer.effect(
  AlertProgress,
  Effect.gen(function* () {
    const { alerting } = (yield* Memory).tables
    return AlertProgress.of({
      position: Effect.sync(() => alerting.position),
      notices: (destinations) =>
        Effect.sync(() =>
          [...alerting.notices.values()].filter(({ destination }) => destinations.includes(destination))
        ),
      advance: (from, to, notices, forget) =>
        Effect.sync(() => {
          if (alerting.position !== from) return false
          alerting.position = to
          for (const [key, { at }] of alerting.notices)
            if (DateTime.isLessThan(at, forget)) alerting.notices.delete(key)
          for (const notice of notices) alerting.notices.set(keyOf(notice), notice)
          return true
        })
    })
  })
)
