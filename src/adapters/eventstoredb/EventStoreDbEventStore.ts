/**
 * Streams in EventStoreDB, and beside them the ledger. An append takes three steps, and may crash between any two:
 *
 *   reserve   fence and gate are looked at; key, body and answer are kept, under the id that the first event will have
 *   append    the facts, on the exact revision
 *   apply     what comes with them takes effect, and the queue changes
 *
 * - Before the append nothing has happened that anybody can see: what was kept is given up in time (tidy.ts). A key
 *   that is left so names a message that does not exist; whoever repeats the request finishes it under that id.
 * - After the append the facts are stored for good. Whoever follows the log applies what they mean (followQueue.ts). Both
 *   may come to apply the same; the ledger lets one of them.
 * - The fence is looked at before, not during the append. A worker that stands still in between, for so long that its
 *   batch is taken over, may still append. It wins or loses its version like anybody. If it wins with
 *   `AttemptStarted`, it asks before it sends whether its batch is held, where the far side can't drop a duplicate
 *   (see deliver.ts), and its settlement is fenced again; the new holder finds the attempt open, and closes it.
 *
 * A claim is a matter of Postgres alone and not on its disk at once. The reservation of `AttemptStarted` puts it there.
 *
 * An append whose outcome stays unknown fails with `StoreUnavailable`; its intent stays, for the follower to find.
 */
import { Effect, Layer, Schedule } from "effect"
import type { StoreUnavailable } from "../../application/errors.ts"
import { type Append, type AppendResult, EventStore } from "../../application/ports/EventStore.ts"
import { type Intent, Ledger, type Reservation, type Stored } from "../../application/ports/Ledger.ts"
import type { MessageId, OrgId } from "../../domain/ids.ts"
import { toRecorded } from "../../domain/message/recorded.ts"
import { streamOf } from "../../domain/streams.ts"
import { isCopied } from "./copies.ts"
import { EventStoreDb } from "./EventStoreDb.ts"
import { readLog } from "./readLog.ts"
import { eventId, eventOf, newWriting, storedFactOf } from "./streams.ts"

const STREAMS_AT_ONCE = 32
/**
 * How long whoever took a key has to store its message before somebody else does it. Far longer than any append of ours
 * takes: whoever comes later has crashed, or stood still and meets the message already there.
 */
const TAKEN_MS = 6_000
const LOOK_AGAIN_MS = 50
const applyAgain = { times: 5, schedule: Schedule.spaced("100 millis") }

export const layer = Layer.effect(
  EventStore,
  Effect.gen(function* () {
    const db = yield* EventStoreDb
    const ledger = yield* Ledger

    const load = (id: MessageId) =>
      Effect.map(db.read(streamOf(id)), (events) => ({ version: events.length, facts: events.map(storedFactOf) }))

    const loadMany = Effect.fnUntraced(function* (ids: ReadonlyArray<MessageId>) {
      const streams = yield* Effect.forEach(ids, load, { concurrency: STREAMS_AT_ONCE })
      return new Map(ids.flatMap((id, i) => (streams[i]!.version === 0 ? [] : [[id, streams[i]!] as const])))
    })

    const isStored = (id: MessageId) => Effect.map(db.read(streamOf(id), 0, 1), (events) => events.length > 0)

    const acceptedUnder = Effect.fnUntraced(function* (orgId: OrgId, key: string) {
      const taken = yield* ledger.takenBy(orgId, key)
      // A key without a message was taken by a request that has not been accepted.
      return taken === null || !(yield* isStored(taken.messageId)) ? null : taken
    })

    const apply = (entry: Append, ids: ReadonlyArray<string>, logAt: bigint | null, begun: string) => {
      const stored = storedOf(entry, ids, logAt)
      return stored === null ? Effect.void : ledger.apply(stored, begun).pipe(Effect.retry(applyAgain))
    }

    const appendOne = Effect.fnUntraced(function* (entry: Append): Effect.fn.Return<AppendResult, StoreUnavailable> {
      const writing = newWriting()
      const stream = streamOf(entry.messageId)
      const ids = entry.facts.map((_, n) => eventId(stream, entry.expected + n + 1, writing))
      const intent: Intent = { id: ids[0]!, entry }
      const [reservation] = yield* ledger.reserve([intent])
      if (reservation!.type === "Taken") return yield* repeat(entry, reservation!)
      if (reservation!.type !== "Reserved") return reservation!
      const written = yield* db.append(stream, entry.expected, eventsOf(entry, ids))
      if (written.type === "Appended") {
        yield* apply(entry, ids, written.logAt, reservation!.begun)
        return { type: "Appended", version: entry.expected + entry.facts.length }
      }
      if (entry.opening !== null || entry.response !== null) yield* ledger.withdraw([intent.id])
      const { opening } = entry
      // Somebody else has finished what we began, under our id.
      return opening?.idempotency != null && entry.expected === 0
        ? { type: "DuplicateKey", messageId: entry.messageId, requestHash: opening.idempotency.requestHash }
        : { type: "VersionConflict" }
    })

    /** The key was taken before. What is answered for is stored, by whoever took it or, if that one is gone, by us. */
    const repeat = Effect.fnUntraced(function* (
      entry: Append,
      { messageId, requestHash, sinceMs }: Extract<Reservation, { type: "Taken" }>
    ): Effect.fn.Return<AppendResult, StoreUnavailable> {
      const duplicate = { type: "DuplicateKey", messageId, requestHash } as const
      if (yield* isStored(messageId)) return duplicate
      if (entry.opening!.idempotency!.requestHash !== requestHash) return duplicate
      if (sinceMs < TAKEN_MS) {
        yield* Effect.sleep(LOOK_AGAIN_MS)
        // It may have been given up meanwhile.
        return yield* appendOne(entry)
      }
      const { opening } = entry
      yield* appendOne({ ...entry, messageId, opening: { ...opening!, idempotency: null } })
      return duplicate
    })

    const append = Effect.fnUntraced(function* (entries: ReadonlyArray<Append>) {
      const results = new Array<AppendResult>(entries.length)
      for (const round of roundsOf(entries)) {
        yield* Effect.forEach(
          round,
          (i) =>
            Effect.map(appendOne(entries[i]!), (result) => {
              results[i] = result
            }),
          { concurrency: "unbounded", discard: true }
        )
      }
      return results as ReadonlyArray<AppendResult>
    })

    return EventStore.of({ load, loadMany, append, acceptedUnder, ...readLog(db, ledger) })
  })
)

const eventsOf = ({ facts, at, actor }: Append, ids: ReadonlyArray<string>) =>
  facts.map((fact, n) =>
    eventOf(ids[n]!, toRecorded(fact), {
      at,
      actor,
      correlationId: fact.type === "MessageQueued" ? fact.correlationId : null
    })
  )

/** Null when nothing comes with the facts and they mean nothing to the queue. */
const storedOf = (entry: Append, ids: ReadonlyArray<string>, logAt: bigint | null): Stored | null => {
  const { messageId, expected, facts, at, actor, queue, opening, response } = entry
  const version = expected + facts.length
  const erased = facts.some(({ type }) => type === "MessageBodyErased") ? version : null
  const copies = facts.flatMap((fact, n) =>
    isCopied(fact) ? [{ version: expected + n + 1, ...toRecorded(fact), at, actor }] : []
  )
  const isSilent = queue === null && opening === null && response === null && erased === null && copies.length === 0
  return isSilent ? null : { ids: ids.slice(0, 1), messageId, copies, erased, queue, version, expected, logAt }
}

/**
 * Entries of one stream, or with one key, go one after the other; all others together. Answers their indices, round by
 * round.
 */
const roundsOf = (entries: ReadonlyArray<Append>): ReadonlyArray<ReadonlyArray<number>> => {
  const rounds: Array<Array<number>> = []
  const next = new Map<string, number>()
  for (const [i, { messageId, opening }] of entries.entries()) {
    const key = opening?.idempotency ?? null
    const names = key === null ? [messageId] : [messageId, `${key.orgId}/${key.key}`]
    const round = Math.max(...names.map((name) => next.get(name) ?? 0))
    for (const name of names) next.set(name, round + 1)
    const mates = rounds[round]
    if (mates === undefined) rounds.push([i])
    else mates.push(i)
  }
  return rounds
}
