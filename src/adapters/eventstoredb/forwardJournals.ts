/**
 * Circuits, replays and all other journals are written in PostgreSQL, where their decisions take effect. Their facts are copied
 * to EventStoreDB, each journal as a stream of the same name, so that the log there is complete.
 *
 * The place and the id of a copy are made of the journal and the fact's version: several processes may copy the same fact, and
 * it is there once. Most facts are copied when they are written (EventStoreDbJournals.ts); the rest are found here.
 */
import { Effect } from "effect"
import { background } from "../../application/background.ts"
import type { Position } from "../../application/ports/EventStore.ts"
import { type JournalFact, type JournalName, Journals } from "../../application/ports/Journals.ts"
import { type JournalEntry, Ledger } from "../../application/ports/Ledger.ts"
import { StreamKeys } from "../../application/ports/StreamKeys.ts"
import { EventStoreDb } from "./EventStoreDb.ts"
import { eventsWithKey } from "./sealedFacts.ts"
import { COPY, eventId } from "./streams.ts"

const AT_ONCE = 500
/** Few enough for one append to be written without waiting for the connection. */
export const TOGETHER = 10
const EVERY_MS = 1_000

/** Runs until interrupted. One process at a time copies. */
export const forwardJournals = (holder: string) =>
  background(
    "copying journals",
    Effect.gen(function* () {
      const place = yield* (yield* Ledger).follow("journals", holder)
      const copied = place === null ? 0 : yield* copyFrom(holder, place.position)
      if (copied < AT_ONCE) yield* Effect.sleep(EVERY_MS)
    })
  )

const copyFrom = Effect.fnUntraced(function* (holder: string, from: Position | null) {
  const ledger = yield* Ledger
  const entries = yield* ledger.journalsAfter(from, AT_ONCE)
  if (entries.length === 0) return 0
  for (const [journal, facts] of Map.groupBy(entries, (entry) => entry.journal)) yield* copy(journal, facts)
  const step = { from, to: entries.at(-1)!.position, facts: entries.length, stored: [] }
  yield* ledger.advance("journals", holder, step)
  return entries.length
})

/** Facts of one journal come out of order when their transactions overlapped: the missing ones are read from the journal. */
const copy = Effect.fnUntraced(function* (journal: string, facts: ReadonlyArray<JournalEntry>) {
  const ordered = facts.toSorted((a, b) => a.version - b.version)
  if (yield* write(journal, ordered)) return
  const copied = (yield* (yield* EventStoreDb).read(journal)).at(-1)?.revision ?? -1
  const all = yield* (yield* Journals).load(journal as JournalName)
  yield* write(
    journal,
    all.filter(({ version }) => version > copied + 1 && version <= ordered.at(-1)!.version)
  )
})

/** False when the stream does not go on there. */
export const write = Effect.fnUntraced(function* (journal: string, facts: ReadonlyArray<JournalFact>) {
  const db = yield* EventStoreDb
  const keys = yield* StreamKeys
  const identified = facts.map((fact) => ({ ...fact, id: eventId(journal, fact.version, COPY) }))
  const events = yield* eventsWithKey(keys, journal, identified)
  for (let i = 0; i < facts.length; i += TOGETHER) {
    const base = facts[i]!.version - 1
    if ((yield* db.append(journal, base, events.slice(i, i + TOGETHER))).type !== "Appended") return false
  }
  return true
})
