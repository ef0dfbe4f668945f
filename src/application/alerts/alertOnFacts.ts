/**
 * Follows the log and raises the alerts that its facts deserve:
 *
 *   read      what is new, from where alerting stands
 *   raise     the alerts these facts deserve, under keys that name the facts
 *   advance   the position and what was told, in one commit
 *
 * A crash before the last step repeats the others: the same facts deserve the same alerts, and the keys make them the
 * same messages. Several may run at once; whatever each of them raises is one message, and one of them advances.
 *
 * It is no projection: what it makes can't be made again.
 */
import { Duration, Effect } from "effect"
import { quietSince } from "../../domain/alert/triggers.ts"
import { background } from "../background.ts"
import { LogReader } from "../log/LogReader.ts"
import { AlertProgress } from "../ports/AlertProgress.ts"
import { alertsOfFacts } from "./alertsOfFacts.ts"
import { allAlertTargets } from "./alertTargets.ts"
import { raiseAlerts } from "./raiseAlerts.ts"

const FACTS_AT_ONCE = 2_000
const PAUSE_BUSY = Duration.millis(100)
const PAUSE_UNWANTED = Duration.seconds(1)

/** One step. Answers what it found: facts, no facts, or nobody who wants to be told. */
export const alertOnFactsOnce = Effect.fnUntraced(function* () {
  const log = yield* LogReader
  const progress = yield* AlertProgress
  const from = yield* progress.position
  const facts = yield* log.read(from, FACTS_AT_ONCE)
  const last = facts.at(-1)
  if (last === undefined) return "nothing" as const
  const end = (yield* log.end) ?? last.position
  // After the facts: who is not among them was made after all of these, and would not be told.
  const targets = yield* allAlertTargets
  if (targets.length === 0) {
    yield* progress.advance(from, end, [], quietSince(last.at))
    return "unwanted" as const
  }
  const { raised, notices } = yield* alertsOfFacts(facts, targets)
  yield* raiseAlerts(raised)
  yield* progress.advance(from, last.position, notices, quietSince(facts[0]!.at))
  return "facts" as const
})

const pause = Effect.fnUntraced(function* (found: Effect.Success<ReturnType<typeof alertOnFactsOnce>>) {
  if (found === "facts") return yield* Effect.sleep(PAUSE_BUSY)
  if (found === "unwanted") return yield* Effect.sleep(PAUSE_UNWANTED)
  yield* (yield* LogReader).news(yield* (yield* AlertProgress).position)
})

/** Runs until interrupted. */
export const alertOnFacts = background("alerting", Effect.flatMap(alertOnFactsOnce(), pause))
