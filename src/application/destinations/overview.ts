/**
 * Destinations of all kinds as operators see them: state, cause, backlog; and the commands that stop and start one or
 * all of an org. Alert targets are left alone when all are stopped: alerts are needed most then.
 */
import { DateTime, Effect } from "effect"
import type { CircuitFact } from "../../domain/circuit/facts.ts"
import type { CircuitSituation } from "../../domain/circuit/situation.ts"
import { shownUrl } from "../../domain/delivery/exchange.ts"
import { type ConfigurationFact, isMove } from "../../domain/destination/facts.ts"
import type { Disabling, Pause } from "../../domain/destination/situation.ts"
import type { DestinationId, OrgId } from "../../domain/ids.ts"
import { BUCKET_MS, type HealthBucket, type HealthSummary, summaryOf } from "../../domain/message/health.ts"
import { circuitHistory, configurationHistory, nothingHolds, readSituation } from "../messages/situation.ts"
import { type Backlog, type BacklogFilter, Backlogs, type Sort } from "../ports/Backlogs.ts"
import { Channels } from "../ports/Channels.ts"
import { Circuits } from "../ports/Circuits.ts"
import { DestinationHealth } from "../ports/DestinationHealth.ts"
import { type Destination, Destinations, urlIn } from "../ports/Destinations.ts"
import type { PageRequest } from "../ports/errors.ts"
import { Orgs } from "../ports/Orgs.ts"
import { commandCircuit } from "./commandCircuit.ts"

export interface Overview extends Backlog {
  readonly destination: Destination
  readonly name: string
  readonly url: string | null
  readonly pause: Pause | null
  readonly disabling: Disabling | null
  readonly circuit: CircuitSituation
  readonly lastHour: Pick<HealthSummary, "succeeded" | "failed" | "successRate">
  /** Attempts that succeed, over the last five to ten minutes. */
  readonly perSecond: number
  /**
   * At that rate, from the first due time, as far as `waiting` is counted; null while the destination or org is held
   * up, or nothing succeeds.
   */
  readonly drainsInSeconds: number | null
}

const overviewOf = Effect.fnUntraced(function* (destination: Destination, backlog: Backlog, isHeld: boolean) {
  const { id, orgId, channel } = destination
  const [situation, health, { suspended }] = yield* Effect.all(
    [
      isHeld ? readSituation(channel, id, null) : Effect.succeed(nothingHolds),
      Effect.flatMap(DestinationHealth, ({ read }) => read(id)),
      Effect.flatMap(Orgs, ({ settingsOf }) => settingsOf(orgId))
    ],
    { concurrency: 3 }
  )
  const now = yield* DateTime.now
  const buckets = health?.buckets ?? []
  const { succeeded, failed, successRate } = summaryOf(buckets, DateTime.subtract(now, { hours: 1 }))
  const perSecond = rateOf(buckets, now)
  const { pause, disabling, circuit } = situation
  const isFree = pause === null && disabling === null && circuit.status === "CLOSED" && suspended === null
  const url = shownUrlOf(destination)
  const { waiting, oldestDueAt, inFlight } = backlog
  const overview: Overview = {
    ...{ destination, name: nameOf(destination, url), url, waiting, oldestDueAt, inFlight, ...situation, perSecond },
    lastHour: { succeeded, failed, successRate },
    drainsInSeconds: isFree && perSecond > 0 ? Math.ceil(untilDue(backlog, now) + waiting / perSecond) : null
  }
  return overview
})

const untilDue = ({ oldestDueAt }: Backlog, now: DateTime.Utc): number =>
  oldestDueAt === null ? 0 : Math.max(0, DateTime.toEpochMillis(oldestDueAt) - DateTime.toEpochMillis(now)) / 1000

/** Over the present bucket and the one before it. */
const rateOf = (buckets: ReadonlyArray<HealthBucket>, now: DateTime.Utc): number => {
  const recent = buckets.filter(({ startsAt }) =>
    DateTime.isGreaterThan(startsAt, DateTime.subtract(now, { milliseconds: 2 * BUCKET_MS }))
  )
  const succeeded = recent.reduce((sum, bucket) => sum + bucket.succeeded, 0)
  if (succeeded === 0) return 0
  const since = recent.map(({ startsAt }) => DateTime.toEpochMillis(startsAt)).reduce((a, b) => Math.min(a, b))
  return succeeded / Math.max(1, (DateTime.toEpochMillis(now) - since) / 1000)
}

const shownUrlOf = (destination: Destination): string | null => {
  const url = urlIn(destination)
  return url === null ? null : shownUrl(url)
}

const nameOf = ({ id, settings, alerting }: Destination, url: string | null): string => {
  const described = alerting?.description ?? ("description" in settings ? settings.description : null)
  return typeof described === "string" ? described : (url ?? id)
}

const READ_AT_ONCE = 8

export const listOverviews = Effect.fnUntraced(function* (
  orgId: OrgId | null,
  filter: BacklogFilter,
  sort: Sort,
  page: PageRequest
) {
  const { items, nextCursor } = yield* (yield* Backlogs).list(orgId, filter, sort, page)
  const ids = items.map(({ destination }) => destination)
  const [known, states] = yield* Effect.all(
    [
      Effect.flatMap(Destinations, ({ among }) => among(ids)),
      Effect.flatMap(Circuits, (circuits) => circuits.states(ids))
    ],
    { concurrency: 2 }
  )
  const overviews = yield* Effect.forEach(
    items,
    (backlog, index) => {
      const destination = known.get(backlog.destination)!
      const { paused, disabledReason } = destination
      return overviewOf(destination, backlog, paused || disabledReason !== null || states[index]!.status !== "CLOSED")
    },
    { concurrency: READ_AT_ONCE }
  )
  return { items: overviews, nextCursor }
})

export interface HistoryEntry {
  readonly at: DateTime.Utc
  readonly type: (ConfigurationFact | CircuitFact)["type"]
  readonly by: string | null
  readonly reason: string | null
}

const HISTORY_MAX = 50

export const readOverview = Effect.fnUntraced(function* (orgId: OrgId, id: DestinationId) {
  const destination = yield* (yield* Destinations).get(orgId, id)
  if (destination === null) return null
  const [backlog, changes, circuit] = yield* Effect.all(
    [Effect.flatMap(Backlogs, ({ of }) => of(id)), configurationHistory(destination.channel, id), circuitHistory(id)],
    { concurrency: 3 }
  )
  const history: ReadonlyArray<HistoryEntry> = [...changes, ...circuit]
    // Probes and first addresses add nothing to the facts around them.
    .filter(({ fact }) => fact.type !== "CircuitProbed" && !(fact.type === "DestinationAddressed" && !isMove(fact)))
    .map(({ at, actor, fact }) => ({ at, type: fact.type, by: actor, reason: reasonIn(fact) }))
    .toSorted((a, b) => DateTime.Order(a.at, b.at))
  return { overview: yield* overviewOf(destination, backlog, true), history: history.slice(-HISTORY_MAX) }
})

const reasonIn = (fact: ConfigurationFact | CircuitFact): string | null => {
  if ("reason" in fact) return fact.reason
  if ("error" in fact && fact.error !== null) return `${fact.error.code}: ${fact.error.message}`
  if (fact.type === "CircuitOpened") return `${fact.failures} attempts in a row failed`
  if (fact.type === "DestinationAddressed") return `from ${fact.urlBefore} to ${fact.call.url}`
  return "fields" in fact ? fact.fields.join(", ") : null
}

export const handCommands = ["pause", "resume", "enable", "hold", "reset"] as const
export type HandCommand = (typeof handCommands)[number]

/** False when the org has no such destination. A command without effect is accepted. */
export const commandDestination = Effect.fnUntraced(function* (
  orgId: OrgId,
  id: DestinationId,
  command: HandCommand,
  reason: string | null
) {
  if (command === "hold" || command === "reset") {
    const type = command === "hold" ? "HoldCircuit" : "ResetCircuit"
    return (yield* commandCircuit(orgId, id, { type, reason })) !== null
  }
  const destinations = yield* Destinations
  const destination = yield* destinations.get(orgId, id)
  const channel = destination === null ? undefined : (yield* Channels).get(destination.channel)
  if (channel === undefined) return false
  if (command === "enable") return (yield* destinations.setDisabled(channel, orgId, id, null)) !== null
  return (yield* destinations.setPaused(channel, orgId, id, command === "pause", reason)) !== null
})

export interface Choice {
  readonly channel?: string
  /** Those that were paused or held with exactly this reason: the rest stays stopped. */
  readonly stoppedFor?: string
}

const PAGE = 100
/** One after the other, an org with a thousand destinations would wait for minutes. */
const AT_ONCE = 8

/**
 * Commands all destinations of an org. It stops at the first failure, and a repeat does the rest. A destination that is
 * created meanwhile may be left out.
 */
export const commandAll = Effect.fnUntraced(function* (
  orgId: OrgId,
  choice: Choice,
  command: HandCommand,
  reason: string | null
) {
  const destinations = yield* Destinations
  const which = choice.channel === undefined ? {} : { channel: choice.channel }
  let commanded = 0
  let cursor: string | null = null
  do {
    const page: Effect.Success<ReturnType<typeof destinations.list>> = yield* destinations.list(orgId, which, {
      cursor,
      limit: PAGE
    })
    cursor = page.nextCursor
    const done = yield* Effect.forEach(
      page.items,
      Effect.fnUntraced(function* ({ id, channel, alerting }) {
        if (alerting !== null) return false
        if (choice.stoppedFor !== undefined && !(yield* isStoppedFor(channel, id, choice.stoppedFor))) return false
        return yield* commandDestination(orgId, id, command, reason)
      }),
      { concurrency: AT_ONCE }
    )
    commanded += done.filter((each) => each).length
  } while (cursor !== null)
  return commanded
})

const isStoppedFor = (channel: string, id: DestinationId, reason: string) =>
  Effect.map(
    readSituation(channel, id, null),
    ({ pause, circuit }) => pause?.reason === reason || circuit.reason === reason
  )
