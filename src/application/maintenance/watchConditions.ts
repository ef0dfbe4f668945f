/**
 * Watches lasting conditions for every alert target, and appends a fact when one begins and ends; alerts are made from
 * these facts (alertsOfFacts.ts). The last fact of each journal is remembered, so a look without change costs two
 * statements. Where another process led meanwhile, the append fails on its version and the journal is read again.
 */
import { DateTime, Effect, Result } from "effect"
import { after, decide, type Look, lookAtBacklog, lookAtBroker, unwatched } from "../../domain/condition/decider.ts"
import { type ConditionName, conditions, fromRecorded, journalOf, toRecorded } from "../../domain/condition/facts.ts"
import { type AlertTarget, allAlertTargets } from "../alerts/alertTargets.ts"
import { Destinations } from "../ports/Destinations.ts"
import { type JournalFact, Journals } from "../ports/Journals.ts"
import { Processes } from "../ports/Processes.ts"

type Last = Pick<JournalFact, "version" | "name" | "data">

export type Remembered = Map<string, Last | null>

export const watchConditionsOnce = Effect.fnUntraced(function* (remembered: Remembered) {
  const targets = yield* allAlertTargets
  if (targets.length === 0) return
  const now = yield* DateTime.now
  const orgs = [
    ...new Set(targets.filter(({ oldestDueSeconds }) => oldestDueSeconds !== null).map(({ orgId }) => orgId))
  ]
  const oldest = orgs.length === 0 ? new Map() : yield* (yield* Destinations).oldestDue(orgs)
  const reach = yield* (yield* Processes).brokerReach
  const looks: Readonly<Record<ConditionName, (target: AlertTarget) => Look>> = {
    oldestDue: ({ orgId, oldestDueSeconds }) =>
      oldestDueSeconds === null ? unwatched : lookAtBacklog(now, oldest.get(orgId) ?? null, oldestDueSeconds),
    broker: () => lookAtBroker(now, reach)
  }
  yield* Effect.forEach(
    targets.flatMap((target) => conditions.map((condition) => ({ target, condition }))),
    ({ target, condition }) =>
      note(remembered, target, condition, target.events.includes(condition) ? looks[condition](target) : unwatched),
    { discard: true, concurrency: 4 }
  )
})

const note = Effect.fnUntraced(function* (
  remembered: Remembered,
  { id, orgId }: AlertTarget,
  condition: ConditionName,
  look: Look
) {
  const journals = yield* Journals
  const journal = journalOf(condition, id)
  const known = remembered.get(journal)
  const last = known === undefined ? yield* journals.last(journal) : known
  remembered.set(journal, last)
  const before = after(last === null ? null : Result.getOrThrow(fromRecorded(last)))
  const [fact] = decide(before, { orgId, condition }, look).map(toRecorded)
  if (fact === undefined) return
  const version = last?.version ?? 0
  // Forgotten until it is known to be written: a lost answer may have written it.
  remembered.delete(journal)
  const result = yield* journals.append(journal, version, [fact], yield* DateTime.now, null)
  if (result === "Appended") remembered.set(journal, { version: version + 1, ...fact })
})

export const watchConditions = Effect.sync(() => {
  const remembered: Remembered = new Map()
  return {
    name: "looking for lasting conditions",
    every: "5 seconds",
    step: Effect.suspend(() => watchConditionsOnce(remembered))
  } as const
})
