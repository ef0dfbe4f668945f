/** The event store over plain maps. Facts are kept in their stored form, so what comes back has been serialised. */
import { Effect, Layer, Result } from "effect"
import {
  type Append,
  type AppendResult,
  EventStore,
  type Gate,
  type LoggedFact,
  type Opening,
  type Position,
  type Stream
} from "../../../src/application/ports/EventStore.ts"
import type { MessageId, OrgId } from "../../../src/domain/ids.ts"
import type { QueueChange } from "../../../src/domain/message/queueChange.ts"
import { fromRecorded, toRecorded } from "../../../src/domain/message/recorded.ts"
import type { StoredFact } from "../../../src/domain/message/view.ts"
import { wholeOf } from "../../../src/domain/recorded.ts"
import { streamOf } from "../../../src/domain/streams.ts"
import { laneOf } from "../deliver/lanes.ts"
import { standInLine, stepOut } from "../deliver/lines.ts"
import { announceDueWork, putWaiting, removeWaiting } from "../deliver/waiting.ts"
import { factAt, Memory, type StoredRow, type Tables } from "../Memory.ts"

const stored = (row: StoredRow, version: number): StoredFact => ({
  version,
  at: row.at,
  actor: row.actor,
  fact: Result.getOrThrow(fromRecorded(row))
})

const storedIn = (rows: ReadonlyArray<StoredRow>): Stream => ({
  version: rows.length,
  facts: rows.map((row, index) => stored(row, index + 1))
})

const isShut = (tables: Tables, { lane, generation }: Gate): boolean => {
  const { paused, state } = laneOf(tables, lane)
  return paused || state.generation !== generation
}

/** Why this entry may not be written; null when it may. */
const refusal = (tables: Tables, entry: Append): AppendResult | null => {
  if (entry.fence !== null && !tables.claims.has(entry.fence)) return { type: "FenceLost" }
  if (entry.gate !== null && isShut(tables, entry.gate)) return { type: "GateClosed" }
  if ((tables.streams.get(entry.messageId)?.length ?? 0) !== entry.expected) return { type: "VersionConflict" }
  const key = keyOf(entry)
  const used = key === null ? undefined : tables.idempotencyKeys.get(key)
  return used === undefined ? null : { type: "DuplicateKey", ...used }
}

/** An org's name has no space in it, so no two pairs of org and key read the same. */
const keyOf = ({ opening }: Append): string | null =>
  opening?.idempotency ? `${opening.idempotency.orgId} ${opening.idempotency.key}` : null

export const write = (memory: Memory["Service"], entry: Append): AppendResult => {
  const { tables } = memory
  const { messageId, at, actor, opening, response, queue } = entry
  // Everything that can throw comes before the first change.
  const rows = entry.facts.map((fact): StoredRow => ({ ...toRecorded(fact), at, actor }))
  const stream = tables.streams.get(messageId) ?? []
  for (const row of rows) {
    tables.feed.push({ stream: streamOf(messageId), messageId, version: stream.push(row) })
  }
  tables.streams.set(messageId, stream)

  const key = keyOf(entry)
  if (opening !== null && entry.expected === 0) tables.messages.set(messageId, wholeOf(rows[0]!))
  if (opening !== null) writeBody(tables, entry, opening.body)
  if (opening?.idempotency && key !== null) {
    tables.idempotencyKeys.set(key, { messageId, requestHash: opening.idempotency.requestHash })
  }
  if (response !== null) {
    const responses = tables.responses.get(messageId) ?? new Map()
    const place = `${response.epoch}/${response.attempt}`
    // The first answer to an attempt stays.
    tables.responses.set(
      messageId,
      responses.set(
        place,
        responses.get(place) ?? { body: response.body, headers: response.headers, version: entry.expected + 1 }
      )
    )
  }
  if (queue !== null) changeQueue(memory, messageId, stream.length, queue)
  return { type: "Appended", version: stream.length }
}

/** A text of its own, or that of its event as long as there is one. */
const writeBody = (tables: Tables, { messageId, queue }: Append, body: Opening["body"]): void => {
  if (typeof body === "string") {
    tables.bodies.set(messageId, body)
    tables.sharing.delete(messageId)
    return
  }
  const told = tables.events.get(body.ofEvent)?.messages
  if (queue?.type === "Wait" && told?.has(queue.lane) === false) told.set(queue.lane, messageId)
  if (tables.eventBodies.has(body.ofEvent)) tables.sharing.set(messageId, body.ofEvent)
}

const changeQueue = (memory: Memory["Service"], messageId: MessageId, version: number, queue: QueueChange): void => {
  if (queue.type === "Leave") removeWaiting(memory.tables, { ...queue, messageId })
  if (queue.type === "Wait") {
    const { lane, dueAt, epoch, attempt, line } = queue
    const message = { messageId, lane, dueAt, version, epoch, attempt }
    if (line === null) putWaiting(memory, message)
    else standInLine(memory, line, message)
  } else if (queue.line !== null) {
    stepOut(memory, queue.lane, queue.line, messageId, queue.dead)
  }
}

export const layer = Layer.effect(
  EventStore,
  Effect.gen(function* () {
    const memory = yield* Memory
    const { tables } = memory

    const load = (id: MessageId) => Effect.sync(() => storedIn(tables.streams.get(id) ?? []))

    const loadMany = (ids: ReadonlyArray<MessageId>) =>
      Effect.sync(() => {
        const found = new Map<MessageId, Stream>()
        for (const id of ids) {
          const rows = tables.streams.get(id)
          if (rows !== undefined) found.set(id, storedIn(rows))
        }
        return found
      })

    const append = (entries: ReadonlyArray<Append>) =>
      Effect.sync(() => {
        const results = entries.map((entry) => refusal(tables, entry) ?? write(memory, entry))
        announceDueWork(memory)
        return results
      })

    const acceptedUnder = (orgId: OrgId, key: string) =>
      Effect.sync(() => tables.idempotencyKeys.get(`${orgId} ${key}`) ?? null)

    const readAll = (after: Position | null, limit: number) =>
      Effect.sync(() => {
        const facts: Array<LoggedFact> = []
        for (let at = after === null ? 0 : Number(after); at < tables.feed.length && facts.length < limit; at++) {
          const { stream, messageId, version } = tables.feed[at]!
          const row = factAt(tables, tables.feed[at]!)
          // Forgotten since (see MemoryRetention.ts).
          if (row === undefined) continue
          const { name, data, forgettable = null, actor } = row
          facts.push({
            stream,
            messageId,
            version,
            at: row.at,
            actor,
            name,
            data,
            forgettable,
            position: String(at + 1)
          })
        }
        return facts
      })

    const extent = Effect.sync(() => ({
      head: tables.feed.length === 0 ? null : String(tables.feed.length),
      facts: tables.feed.length
    }))

    const unreadSince = (after: Position | null) => Effect.map(readAll(after, 1), ([first]) => first?.at ?? null)

    return EventStore.of({ load, loadMany, append, acceptedUnder, readAll, unreadSince, extent })
  })
)
