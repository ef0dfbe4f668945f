/**
 * Follows the streams of messages elsewhere, one process at a time, and copies facts that the appending process did not. A step costs two
 * statements when the copies are there, as nearly always. Messages with unreadable or unlawful facts are parked. The position is never
 * beyond the copies.
 */
import { randomUUID } from "node:crypto"
import { Clock, Effect } from "effect"
import { background } from "../../../application/background.ts"
import { park } from "../../../application/park.ts"
import { Parked } from "../../../application/ports/Parked.ts"
import { type Heard, Streams } from "../../../application/ports/Streams.ts"
import type { MessageId } from "../../../domain/ids.ts"
import { streamOf } from "../../../domain/streams.ts"
import { Postgres, prepared, QueryFailed, reading, unavailable } from "../Postgres.ts"
import type { overStreams } from "./EventStoreOverStreams.ts"

const LEASE_MS = 10_000
const STAY_MS = 5_000
const PAUSE_MS = 5_000
/** Appending processes copy within this time, and one big step is cheaper than two small ones. */
const STEP_MS = 100
const FINISH_EVERY_MS = 5_000
/** Longer than any append of a living process. */
const OWED_AFTER = "6 seconds"
const GIVEN_UP_AFTER = "1 minute"
const AT_ONCE = 200
const REMOVALS_AT_ONCE = 8

const stayStatement = prepared`update stream_follower
    set holder = $1, lease_until = statement_timestamp() + ${LEASE_MS} * interval '1 millisecond'
    where holder = $1 or lease_until < statement_timestamp() returning position`
const leaveStatement = prepared`update stream_follower set lease_until = '-infinity' where holder = $1`
// Messages of other installations have neither facts nor an intent here.
const behindStatement = prepared`select u.id from unnest($1::uuid[], $2::int[]) with ordinality u(id, version, n)
    where not exists (select from event e where e.stream_id = u.id and e.version = u.version)
      and (exists (select from event e where e.stream_id = u.id and e.version = 1)
        or exists (select from append_intent i where i.message_id = u.id and i.opens))
    order by u.n`
const passStatement = prepared`with passed as (delete from append_intent where writing = any ($3::text[]))
    update stream_follower set position = $2 where holder = $1`
const unfinishedStatement = prepared`select writing, message_id, opens, owed from append_intent
    where at < statement_timestamp() - case when owed then interval '${OWED_AFTER}' else interval '${GIVEN_UP_AFTER}' end
    order by at limit ${AT_ONCE}`
const finishedStatement = prepared`with gone as (delete from append_intent where writing = any ($1::text[]))
    delete from idempotency where message_id = any ($2::uuid[])`
const forgottenStatement = prepared`select message_id from forgotten_stream limit ${AT_ONCE}`
const forgotStatement = prepared`delete from forgotten_stream where message_id = any ($1::uuid[])`

/** PostgreSQL can't store the value. */
const isRefused = (cause: unknown) => cause instanceof QueryFailed && cause.code?.startsWith("22") === true

type Over = Effect.Success<ReturnType<typeof overStreams>>

export const followStreams = Effect.fnUntraced(function* ({ catchUp, complete }: Pick<Over, "catchUp" | "complete">) {
  const streams = yield* Streams
  const parked = yield* Parked
  const { queue, durable, reads } = yield* Postgres
  const holder = randomUUID()

  const stay = reading(queue.rows(stayStatement, [holder]), ([row]) => row?.[0])
  const idsOf = (rows: ReadonlyArray<ReadonlyArray<string | null>>) => rows.map(([id]) => id as MessageId)

  const parkOne = (id: MessageId, defect: unknown) =>
    Effect.provideService(park(new Map([[streamOf(id), defect]])), Parked, parked)
  const copyAll = (ids: ReadonlyArray<MessageId>) => catchUp(ids, (id, _, defect) => parkOne(id, defect))
  const copyOne = (id: MessageId) =>
    Effect.catch(copyAll([id]), (error) => (isRefused(error.cause) ? parkOne(id, error) : Effect.fail(error)))

  const step = Effect.fnUntraced(function* ({ versions, writings, position }: Heard) {
    const seen = [[...versions.keys()], [...versions.values()]]
    const behind = yield* reading(reads.rows(behindStatement, seen), idsOf)
    // One by one where PostgreSQL refuses one.
    yield* Effect.catch(copyAll(behind), () => Effect.forEach(behind, copyOne, { discard: true }))
    yield* unavailable(durable.rows(passStatement, [holder, position, writings]))
  })

  /** Ends appends of processes that are gone: copies facts that are there, appends owed ones, gives up the rest. */
  const finish = Effect.gen(function* () {
    const rows = yield* unavailable(reads.rows(unfinishedStatement, []))
    if (rows.length === 0) return
    const left = rows.map(([writing, id, opens, owed]) => ({
      ...{ writing: writing!, id: id as MessageId, opens: opens === "t", owed: owed === "t" }
    }))
    yield* complete(left.filter(({ owed }) => owed).map(({ id }) => id))
    const givenUp = yield* Effect.filter(
      left.filter(({ opens, owed }) => opens && !owed).map(({ id }) => id),
      (id) => streams.remove(id, "there"),
      { concurrency: REMOVALS_AT_ONCE }
    )
    yield* copyAll([...new Set(left.map(({ id }) => id))])
    yield* unavailable(durable.rows(finishedStatement, [left.map(({ writing }) => writing), givenUp]))
  })

  const removeForgotten = Effect.gen(function* () {
    const ids = yield* reading(reads.rows(forgottenStatement, []), idsOf)
    if (ids.length === 0) return
    yield* Effect.forEach(ids, (id) => streams.remove(id), { concurrency: REMOVALS_AT_ONCE, discard: true })
    yield* unavailable(durable.rows(forgotStatement, [ids]))
  })

  const followFrom = Effect.fnUntraced(function* (start: string | null) {
    const { take } = yield* streams.follow(start)
    let finishedAt = 0
    while ((yield* stay) !== undefined) {
      const heard = yield* Effect.timeoutOption(take, STAY_MS)
      if (heard._tag === "Some") {
        yield* Effect.sleep(STEP_MS)
        yield* step(heard.value)
      }
      const now = yield* Clock.currentTimeMillis
      if (now < finishedAt + FINISH_EVERY_MS) continue
      finishedAt = now
      yield* finish
      yield* removeForgotten
    }
  })

  yield* Effect.addFinalizer(() => Effect.ignore(queue.rows(leaveStatement, [holder])))
  return yield* background(
    "following the streams of messages",
    Effect.flatMap(stay, (position) =>
      position === undefined ? Effect.sleep(PAUSE_MS) : Effect.scoped(followFrom(position))
    )
  )
})
