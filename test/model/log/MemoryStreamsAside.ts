/** Streams that readers of the log owe facts of, in a map. */
import { DateTime, Effect, Layer } from "effect"
import {
  type AsideReader,
  type OwedFacts,
  type StreamAside,
  StreamsAside,
  TRIED_EVERY_MS
} from "../../../src/application/ports/StreamsAside.ts"
import { Memory, type Tables } from "../Memory.ts"

const keyOf = ({ name, generation }: AsideReader, stream: string) => `${name} ${generation} ${stream}`

export const addOwed = (
  { tables: { streamsAside }, now }: Memory["Service"],
  reader: AsideReader,
  streams: ReadonlyArray<StreamAside>
): void => {
  for (const { stream, versions, reason, detail } of streams) {
    const before = streamsAside.get(keyOf(reader, stream))
    const all = new Set([...(before?.versions ?? []), ...versions])
    streamsAside.set(keyOf(reader, stream), {
      ...(before ?? {
        ...{ reader, stream, reason, detail, since: now(), tries: 1 },
        againAt: DateTime.add(now(), { milliseconds: TRIED_EVERY_MS })
      }),
      versions: [...all].toSorted((a, b) => a - b)
    })
  }
}

/** False, and nothing changes, unless exactly these facts are owed. */
export const forgetOwed = (
  { tables: { streamsAside } }: Memory["Service"],
  reader: AsideReader,
  { stream, versions }: OwedFacts
): boolean => {
  if (streamsAside.get(keyOf(reader, stream))?.versions.join() !== versions.join()) return false
  return streamsAside.delete(keyOf(reader, stream))
}

/** What no run of its generation is there to make up for is nobody's. */
export const asideRows = ({ streamsAside, runs }: Tables) =>
  [...streamsAside.values()].filter(
    ({ reader: { name, generation } }) =>
      generation === 0 || runs.some((run) => run.name === name && run.generation === generation)
  )

export const layer = Layer.effect(
  StreamsAside,
  Effect.gen(function* () {
    const memory = yield* Memory
    const { tables, now } = memory
    const rowsOf = ({ name, generation }: AsideReader) =>
      [...tables.streamsAside.values()].filter(({ reader }) => reader.name === name && reader.generation === generation)
    return StreamsAside.of({
      of: (reader) =>
        Effect.sync(() => new Map(rowsOf(reader).map(({ stream, reason, detail }) => [stream, { reason, detail }]))),
      owe: (reader, streams) => Effect.sync(() => addOwed(memory, reader, streams)),
      due: (reader, limit) =>
        Effect.sync(() => {
          const due = rowsOf(reader)
            .filter(({ againAt }) => DateTime.isLessThanOrEqualTo(againAt, now()))
            .toSorted((a, b) => DateTime.Order(a.againAt, b.againAt))
            .slice(0, limit)
          for (const row of due) {
            const againAt = DateTime.add(now(), { milliseconds: TRIED_EVERY_MS })
            tables.streamsAside.set(keyOf(reader, row.stream), { ...row, againAt, tries: row.tries + 1 })
          }
          return due.map(({ stream, versions }) => ({ stream, versions }))
        }),
      madeUp: (reader, owed) => Effect.sync(() => void forgetOwed(memory, reader, owed))
    })
  })
)
