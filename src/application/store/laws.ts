/**
 * Whether a stream is a history that its law allows: versions 1, 2, 3 …, each fact readable and allowed after the one
 * before. Data in, data out. The machine of each kind of stream judges its facts; a stream of a kind without a machine
 * only has to be readable.
 */
import { Result } from "effect"
import { can as circuitAllows, evolve as evolveCircuit, initial as firstCircuit } from "../../domain/circuit/decider.ts"
import { fromRecorded as circuitFact } from "../../domain/circuit/facts.ts"
import { fromRecorded as dossierFact } from "../../domain/consent/facts.ts"
import { fromRecorded as configurationFact } from "../../domain/destination/facts.ts"
import { beginning, type TrackedMessage, track } from "../../domain/message/place.ts"
import { fromRecorded as messageFact } from "../../domain/message/recorded.ts"
import type { StoredFact } from "../../domain/message/view.ts"
import { evolve as evolveOverdue, initial as firstOverdue } from "../../domain/overdue/decider.ts"
import { fromRecorded as overdueFact } from "../../domain/overdue/facts.ts"
import type { RecordedFact, UnreadableFact } from "../../domain/recorded.ts"
import {
  evolve as evolveReplay,
  initial as firstReplay,
  statusOf as statusOfReplay
} from "../../domain/replay/decider.ts"
import { fromRecorded as replayFact } from "../../domain/replay/facts.ts"
import type { LoggedFact } from "../ports/EventStore.ts"

/** The first fault of a stream. */
export interface Breach {
  readonly rule: "missing-version" | "unreadable-fact" | "illegal-fact"
  readonly version: number
  readonly detail: string
}

export interface Lawful {
  readonly tracked: TrackedMessage
  readonly history: ReadonlyArray<StoredFact>
}

/** `advance` answers null where the law does not allow the fact. */
interface Law<State, Fact> {
  readonly read: (fact: RecordedFact) => Result.Result<Fact, UnreadableFact>
  readonly start: State
  readonly advance: (state: State, fact: Fact, stored: LoggedFact) => State | null
  readonly describe: (state: State) => string
}

const judge = <State, Fact extends { readonly type: string }>(
  law: Law<State, Fact>,
  facts: ReadonlyArray<LoggedFact>
): Result.Result<State, Breach> => {
  let state = law.start
  for (const [index, stored] of facts.entries()) {
    const version = index + 1
    const gap = breachOfVersion(stored, version)
    if (gap !== null) return Result.fail(gap)
    const fact = law.read(stored)
    if (Result.isFailure(fact)) return Result.fail(unreadable(stored, fact.failure))
    const next = law.advance(state, fact.success, stored)
    if (next === null) {
      const detail = `${fact.success.type} can't follow ${law.describe(state)}`
      return Result.fail({ rule: "illegal-fact", version, detail })
    }
    state = next
  }
  return Result.succeed(state)
}

const breachOfVersion = (stored: LoggedFact, version: number): Breach | null =>
  stored.version === version
    ? null
    : { rule: "missing-version", version, detail: `the next fact that is there has version ${stored.version}` }

const unreadable = ({ name, version }: LoggedFact, { message }: UnreadableFact): Breach => ({
  rule: "unreadable-fact",
  version,
  detail: `${name}: ${oneLine(message)}`
})

const oneLine = (text: string): string => text.replaceAll(/\s+/g, " ")

/** Also answers the history, because the view is folded from it. */
export const judgeMessage = (facts: ReadonlyArray<LoggedFact>): Result.Result<Lawful, Breach> => {
  const history: Array<StoredFact> = []
  const tracked = judge(
    {
      read: messageFact,
      start: beginning,
      advance: (before: TrackedMessage, fact, { version, at }) => {
        const stored = { version, at, fact }
        history.push(stored)
        return track(before, stored)
      },
      describe: ({ message }) => message.status
    },
    facts
  )
  return Result.map(tracked, (found) => ({ tracked: found, history }))
}

export const judgeCircuit = (facts: ReadonlyArray<LoggedFact>) =>
  judge(
    {
      read: circuitFact,
      start: firstCircuit,
      advance: (circuit, fact) => (circuitAllows(circuit, fact) ? evolveCircuit(circuit, fact) : null),
      describe: ({ status }) => status
    },
    facts
  )

const judgeReplay = (facts: ReadonlyArray<LoggedFact>) =>
  judge(
    {
      read: replayFact,
      start: firstReplay,
      advance: (replay, fact) => (replay.can(fact) ? evolveReplay(replay, fact) : null),
      describe: statusOfReplay
    },
    facts
  )

const judgeOverdue = (facts: ReadonlyArray<LoggedFact>) =>
  judge(
    {
      read: overdueFact,
      start: firstOverdue,
      advance: (overdue, fact) => (overdue.can(fact) ? evolveOverdue(overdue, fact) : null),
      describe: ({ value }) => String(value)
    },
    facts
  )

/** Any fact may follow any other: each only has to be readable. */
const readableBy =
  <Fact extends { readonly type: string }>(read: Law<null, Fact>["read"]) =>
  (facts: ReadonlyArray<LoggedFact>): Result.Result<unknown, Breach> => {
    for (const [index, stored] of facts.entries()) {
      const gap = breachOfVersion(stored, index + 1)
      if (gap !== null) return Result.fail(gap)
      const fact = read(stored)
      if (Result.isFailure(fact)) return Result.fail(unreadable(stored, fact.failure))
    }
    return Result.succeed(null)
  }

type Judge = (facts: ReadonlyArray<LoggedFact>) => Result.Result<unknown, Breach>

const judges: ReadonlyArray<readonly [prefix: string, judge: Judge]> = [
  ["circuit-", judgeCircuit],
  ["replay-", judgeReplay],
  ["overdue-", judgeOverdue],
  ...["consent-", "blocked-"].map((prefix) => [prefix, readableBy(dossierFact)] as const),
  ["key-", readableBy(configurationFact)]
]

/**
 * The law for a stream's kind, by its name; `destinations` are the prefixes of the channels' journals. For an unknown
 * kind only the versions are judged.
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
