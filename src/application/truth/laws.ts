/**
 * Judges streams: versions 1, 2, 3 …, each fact readable and allowed after the one before by the machine of its kind.
 * Without a machine each fact only has to be readable.
 */
import { Result } from "effect"
import { fromRecorded as accessFact } from "../../domain/access/facts.ts"
import * as circuit from "../../domain/circuit/decider.ts"
import { fromRecorded as circuitFact } from "../../domain/circuit/facts.ts"
import { fromRecorded as commandFact } from "../../domain/command/facts.ts"
import * as condition from "../../domain/condition/decider.ts"
import { fromRecorded as conditionFact } from "../../domain/condition/facts.ts"
import { fromRecorded as dossierFact } from "../../domain/consent/facts.ts"
import { fromRecorded as configurationFact } from "../../domain/destination/facts.ts"
import { fromRecorded as erasureFact } from "../../domain/erasure/facts.ts"
import * as event from "../../domain/event/event.ts"
import { fromRecorded as eventFact } from "../../domain/event/facts.ts"
import { beginning, type TrackedMessage, track } from "../../domain/message/place.ts"
import { fromRecorded as messageFact } from "../../domain/message/recorded.ts"
import type { StoredFact } from "../../domain/message/view.ts"
import type { RecordedFact, UnreadableFact } from "../../domain/recorded.ts"
import * as replay from "../../domain/replay/decider.ts"
import { fromRecorded as replayFact } from "../../domain/replay/facts.ts"
import type { LoggedFact } from "../ports/EventStore.ts"

export interface Breach {
  readonly rule: "missing-version" | "unreadable-fact" | "illegal-fact"
  readonly version: number
  readonly detail: string
}

export interface Lawful {
  readonly tracked: TrackedMessage
  readonly history: ReadonlyArray<StoredFact>
}

interface Law<State, Fact extends { readonly type: string }> {
  readonly read: (fact: RecordedFact) => Result.Result<Fact, UnreadableFact>
  readonly start: State
  readonly step: (state: State, fact: Fact, stored: LoggedFact) => State | null
  readonly describe: (state: State) => string
}

const judgeBy =
  <State, Fact extends { readonly type: string }>({ read, start, step, describe }: Law<State, Fact>) =>
  (facts: ReadonlyArray<LoggedFact>): Result.Result<State, Breach> => {
    let state = start
    for (const [index, stored] of facts.entries()) {
      const version = index + 1
      const breach = (rule: Breach["rule"], detail: string) => Result.fail({ rule, version, detail })
      if (stored.version !== version) {
        return breach("missing-version", `the next fact that is there has version ${stored.version}`)
      }
      const fact = read(stored)
      if (Result.isFailure(fact)) {
        return breach("unreadable-fact", `${stored.name}: ${oneLine(fact.failure.message)}`)
      }
      const next = step(state, fact.success, stored)
      if (next === null) return breach("illegal-fact", `${fact.success.type} can't follow ${describe(state)}`)
      state = next
    }
    return Result.succeed(state)
  }

const oneLine = (text: string): string => text.replaceAll(/\s+/g, " ")

/** Also answers the history, because the view is folded from it. */
export const judgeMessage = (facts: ReadonlyArray<LoggedFact>): Result.Result<Lawful, Breach> => {
  const history: Array<StoredFact> = []
  const judge = judgeBy({
    read: messageFact,
    start: beginning,
    step: (before: TrackedMessage, fact, { version, at }) => {
      const stored = { version, at, fact }
      history.push(stored)
      return track(before, stored)
    },
    describe: ({ message }) => message.status
  })
  return Result.map(judge(facts), (tracked) => ({ tracked, history }))
}

export const judgeCircuit = judgeBy({
  read: circuitFact,
  start: circuit.initial,
  step: circuit.step,
  describe: ({ status }) => status
})

/** Any fact may follow any other. */
const readableBy = <Fact extends { readonly type: string }>(read: Law<true, Fact>["read"]) =>
  judgeBy({ read, start: true, step: () => true, describe: () => "" })

type Judge = (facts: ReadonlyArray<LoggedFact>) => Result.Result<unknown, Breach>

const judges: ReadonlyArray<readonly [prefix: string, judge: Judge]> = [
  ["circuit-", judgeCircuit],
  ["replay-", judgeBy({ read: replayFact, start: replay.initial, step: replay.step, describe: replay.statusOf })],
  [
    "condition-",
    judgeBy({ ...condition, read: conditionFact, start: condition.initial, describe: ({ value }) => value })
  ],
  ["event-type-", readableBy(configurationFact)],
  ["event-", judgeBy({ read: eventFact, start: event.initial, step: event.step, describe: event.describe })],
  ...["consent-", "blocked-"].map((prefix) => [prefix, readableBy(dossierFact)] as const),
  ["key-", readableBy(configurationFact)],
  ["erasure-", readableBy(erasureFact)],
  ["org-", readableBy(configurationFact)],
  ["access-", readableBy(accessFact)],
  ["command-", readableBy(commandFact)]
]

/**
 * Judges a stream by its name; `destinations` are the prefixes of the channels' journals. For an unknown kind only the
 * versions are judged.
 */
export const judgeJournal = (
  name: string,
  facts: ReadonlyArray<LoggedFact>,
  destinations: ReadonlyArray<string>
): Result.Result<unknown, Breach> => {
  const isDestination = destinations.some((journal) => name.startsWith(`${journal}-`))
  const known = judges.find(([prefix]) => name.startsWith(prefix))?.[1]
  const judge = isDestination ? readableBy(configurationFact) : known
  return (judge ?? readableBy((stored) => Result.succeed({ type: stored.name })))(facts)
}
