/** The log of all facts, grouped by stream, over plain maps. Positions are places in the log. */
import { Effect, Layer, Order } from "effect"
import { Archive, type ArchivedFact, NotContinued } from "../../../src/application/ports/Archive.ts"
import type { LoggedFact } from "../../../src/application/ports/EventStore.ts"
import type { JournalName } from "../../../src/application/ports/Journals.ts"
import { messageOf } from "../../../src/domain/streams.ts"
import { addToJournal, factAt, Memory, type Tables, versionOf } from "../Memory.ts"

const lastOf = (tables: Tables, stream: string): number => {
  const id = messageOf(stream)
  return id === null ? versionOf(tables, stream) : (tables.streams.get(id)?.length ?? 0)
}

/** By stream, as a text sorts. */
const factsIn = (tables: Tables): ReadonlyMap<string, ReadonlyArray<LoggedFact>> => {
  const streams = new Map<string, Array<LoggedFact>>()
  for (const [place, entry] of tables.feed.entries()) {
    const { stream, messageId, version } = entry
    const row = factAt(tables, entry)
    if (row === undefined) continue
    const { name, data, forgettable = null, at, actor } = row
    const facts = streams.get(stream) ?? []
    facts.push({ stream, messageId, version, at, actor, name, data, forgettable, position: String(place + 1) })
    streams.set(stream, facts)
  }
  return new Map([...streams].toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

const write = (tables: Tables, { stream, version, name, data, forgettable = null, at, actor }: ArchivedFact): void => {
  const messageId = messageOf(stream)
  if (messageId === null) {
    addToJournal(tables, stream as JournalName, [{ name, data, forgettable }], at, actor, version - 1)
    return
  }
  const rows = tables.streams.get(messageId) ?? []
  tables.feed.push({ stream, messageId, version: rows.push({ name, data, forgettable, at, actor }) })
  tables.streams.set(messageId, rows)
}

export const layer = Layer.effect(
  Archive,
  Effect.gen(function* () {
    const { tables } = yield* Memory
    return Archive.of({
      order: Order.mapInput(Order.Number, Number),
      byStream: (after, limit) =>
        Effect.sync(() =>
          [...factsIn(tables).values()]
            .flat()
            .filter(
              ({ stream, version }) =>
                after === null || stream > after.stream || (stream === after.stream && version > after.version)
            )
            .slice(0, limit)
        ),
      streams: (names) =>
        Effect.sync(() => {
          const all = factsIn(tables)
          return new Map(names.flatMap((name) => (all.has(name) ? [[name, all.get(name)!] as const] : [])))
        }),
      // A store in memory is never restored.
      restorations: Effect.succeed([]),
      restore: (facts) =>
        Effect.suspend(() => {
          for (const fact of facts) {
            const last = lastOf(tables, fact.stream)
            if (fact.version !== last + 1) {
              return Effect.fail(new NotContinued({ stream: fact.stream, version: fact.version }))
            }
            write(tables, fact)
          }
          return Effect.void
        })
    })
  })
)
