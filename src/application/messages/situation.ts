/**
 * The pause, disabling and circuit of a destination, now or at an earlier time, from their facts. A removed destination
 * holds up nothing.
 */
import { type DateTime, Effect, Result } from "effect"
import { fromRecorded as circuitFact } from "../../domain/circuit/facts.ts"
import { type CircuitSituation, closed, type DatedCircuitFact, situationOf } from "../../domain/circuit/situation.ts"
import { journalOf } from "../../domain/destination/changes.ts"
import { fromRecorded as configurationFact } from "../../domain/destination/facts.ts"
import {
  type Disabling,
  disablingIn,
  isRemovedIn,
  type Pause,
  pauseIn,
  suspensionIn
} from "../../domain/destination/situation.ts"
import type { ChannelName, DestinationId, OrgId } from "../../domain/ids.ts"
import { Channels } from "../ports/Channels.ts"
import { type JournalFact, Journals } from "../ports/Journals.ts"
import { upTo } from "./readMessage.ts"

export interface DestinationSituation {
  readonly pause: Pause | null
  readonly disabling: Disabling | null
  readonly circuit: CircuitSituation
}

export const nothingHolds: DestinationSituation = { pause: null, disabling: null, circuit: closed }

const decoded = <Fact>(read: (fact: JournalFact) => Result.Result<Fact, unknown>, facts: ReadonlyArray<JournalFact>) =>
  facts.map((stored) => ({ at: stored.at, actor: stored.actor, fact: Result.getOrThrow(read(stored)) }))

export const circuitHistory = (destination: DestinationId) =>
  Effect.flatMap(Journals, ({ load }) =>
    Effect.map(load(`circuit-${destination}`), (facts): ReadonlyArray<DatedCircuitFact> => decoded(circuitFact, facts))
  )

/** Oldest first. A channel that this release does not have has no journal to read. */
export const configurationHistory = Effect.fnUntraced(function* (channelName: ChannelName, destination: DestinationId) {
  const channel = (yield* Channels).get(channelName)
  const facts = channel === undefined ? [] : yield* (yield* Journals).load(journalOf(channel, destination))
  return decoded(configurationFact, facts)
})

export const readSuspension = (orgId: OrgId, at: DateTime.Utc | null) =>
  Effect.flatMap(Journals, ({ load }) =>
    Effect.map(load(`org-${orgId}`), (facts) => suspensionIn(upTo(decoded(configurationFact, facts), at)))
  )

export const readSituation = Effect.fnUntraced(function* (
  channel: ChannelName,
  destination: DestinationId,
  at: DateTime.Utc | null
) {
  const [changes, circuit] = yield* Effect.all(
    [configurationHistory(channel, destination), circuitHistory(destination)],
    { concurrency: 2 }
  )
  const history = upTo(changes, at)
  const situation: DestinationSituation = isRemovedIn(history)
    ? nothingHolds
    : { pause: pauseIn(history), disabling: disablingIn(history), circuit: situationOf(upTo(circuit, at)) }
  return situation
})
