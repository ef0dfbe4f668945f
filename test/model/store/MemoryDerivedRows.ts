/** The queue, its lines and the list, looked at from outside and made again, over plain maps. */

import { DateTime, Effect, Layer } from "effect"
import {
  DerivedRows,
  type DerivedState,
  type Lookup,
  type ReadyRow,
  type Restored
} from "../../../src/application/ports/DerivedRows.ts"
import { rowOf } from "../../../src/application/ports/MessageViews.ts"
import type { AbandonedMessage, BatchId } from "../../../src/application/ports/Queue.ts"
import type { DestinationId, MessageId } from "../../../src/domain/ids.ts"
import { streamOf } from "../../../src/domain/streams.ts"
import { changeLane, laneOf } from "../deliver/lanes.ts"
import { giveHead, type Turn } from "../deliver/lines.ts"
import { announceDueWork, putWaiting, removeWaiting } from "../deliver/waiting.ts"
import { liveViews } from "../log/runs.ts"
import { bodyIn, Memory, type Tables } from "../Memory.ts"

const isSame = (row: AbandonedMessage, { messageId, wait }: Lookup): boolean =>
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

const look = (tables: Tables, asked: Lookup): DerivedState => {
  const { messageId, wait } = asked
  const claimed = [...tables.claims.values()].flatMap(({ messages }) => messages)
  const stands = turnsIn(tables).find(({ turn }) => turn.message.messageId === messageId)
  const view = liveViews(tables).get(messageId)
  return {
    isReady: [...tables.lanes.values()].flat().some((row) => isSame(row, asked)),
    held: claimed.filter((row) => row.messageId === messageId && wait !== null && row.version >= wait.version).length,
    isParked: tables.parked.has(streamOf(messageId)),
    linePlace:
      stands === undefined ? null : { lane: stands.turn.message.lane, line: stands.line, state: stands.turn.state },
    hasBody: bodyIn(tables, messageId) !== null,
    view: view === undefined ? null : JSON.parse(JSON.stringify(rowOf(view))),
    viewsAt: tables.runs.find((run) => run.name === "messages" && run.live)?.position ?? null
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
      look: (asked) => Effect.sync(() => new Map(asked.map((each) => [each.messageId, look(tables, each)] as const))),
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
      owners: (after, limit) =>
        Effect.sync(() =>
          page(
            [
              ...tables.bodies.keys(),
              ...tables.sharing.keys(),
              ...tables.responses.keys(),
              ...[...tables.idempotencyKeys.values()].map(({ messageId }) => messageId),
              ...liveViews(tables).keys()
            ],
            after,
            limit
          )
        ),
      brokenLines: Effect.sync(() =>
        [...tables.lines].flatMap(([name, turns]) =>
          turns.every(({ state }, place) => (place === 0) === (state !== "WAITING"))
            ? []
            : [{ lane: name.slice(0, name.indexOf("/")) as DestinationId, line: name.slice(name.indexOf("/") + 1) }]
        )
      ),
      // Counted when somebody asks.
      wrongCounts: Effect.succeed([]),
      // Nothing is sealed here.
      lostKeys: Effect.succeed([]),
      eventRows: (ids) =>
        Effect.sync(
          () =>
            new Map(
              ids.map((id) => [id, { isListed: tables.events.has(id), hasBody: tables.eventBodies.has(id) }] as const)
            )
        ),
      // A body goes with its event.
      brokenBodies: Effect.succeed([]),
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
