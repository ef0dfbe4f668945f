/**
 * The queue: `claim_due`, `put_back`, `release`, `take_over` and one update for all leases of a worker. The
 * statements and what settles each race are in schema/0002_queue.sql and `functions/`.
 */
import { DateTime, Duration, Effect, Layer, Result } from "effect"
import { Pulse } from "../../../application/ports/Pulse.ts"
import {
  type AbandonedMessage,
  type BatchId,
  type Claim,
  type ClaimedMessage,
  type ClaimRequest,
  type ClaimTerms,
  Queue,
  type TakenBatch
} from "../../../application/ports/Queue.ts"
import { PROBE_FRESH_MS } from "../../../domain/circuit/policy.ts"
import type { DestinationId, MessageId } from "../../../domain/ids.ts"
import { queuedOf } from "../../../domain/message/recorded.ts"
import { literal } from "../literal.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"

const claimStatement = prepared`select batch, messages from claim_due($1, $2, $3, $4::jsonb, $5::jsonb, $6)`
const claimOneStatement = prepared`select claim_one($1, $2, $3::timestamptz, $4::uuid, $5)`
const putBackStatement = prepared`select put_back($1::uuid, $2::uuid[])`
const releaseStatement = prepared`select release($1::uuid, $2::uuid[], $3::timestamptz[], $4::uuid[], $5::int[], $6::int[], $7::int[])`
const renewStatement = prepared`update claim set lease_until = statement_timestamp() + make_interval(secs => $2 / 1000.0)
    where batch = any ($1::uuid[]) returning batch`
const takeOverStatement = prepared`select batch::text, messages::text[], lanes::text[], dues_ms::text[]::float8[] as dues, versions, epochs, attempts
    from take_over($1, $2, $3)`
const renameStatement = prepared`update claim set batch = gen_random_uuid(),
      lease_until = statement_timestamp() + make_interval(secs => $2 / 1000.0)
    where batch = any ($1::uuid[]) returning batch::text, messages::text[], lanes::text[],
      array(select (extract(epoch from d) * 1000)::bigint::float8 from unnest(dues) with ordinality u(d, i) order by i) as dues,
      versions, epochs, attempts`
const deferLaneStatement = prepared`insert into lane as l (lane, ready_at, next_slot_at)
    values ($1, 'infinity', clock_timestamp() + make_interval(secs => $2 / 1000.0))
    on conflict (lane) do update set next_slot_at = excluded.next_slot_at
    where l.next_slot_at is null or l.next_slot_at < excluded.next_slot_at`
const nextDueStatement = prepared`select (extract(epoch from next_claim_at) * 1000)::bigint from lane where next_claim_at < 'infinity' order by next_claim_at limit 1`

interface TakenRow {
  readonly batch: string
  readonly messages: ReadonlyArray<string>
  readonly lanes: ReadonlyArray<string>
  readonly dues: ReadonlyArray<number>
  readonly versions: ReadonlyArray<number>
  readonly epochs: ReadonlyArray<number>
  readonly attempts: ReadonlyArray<number>
}

export const layer = Layer.effect(
  Queue,
  Effect.gen(function* () {
    const { durable, queue } = yield* Postgres
    const pulse = yield* Pulse

    const claim = Effect.fnUntraced(function* (request: ClaimRequest) {
      const rows = yield* unavailable(
        queue.rows(claimStatement, [
          request.worker,
          request.limit,
          request.perLane,
          JSON.stringify(Object.fromEntries(request.room)),
          JSON.stringify(Object.fromEntries([...request.fullOrgs].map((org) => [org, true]))),
          Duration.toMillis(request.lease)
        ])
      )
      if (rows.length === 0) return null
      const [batch, messages] = rows[0]!
      return { batch: batch as BatchId, ...claimedOf(JSON.parse(messages!) as ReadonlyArray<ClaimedRow>) }
    })

    // Durable: a fact tells of the move, and a message must not wait under two times.
    const claimOne = (
      worker: string,
      { messageId, lane, dueAt }: Pick<AbandonedMessage, "messageId" | "lane" | "dueAt">,
      lease: Duration.Duration
    ) =>
      reading(
        durable.rows(claimOneStatement, [worker, lane, DateTime.formatIso(dueAt), messageId, Duration.toMillis(lease)]),
        (rows) => (rows[0]?.[0] ?? null) as BatchId | null
      )

    // Durable: the worker releases the batch without these messages.
    const putBack = (batch: BatchId, messages: ReadonlyArray<MessageId>) =>
      unavailable(durable.rows(putBackStatement, [batch, literal(messages)])).pipe(Effect.andThen(pulse.wake("queue")))

    const release = Effect.fnUntraced(function* (batch: BatchId, notStarted: ReadonlyArray<AbandonedMessage>) {
      yield* unavailable(
        queue.rows(releaseStatement, [
          batch,
          literal(notStarted.map(({ lane }) => lane)),
          literal(notStarted.map(({ dueAt }) => DateTime.formatIso(dueAt))),
          literal(notStarted.map(({ messageId }) => messageId)),
          literal(notStarted.map(({ version }) => version)),
          literal(notStarted.map(({ epoch }) => epoch)),
          literal(notStarted.map(({ attempt }) => attempt))
        ])
      )
      if (notStarted.length > 0) yield* pulse.wake("queue")
    })

    const renew = Effect.fnUntraced(function* (batches: ReadonlyArray<BatchId>, lease: Duration.Duration) {
      const rows = yield* unavailable(queue.rows(renewStatement, [literal(batches), Duration.toMillis(lease)]))
      return new Set(rows.map(([batch]) => batch as BatchId))
    })

    const takeOver = (worker: string, lease: Duration.Duration, batchesMax: number) =>
      reading(queue.query<TakenRow>(takeOverStatement, [worker, Duration.toMillis(lease), batchesMax]), takenOf)

    const rename = (batches: ReadonlyArray<BatchId>, lease: Duration.Duration) =>
      reading(queue.query<TakenRow>(renameStatement, [literal(batches), Duration.toMillis(lease)]), takenOf)

    const deferLane = (lane: DestinationId, wait: Duration.Duration) =>
      unavailable(queue.rows(deferLaneStatement, [lane, Duration.toMillis(wait)])).pipe(Effect.asVoid)

    const nextDueAt = reading(queue.rows(nextDueStatement, []), (rows) =>
      rows.length === 0 ? null : DateTime.makeUnsafe(Number(rows[0]![0]))
    )

    return Queue.of({
      claim,
      claimOne,
      putBack,
      release,
      renew,
      takeOver,
      rename,
      deferLane,
      nextDueAt,
      awaitWork: pulse.listener("queue").wait
    })
  })
)

const takenOf = (rows: ReadonlyArray<TakenRow>): ReadonlyArray<TakenBatch> =>
  rows.map((row) => ({
    batch: row.batch as BatchId,
    messages: row.messages.map(
      (id, i): AbandonedMessage => ({
        messageId: id as MessageId,
        lane: row.lanes[i] as DestinationId,
        dueAt: DateTime.makeUnsafe(row.dues[i]!),
        version: row.versions[i]!,
        epoch: row.epochs[i]!,
        attempt: row.attempts[i]!
      })
    )
  }))

type ClaimedRow = readonly [
  messageId: MessageId,
  lane: DestinationId,
  dueMs: number,
  version: number,
  epoch: number,
  attempt: number,
  queued: Record<string, unknown>,
  /** 1: large. */
  body: string | 1 | null,
  /** Absent for plain lanes. */
  terms?: readonly [
    generation: number | null,
    circuitMode: ClaimTerms["circuitMode"],
    inFlightMax: number | null,
    isRateLimited: boolean
  ]
]

const plain: ClaimTerms = {
  ...{ generation: 0, circuitMode: null, startWithinMs: null },
  ...{ isRateLimited: false, inFlightMax: null }
}

const termsOf = ([generation, circuitMode, inFlightMax, isRateLimited]: Required<ClaimedRow>[8]): ClaimTerms => ({
  generation: generation ?? 0,
  circuitMode,
  startWithinMs: circuitMode === "probe" ? PROBE_FRESH_MS : null,
  isRateLimited,
  inFlightMax
})

/** Splits off messages whose first fact can't be read. */
const claimedOf = (rows: ReadonlyArray<ClaimedRow>): Omit<Claim, "batch"> => {
  try {
    return { messages: rows.map(claimed) }
  } catch {
    const messages: Array<ClaimedMessage> = []
    const unreadable: Array<NonNullable<Claim["unreadable"]>[number]> = []
    for (const row of rows) {
      const read = Result.try(() => claimed(row))
      if (Result.isSuccess(read)) messages.push(read.success)
      else unreadable.push(unreadableIn(row, read.failure))
    }
    return { messages, unreadable }
  }
}

const unreadableIn = ([messageId, lane, , , , , , , terms]: ClaimedRow, error: unknown) => ({
  messageId,
  lane,
  terms: terms === undefined ? plain : termsOf(terms),
  defect: error
})

const claimed = (row: ClaimedRow): ClaimedMessage => {
  const [messageId, lane, dueMs, version, epoch, attempt, queued, body, terms] = row
  return {
    messageId,
    lane,
    dueAt: DateTime.makeUnsafe(dueMs),
    version,
    epoch,
    attempt,
    queued: queuedOf(queued),
    body: body === 1 ? null : body,
    isBodyLarge: body === 1,
    terms: terms === undefined ? plain : termsOf(terms)
  }
}
