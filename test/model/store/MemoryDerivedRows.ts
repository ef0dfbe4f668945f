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
import { changeLane, laneOf } from "../deliver/lanes.ts"
import { standInLine, type Turn } from "../deliver/lines.ts"
import { isAside } from "../deliver/MemorySetAside.ts"
import { announceDueWork, putWaiting } from "../deliver/waiting.ts"
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
    isSetAside: isAside(tables, messageId),
    linePlace:
      stands === undefined ? null : { lane: stands.turn.message.lane, line: stands.line, state: stands.turn.state },
    hasBody: bodyIn(tables, messageId) !== null,
    view: view === undefined ? null : JSON.parse(JSON.stringify(rowOf(view))),
    viewsAt: tables.runs.find((run) => run.name === "messages" && run.live)?.position ?? null
  }
}

const placeIn = ({ lane, dueAt, messageId }: ReadyRow) =>
  `${lane} ${String(DateTime.toEpochMillis(dueAt)).padStart(16, "0")} ${messageId}`

const isHeld = ({ claims }: Tables, id: MessageId): boolean =>
  [...claims.values()].some(({ messages }) => messages.some(({ messageId }) => messageId === id))

const restoreRow = (memory: Memory["Service"], { messageId, place }: Restored): void => {
  const { tables } = memory
  const standsAlready = turnsIn(tables).some(({ turn }) => turn.message.messageId === messageId)
  if (isHeld(tables, messageId) || standsAlready) return
  if (place.type === "Dead") {
    if (laneOf(tables, place.lane).blocks) {
      const message = { messageId, lane: place.lane, dueAt: memory.now(), version: 0, epoch: 0, attempt: 0 }
      addTurn(tables, place.line, { message, state: "DEAD" })
    }
    return
  }
  const { lane, line, dueAt, version, epoch, attempt } = place
  const message: AbandonedMessage = { messageId, lane, dueAt, version, epoch, attempt }
  if (place.type === "UnderWay") {
    const batch = String(++tables.batchesMade) as BatchId
    tables.claims.set(batch, { worker: "restored", until: memory.now(), messages: [message] })
    if (line !== null) addTurn(tables, line, { message, state: "GIVEN" })
  } else if (line === null) putWaiting(memory, message)
  else standInLine(memory, line, message)
}

const addTurn = ({ lines }: Tables, line: string, turn: Turn): void => {
  const name = `${turn.message.lane}/${line}`
  lines.set(name, [...(lines.get(name) ?? []), turn])
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
          for (const row of rows) restoreRow(memory, row)
          announceDueWork(memory)
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
