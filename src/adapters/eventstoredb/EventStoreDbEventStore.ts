/**
 * Streams in EventStoreDB, and the ledger in PostgreSQL. An append has three steps, and a crash may come between any two:
 *
 *   reserve   checks fence and gate; keeps key, body and response under the id that the first event will have, the place
 *             in the line, and the key that seals what the facts say of a person. All entries of one call at once, in
 *             their order; appended they are side by side
 *   append    writes the facts on the exact revision
 *   apply     changes the queue, and puts body and response in their places
 *
 * - A crash before the append leaves only the reservation, which tidy.ts takes back in time. Its key names a message that
 *   does not exist; a repeated request stores the message under that id.
 * - After the append the facts are stored for good, and the follower of the log applies their meaning too (followQueue.ts).
 *   The ledger lets one of the two apply it.
 * - The fence is checked before the append, not in it. A worker that stands still in between until its batch is taken over
 *   may still append, if its version is free. When that append was `AttemptStarted` and the destination can't drop a
 *   duplicate, the worker asks before it sends whether its batch is held (deliver.ts). Its settlement is fenced again, and
 *   the new holder of the batch finds the attempt open and closes it.
 *
 * PostgreSQL alone knows of a claim, and need not have it on disk when it answers. The reservation of `AttemptStarted`
 * brings the claim to disk. An append whose outcome stays unknown fails with `StoreUnavailable`; its reservation stays, for
 * the follower to find.
 */
import { Effect, Layer, Schedule } from "effect"
import type { StoreUnavailable } from "../../application/errors.ts"
import { type Append, type AppendResult, EventStore } from "../../application/ports/EventStore.ts"
import { type Intent, Ledger, type Reservation, type Stored } from "../../application/ports/Ledger.ts"
import { StreamKeys } from "../../application/ports/StreamKeys.ts"
import type { MessageId, OrgId } from "../../domain/ids.ts"
import { toRecorded } from "../../domain/message/recorded.ts"
import { streamOf } from "../../domain/streams.ts"
import { isCopied } from "./copies.ts"
import { EventStoreDb } from "./EventStoreDb.ts"
import { readLog } from "./readLog.ts"
import { areAnyPersonal, eventsOf, type Judged, judged, opened } from "./sealedFacts.ts"
import { eventId, newWriting, type ReadEvent, storedFactOf } from "./streams.ts"

const STREAMS_AT_ONCE = 32
/**
 * How long the request that took a key has to store its message before another request does it. No append takes that long:
 * the first request has crashed, or stood still and will find the message stored.
 */
const TAKEN_MS = 6_000
const LOOK_AGAIN_MS = 50
const applyAgain = { times: 5, schedule: Schedule.spaced("100 millis") }

export const layer = Layer.effect(
  EventStore,
  Effect.gen(function* () {
    const db = yield* EventStoreDb
    const ledger = yield* Ledger
    const keys = yield* StreamKeys

    const load = Effect.fnUntraced(function* (id: MessageId) {
      return streamIn(yield* opened(keys, yield* db.read(streamOf(id))))
    })

    const loadMany = Effect.fnUntraced(function* (ids: ReadonlyArray<MessageId>) {
      const read = yield* Effect.forEach(ids, (id) => db.read(streamOf(id)), { concurrency: STREAMS_AT_ONCE })
      const streams = Map.groupBy(yield* opened(keys, read.flat()), ({ stream }) => stream)
      return new Map(
        ids.flatMap((id) => {
          const events = streams.get(streamOf(id))
          return events === undefined ? [] : [[id, streamIn(events)] as const]
        })
      )
    })

    const isStored = (id: MessageId) => Effect.map(db.read(streamOf(id), 0, 1), (events) => events.length > 0)

    const acceptedUnder = Effect.fnUntraced(function* (orgId: OrgId, key: string) {
      const taken = yield* ledger.takenBy(orgId, key)
      // A key without a message was taken by a request that has not been accepted.
      return taken === null || !(yield* isStored(taken.messageId)) ? null : taken
    })

    const apply = (entry: Append, facts: ReadonlyArray<Judged>, logAt: bigint | null, begun: string) => {
      const stored = storedOf(entry, facts, logAt)
      return stored === null ? Effect.void : ledger.apply(stored, begun).pipe(Effect.retry(applyAgain))
    }

    /** In one call: the order of the intents is that of the places they get in their lines. */
    const reserveAll = Effect.fnUntraced(function* (entries: ReadonlyArray<Append>) {
      const planned = entries.map((entry) => {
        const writing = newWriting()
        const stream = streamOf(entry.messageId)
        return { entry, stream, facts: entry.facts.map((_, n) => judged(factToStore(stream, entry, n, writing))) }
      })
      const intents = planned.map(
        ({ entry, facts }): Intent => ({ id: facts[0]!.fact.id, entry, isPersonal: () => areAnyPersonal(facts) })
      )
      const reservations = yield* ledger.reserve(intents)
      return planned.map((plan, n): Planned => ({ ...plan, reservation: reservations[n]! }))
    })

    const appendOne = Effect.fnUntraced(function* ({
      entry,
      stream,
      facts,
      reservation
    }: Planned): Effect.fn.Return<AppendResult, StoreUnavailable> {
      if (reservation.type === "Taken") return yield* repeat(entry, reservation)
      if (reservation.type !== "Reserved") return reservation
      const events = yield* eventsOf(stream, reservation.key, facts)
      const written = yield* db.append(stream, entry.expected, events)
      if (written.type === "Appended") {
        yield* apply(entry, facts, written.logAt, reservation.begun)
        return { type: "Appended", version: entry.expected + entry.facts.length }
      }
      if (entry.opening !== null || entry.response !== null || entry.queue?.type === "Wait")
        yield* ledger.withdraw([facts[0]!.fact.id])
      const { opening } = entry
      // Another request has stored the message that we reserved, under our id.
      return opening?.idempotency != null && entry.expected === 0
        ? { type: "DuplicateKey", messageId: entry.messageId, requestHash: opening.idempotency.requestHash }
        : { type: "VersionConflict" }
    })

    /** The key was taken before. The request that took it stores the message; if that request is gone, we do. */
    const repeat = Effect.fnUntraced(function* (
      entry: Append,
      { messageId, requestHash, sinceMs }: Extract<Reservation, { type: "Taken" }>
    ): Effect.fn.Return<AppendResult, StoreUnavailable> {
      const duplicate = { type: "DuplicateKey", messageId, requestHash } as const
      if (yield* isStored(messageId)) return duplicate
      if (entry.opening!.idempotency!.requestHash !== requestHash) return duplicate
      if (sinceMs < TAKEN_MS) {
        yield* Effect.sleep(LOOK_AGAIN_MS)
        // The reservation may have been taken back meanwhile.
        return yield* appendAlone(entry)
      }
      const { opening } = entry
      yield* appendAlone({ ...entry, messageId, opening: { ...opening!, idempotency: null } })
      return duplicate
    })

    const appendAlone = (entry: Append): Effect.Effect<AppendResult, StoreUnavailable> =>
      Effect.flatMap(reserveAll([entry]), ([planned]) => appendOne(planned!))

    const append = Effect.fnUntraced(function* (entries: ReadonlyArray<Append>) {
      const results = new Array<AppendResult>(entries.length)
      for (const round of roundsOf(entries)) {
        const planned = yield* reserveAll(round.map((i) => entries[i]!))
        yield* Effect.forEach(
          planned,
          (plan, n) =>
            Effect.map(appendOne(plan), (result) => {
              results[round[n]!] = result
            }),
          { concurrency: "unbounded", discard: true }
        )
      }
      return results as ReadonlyArray<AppendResult>
    })

    return EventStore.of({ load, loadMany, append, acceptedUnder, ...readLog(db, ledger, keys) })
  })
)

/** An entry, its facts as they will be stored, and what the ledger said. */
interface Planned {
  readonly entry: Append
  readonly stream: string
  readonly facts: ReadonlyArray<Judged>
  readonly reservation: Reservation
}

const streamIn = (events: ReadonlyArray<ReadEvent>) => ({ version: events.length, facts: events.map(storedFactOf) })

const factToStore = (stream: string, { facts, expected, at, actor }: Append, n: number, writing: string) => {
  const fact = facts[n]!
  const version = expected + n + 1
  const { name, data } = toRecorded(fact)
  const correlationId = fact.type === "MessageQueued" ? fact.correlationId : null
  return { id: eventId(stream, version, writing), version, name, data, at, actor, correlationId }
}

/** Null when nothing is stored beside the facts and they do not change the queue. */
const storedOf = (entry: Append, stored: ReadonlyArray<Judged>, logAt: bigint | null): Stored | null => {
  const { messageId, expected, facts, queue, opening, response } = entry
  const version = expected + facts.length
  const erased = facts.some(({ type }) => type === "MessageBodyErased") ? version : null
  const copies = facts.flatMap((fact, n) => (isCopied(fact) ? stored[n]!.fact : []))
  const isSilent = queue === null && opening === null && response === null && erased === null && copies.length === 0
  return isSilent ? null : { ids: [stored[0]!.fact.id], messageId, copies, erased, queue, version, expected, logAt }
}

/** The indices of entries, in rounds: two entries of one stream, or with one key, are never in the same round. */
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
