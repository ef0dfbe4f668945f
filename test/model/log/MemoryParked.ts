/** Streams that can't be processed, in a map. */
import { Effect, Layer } from "effect"
import { Parked } from "../../../src/application/ports/Parked.ts"
import type { MessageId } from "../../../src/domain/ids.ts"
import type { MessageView } from "../../../src/domain/message/view.ts"
import { streamOf } from "../../../src/domain/streams.ts"
import { Memory, type Tables } from "../Memory.ts"
import { liveViews } from "./runs.ts"

const orgIn = (data: string | undefined): unknown => (data === undefined ? null : JSON.parse(data).orgId)

const isLost = (tables: Tables, { id, status }: MessageView, among: ReadonlyArray<MessageId> | null): boolean =>
  (status === "QUEUED" || status === "SENDING") &&
  (among === null || among.includes(id)) &&
  ![...tables.lanes.values()].flat().some((row) => row.messageId === id) &&
  ![...tables.claims.values()].some(({ messages }) => messages.some(({ messageId }) => messageId === id)) &&
  ![...tables.lines.values()].flat().some(({ message, state }) => message.messageId === id && state === "WAITING") &&
  !tables.parked.has(streamOf(id))

export const layer = Layer.effect(
  Parked,
  Effect.map(Memory, ({ tables, now }) => {
    const { parked } = tables
    return Parked.of({
      park: (streams) =>
        Effect.sync(() => {
          const news = [...streams].filter(([stream]) => !parked.has(stream))
          for (const [stream, reason] of news) parked.set(stream, { stream, reason, at: now() })
          return news.map(([stream]) => stream)
        }),
      unpark: (streams) => Effect.sync(() => streams.forEach((stream) => void parked.delete(stream))),
      find: (orgId, id) =>
        Effect.sync(() => {
          const isOf = orgIn(tables.streams.get(id)?.[0]?.data) === orgId
          return isOf ? (parked.get(streamOf(id)) ?? null) : null
        }),
      lost: (among, limit) =>
        Effect.sync(() =>
          [...liveViews(tables).values()]
            .filter((view) => isLost(tables, view, among))
            .slice(0, limit)
            .map(({ id }) => id)
        ),
      list: ({ cursor, limit }) =>
        Effect.sync(() => {
          const rows = [...parked.values()]
            .toSorted((a, b) => (a.stream < b.stream ? -1 : 1))
            .filter(({ stream }) => cursor === null || stream > cursor)
          return { items: rows.slice(0, limit), nextCursor: rows.length > limit ? rows[limit - 1]!.stream : null }
        })
    })
  })
)
