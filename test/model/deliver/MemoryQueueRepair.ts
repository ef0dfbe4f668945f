/** What is not where it should be in the queue, found and mended over plain maps. */
import { DateTime, Effect, Layer } from "effect"
import type { AbandonedMessage, BatchId } from "../../../src/application/ports/Queue.ts"
import { type Placed, QueueRepair, type Verdict } from "../../../src/application/ports/QueueRepair.ts"
import type { DestinationId, MessageId } from "../../../src/domain/ids.ts"
import { liveViews } from "../log/runs.ts"
import { Memory, type Tables } from "../Memory.ts"
import { giveHead, type Turn } from "./lines.ts"
import { endAside, isAside } from "./MemorySetAside.ts"
import { announceDueWork, putWaiting } from "./waiting.ts"

const isOpen = (status: string) => status === "QUEUED" || status === "SENDING"

const isLost = (tables: Tables, id: MessageId): boolean =>
  ![...tables.lanes.values()].flat().some((row) => row.messageId === id) &&
  ![...tables.claims.values()].some(({ messages }) => messages.some(({ messageId }) => messageId === id)) &&
  ![...tables.lines.values()].flat().some(({ message, state }) => message.messageId === id && state === "WAITING") &&
  !isAside(tables, id)

const nameOf = (lane: DestinationId, line: string) => `${lane}/${line}`

const page = <A>(all: ReadonlyArray<A>, keyOf: (item: A) => string, after: string | null, limit: number) => {
  const rows = all
    .filter((item) => after === null || keyOf(item) > after)
    .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
    .slice(0, limit)
  return { rows, next: rows.length < limit ? null : keyOf(rows.at(-1)!) }
}

/** Puts one message where its facts say; whether anything had to be changed. */
const mendOne = (memory: Memory["Service"], { messageId, version, place }: Placed, strays: boolean): boolean => {
  const { tables } = memory
  const before = JSON.stringify([[...tables.lanes], [...tables.lines], [...tables.claims]])
  const wait = place.type === "Out" ? null : place
  const name = wait === null || wait.line === null ? null : nameOf(wait.lane, wait.line)
  const { lane, dueAt, epoch, attempt } = wait ?? { lane: null, dueAt: null, epoch: 0, attempt: 0 }
  const row = wait === null ? null : { messageId, lane: lane!, dueAt: dueAt!, version: wait.version, epoch, attempt }
  const isHeld = [...tables.claims.values()].some(({ messages }) =>
    messages.some((held) => held.messageId === messageId && held.version >= (wait?.version ?? 0))
  )

  for (const [other, turns] of [...tables.lines]) {
    const left = turns.filter(
      ({ message, state }) =>
        message.messageId !== messageId || other === name || (place.type === "Out" && place.dead && state === "DEAD")
    )
    if (left.length < turns.length) tables.lines.set(other, left)
    if (left.length === 0) tables.lines.delete(other)
  }
  if (name !== null && row !== null) {
    const turns = tables.lines.get(name) ?? []
    const state = place.type === "UnderWay" ? ("GIVEN" as const) : ("WAITING" as const)
    const stands = turns.findIndex(({ message }) => message.messageId === messageId)
    if (stands === -1) tables.lines.set(name, placedIn(turns, { message: row, state }))
    else if (turns[stands]!.state === "DEAD" || (state === "GIVEN" && turns[stands]!.state === "WAITING"))
      tables.lines.set(name, turns.with(stands, { message: row, state }))
  }
  for (const each of tables.lines.keys()) giveHead(memory, each)

  const standing = name === null ? null : tables.lines.get(name)?.find(({ message }) => message.messageId === messageId)
  const mayWait = place.type === "Waiting" && !isHeld && (standing == null || standing.state === "GIVEN")
  if (mayWait && row !== null) {
    const there = tables.lanes.get(row.lane)?.find((waiting) => isSamePlace(waiting, row))
    if (there === undefined) putWaiting(memory, row)
  }
  if (place.type === "UnderWay" && !isHeld && row !== null) {
    const batch = String(++tables.batchesMade) as BatchId
    tables.claims.set(batch, { worker: "nobody", until: memory.now(), messages: [row] })
  }
  const isMended = () => before !== JSON.stringify([[...tables.lanes], [...tables.lines], [...tables.claims]])
  if (strays || isMended()) {
    for (const [each, waiting] of [...tables.lanes]) {
      const left = waiting.filter(
        (one) => one.messageId !== messageId || one.version > version || (mayWait && isSamePlace(one, row!))
      )
      if (left.length === 0) tables.lanes.delete(each)
      else tables.lanes.set(each, left)
    }
  }
  endAside(tables, messageId, place.type === "Out", memory.now())
  return isMended()
}

const isSamePlace = (a: AbandonedMessage, b: AbandonedMessage) =>
  a.lane === b.lane && DateTime.Equivalence(a.dueAt, b.dueAt) && a.messageId === b.messageId

/** Before those that were accepted after it, and behind everybody when it was replayed. */
const placedIn = (turns: ReadonlyArray<Turn>, turn: Turn): ReadonlyArray<Turn> => {
  const { messageId, epoch } = turn.message
  const behind = turns.findIndex(
    ({ message, state }) => epoch === 1 && state === "WAITING" && (message.epoch > 1 || message.messageId > messageId)
  )
  return behind === -1 ? [...turns, turn] : turns.toSpliced(behind, 0, turn)
}

export const layer = Layer.effect(
  QueueRepair,
  Effect.gen(function* () {
    const memory = yield* Memory
    const { tables, now } = memory
    let turn: { readonly holder: string; readonly until: DateTime.Utc } | null = null

    return QueueRepair.of({
      takeTurn: (holder, lease) =>
        Effect.sync(() => {
          if (turn !== null && turn.holder !== holder && DateTime.isGreaterThan(turn.until, now())) return false
          turn = { holder, until: DateTime.addDuration(now(), lease) }
          return true
        }),
      lost: (after, limit) =>
        Effect.sync(() => {
          const open = [...liveViews(tables).values()].filter(({ status }) => isOpen(status))
          const { rows, next } = page(open, ({ id }) => id, after, limit)
          return {
            ids: rows.flatMap(({ id }) => (isLost(tables, id) ? [id] : [])),
            next
          }
        }),
      stillLost: (ids) =>
        Effect.sync(() => {
          const views = liveViews(tables)
          return ids.filter((id) => isOpen(views.get(id)?.status ?? "") && isLost(tables, id))
        }),
      mendLines: (after, limit) =>
        Effect.sync(() => {
          const { rows, next } = page([...tables.lines.keys()], (name) => name, after, limit)
          const mended = rows.filter((name) => giveHead(memory, name)).length
          announceDueWork(memory)
          return { mended, next }
        }),
      // Lanes are not put to sleep here.
      mendLanes: () => Effect.succeed({ mended: 0, next: null }),
      dropStrangers: (ids) =>
        Effect.sync(() => {
          const isStranger = (id: MessageId) => ids.includes(id) && !tables.streams.has(id)
          for (const [lane, waiting] of [...tables.lanes]) {
            const left = waiting.filter(({ messageId }) => !isStranger(messageId))
            if (left.length === 0) tables.lanes.delete(lane)
            else tables.lanes.set(lane, left)
          }
          for (const [name, turns] of [...tables.lines]) {
            const left = turns.filter(({ message }) => !isStranger(message.messageId))
            if (left.length === 0) tables.lines.delete(name)
            else tables.lines.set(name, left)
          }
        }),
      mend: (messages, { strays } = { strays: false }) =>
        Effect.sync(() => {
          const verdicts = messages.map((placed): readonly [MessageId, Verdict] => {
            const { messageId, version } = placed
            if (tables.streams.get(messageId)?.length !== version) return [messageId, "changed"]
            return [messageId, mendOne(memory, placed, strays) ? "mended" : "fine"]
          })
          announceDueWork(memory)
          return new Map(verdicts)
        })
    })
  })
)
