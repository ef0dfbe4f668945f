/** What waits for destinations, counted in the lanes, lines and claims of the memory store. */
import { DateTime, Effect, Layer } from "effect"
import { type Backlog, Backlogs, type Sort, WAITING_MAX } from "../../../src/application/ports/Backlogs.ts"
import type { DestinationId } from "../../../src/domain/ids.ts"
import { laneOf } from "../deliver/lanes.ts"
import { Memory } from "../Memory.ts"

type Row = Backlog & { readonly destination: DestinationId }

const NEVER = Number.MAX_SAFE_INTEGER
const keys: Readonly<Record<Sort, (row: Row) => number>> = {
  id: () => 0,
  waiting: ({ waiting }) => -waiting,
  oldest: ({ oldestDueAt }) => (oldestDueAt === null ? NEVER : DateTime.toEpochMillis(oldestDueAt))
}

export const layer = Layer.effect(
  Backlogs,
  Effect.gen(function* () {
    const { tables } = yield* Memory
    const { destinations, lanes, lines, claims } = tables

    const linesOf = (destination: DestinationId) =>
      [...lines].filter(([name]) => name.startsWith(`${destination}/`)).map(([, turns]) => turns)

    const rowOf = (destination: DestinationId): Row => {
      const ready = lanes.get(destination) ?? []
      const behind = linesOf(destination).flatMap((turns) => turns.filter(({ state }) => state === "WAITING"))
      const held = [...claims.values()].flatMap(({ messages }) => messages).filter(({ lane }) => lane === destination)
      return {
        destination,
        waiting: Math.min(WAITING_MAX, ready.length + behind.length),
        oldestDueAt: ready[0]?.dueAt ?? null,
        inFlight: held.length
      }
    }

    return Backlogs.of({
      of: (destination) =>
        Effect.sync(() => {
          const { destination: _, ...backlog } = rowOf(destination)
          return backlog
        }),
      list: (orgId, filter, sort, { cursor, limit }) =>
        Effect.sync(() => {
          const key = keys[sort]
          const isBefore = (a: Row, b: Row) => key(a) < key(b) || (key(a) === key(b) && a.destination < b.destination)
          const found = [...destinations.values()]
            .filter(
              ({ removed, destination: { orgId: org, channel, paused, id } }) =>
                !removed &&
                (orgId === null || org === orgId) &&
                (filter.channel === undefined || channel === filter.channel) &&
                (filter.paused === undefined || paused === filter.paused) &&
                (filter.circuit === undefined || laneOf(tables, id).state.status === filter.circuit)
            )
            .map(({ destination: { id } }) => rowOf(id))
            .filter(({ waiting }) => filter.waiting === undefined || waiting > 0 === filter.waiting)
            .toSorted((a, b) => (isBefore(a, b) ? -1 : 1))
          const [value, id] = cursor === null ? [null, null] : cursor.split("/")
          const left =
            cursor === null
              ? found
              : found.filter((row) => key(row) > Number(value) || (key(row) === Number(value) && row.destination > id!))
          const items = left.slice(0, limit)
          const last = items.at(-1)
          return { items, nextCursor: left.length > limit ? `${key(last!)}/${last!.destination}` : null }
        }),
      turn: (destination, message, dueAt) =>
        Effect.sync(() => {
          const line = linesOf(destination).find((turns) => turns.some((turn) => turn.message.messageId === message))
          const head = line?.[0]?.message.messageId ?? null
          const ahead = (lanes.get(destination) ?? []).filter(
            (waiting) =>
              DateTime.isLessThan(waiting.dueAt, dueAt) ||
              (DateTime.Equivalence(waiting.dueAt, dueAt) && waiting.messageId < message)
          )
          return { head: head === message ? null : head, ahead: ahead.length }
        })
    })
  })
)
