/** Replays over a map: each row holds its items and when it may be taken. */
import { DateTime, Effect, Layer } from "effect"
import { type Opening, type ReplayItem, Replays } from "../../../src/application/ports/Replays.ts"
import { typeOf } from "../events/MemoryEvents.ts"
import { Memory, type Tables } from "../Memory.ts"
import { deadLettersIn } from "./deadLetters.ts"

/** In the order they were accepted. */
const itemsOf = (tables: Tables, { orgId, set }: Opening): ReadonlyArray<ReplayItem> => {
  if ("items" in set) return set.items
  if ("missed" in set) return missedIn(tables, orgId, set.missed)
  return deadLettersIn(tables, orgId, set.filter)
    .toSorted((a, b) => DateTime.Order(a.createdAt, b.createdAt) || (a.id < b.id ? -1 : 1))
    .map(({ id, epoch }) => ({ messageId: id, epoch }))
}

type Missed = Extract<Opening["set"], { readonly missed: unknown }>["missed"]

const missedIn = (tables: Tables, orgId: string, { to, since, eventTypes }: Missed): ReadonlyArray<ReplayItem> =>
  [...tables.events]
    .filter(([id, event]) => {
      const wanted = event.orgId === orgId && eventTypes.includes(typeOf(tables, id))
      const missed = DateTime.isGreaterThanOrEqualTo(event.at, since) && !event.messages.has(to)
      return wanted && missed && tables.eventBodies.has(id)
    })
    .toSorted(([a, { at: before }], [b, { at: after }]) => DateTime.Order(before, after) || (a < b ? -1 : 1))
    .map(([eventId]) => ({ eventId }))

export const layer = Layer.effect(
  Replays,
  Effect.gen(function* () {
    const { tables, now } = yield* Memory
    const { replays } = tables

    return Replays.of({
      open: (opening) =>
        Effect.sync(() => {
          const { id, orgId, selection, reason, requestedAt, idempotency } = opening
          const known = [...replays.values()].find(
            (row) => row.job.orgId === orgId && idempotency !== null && row.idempotency?.key === idempotency.key
          )
          if (known !== undefined) {
            return { type: "DuplicateKey", job: known.job, requestHash: known.idempotency!.requestHash } as const
          }
          const items = itemsOf(tables, opening)
          const job = { id, orgId, selection, reason, requestedAt, matched: items.length }
          replays.set(id, { job, idempotency, items, nextAt: now() })
          return { type: "Opened", job } as const
        }),
      get: (orgId, id) =>
        Effect.sync(() => {
          const job = replays.get(id)?.job
          return job?.orgId === orgId ? job : null
        }),
      list: (orgId, { cursor, limit }) =>
        Effect.sync(() => {
          const left = [...replays.values()]
            .flatMap(({ job }) => (job.orgId === orgId && (cursor === null || job.id < cursor) ? [job] : []))
            .toSorted((a, b) => (a.id > b.id ? -1 : 1))
          const items = left.slice(0, limit)
          return { items, nextCursor: left.length > limit ? items.at(-1)!.id : null }
        }),
      items: (id, after, limit) => Effect.sync(() => replays.get(id)?.items.slice(after, after + limit) ?? []),
      take: (lease) =>
        Effect.sync(() => {
          const [row] = [...replays.values()]
            .filter(({ nextAt }) => nextAt !== null && DateTime.isLessThanOrEqualTo(nextAt, now()))
            .toSorted((a, b) => DateTime.Order(a.nextAt!, b.nextAt!))
          if (row === undefined) return null
          row.nextAt = DateTime.addDuration(now(), lease)
          return row.job
        }),
      back: (id, pause) =>
        Effect.sync(() => {
          const row = replays.get(id)
          if (row?.nextAt) row.nextAt = DateTime.addDuration(now(), pause)
        }),
      close: (id) =>
        Effect.sync(() => {
          const row = replays.get(id)
          if (row === undefined) return
          row.nextAt = null
          row.items = []
        })
    })
  })
)
