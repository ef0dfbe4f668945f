/** Replays over a map: each row holds its items, how far their search is, and when it may be taken. */
import { DateTime, Effect, Layer } from "effect"
import { type ReplayItem, type ReplaySet, Replays } from "../../../src/application/ports/Replays.ts"
import { typeOf } from "../events/MemoryEvents.ts"
import { liveViews } from "../log/runs.ts"
import { type Found, Memory, type ReplayRow, type Tables } from "../Memory.ts"
import { deadLettersIn } from "./deadLetters.ts"

/** What a search may find: in the order it looks, and null where it does not belong to the set. */
type Candidate = Found & { readonly item: ReplayItem | null }

const candidatesOf = (tables: Tables, { job, search }: ReplayRow): ReadonlyArray<Candidate> => {
  const { set } = search!
  const all =
    "filter" in set
      ? deadIn(tables, job, set.filter)
      : "missed" in set
        ? missedIn(tables, job, set.missed)
        : "waiting" in set
          ? waitingIn(tables, job, set.waiting)
          : ([] as ReadonlyArray<Candidate>)
  return all.toSorted(inOrder).filter((one) => search!.after === null || inOrder(one, search!.after) > 0)
}

const inOrder = (a: Found, b: Found) => DateTime.Order(a.at, b.at) || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)

type SetOf<Key extends string> = Extract<ReplaySet, { readonly [K in Key]: unknown }>

const deadIn = (
  tables: Tables,
  { orgId, requestedAt }: ReplayRow["job"],
  filter: SetOf<"filter">["filter"]
): ReadonlyArray<Candidate> => {
  const wanted = new Set(deadLettersIn(tables, orgId, filter))
  const all = [...deadLettersIn(tables, orgId, {}), ...deadLettersIn(tables, orgId, { dismissed: true })]
  return all.map((view) => {
    const { id, createdAt: at, epoch, endedAt } = view
    const isOfSet = wanted.has(view) && DateTime.isLessThanOrEqualTo(endedAt!, requestedAt)
    return { at, id, item: isOfSet ? { messageId: id, epoch } : null }
  })
}

const waitingIn = (
  tables: Tables,
  { orgId, requestedAt }: ReplayRow["job"],
  { to, channel, eventType, correlationId, createdAfter, createdBefore }: SetOf<"waiting">["waiting"]
): ReadonlyArray<Candidate> =>
  [...liveViews(tables).values()].flatMap((view) => {
    const { id, createdAt: at, epoch } = view
    if (view.orgId !== orgId || view.status !== "QUEUED" || DateTime.isGreaterThan(at, requestedAt)) return []
    const isOfSet =
      (to === undefined || view.to === to) &&
      (channel === undefined || view.channel === channel) &&
      (eventType === undefined || view.eventType === eventType) &&
      (correlationId === undefined || view.correlationId === correlationId) &&
      (createdAfter === undefined || DateTime.isGreaterThan(at, createdAfter)) &&
      (createdBefore === undefined || DateTime.isLessThan(at, createdBefore))
    return [{ at, id, item: isOfSet ? { messageId: id, epoch } : null }]
  })

const missedIn = (
  tables: Tables,
  { orgId, requestedAt }: ReplayRow["job"],
  { to, since, eventTypes }: SetOf<"missed">["missed"]
): ReadonlyArray<Candidate> =>
  [...tables.events].flatMap(([id, event]) => {
    const { at } = event
    if (event.orgId !== orgId || DateTime.isGreaterThan(at, requestedAt) || DateTime.isLessThan(at, since)) return []
    const isOfSet = eventTypes.includes(typeOf(tables, id)) && !event.messages.has(to) && tables.eventBodies.has(id)
    return [{ at, id, item: isOfSet ? { eventId: id } : null }]
  })

export const layer = Layer.effect(
  Replays,
  Effect.gen(function* () {
    const { tables, now } = yield* Memory
    const { replays } = tables

    return Replays.of({
      open: (opening) =>
        Effect.sync(() => {
          const { set, idempotency, ...asked } = opening
          const { id, orgId } = asked
          const known = [...replays.values()].find(
            (row) => row.job.orgId === orgId && idempotency !== null && row.idempotency?.key === idempotency.key
          )
          if (known !== undefined) {
            return { type: "DuplicateKey", job: known.job, requestHash: known.idempotency!.requestHash } as const
          }
          const items = "items" in set ? set.items : []
          const job = { ...asked, matched: items.length, searching: !("items" in set) }
          const search = job.searching ? { set, after: null } : null
          replays.set(id, { job, idempotency, items, search, nextAt: now() })
          return { type: "Opened", job } as const
        }),
      search: (job, limit) =>
        Effect.sync(() => {
          const row = replays.get(job.id)
          if (row === undefined || row.search === null) return row?.job ?? job
          const looked = candidatesOf(tables, row).slice(0, limit)
          row.items = [...row.items, ...looked.flatMap(({ item }) => item ?? [])]
          row.search = looked.length < limit ? null : { ...row.search, after: looked.at(-1)! }
          row.job = { ...row.job, matched: row.items.length, searching: row.search !== null }
          return row.job
        }),
      endSearch: (id) =>
        Effect.sync(() => {
          const row = replays.get(id)
          if (row === undefined) return
          row.search = null
          row.job = { ...row.job, searching: false }
        }),
      get: (orgId, id) =>
        Effect.sync(() => {
          const job = replays.get(id)?.job
          return job?.orgId === orgId ? job : null
        }),
      requestedUnder: (orgId, key) =>
        Effect.sync(() => {
          const row = [...replays.values()].find((one) => one.job.orgId === orgId && one.idempotency?.key === key)
          return row?.job ?? null
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
