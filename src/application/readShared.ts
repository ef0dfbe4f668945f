/**
 * Reads the figures of the whole installation every few seconds: one process reads them from the store, the others read
 * what it read. So a scrape costs the store nothing, however many processes are scraped, and however often.
 */
import { Clock, DateTime, Duration, Effect } from "effect"
import type { DestinationId } from "../domain/ids.ts"
import { background } from "./background.ts"
import { StoreUnavailable } from "./errors.ts"
import { BrokerReports } from "./ports/BrokerReports.ts"
import { OwnClock } from "./ports/OwnClock.ts"
import { Projections } from "./ports/Projections.ts"
import { Readings, type SharedReadings } from "./ports/Readings.ts"
import { readInstallation } from "./processes/Troubles.ts"

export const READ_EVERY = Duration.seconds(5)
/** Long enough for a slow reading, short enough that the turn of a dead process is not missed. */
const TURN = Duration.seconds(20)
const ANSWER_WITHIN = Duration.seconds(15)
const STALL_FROM = Duration.seconds(1)

export interface LatestReadings {
  readonly readings: SharedReadings | null
  /** How old the readings were when they were fetched. */
  readonly ageSeconds: number
  /** By the monotonic clock. */
  readonly fetchedAtNanos: bigint
  /** How far the clock of this process's machine is ahead of the store's. */
  readonly clockOffsetSeconds: number
}

/** `fetched` is told of every answer of the store, and of its silence by null. `holder` names this process. */
export const readShared = (
  holder: string,
  destinations: ReadonlyArray<DestinationId>,
  fetched: (latest: LatestReadings | null) => void
) =>
  background(
    "reading figures for the metrics",
    Effect.gen(function* () {
      fetched(yield* inTime(fetchOnce(holder, destinations)))
      yield* Effect.sleep(READ_EVERY)
    }).pipe(Effect.tapError(() => Effect.sync(() => fetched(null))))
  )

/** A connection that went silent must not end the reading: this loop also finds out that the store is away. */
const inTime = <A, R>(reading: Effect.Effect<A, StoreUnavailable, R>) =>
  Effect.timeoutOrElse(reading, {
    duration: ANSWER_WITHIN,
    orElse: () => Effect.fail(new StoreUnavailable({ cause: new Error("no answer in time") }))
  })

const fetchOnce = Effect.fnUntraced(function* (holder: string, destinations: ReadonlyArray<DestinationId>) {
  const readings = yield* Readings
  if (yield* readings.takeTurn(holder, TURN)) yield* readings.share(holder, yield* readAll(destinations))
  const latest = yield* readings.shared
  const clockOffsetSeconds = ((yield* OwnClock).offsetMs() ?? 0) / 1000
  return { ...latest, fetchedAtNanos: yield* Clock.monotonicTimeNanos, clockOffsetSeconds } satisfies LatestReadings
})

const readAll = Effect.fnUntraced(function* (destinations: ReadonlyArray<DestinationId>) {
  const counts = yield* (yield* Readings).counts(destinations)
  const now = yield* DateTime.now
  const secondsSince = (at: DateTime.Utc) => Math.max(0, Duration.toSeconds(DateTime.distance(at, now)))
  const { freshness, troubles, oldest } = yield* readInstallation
  const stall = yield* (yield* Projections).stall(STALL_FROM)
  return {
    ...counts,
    projectionLagSeconds: Object.fromEntries([...freshness].map(([name, { behindSeconds }]) => [name, behindSeconds])),
    stallSeconds: stall === null ? 0 : secondsSince(stall.since),
    troubles: troubles.map(({ reason }) => reason),
    oldestTransactionSeconds: oldest?.since == null ? 0 : secondsSince(oldest.since),
    brokerAway: (yield* (yield* BrokerReports).reach)?.away ?? null
  } satisfies SharedReadings
})
