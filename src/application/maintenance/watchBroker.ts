/**
 * Checks, for every alert target, whether Posthaste's own broker is reached, and appends a fact when it has been away for
 * some seconds and when it is back. The alerts are made from these facts (alertsOfFacts.ts).
 */
import { Effect, Result } from "effect"
import { after, decide } from "../../domain/outage/decider.ts"
import { fromRecorded, toRecorded } from "../../domain/outage/facts.ts"
import { allAlertTargets } from "../alerts/alertTargets.ts"
import { noteChange } from "../alerts/noteChange.ts"
import { Processes } from "../ports/Processes.ts"

/** One check for every target. */
export const watchBrokerOnce = Effect.fnUntraced(function* () {
  const reach = yield* (yield* Processes).brokerReach
  // Where no process needs a broker there is nothing to watch.
  if (reach === null) return
  const targets = yield* allAlertTargets
  yield* Effect.forEach(
    targets,
    ({ id, orgId, events }) =>
      noteChange(`outage-${id}`, (last, now) => {
        const outage = after(last === null ? null : Result.getOrThrow(fromRecorded(last)))
        return decide(outage, orgId, { now, reach, watches: events.includes("broker") }).map(toRecorded)
      }),
    { discard: true, concurrency: 4 }
  )
})

export const watchBroker = { name: "looking for the broker", every: "2 seconds", step: watchBrokerOnce() } as const
