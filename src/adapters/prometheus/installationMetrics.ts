/**
 * Figures of the installation (application/maintenance/readFigures.ts) and connections of this process. Readings that
 * are not renewed are left out.
 */
import type { PoolCount } from "../../application/ports/Processes.ts"
import type { LatestFigures } from "../../application/processes/heartbeat.ts"
import { troubleReasons } from "../../application/processes/Troubles.ts"
import type { Reading, Registry } from "./registry.ts"

const STALE_SECONDS = 60

const circuitStates = ["closed", "open", "half_open", "held"]

const pairs = (record: Readonly<Record<string, number>>): ReadonlyArray<Reading> =>
  Object.entries(record).map(([label, value]) => [[label], value])

/** Answers the receiver of new readings. */
export const watchInstallation = (
  registry: Registry,
  channels: ReadonlyArray<string>,
  connections: () => ReadonlyArray<PoolCount>
): ((latest: LatestFigures | null) => void) => {
  let latest: LatestFigures | null = null
  let isAnswering = false

  const ageSeconds = (): number | null =>
    latest === null || latest.figures === null
      ? null
      : latest.ageSeconds + Number(process.hrtime.bigint() - latest.fetchedAtNanos) / 1e9
  const fresh = () => {
    const age = ageSeconds()
    return age !== null && age < STALE_SECONDS ? latest!.figures : null
  }
  const gauge = (
    name: string,
    help: string,
    labels: ReadonlyArray<string>,
    of: (figures: NonNullable<LatestFigures["figures"]>) => ReadonlyArray<Reading>
  ) =>
    registry.read({ name, help, labels, kind: "gauge" }, () => {
      const readings = fresh()
      return readings === null ? [] : of(readings)
    })

  gauge("posthaste_waiting", "Messages of all orgs that wait for an attempt.", ["channel"], ({ waiting }) =>
    pairs({ ...Object.fromEntries(channels.map((name) => [name, 0])), ...waiting })
  )
  gauge(
    "posthaste_oldest_due_seconds",
    "How long the oldest message that is due has been due, whatever holds it up.",
    [],
    ({ oldestDueSeconds }) => [[[], oldestDueSeconds]]
  )
  gauge("posthaste_parked", "Streams of all orgs that can't be processed.", [], ({ parked }) => [[[], parked]])
  gauge("posthaste_circuits", "Destinations that have had messages, by the state of their circuit.", ["state"], (now) =>
    pairs({ ...Object.fromEntries(circuitStates.map((state) => [state, 0])), ...now.circuits })
  )
  gauge(
    "posthaste_projection_lag_seconds",
    "How old the oldest fact is that a projection has not read.",
    ["projection"],
    (now) => pairs(now.projectionLagSeconds)
  )
  gauge(
    "posthaste_log_stall_seconds",
    "How long a transaction has been open that keeps every reader of the log where it is.",
    [],
    ({ stallSeconds }) => [[[], stallSeconds]]
  )
  gauge(
    "posthaste_trouble",
    "1 for what is wrong with the installation as a whole, 0 for what is not.",
    ["reason"],
    ({ troubles }) => troubleReasons.map((reason) => [[reason.toLowerCase()], troubles.includes(reason) ? 1 : 0])
  )
  gauge(
    "posthaste_oldest_transaction_seconds",
    "How long the oldest transaction has been open, of a minute and longer, that keeps deleted rows from being cleared away.",
    [],
    ({ oldestTransactionSeconds }) => [[[], oldestTransactionSeconds]]
  )
  gauge(
    "posthaste_commands_refused",
    "Commands of callers' transactions that were refused in the last 15 minutes.",
    [],
    ({ refusedCommands }) => [[[], refusedCommands]]
  )
  gauge(
    "posthaste_broker_up",
    "Whether Posthaste's own RabbitMQ is reached; without one there is no figure.",
    [],
    ({ brokerAway }) => (brokerAway === null ? [] : [[[], brokerAway ? 0 : 1]])
  )
  gauge(
    "posthaste_destination_waiting",
    "Messages in the queue of the destinations that POSTHASTE_METRICS_DESTINATIONS names.",
    ["destination"],
    ({ destinations }) => pairs(destinations)
  )
  const own = (name: string, help: string, now: () => ReadonlyArray<Reading>) =>
    registry.read({ name, help, kind: "gauge" }, now)
  own("posthaste_readings_age_seconds", "How old the figures of the installation are.", () => {
    const age = ageSeconds()
    return age === null ? [] : [[[], age]]
  })
  own("posthaste_store_up", "Whether the store answered this process the last time it was asked for figures.", () => [
    [[], isAnswering ? 1 : 0]
  ])
  own("posthaste_clock_offset_seconds", "How far the clock of this process is ahead of the store's.", () =>
    latest === null ? [] : [[[], latest.clockOffsetSeconds]]
  )
  registry.read(
    {
      name: "posthaste_database_connections",
      help: "Connections of this process to PostgreSQL; waiting are statements that wait for one.",
      labels: ["pool", "state"],
      kind: "gauge"
    },
    () =>
      connections().flatMap(({ pool, inUse, idle, waiting }) => [
        [[pool, "in_use"], inUse] as const,
        [[pool, "idle"], idle] as const,
        [[pool, "waiting"], waiting] as const
      ])
  )

  return (now) => {
    isAnswering = now !== null
    if (now !== null) latest = now
  }
}
