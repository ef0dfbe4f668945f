/** The queue, its lines and the list, looked at from outside and made again, over plain maps. */

import { DateTime, Effect, Layer } from "effect"
import {
  type ComparedMessage,
  DerivedRows,
  type ExpectedMessage,
  type ReadyRow,
  type Restored
} from "../../../src/application/ports/DerivedRows.ts"
import { rowOf } from "../../../src/application/ports/MessageViews.ts"
import type { AbandonedMessage, BatchId } from "../../../src/application/ports/Queue.ts"
import type { MessageId } from "../../../src/domain/ids.ts"
import type { Wait } from "../../../src/domain/message/place.ts"
import { streamOf } from "../../../src/domain/streams.ts"
import { changeLane, laneOf } from "../deliver/lanes.ts"
import { giveHead, type Turn } from "../deliver/lines.ts"
import { announceDueWork, putWaiting, removeWaiting } from "../deliver/waiting.ts"
import { liveViews } from "../log/runs.ts"
import { bodyIn, Memory, type Tables } from "../Memory.ts"

const isSame = (
  row: AbandonedMessage,
  { messageId, wait }: { readonly messageId: MessageId; readonly wait: Wait | null }
): boolean =>
  wait !== null &&
  row.messageId === messageId &&
  row.lane === wait.lane &&
  DateTime.Equivalence(row.dueAt, wait.dueAt) &&
  row.version >= wait.version &&
  row.epoch === wait.epoch &&
  row.attempt === wait.attempt

/** A line's key is its lane and its name (see lines.ts). */
const turnsIn = ({ lines }: Tables): ReadonlyArray<{ readonly line: string; readonly turn: Turn }> =>
  [...lines].flatMap(([name, turns]) => turns.map((turn) => ({ line: name.slice(name.indexOf("/") + 1), turn })))

const compare = (tables: Tables, { messageId, version, place }: ExpectedMessage): ComparedMessage | null => {
  if ((tables.streams.get(messageId)?.length ?? version) !== version) return null
  const wait = place.type === "Out" ? null : place
  const isIts = (row: AbandonedMessage) => row.messageId === messageId && wait !== null && row.version >= wait.version
  const held = [...tables.claims.values()].flatMap(({ messages }) => messages).filter(isIts).length
  const ready = [...tables.lanes.values()].flat().filter((row) => isSame(row, { messageId, wait })).length
  const stands = turnsIn(tables).find(({ turn }) => turn.message.messageId === messageId)
  const state = stands?.turn.state
  const isInLine = stands?.line === wait?.line && stands?.turn.message.lane === wait?.lane
  const isPlaced = () => {
    if (place.type === "Out") return stands === undefined || (place.dead && state === "DEAD")
    const isGiven = place.line === null ? stands === undefined : isInLine && state === "GIVEN"
    if (place.type === "UnderWay") return held > 0 && ready === 0 && isGiven
    return isGiven ? held + ready === 1 : isInLine && state === "WAITING" && held + ready === 0
  }
  const view = liveViews(tables).get(messageId)
  return {
    isPlaced: tables.parked.has(streamOf(messageId)) || isPlaced(),
    hasBody: bodyIn(tables, messageId) !== null,
    listed: view === undefined ? null : { version: view.version, row: JSON.parse(JSON.stringify(rowOf(view))) }
  }
}

const placeIn = ({ lane, dueAt, messageId }: ReadyRow) =>
  `${lane} ${String(DateTime.toEpochMillis(dueAt)).padStart(16, "0")} ${messageId}`

/** Whether it was parked, and is so no longer. */
const restoreRow = (memory: Memory["Service"], { messageId, read, place }: Restored): boolean => {
  const { tables } = memory
  const isWait = place.type === "Waiting" || place.type === "UnderWay"
  const held = [...tables.claims.values()].flatMap(({ messages }) => messages)
  const since = isWait ? place.version : 0
  if (held.some((each) => each.messageId === messageId && each.version >= since)) return false
  if ((tables.streams.get(messageId)?.length ?? 0) > read) return false
  const wasParked = tables.parked.delete(streamOf(messageId))
  const stands = turnsIn(tables).find(({ turn }) => turn.message.messageId === messageId)
  if (place.type === "Out") {
    if (stands !== undefined) leaveLine(memory, stands)
    return wasParked
  }
  if (place.type === "Dead") {
    const message = { messageId, lane: place.lane, dueAt: memory.now(), version: 0, epoch: 0, attempt: 0 }
    if (laneOf(tables, place.lane).blocks) setTurn(tables, place.line, { message, state: "DEAD" })
    return wasParked
  }
  const { lane, line, dueAt, version, epoch, attempt } = place
  const message: AbandonedMessage = { messageId, lane, dueAt, version, epoch, attempt }
  if (place.type === "UnderWay") {
    const batch = String(++tables.batchesMade) as BatchId
    tables.claims.set(batch, { worker: "restored", until: memory.now(), messages: [message] })
    if (line !== null) setTurn(tables, line, { message, state: "GIVEN" })
  } else if (line === null) {
    if (!(tables.lanes.get(lane) ?? []).some((row) => isSame(row, { messageId, wait: place })))
      putWaiting(memory, message)
  } else {
    setTurn(tables, line, { message, state: "WAITING" })
    giveHead(memory, `${lane}/${line}`)
  }
  return wasParked
}

const leaveLine = (memory: Memory["Service"], { line, turn }: { readonly line: string; readonly turn: Turn }): void => {
  const { lines } = memory.tables
  const name = `${turn.message.lane}/${line}`
  const left = lines.get(name)!.filter((each) => each !== turn)
  if (left.length === 0) lines.delete(name)
  else lines.set(name, left)
  giveHead(memory, name)
}

/** In its place, or at the end. */
const setTurn = ({ lines }: Tables, line: string, turn: Turn): void => {
  const name = `${turn.message.lane}/${line}`
  const turns = lines.get(name) ?? []
  const stands = turns.findIndex(({ message }) => message.messageId === turn.message.messageId)
  lines.set(name, stands === -1 ? [...turns, turn] : turns.with(stands, turn))
}

export const layer = Layer.effect(
  DerivedRows,
  Effect.gen(function* () {
    const memory = yield* Memory
    const { tables } = memory
    const page = (ids: Iterable<MessageId>, after: MessageId | null, limit: number) =>
      [...new Set(ids)]
        .filter((id) => after === null || id > after)
        .toSorted()
        .slice(0, limit)

    return DerivedRows.of({
      compare: (messages) =>
        Effect.sync(
          () =>
            new Map(
              messages.flatMap((each) => {
                const row = compare(tables, each)
                return row === null ? [] : [[each.messageId, row] as const]
              })
            )
        ),
      // Maps hold no row without its message, and counts are counted when they are asked for.
      strays: Effect.sync(() => {
        const examples = [...tables.lines].flatMap(([name, turns]) =>
          turns.every(({ state }, place) => (place === 0) === (state !== "WAITING")) ? [] : [name]
        )
        return examples.length === 0 ? [] : [{ table: "lines", count: examples.length, examples }]
      }),
      ready: (after, limit) =>
        Effect.sync(() => {
          const rows = [...tables.lanes.values()]
            .flat()
            .filter((row) => after === null || placeIn(row) > after)
            .toSorted((a, b) => (placeIn(a) < placeIn(b) ? -1 : 1))
            .slice(0, limit)
          return { rows, next: rows.length === 0 ? null : placeIn(rows.at(-1)!) }
        }),
      messagesInLines: (after, limit) =>
        Effect.sync(() =>
          page(
            turnsIn(tables).map(({ turn }) => turn.message.messageId),
            after,
            limit
          )
        ),
      restoreEvents: (events) =>
        Effect.sync(() => {
          for (const { id, fact, at } of events) {
            if (!tables.events.has(id)) tables.events.set(id, { orgId: fact.orgId, at, messages: new Map() })
          }
        }),
      restoreFanOut: (messages) =>
        Effect.sync(() => {
          for (const { eventId, destination, messageId } of messages) {
            const told = tables.events.get(eventId)?.messages
            if (told?.has(destination) === false) told.set(destination, messageId)
          }
        }),
      restoreQueue: (rows) =>
        Effect.sync(() => {
          const unparked = rows.filter((row) => restoreRow(memory, row)).length
          announceDueWork(memory)
          return unparked
        }),
      dropReady: (rows) =>
        Effect.sync(() => {
          for (const row of rows) removeWaiting(tables, row)
        }),
      restoreCircuits: (circuits) =>
        Effect.sync(() => {
          for (const { destination, state } of circuits) {
            if (laneOf(tables, destination).state.generation < state.generation) {
              changeLane(tables, destination, { state })
            }
          }
        }),
      restoreReplays: (replays) =>
        Effect.sync(() => {
          for (const { id, request } of replays) {
            if (tables.replays.has(id)) continue
            const { orgId, selection, reason, matched, requestedAt } = request
            const job = { id, orgId, selection, reason, matched, requestedAt, searching: false }
            tables.replays.set(id, { job, idempotency: null, items: [], search: null, nextAt: null })
          }
        })
    })
  })
)
