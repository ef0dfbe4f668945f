/**
 * Follows the log and sends the alerts that its facts deserve, under keys that name the facts, so a second reading
 * makes the same messages. No alert tells of a parked stream.
 */
import { Effect } from "effect"
import { quietSince } from "../../domain/alert/triggers.ts"
import { background } from "../background.ts"
import { follow, followOnce } from "../log/follow.ts"
import { parking } from "../park.ts"
import type { LoggedFact } from "../ports/EventStore.ts"
import { Followers } from "../ports/Followers.ts"
import { alertsOfFacts } from "./alertsOfFacts.ts"
import { allAlertTargets } from "./alertTargets.ts"
import { sendAlerts } from "./sendAlerts.ts"

const FACTS_AT_ONCE = 2_000

const alertOn = Effect.fnUntraced(function* (facts: ReadonlyArray<LoggedFact>) {
  // Read after the facts: a target that is missing here was created after all of them, and gets no alert about them.
  const targets = yield* allAlertTargets
  if (targets.length === 0) return
  const { answer } = yield* parking(facts, (some) => alertsOfFacts(some, targets))
  yield* sendAlerts(answer.alerts)
  // After they were sent: a noted alert is not sent again.
  yield* (yield* Followers).note(answer.notices, quietSince(facts[0]!.at))
})

export const alertOnFactsOnce = () => followOnce("alerts", FACTS_AT_ONCE, alertOn)

export const alertOnFacts = Effect.flatMap(follow("alerts", FACTS_AT_ONCE, alertOn), (step) =>
  background("alerting", step)
)
