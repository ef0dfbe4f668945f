/**
 * The log as a whole. EventStoreDB does not list streams; the ledger knows ours. Restored facts are history: the ledger expects
 * them before they are written, so that the follower of the log puts none of them in the queue. Journals are restored in
 * PostgreSQL and copied from there.
 */
import { Effect, BigInt as Integers, Layer, Order } from "effect"
import { Archive, type ArchivedFact, NotContinued } from "../../application/ports/Archive.ts"
import type { LoggedFact } from "../../application/ports/EventStore.ts"
import { type JournalName, Journals } from "../../application/ports/Journals.ts"
import { Ledger } from "../../application/ports/Ledger.ts"
import { StreamKeys } from "../../application/ports/StreamKeys.ts"
import type { MessageId } from "../../domain/ids.ts"
import { messageOf, streamOf } from "../../domain/streams.ts"
import { isCopiedAsStored } from "./copies.ts"
import { EventStoreDb } from "./EventStoreDb.ts"
import { TOGETHER, write } from "./forwardJournals.ts"
import { loggedOf, readLog } from "./readLog.ts"
import { eventsWithKey, opened } from "./sealedFacts.ts"
import { eventId, newWriting } from "./streams.ts"

const STREAMS_AT_ONCE = 32

/** Positions are `commit/prepare`. */
const order: Order.Order<string> = Order.mapInput(
  Order.Tuple([Integers.Order, Integers.Order]),
  (place: string) => place.split("/").map(BigInt) as [bigint, bigint]
)

export const layer = Layer.effect(
  Archive,
  Effect.gen(function* () {
    const db = yield* EventStoreDb
    const ledger = yield* Ledger
    const journals = yield* Journals
    const keys = yield* StreamKeys
    const services = yield* Effect.context<EventStoreDb | StreamKeys>()

    /** Copies of journals that retention deleted may still be there for a while. */
    const factsOf = Effect.fnUntraced(function* (streams: ReadonlyArray<string>) {
      const read = yield* Effect.forEach(streams, (stream) => db.read(stream), { concurrency: STREAMS_AT_ONCE })
      const journals = streams.filter((stream) => messageOf(stream) === null)
      const known = journals.length === 0 ? new Set<string>() : yield* ledger.knownJournals(journals)
      const left = read.flat().filter(({ stream }) => messageOf(stream) !== null || known.has(stream))
      return (yield* opened(keys, left)).map(loggedOf)
    })

    const byStream = Effect.fnUntraced(function* (after: LoggedFact | null, limit: number) {
      const begun =
        after === null ? [] : (yield* factsOf([after.stream])).filter(({ version }) => version > after.version)
      const found = begun.slice(0, limit)
      let last = after?.stream ?? null
      while (found.length < limit) {
        const names = yield* ledger.streamsAfter(last, Math.min(limit - found.length, STREAMS_AT_ONCE))
        if (names.length === 0) break
        found.push(...(yield* factsOf(names)).slice(0, limit - found.length))
        last = names.at(-1)!
      }
      return found
    })

    const streams = Effect.fnUntraced(function* (names: ReadonlyArray<string>) {
      return Map.groupBy(yield* factsOf(names), ({ stream }) => stream)
    })

    const known = Effect.fnUntraced(function* (ids: ReadonlyArray<MessageId>) {
      const ours = [...(yield* ledger.known(ids))]
      const stored = yield* Effect.filter(
        ours,
        (id) => Effect.map(db.read(streamOf(id), 0, 1), (events) => events.length > 0),
        { concurrency: STREAMS_AT_ONCE }
      )
      return new Set(stored)
    })

    const restoreMessage = Effect.fnUntraced(function* (id: MessageId, facts: ReadonlyArray<ArchivedFact>) {
      const stream = streamOf(id)
      const [{ version }] = facts as [ArchivedFact]
      const notContinued = new NotContinued({ stream, version })
      const before = (yield* db.read(stream, Math.max(0, version - 2), 2)).length
      if (before !== (version === 1 ? 0 : 1)) return yield* notContinued
      yield* ledger.expectHistory(id, facts.at(-1)!.version, facts.length, facts.filter(isCopiedAsStored))
      const writing = newWriting()
      const identified = facts.map((fact) => ({ ...fact, id: eventId(stream, fact.version, writing) }))
      const events = yield* eventsWithKey(keys, stream, identified)
      const { type } = yield* db.append(stream, version - 1, events)
      if (type !== "Appended") return yield* notContinued
    })

    /** PostgreSQL may have the journal already, and only its copy be missing. */
    const restoreJournal = Effect.fnUntraced(function* (facts: ReadonlyArray<ArchivedFact>) {
      const journal = facts[0]!.stream as JournalName
      const there = yield* journals.load(journal)
      for (const { stream, version, at, actor, name, data } of facts) {
        const fact = { stream, version, at, actor, name, data }
        const same = there.find((each) => each.version === version)
        const isThere = same?.name === name && same.data === data
        const written = isThere
          ? yield* Effect.provideContext(write(journal, [fact]), services)
          : (yield* journals.append(journal, version - 1, [{ name, data }], at, actor)) === "Appended"
        if (!written) return yield* new NotContinued({ stream, version })
      }
    })

    const restore = Effect.fnUntraced(function* (given: ReadonlyArray<ArchivedFact>) {
      for (const facts of runsOf(given)) {
        const id = messageOf(facts[0]!.stream)
        yield* id === null ? restoreJournal(facts) : restoreMessage(id, facts)
      }
    })

    const adopt = Effect.flatMap(readLog(db, ledger, keys).extent, ({ head }) => ledger.adopt(head))

    return Archive.of({ order, adopt, byStream, streams, known, restore })
  })
)

/** Neighbours of one stream, each on top of the one before. */
const runsOf = (facts: ReadonlyArray<ArchivedFact>): ReadonlyArray<ReadonlyArray<ArchivedFact>> => {
  const runs: Array<Array<ArchivedFact>> = []
  for (const fact of facts) {
    const run = runs.at(-1)
    const last = run?.at(-1)
    const goesOn = last?.stream === fact.stream && last.version + 1 === fact.version && run!.length < TOGETHER
    if (goesOn) run!.push(fact)
    else runs.push([fact])
  }
  return runs
}
