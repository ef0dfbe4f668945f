/**
 * Checks, for every alert target, how long its org's oldest due message has waited, and appends a fact when that becomes
 * too long and when it is over. The alerts are made from these facts (alertOnFacts.ts), so each change is one alert,
 * whatever crashes in between.
 *
 * Several processes may check at once: the journal lets one of them append each change. Every message that is due and
 * waits counts, also behind a pause or an open circuit; only alerts themselves do not.
 */
import { DateTime, Duration, Effect, Result } from "effect"
import { decide, type OldestDue, replay } from "../../domain/overdue/decider.ts"
import { fromRecorded, toRecorded } from "../../domain/overdue/facts.ts"
import { background } from "../background.ts"
import { appendToJournal, command } from "../command.ts"
import { Destinations } from "../ports/Destinations.ts"
import { type JournalFact, type JournalName, Journals } from "../ports/Journals.ts"
import { type AlertTarget, allAlertTargets } from "./alertTargets.ts"

const PAUSE = Duration.seconds(2)

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

const record = (target: AlertTarget, oldest: OldestDue | null) => {
  const journal: JournalName = `overdue-${target.id}`
  return command(
    {
      load: Effect.flatMap(Journals, (journals) => journals.load(journal)),
      decide: Effect.fnUntraced(function* (history: ReadonlyArray<JournalFact>) {
        const overdue = replay(history.map((stored) => Result.getOrThrow(fromRecorded(stored))))
        const at = yield* DateTime.now
        const facts = decide(overdue, target.orgId, { now: at, oldest, limitSeconds: limitOf(target) })
        const entry = { expected: history.length, facts: facts.map(toRecorded), at }
        return { entry: facts.length === 0 ? null : entry, answer: null }
      }),
      append: appendToJournal(journal)
    },
    { tries: 1 }
    // Another process checked at the same time and was first.
  ).pipe(Effect.catchTag("Overtaken", () => Effect.void))
}

export const watchOverdue = background(
  "looking for overdue messages",
  Effect.andThen(watchOverdueOnce(), Effect.sleep(PAUSE)),
  PAUSE
)
