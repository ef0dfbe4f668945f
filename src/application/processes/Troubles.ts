/**
 * The troubles of the installation, one list for readiness, stats, explanations, metrics and the command line. An
 * unneeded role is not missed: a relay is only for a broker and commands of callers' transactions.
 */
import { Context, DateTime, Duration, Effect, Exit, Layer } from "effect"
import { type AsOf, readFreshness } from "../log/Freshness.ts"
import { CommandInbox } from "../ports/CommandInbox.ts"
import type { EventStore } from "../ports/EventStore.ts"
import type { FromStore } from "../ports/errors.ts"
import { Parked, type ParkedStream } from "../ports/Parked.ts"
import { type OpenTransaction, type Process, Processes } from "../ports/Processes.ts"
import { Projections, type Stall } from "../ports/Projections.ts"

export const troubleReasons = [
  "NO_WORKER",
  "NO_PROJECTOR",
  "NO_RELAY",
  "PROJECTION_BEHIND",
  "LOG_STALLED",
  "LONG_TRANSACTION",
  "PARKED"
] as const
export type TroubleReason = (typeof troubleReasons)[number]

export interface Trouble {
  readonly reason: TroubleReason
  readonly says: string
  readonly since: DateTime.Utc | null
  readonly transaction: OpenTransaction | null
}

/** A projection is a moment behind whenever something happens. */
const BEHIND_FROM = Duration.seconds(30)
const STALL_FROM = Duration.seconds(10)
const COMMANDS_WAIT_FROM = Duration.seconds(10)
/** A backup or a report takes as long; after much longer, claims cost several times as much. */
const LONG_TRANSACTION_FROM = Duration.minutes(1)

interface Known {
  readonly processes: ReadonlyArray<Process>
  readonly freshness: ReadonlyMap<string, AsOf>
  readonly stall: Stall | null
  /** Since when a command waits for a relay; null where one lives. */
  readonly commandsSince: DateTime.Utc | null
  readonly oldest: OpenTransaction | null
  readonly parked: ReadonlyArray<ParkedStream>
}

export const livingIn = (role: string, processes: ReadonlyArray<Process>): ReadonlyArray<Process> =>
  processes.filter(({ alive, roles }) => alive && roles.includes(role))

export const troublesOf = (
  { processes, freshness, stall, commandsSince, oldest, parked }: Known,
  now: DateTime.Utc
): ReadonlyArray<Trouble> => {
  const isOlder = (since: DateTime.Utc, than: Duration.Duration) =>
    Duration.isGreaterThan(DateTime.distance(since, now), than)
  const missing = (role: string, reason: TroubleReason, says: string): Trouble => ({
    ...{ reason, says, transaction: null },
    since: lastSeenIn(role, processes)
  })
  const troubles: Array<Trouble> = []

  if (livingIn("worker", processes).length === 0)
    troubles.push(missing("worker", "NO_WORKER", "no process that sends messages is alive: messages wait"))

  const hasProjector = livingIn("projector", processes).length > 0
  if (!hasProjector) {
    const says = "no process that keeps lists and counts is alive: they stay as they are, and no alert is sent"
    troubles.push(missing("projector", "NO_PROJECTOR", says))
  }

  const relays = livingIn("relay", processes)
  const waits = commandsSince !== null && isOlder(commandsSince, COMMANDS_WAIT_FROM)
  if (relays.length === 0 && waits) {
    const says = "no process that takes commands of callers' transactions is alive: they wait"
    troubles.push({ reason: "NO_RELAY", says, since: commandsSince, transaction: null })
  } else if (!relays.some(({ broker }) => broker) && processes.some(({ alive, broker }) => alive && broker)) {
    const says = "no process that serves RabbitMQ is alive: commands wait there, and no fact goes out"
    troubles.push(missing("relay", "NO_RELAY", says))
  }

  const behind = [...freshness].filter(([, { behindSeconds }]) => behindSeconds > Duration.toSeconds(BEHIND_FROM))
  if (behind.length > 0) {
    const names = behind.map(([name]) => name).join(", ")
    troubles.push({
      reason: "PROJECTION_BEHIND",
      says: `what was stored since is not in ${behind.length === 1 ? "the projection" : "the projections"} ${names}`,
      since: behind.map(([, { asOf }]) => asOf).reduce((a, b) => DateTime.min(a, b)),
      transaction: null
    })
  }
  if (stall !== null)
    troubles.push({
      reason: "LOG_STALLED",
      says: "an open transaction of the database server keeps projections, feed and alerts from reading on",
      since: stall.since,
      transaction: { kind: "transaction", pid: stall.pid, name: stall.application, database: null, since: stall.since }
    })
  if (oldest !== null)
    troubles.push({
      reason: "LONG_TRANSACTION",
      says: "an old transaction keeps the database from clearing away what has left the queue: each claim costs more",
      since: oldest.since,
      transaction: oldest
    })
  if (parked.length > 0)
    troubles.push({
      reason: "PARKED",
      says: "streams can't be processed and are parked: their messages are not sent",
      since: parked.map(({ at }) => at).reduce((a, b) => DateTime.min(a, b)),
      transaction: null
    })
  return troubles
}

/** A process that stopped in order is not listed. */
const lastSeenIn = (role: string, processes: ReadonlyArray<Process>): DateTime.Utc | null =>
  processes
    .filter(({ alive, roles }) => !alive && roles.includes(role))
    .map(({ lastSeen }) => lastSeen)
    .reduce<DateTime.Utc | null>((last, seen) => (last === null ? seen : DateTime.max(last, seen)), null)

export const readInstallation = Effect.gen(function* () {
  const [processes, freshness, stall, oldest, { items: parked }] = yield* Effect.all(
    [
      Effect.flatMap(Processes, ({ list }) => list),
      readFreshness,
      Effect.flatMap(Projections, (projections) => projections.stall(STALL_FROM)),
      Effect.flatMap(Processes, ({ oldestTransaction }) => oldestTransaction(LONG_TRANSACTION_FROM)),
      Effect.flatMap(Parked, ({ list }) => list({ cursor: null, limit: 1 }))
    ],
    { concurrency: 2 }
  )
  // A living relay takes all commands: only without one are they worth a look.
  const commandsSince = livingIn("relay", processes).length > 0 ? null : yield* (yield* CommandInbox).waitingSince
  const troubles = troublesOf({ processes, freshness, stall, commandsSince, oldest, parked }, yield* DateTime.now)
  return { troubles, freshness, oldest }
})

const HOLDS = Duration.seconds(1)

type Ports = EventStore | Projections | Parked | Processes | CommandInbox

export class Troubles extends Context.Service<Troubles, { readonly now: FromStore<ReadonlyArray<Trouble>> }>()(
  "posthaste/application/processes/Troubles"
) {
  static readonly layer: Layer.Layer<Troubles, never, Ports> = Layer.effect(
    Troubles,
    Effect.gen(function* () {
      const ports = yield* Effect.context<Ports>()
      const reading = Effect.map(Effect.provide(readInstallation, ports), ({ troubles }) => troubles)
      return { now: yield* Effect.cachedWithTTL(reading, (exit) => (Exit.isSuccess(exit) ? HOLDS : Duration.zero)) }
    })
  )
}
