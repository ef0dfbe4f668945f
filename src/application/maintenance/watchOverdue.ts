/**
 * Checks, for every alert target, how long its org's oldest due message has waited, and appends a fact when that becomes
 * too long and when it is over. The alerts are made from these facts (alertOnFacts.ts), so each change is one alert,
 * whatever crashes in between.
 *
 * Several processes may check at once: the journal lets one of them append each change. Every message that is due and
 * waits counts, also behind a pause or an open circuit; only alerts themselves do not.
 */
import { Effect, Result } from "effect"
import { after, decide, type OldestDue } from "../../domain/overdue/decider.ts"
import { fromRecorded, toRecorded } from "../../domain/overdue/facts.ts"
import { type AlertTarget, allAlertTargets } from "../alerts/alertTargets.ts"
import { noteChange } from "../alerts/noteChange.ts"
import { Destinations } from "../ports/Destinations.ts"

/** One check of every target. */
export const watchOverdueOnce = Effect.fnUntraced(function* () {
  const targets = yield* allAlertTargets
  if (targets.length === 0) return
  const watching = targets.filter((target) => limitOf(target) !== null)
  const orgs = [...new Set(watching.map(({ orgId }) => orgId))]
  const oldest = orgs.length === 0 ? new Map() : yield* (yield* Destinations).oldestDue(orgs)
  // Also targets that do not watch any more: their overdue backlogs must end.
  yield* Effect.forEach(targets, (target) => record(target, oldest.get(target.orgId) ?? null), {
    discard: true,
    concurrency: 4
  })
})

const limitOf = ({ events, oldestDueSeconds }: AlertTarget) => (events.includes("oldestDue") ? oldestDueSeconds : null)

const record = (target: AlertTarget, oldest: OldestDue | null) =>
  noteChange(`overdue-${target.id}`, (last, now) => {
    const overdue = after(last === null ? null : Result.getOrThrow(fromRecorded(last)))
    return decide(overdue, target.orgId, { now, oldest, limitSeconds: limitOf(target) }).map(toRecorded)
  })

export const watchOverdue = {
  name: "looking for overdue messages",
  every: "2 seconds",
  step: watchOverdueOnce()
} as const
