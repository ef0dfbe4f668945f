/**
 * The stream of each message and the org of each stream in a page of facts. Facts that were read before answer; the
 * store is asked only about earlier ones.
 */
import { Effect, Option, Result, Schema } from "effect"
import { DestinationId, isUuid, type MessageId, OrgId } from "../../domain/ids.ts"
import { fromRecorded, queuedOf } from "../../domain/message/recorded.ts"
import { endings, type StoredFact } from "../../domain/message/view.ts"
import { partsOf } from "../../domain/recorded.ts"
import { halvesOf, streamOf } from "../../domain/streams.ts"
import type { Archive } from "../ports/Archive.ts"
import type { Circuits } from "../ports/Circuits.ts"
import type { EventStore, LoggedFact } from "../ports/EventStore.ts"
import type { JournalName, Journals } from "../ports/Journals.ts"

export type History = ReadonlyArray<StoredFact>

export type LoggedStream = Pick<LoggedFact, "stream" | "messageId" | "version" | "data">

type Store = EventStore["Service"]

const STREAMS_MAX = 20_000
/** The part of them that may have ended while more are open than there is room for: as many as in a few pages. */
const ENDED_PART = 0.2
const FORGOTTEN_PART = 0.05
/** Facts between two yields: about a millisecond. */
const YIELD_EVERY = 200

export const streamsOf = (store: Store, max = STREAMS_MAX) => {
  const known = recentStreams(max)
  /** By page: several readers ask about the same one. */
  const answers = new WeakMap<ReadonlyArray<LoggedFact>, ReadonlyMap<MessageId, History>>()
  const histories = Effect.fnUntraced(function* (facts: ReadonlyArray<LoggedFact>) {
    const answered = answers.get(facts)
    if (answered !== undefined) return answered
    const streams = new Map<MessageId, History>()
    const unknown = new Set<MessageId>()
    for (const [index, logged] of facts.entries()) {
      if (index % YIELD_EVERY === YIELD_EVERY - 1) yield* Effect.yieldNow
      const id = logged.messageId
      if (id === null || unknown.has(id)) continue
      const stream = known.get(id) ?? []
      // Another reader, further on in the log, may have read the fact already.
      if (logged.version === stream.length + 1) {
        stream.push(decoded(logged))
        known.keep(id, stream)
      }
      if (logged.version > stream.length) {
        unknown.add(id)
        streams.delete(id)
        continue
      }
      streams.set(id, stream)
    }
    if (unknown.size > 0) {
      for (const [id, { facts: history }] of yield* store.loadMany([...unknown])) {
        known.keep(id, [...history])
        streams.set(id, history)
      }
    }
    answers.set(facts, streams)
    return streams
  })
  return { histories, forgetAll: known.forgetAll }
}

const decoded = ({ version, at, name, data, forgettable = null }: LoggedFact): StoredFact => ({
  version,
  at,
  fact:
    name === "MessageQueued@1"
      ? queuedOf(partsOf({ data, forgettable }))
      : Result.getOrThrow(fromRecorded({ name, data, forgettable }))
})

const ORGS_MAX = 50_000

const decodeOrg = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ orgId: Schema.optionalKey(OrgId) })))

const orgIn = (data: string): OrgId | null => Option.getOrNull(decodeOrg(data))?.orgId ?? null

export const orgsOf = (
  store: Store,
  journals: Journals["Service"],
  circuits: Circuits["Service"],
  archive: Archive["Service"]
) => {
  const known = bounded<string, OrgId>(ORGS_MAX)

  /** The first fact of every journal names its org, except a circuit's: its org is that of its destination. */
  const ofJournal = Effect.fnUntraced(function* (journal: JournalName) {
    const [kind, id] = halvesOf(journal)
    if (kind === "circuit") return isUuid(id) ? yield* circuits.orgOf(DestinationId.make(id)) : null
    const [first] = yield* journals.load(journal, { after: 0, limit: 1 })
    return first === undefined ? null : orgIn(first.data)
  })

  const ofMessages = (ids: ReadonlyArray<MessageId>) =>
    store.loadMany(ids).pipe(
      Effect.map((streams) => {
        const openings = [...streams].map(([id, { facts }]) => [id, facts[0]?.fact] as const)
        return new Map(
          openings.flatMap(([id, fact]) => (fact?.type === "MessageQueued" ? [[id, fact.orgId] as const] : []))
        )
      }),
      // An unreadable stream among them: the org is in its first fact, as stored.
      Effect.catchDefect(() =>
        Effect.map(archive.streams(ids.map(streamOf)), (streams) => {
          const firsts = [...streams.values()].flatMap(([first]) => first ?? [])
          return new Map(firsts.map(({ messageId, data }) => [messageId!, orgIn(data)] as const))
        })
      )
    )

  return Effect.fnUntraced(function* (facts: ReadonlyArray<LoggedStream>) {
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
      else if (version === 1 && !stream.startsWith("circuit-")) found(stream, orgIn(data))
      else {
        asked.add(stream)
        if (messageId !== null) messages.push(messageId)
        else found(stream, yield* ofJournal(stream as JournalName))
      }
    }
    if (messages.length > 0) {
      for (const [id, org] of yield* ofMessages(messages)) found(streamOf(id), org)
    }
    return orgs
  })
}

/**
 * The streams that had a fact last. Of more than there is room for, ended ones go first: most have no more facts to
 * come. Else, with too many open ones, each would be forgotten just before its next fact.
 */
const recentStreams = (max: number) => {
  const open = new Map<MessageId, Array<StoredFact>>()
  const ended = new Map<MessageId, Array<StoredFact>>()
  const forget = (id: MessageId): void => {
    open.delete(id)
    ended.delete(id)
  }
  return {
    get: (id: MessageId) => open.get(id) ?? ended.get(id),
    forgetAll: (): void => {
      open.clear()
      ended.clear()
    },
    keep: (id: MessageId, stream: Array<StoredFact>): void => {
      forget(id)
      const last = stream.at(-1)!.fact.type
      ;(endings.has(last) ? ended : open).set(id, stream)
      if (open.size + ended.size > max) forgetOldest(ended.size > max * ENDED_PART ? ended : open, max)
    }
  }
}

/** A cache of the last `max` entries. It is asked about every fact of the log: an effect for each would cost more. */
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
      if (entries.size > max) forgetOldest(entries, max)
    }
  }
}

/** Some at once: each look for the oldest entry passes those that were deleted before it. */
const forgetOldest = <Key>(entries: Map<Key, unknown>, max: number): void => {
  let some = Math.ceil(max * FORGOTTEN_PART)
  for (const key of entries.keys()) {
    entries.delete(key)
    if (--some === 0) return
  }
}
