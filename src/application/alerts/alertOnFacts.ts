/**
 * Follows the log and sends the alerts that its facts deserve:
 *
 *   read      the new facts, from the stored position on
 *   send      the alerts of these facts, under keys that name the facts
 *   advance   the position and the notices (who was alerted about which destination), in one commit
 *
 * A crash before the last step repeats the earlier ones: the same facts make the same alerts, and the keys make them the
 * same messages. Several processes may run it at once: their equal alerts are one message, and one process advances.
 *
 * A stream that can't be processed is parked before the position moves past it, and no alert tells of it.
 *
 * It is no projection: an alert that was sent can't be rebuilt.
 */
import { Duration, Effect } from "effect"
import { quietSince } from "../../domain/alert/triggers.ts"
import { background } from "../background.ts"
import { LogReader } from "../log/LogReader.ts"
import { parking } from "../park.ts"
import { AlertProgress } from "../ports/AlertProgress.ts"
import { alertsOfFacts } from "./alertsOfFacts.ts"
import { allAlertTargets } from "./alertTargets.ts"
import { sendAlerts } from "./sendAlerts.ts"

const FACTS_AT_ONCE = 2_000
const PAUSE_BUSY = Duration.millis(100)
const PAUSE_NO_TARGETS = Duration.seconds(1)

/** One step. Answers whether it found facts, no facts, or no alert targets. */
export const alertOnFactsOnce = Effect.fnUntraced(function* () {
  const log = yield* LogReader
  const progress = yield* AlertProgress
  const from = yield* progress.position
  const facts = yield* log.read(from, FACTS_AT_ONCE)
  const last = facts.at(-1)
  if (last === undefined) return "nothing" as const
  const end = (yield* log.end) ?? last.position
  // Read after the facts: a target that is missing here was created after all of them, and gets no alert about them.
  const targets = yield* allAlertTargets
  if (targets.length === 0) {
    yield* progress.advance(from, end, [], quietSince(last.at))
    return "no targets" as const
  }
  const { answer } = yield* parking(facts, (some) => alertsOfFacts(some, targets))
  yield* sendAlerts(answer.alerts)
  yield* progress.advance(from, last.position, answer.notices, quietSince(facts[0]!.at))
  return "facts" as const
})

const pause = Effect.fnUntraced(function* (found: Effect.Success<ReturnType<typeof alertOnFactsOnce>>) {
  if (found === "facts") return yield* Effect.sleep(PAUSE_BUSY)
  if (found === "no targets") return yield* Effect.sleep(PAUSE_NO_TARGETS)
  yield* (yield* LogReader).news(yield* (yield* AlertProgress).position)
})

export const alertOnFacts = background("alerting", Effect.flatMap(alertOnFactsOnce(), pause))
