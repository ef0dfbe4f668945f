/**
 * The safety net under every append: follows the streams of messages and applies the meaning of their facts to the queue, in
 * one transaction with its position in the log. The process that appended is nearly always faster, and nothing is left to do.
 *
 * The domain decides the meaning of a fact again, from the message before and after it. The folded messages that are under
 * way are remembered, so that a fact costs no read.
 *
 * A message whose facts can't be read, or are no history that the law allows, is set aside before the position moves past it: what
 * its facts mean for the queue is found out when it is tried again.
 */
import { Clock, Effect, Result } from "effect"
import { background } from "../../application/background.ts"
import type { Position } from "../../application/ports/EventStore.ts"
import { Ledger, type Stored } from "../../application/ports/Ledger.ts"
import { SetAside, type Unprocessable } from "../../application/ports/SetAside.ts"
import { StreamKeys } from "../../application/ports/StreamKeys.ts"
import type { MessageId } from "../../domain/ids.ts"
import { evolve, initial } from "../../domain/message/decider.ts"
import type { MessageFact } from "../../domain/message/facts.ts"
import { queueChange } from "../../domain/message/queueChange.ts"
import { fromRecorded } from "../../domain/message/recorded.ts"
import type { Message } from "../../domain/message/transitions.ts"
import { MESSAGES, messageOf, streamOf } from "../../domain/streams.ts"
import { isCopied, isCopiedAsStored } from "./copies.ts"
import { EventStoreDb } from "./EventStoreDb.ts"
import { commitOf } from "./requests.ts"
import { opened } from "./sealedFacts.ts"
import { circumstancesOf, type ReadEvent, recordedOf } from "./streams.ts"
import { tidy } from "./tidy.ts"

const REMEMBERED_MAX = 20_000
/** Appends apply their facts at once, so the follower need not hurry, and one big step is cheaper than two small ones. */
const STEP_MS = 100
/** Well within the lease of a follower's place. */
const STAY_MS = 1_500
const PAUSE_MS = 1_000
const TIDY_EVERY_MS = 10_000

interface Folded {
  readonly message: Message
  readonly version: number
}

/** Runs until interrupted. One process at a time follows; the others wait for its place. */
export const followQueue = (holder: string) =>
  background(
    "following the log of messages",
    Effect.gen(function* () {
      const place = yield* (yield* Ledger).follow("queue", holder)
      return place === null ? yield* Effect.sleep(PAUSE_MS) : yield* Effect.scoped(followFrom(holder, place.position))
    })
  )

const followFrom = Effect.fnUntraced(function* (holder: string, start: Position | null) {
  const db = yield* EventStoreDb
  const ledger = yield* Ledger
  const news = yield* db.follow(MESSAGES, start)
  const keys = yield* StreamKeys
  const meaning = meaningOf(db, keys)
  let from = start
  let tidiedAt = 0
  for (;;) {
    const heard = yield* news.take.pipe(Effect.timeoutOption(STAY_MS))
    const stays = yield* ledger.follow("queue", holder)
    if (stays === null || stays.position !== from) return
    if (heard._tag === "Some") {
      const events = heard.value.flatMap((each) => (each.type === "Event" ? [each.event] : []))
      const ours = events.length === 0 ? [] : yield* opened(keys, yield* known(events))
      const stored = yield* meaning(ours)
      const to: Position = heard.value.at(-1)!.position
      if (!(yield* ledger.advance("queue", holder, { from, to, facts: ours.length, stored }))) return
      from = to
      yield* Effect.sleep(STEP_MS)
    }
    yield* ledger.expireReservations
    const now = yield* Clock.currentTimeMillis
    if (from !== null && now > tidiedAt + TIDY_EVERY_MS) {
      tidiedAt = now
      yield* tidy(commitOf(from))
    }
  }
})

const known = Effect.fnUntraced(function* (events: ReadonlyArray<ReadEvent>) {
  const ids = [...new Set(events.flatMap(({ stream }) => messageOf(stream) ?? []))]
  const mine = yield* (yield* Ledger).known(ids)
  return events.filter(({ stream }) => mine.has(messageOf(stream) as MessageId))
})

/** What these events change, for each of their messages. */
const meaningOf = (db: EventStoreDb["Service"], keys: StreamKeys["Service"]) => {
  const remembered = new Map<MessageId, Folded>()

  /** The message before an event; null when it was forgotten since: its stream is gone. */
  const before = Effect.fnUntraced(function* (id: MessageId, revision: number) {
    if (revision === 0) return initial
    const folded = remembered.get(id)
    if (folded?.version === revision) return folded.message
    const events = yield* opened(keys, yield* db.read(streamOf(id), 0, revision))
    if (events.length < revision) return null
    return events.map(factOf).reduce(evolve, initial)
  })

  const remember = (id: MessageId, folded: Folded) => {
    remembered.delete(id)
    if (folded.message.progress.dueAt === null && folded.message.status !== "SENDING") return
    remembered.set(id, folded)
    if (remembered.size > REMEMBERED_MAX) remembered.delete(remembered.keys().next().value!)
  }

  /** Folds one event. Folding it again, after a step that could not be written, changes nothing. */
  const add = Effect.fnUntraced(function* (stored: Map<MessageId, Stored>, event: ReadEvent) {
    const id = messageOf(event.stream)!
    const message = yield* before(id, event.revision)
    if (message === null) return
    const fact = factOf(event)
    const after = evolve(message, fact)
    const version = event.revision + 1
    if ((remembered.get(id)?.version ?? 0) <= version) remember(id, { message: after, version })
    const queue = queueChange(message, fact, after)
    const sofar = stored.get(id)
    const copy = { version, ...recordedOf(event), ...circumstancesOf(event) }
    stored.set(id, {
      ids: [...(sofar?.ids ?? []), event.id],
      messageId: id,
      copies: [...(sofar?.copies ?? []), ...(isCopied(fact) ? [copy] : [])],
      erased: erasedBy(fact.type, version, sofar?.erased ?? null),
      queue: queue ?? sofar?.queue ?? null,
      version: queue === null ? (sofar?.version ?? version) : version,
      expected: queue === null ? (sofar?.expected ?? version - 1) : version - 1,
      logAt: commitOf(event.position!)
    })
  })

  return Effect.fnUntraced(function* (events: ReadonlyArray<ReadEvent>) {
    const stored = new Map<MessageId, Stored>()
    const unprocessable = new Map<MessageId, Unprocessable>()
    for (const event of events) {
      // An impossible history is a bug. It must not keep the other messages from the queue.
      yield* Effect.catchDefect(add(stored, event), (defect) =>
        Effect.gen(function* () {
          const id = messageOf(event.stream)!
          remembered.delete(id)
          addUnread(stored, event)
          const version = event.revision + 1
          if (!unprocessable.has(id)) unprocessable.set(id, unprocessableAt(id, version, defect))
          yield* Effect.logError(`message ${id} is set aside: it can't be processed from version ${version} on`, defect)
        })
      )
    }
    yield* (yield* SetAside).put(null, [...unprocessable.values()])
    // What the facts before the one at fault say of the queue is left to the next try: a fact that moves a message ends that it is set aside.
    return [...stored.values()].map((each) => (unprocessable.has(each.messageId) ? { ...each, queue: null } : each))
  })
}

/** What is kept beside a first fact is kept whatever it says: without it the message would not be known here. */
const addUnread = (stored: Map<MessageId, Stored>, event: ReadEvent) => {
  const recorded = recordedOf(event)
  const messageId = messageOf(event.stream)!
  if (event.revision > 0 || stored.has(messageId) || !isCopiedAsStored(recorded)) return
  const copies = [{ version: 1, ...recorded, ...circumstancesOf(event) }]
  const nothing = { erased: null, queue: null, version: 1, expected: 0 }
  stored.set(messageId, { ids: [event.id], messageId, copies, ...nothing, logAt: commitOf(event.position!) })
}

const unprocessableAt = (messageId: MessageId, version: number, defect: unknown): Unprocessable => ({
  messageId,
  orgId: null,
  lane: null,
  version,
  reason: "unlawful",
  detail: `version ${version}: ${defect instanceof Error ? defect.message : defect}`
})

/** A replay may bring another body. */
const erasedBy = (type: MessageFact["type"], version: number, before: number | null) =>
  type === "MessageBodyErased" ? version : type === "MessageReplayed" ? null : before

const factOf = (event: ReadEvent) => Result.getOrThrow(fromRecorded(recordedOf(event)))
