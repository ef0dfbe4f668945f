/**
 * Reads the log of all facts for everybody in this process who follows it: projections and subscribers of the feed.
 *
 * Whoever has come to the end shares one tail: the last facts are kept in memory, so a new fact is read once however
 * many wait for it. Whoever is far behind reads from the store, and several who stand at the same place, such as
 * projections that are rebuilt together, share each page.
 *
 * It also answers what most readers of a fact want to know next, the stream it belongs to and whose that is, from what
 * it has seen go by, and asks the store only for what came before. All of it is bounded; nothing here is needed by
 * anybody to be correct.
 */
import { Clock, Context, Duration, Effect, Latch, Layer, Result, Schema, Semaphore } from "effect"
import { DestinationId, isUuid, type MessageId, OrgId } from "../../domain/ids.ts"
import { fromRecorded, queuedOf } from "../../domain/message/recorded.ts"
import type { StoredFact } from "../../domain/message/view.ts"
import { halvesOf, streamOf } from "../../domain/streams.ts"
import type { StoreUnavailable } from "../errors.ts"
import { Circuits } from "../ports/Circuits.ts"
import { EventStore, type LoggedFact, type Position } from "../ports/EventStore.ts"
import { type JournalName, Journals } from "../ports/Journals.ts"

type History = ReadonlyArray<StoredFact>

export class LogReader extends Context.Service<
  LogReader,
  {
    /** The next facts, no more than `limit`; none when there is nothing new. */
    readonly read: (after: Position | null, limit: number) => Effect.Effect<ReadonlyArray<LoggedFact>, StoreUnavailable>
    /** Answers when `read` may have more. Ask for it after an answer that was empty. */
    readonly news: (after: Position | null) => Effect.Effect<void, StoreUnavailable>
    /** Where the log ends now. */
    readonly end: Effect.Effect<Position | null, StoreUnavailable>
    /**
     * The stream of each message among the facts, from its beginning at least to the last of these facts. A message
     * that was forgotten meanwhile has none.
     */
    readonly streams: (
      facts: ReadonlyArray<LoggedFact>
    ) => Effect.Effect<ReadonlyMap<MessageId, History>, StoreUnavailable>
    /** Whose each stream among the facts is; absent for what belongs to no org, or to nobody any more. */
    readonly orgs: (
      facts: ReadonlyArray<Pick<LoggedFact, "stream" | "messageId" | "version" | "data">>
    ) => Effect.Effect<ReadonlyMap<string, OrgId>, StoreUnavailable>
  }
>()("posthaste/application/log/LogReader") {
  static readonly layer: Layer.Layer<LogReader, never, EventStore | Journals | Circuits> = Layer.effect(
    LogReader,
    Effect.gen(function* () {
      const store = yield* EventStore
      const recent = yield* tail(store)
      const far = pages(store)
      return LogReader.of({
        read: Effect.fnUntraced(function* (after, limit) {
          return (yield* recent.after(after, limit)) ?? (yield* far(after, limit))
        }),
        news: recent.news,
        end: recent.end,
        streams: streamsOf(store),
        orgs: orgsOf(store, yield* Journals, yield* Circuits)
      })
    })
  )
}

type Store = EventStore["Service"]

const RECENT_MAX = 20_000
const TAIL_AT_ONCE = 2_000
/** How long what was found at the end is good enough for the next who asks. */
const FRESH = Duration.toMillis("20 millis")
const LOOK_MIN = Duration.millis(50)
const LOOK_MAX = Duration.millis(250)

/** The end of the log, from where it was when somebody first asked. */
const tail = Effect.fnUntraced(function* (store: Store) {
  const scope = yield* Effect.scope
  const one = Semaphore.makeUnsafe(1)
  const grown = Latch.makeUnsafe()
  // Facts are numbered from 1 as they are read here; `first` is the number of the oldest that is still kept.
  const facts: Array<LoggedFact> = []
  const numbers = new Map<Position | null, number>()
  let first = 1
  let head: Position | null = null
  let lookedAt = Number.NEGATIVE_INFINITY
  let hasBegun = false
  let isWatched = false

  const last = () => first + facts.length - 1

  const look = one.withPermits(1)(
    Effect.gen(function* () {
      if (!hasBegun) {
        head = (yield* store.extent).head
        numbers.set(head, 0)
        hasBegun = true
      }
      const now = yield* Clock.currentTimeMillis
      // Clocks jump, also backwards.
      if (Math.abs(now - lookedAt) < FRESH) return
      const found = yield* store.readAll(head, TAIL_AT_ONCE)
      lookedAt = found.length === TAIL_AT_ONCE ? Number.NEGATIVE_INFINITY : now
      if (found.length === 0) return
      for (const fact of found) {
        facts.push(fact)
        numbers.set(fact.position, last())
      }
      head = found.at(-1)!.position
      // Now and then, not each time.
      if (facts.length > 2 * RECENT_MAX) {
        for (const { position } of facts.splice(0, facts.length - RECENT_MAX)) numbers.delete(position)
        first = numbers.get(facts[0]!.position)!
      }
      yield* grown.release
    })
  )

  /** Null for a place that is not near the end. An answer that is short of the limit reaches to the end as it is now. */
  const after = Effect.fnUntraced(function* (position: Position | null, limit: number) {
    if (!hasBegun || (numbers.get(position) ?? Number.NEGATIVE_INFINITY) + limit > last()) yield* look
    const number = numbers.get(position)
    return number === undefined || number + 1 < first
      ? null
      : facts.slice(number + 1 - first, number + 1 - first + limit)
  })

  /** Looks as long as there is somebody who waits, seldom while nothing happens. */
  let waiting = 0
  const watch = Effect.gen(function* () {
    let pause = LOOK_MIN
    while (waiting > 0) {
      const before = last()
      yield* Effect.ignore(look)
      pause = last() > before ? LOOK_MIN : Duration.min(Duration.times(pause, 1.5), LOOK_MAX)
      yield* Effect.sleep(pause)
    }
  }).pipe(
    // Whatever ended it, nobody waits for what does not come.
    Effect.ensuring(
      Effect.suspend(() => {
        isWatched = false
        return grown.release
      })
    )
  )

  const news = (position: Position | null): Effect.Effect<void, StoreUnavailable> =>
    Effect.suspend(() => {
      // Another process may be further on than we have looked.
      if (!numbers.has(position)) return Effect.andThen(Effect.sleep(LOOK_MIN), look)
      if (numbers.get(position) !== last()) return Effect.void
      waiting++
      const begin = isWatched ? Effect.void : Effect.forkIn(watch, scope)
      isWatched = true
      return begin.pipe(Effect.andThen(grown.await), Effect.ensuring(Effect.sync(() => waiting--)))
    })

  const end = Effect.map(look, () => head)

  return { after, news, end }
})

const PAGES_MAX = 4

/** Full pages far from the end. Such a page never changes; at most it is read by somebody who knows that a message is gone. */
const pages = (store: Store) => {
  const kept = new Map<string, { readonly one: Semaphore.Semaphore; page: ReadonlyArray<LoggedFact> | null }>()
  return (after: Position | null, limit: number) =>
    Effect.suspend(() => {
      const key = `${after} ${limit}`
      const place = kept.get(key) ?? { one: Semaphore.makeUnsafe(1), page: null }
      kept.set(key, place)
      if (kept.size > PAGES_MAX) kept.delete(kept.keys().next().value!)
      return place.one.withPermits(1)(
        Effect.gen(function* () {
          if (place.page !== null) return place.page
          const page = yield* store.readAll(after, limit)
          if (page.length === limit) place.page = page
          else kept.delete(key)
          return page
        })
      )
    })
}

const STREAMS_MAX = 20_000
/** Others get their turn after so many facts were decoded, which takes about a millisecond. */
const TURN = 200

const streamsOf = (store: Store) => {
  const known = bounded<MessageId, Array<StoredFact>>(STREAMS_MAX)
  return Effect.fnUntraced(function* (facts: ReadonlyArray<LoggedFact>) {
    const streams = new Map<MessageId, History>()
    const unknown = new Set<MessageId>()
    for (const [index, logged] of facts.entries()) {
      if (index % TURN === TURN - 1) yield* Effect.yieldNow
      const id = logged.messageId
      if (id === null || unknown.has(id)) continue
      const stream = known.get(id) ?? []
      // The fact itself may be known from another reader, who is further on.
      if (logged.version === stream.length + 1) stream.push(decoded(logged))
      if (logged.version > stream.length) {
        unknown.add(id)
        streams.delete(id)
        continue
      }
      if (stream.length === 1) known.set(id, stream)
      streams.set(id, stream)
    }
    if (unknown.size > 0) {
      for (const [id, { facts: history }] of yield* store.loadMany([...unknown])) {
        known.set(id, [...history])
        streams.set(id, history)
      }
    }
    return streams
  })
}

const decoded = ({ version, at, name, data }: LoggedFact): StoredFact => ({
  version,
  at,
  fact: name === "MessageQueued@1" ? queuedOf(name, JSON.parse(data)) : Result.getOrThrow(fromRecorded({ name, data }))
})

const ORGS_MAX = 50_000

const decodeOrg = Schema.decodeUnknownSync(Schema.Struct({ orgId: Schema.optionalKey(OrgId) }))

const orgsOf = (store: Store, journals: Journals["Service"], circuits: Circuits["Service"]) => {
  const known = bounded<string, OrgId>(ORGS_MAX)

  /** Every journal says in its first fact whose it is, but a circuit, which is its destination's. */
  const ofJournal = Effect.fnUntraced(function* (journal: JournalName) {
    const [kind, id] = halvesOf(journal)
    if (kind === "circuit") return isUuid(id) ? yield* circuits.orgOf(DestinationId.make(id)) : null
    const [first] = yield* journals.load(journal)
    return first === undefined ? null : (decodeOrg(JSON.parse(first.data)).orgId ?? null)
  })

  return Effect.fnUntraced(function* (
    facts: ReadonlyArray<Pick<LoggedFact, "stream" | "messageId" | "version" | "data">>
  ) {
    const orgs = new Map<string, OrgId>()
    const asked = new Set<string>()
    const messages: Array<MessageId> = []
    const found = (stream: string, org: OrgId | null | undefined) => {
      if (org === null || org === undefined) return
      known.set(stream, org)
      orgs.set(stream, org)
    }
    for (const { stream, messageId, version, data } of facts) {
      if (orgs.has(stream) || asked.has(stream)) continue
      const org = known.get(stream)
      if (org !== undefined) orgs.set(stream, org)
      else if (messageId !== null && version === 1) found(stream, decodeOrg(JSON.parse(data)).orgId)
      else {
        asked.add(stream)
        if (messageId !== null) messages.push(messageId)
        else found(stream, yield* ofJournal(stream as JournalName))
      }
    }
    if (messages.length > 0) {
      for (const [id, { facts: history }] of yield* store.loadMany(messages)) {
        const opening = history[0]?.fact
        if (opening?.type === "MessageQueued") found(streamOf(id), opening.orgId)
      }
    }
    return orgs
  })
}

/** Remembers the last `max` that were asked for or set. */
const bounded = <Key, Value>(max: number) => {
  const entries = new Map<Key, Value>()
  return {
    get: (key: Key): Value | undefined => {
      const value = entries.get(key)
      if (value !== undefined) {
        entries.delete(key)
        entries.set(key, value)
      }
      return value
    },
    set: (key: Key, value: Value): void => {
      entries.delete(key)
      entries.set(key, value)
      if (entries.size > max) entries.delete(entries.keys().next().value!)
    }
  }
}
