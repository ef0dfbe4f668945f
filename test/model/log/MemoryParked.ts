/** Streams that can't be processed, in a map. */
import { Effect, Layer } from "effect"
import { Parked } from "../../../src/application/ports/Parked.ts"
import { Memory } from "../Memory.ts"

export const layer = Layer.effect(
  Parked,
  Effect.map(Memory, ({ tables: { parked }, now }) =>
    Parked.of({
      park: (streams) =>
        Effect.sync(() => {
          const news = [...streams].filter(([stream]) => !parked.has(stream))
          for (const [stream, reason] of news) parked.set(stream, { stream, reason, at: now() })
          return news.map(([stream]) => stream)
        }),
      list: ({ cursor, limit }) =>
        Effect.sync(() => {
          const rows = [...parked.values()]
            .toSorted((a, b) => (a.stream < b.stream ? -1 : 1))
            .filter(({ stream }) => cursor === null || stream > cursor)
          return { items: rows.slice(0, limit), nextCursor: rows.length > limit ? rows[limit - 1]!.stream : null }
        })
    })
  )
)
