/** Messages that were set aside, over plain maps. Their way back is MemoryQueueRepair.ts. */
import { DateTime, Effect, Layer } from "effect"
import {
  PAUSES_MS,
  SetAside,
  type SetAsideMessage,
  type SetAsideStream
} from "../../../src/application/ports/SetAside.ts"
import type { MessageId } from "../../../src/domain/ids.ts"
import { messageOf, streamOf } from "../../../src/domain/streams.ts"
import { Memory, type SetAsideRow, type Tables } from "../Memory.ts"

export const isAside = ({ setAside }: Tables, id: MessageId): boolean => (setAside.get(id)?.againAt ?? null) !== null

/** The message was decided on, so its facts could be read: it is not set aside any more. */
export const endAside = ({ setAside }: Tables, id: MessageId, isOut: boolean, at: DateTime.Utc): void => {
  const row = setAside.get(id)
  if (isOut) setAside.delete(id)
  else if (row !== undefined && row.againAt !== null) setAside.set(id, { ...row, againAt: null, triedAt: at })
}

const waitsInLine = ({ lines }: Tables, id: MessageId): boolean =>
  [...lines.values()].flat().some(({ message, state }) => message.messageId === id && state === "WAITING")

const shown = ({ triedAt: _, version: __, ...row }: SetAsideRow): ReadonlyArray<SetAsideMessage> =>
  row.againAt === null ? [] : [{ ...row, againAt: row.againAt }]

/** Each stream once; the queue says why, where it knows. */
const listedIn = (tables: Tables): ReadonlyArray<SetAsideStream> => {
  const asides: ReadonlyArray<SetAsideStream> = [
    ...[...tables.setAside.values()]
      .flatMap(shown)
      .map((row) => ({ ...row, stream: streamOf(row.messageId), parts: ["queue"] })),
    ...[...tables.parked.values()].map(({ stream, reason, at }) => ({
      ...{ stream, reason, since: at, detail: "", tries: 1, againAt: at, orgId: null, lane: null },
      ...{ messageId: messageOf(stream), parts: ["log"] }
    }))
  ]
  return [...Map.groupBy(asides, ({ stream }) => stream)]
    .map(([_, rows]) => ({
      ...rows[0]!,
      parts: [...new Set(rows.flatMap(({ parts }) => parts))].toSorted(),
      since: rows.map(({ since }) => since).reduce(DateTime.min),
      againAt: rows.map(({ againAt }) => againAt).reduce(DateTime.min),
      tries: Math.max(...rows.map(({ tries }) => tries))
    }))
    .toSorted((a, b) => (a.stream < b.stream ? -1 : 1))
}

export const layer = Layer.effect(
  SetAside,
  Effect.gen(function* () {
    const { tables, now } = yield* Memory
    const { setAside, claims } = tables
    const inMillis = (milliseconds: number) => DateTime.add(now(), { milliseconds })

    return SetAside.of({
      put: (batch, messages) =>
        Effect.sync(() => {
          const claim = batch === null ? null : claims.get(batch)
          if (claim === undefined) return
          const taken = messages.filter(
            ({ messageId }) => claim === null || claim.messages.some((held) => held.messageId === messageId)
          )
          if (batch !== null && claim !== null) {
            const left = claim.messages.filter((held) => taken.every(({ messageId }) => messageId !== held.messageId))
            claims.set(batch, { ...claim, messages: left })
          }
          for (const { messageId, orgId, lane, reason, detail, version } of taken) {
            if (waitsInLine(tables, messageId)) continue
            const before = setAside.get(messageId)
            const tries = (before?.tries ?? 0) + 1
            const whose =
              orgId ?? before?.orgId ?? (lane === null ? undefined : tables.destinations.get(lane)?.destination.orgId)
            setAside.set(messageId, {
              ...{ messageId, orgId: whose ?? null, lane: lane ?? before?.lane ?? null },
              ...{ reason, detail, tries, since: before?.since ?? now(), triedAt: null },
              // Who looked earlier may come later.
              version: Math.max(version, before?.version ?? 0),
              againAt: inMillis(PAUSES_MS[Math.min(tries, PAUSES_MS.length) - 1]!)
            })
          }
        }),
      due: (limit) =>
        Effect.sync(() => {
          const longAgo = inMillis(-86_400_000)
          for (const [id, { triedAt }] of setAside) {
            if (triedAt !== null && DateTime.isLessThan(triedAt, longAgo)) setAside.delete(id)
          }
          const due = [...setAside.values()]
            .filter(({ againAt }) => againAt !== null && DateTime.isLessThanOrEqualTo(againAt, now()))
            .slice(0, limit)
          for (const row of due) setAside.set(row.messageId, { ...row, againAt: inMillis(60_000) })
          return due.map(({ messageId }) => messageId)
        }),
      find: (ids) =>
        Effect.sync(
          () =>
            new Map(
              ids.flatMap((id) => {
                const row = setAside.get(id)
                return row === undefined ? [] : shown(row).map((each) => [id, each] as const)
              })
            )
        ),
      list: ({ cursor, limit }) =>
        Effect.sync(() => {
          const rows = listedIn(tables).filter(({ stream }) => cursor === null || stream > cursor)
          return { items: rows.slice(0, limit), nextCursor: rows.length > limit ? rows[limit - 1]!.stream : null }
        }),
      lookedAt: (after, limit) =>
        Effect.sync(() => {
          const messages = [...setAside.values()]
            .filter(({ messageId, againAt }) => againAt !== null && (after === null || messageId > after))
            .toSorted((a, b) => (a.messageId < b.messageId ? -1 : 1))
            .slice(0, limit)
            .map(({ messageId, version }) => ({ messageId, version }))
          return { messages, next: messages.length < limit ? null : messages.at(-1)!.messageId }
        }),
      end: (messages) =>
        Effect.sync(() => {
          for (const { messageId, version } of messages) {
            if (isAside(tables, messageId) && setAside.get(messageId)?.version === version) setAside.delete(messageId)
          }
        }),
      tryAgain: (ids) =>
        Effect.sync(() => {
          const streams = new Set<string>()
          const isMeant = (id: MessageId | null) => ids === null || (id !== null && ids.includes(id))
          for (const row of [...setAside.values()]) {
            if (row.againAt === null || !isMeant(row.messageId)) continue
            streams.add(streamOf(row.messageId))
            setAside.set(row.messageId, { ...row, againAt: now() })
          }
          return streams.size
        })
    })
  })
)
