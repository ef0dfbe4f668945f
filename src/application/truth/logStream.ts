/**
 * The log of a store up to its end at the call, as a stream. Facts of one stream come by version, though overlapping
 * transactions may have stored them otherwise: a writer could not append them out of order.
 */
import { Effect, Option, Stream } from "effect"
import { Archive } from "../ports/Archive.ts"
import { EventStore, type LoggedFact, type Position } from "../ports/EventStore.ts"
import type { StoreUnavailable } from "../ports/errors.ts"

/** Overlapping transactions are much closer to each other than this. */
const FACTS_AT_ONCE = 4_000

export interface Log {
  readonly store: EventStore["Service"]
  readonly archive: Archive["Service"]
}

export const ownLog = Effect.gen(function* () {
  return { store: yield* EventStore, archive: yield* Archive } satisfies Log
})

interface Reading {
  readonly after: Position | null
  readonly kept: ReadonlyArray<LoggedFact>
}

export const logStream = ({ store, archive }: Log): Stream.Stream<LoggedFact, StoreUnavailable> =>
  Stream.unwrap(
    Effect.map(store.extent, ({ head }) =>
      head === null
        ? Stream.empty
        : Stream.paginate<Reading, LoggedFact, StoreUnavailable>(
            { after: null, kept: [] },
            Effect.fnUntraced(function* ({ after, kept }) {
              const read = yield* store.readAll(after, FACTS_AT_ONCE)
              const page = read.filter(({ position }) => archive.order(position, head) <= 0)
              const facts = byVersion([...kept, ...page])
              if (page.length < FACTS_AT_ONCE) return [facts, Option.none()]
              return [
                facts.slice(0, kept.length),
                Option.some({ after: page.at(-1)!.position, kept: facts.slice(kept.length) })
              ]
            })
          )
    )
  )

/** Each stream keeps its places in the order, and its facts fill them by version. */
const byVersion = (facts: ReadonlyArray<LoggedFact>): ReadonlyArray<LoggedFact> => {
  const last = new Map<string, number>()
  const isInOrder = facts.every(({ stream, version }) => {
    const before = last.get(stream) ?? 0
    last.set(stream, version)
    return before < version
  })
  if (isInOrder) return facts
  const places = new Map<string, Array<number>>()
  for (const [place, { stream }] of facts.entries()) places.set(stream, [...(places.get(stream) ?? []), place])
  const ordered = [...facts]
  for (const each of places.values()) {
    const sorted = each.map((place) => facts[place]!).toSorted((a, b) => a.version - b.version)
    for (const [nth, place] of each.entries()) ordered[place] = sorted[nth]!
  }
  return ordered
}
