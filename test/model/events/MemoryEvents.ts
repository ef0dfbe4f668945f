/** Events over plain maps: who wants one is found by asking every destination there is. */
import { DateTime, Effect, Layer, Result } from "effect"
import { type EventFilter, Events, type PublishResult } from "../../../src/application/ports/Events.ts"
import { type EventView, journalOf, viewOf } from "../../../src/domain/event/event.ts"
import { fulfils } from "../../../src/domain/event/eventTypes.ts"
import { fromRecorded, toRecorded } from "../../../src/domain/event/facts.ts"
import type { EventId, OrgId } from "../../../src/domain/ids.ts"
import { announceDueWork } from "../deliver/waiting.ts"
import { addToJournal, eraseIn, Memory, type Tables } from "../Memory.ts"
import { write } from "../store/MemoryEventStore.ts"

const viewIn = ({ journals }: Tables, id: EventId): EventView => {
  const rows = journals.get(journalOf(id))!
  return viewOf(
    id,
    rows[0]!.at,
    rows.map((row) => Result.getOrThrow(fromRecorded(row)))
  )!
}

export const typeOf = (tables: Tables, id: EventId): string => viewIn(tables, id).eventType

const placeOf = ({ id, createdAt }: EventView) => `${String(DateTime.toEpochMillis(createdAt)).padStart(16, "0")} ${id}`

const viewsOf = (tables: Tables, orgId: OrgId) =>
  [...tables.events].filter(([, event]) => event.orgId === orgId).map(([id]) => viewIn(tables, id))

const isAsked = (view: EventView, { createdAfter, createdBefore, ...equal }: EventFilter) =>
  (createdAfter === undefined || DateTime.isGreaterThan(view.createdAt, createdAfter)) &&
  (createdBefore === undefined || DateTime.isLessThan(view.createdAt, createdBefore)) &&
  Object.entries(equal).every(([field, wanted]) => view[field as keyof typeof equal] === wanted)

const paged = <Item>(items: ReadonlyArray<Item>, limit: number, place: (item: Item) => string) => {
  const shown = items.slice(0, limit)
  return { items: shown, nextCursor: items.length > limit ? place(shown.at(-1)!) : null }
}

export const layer = Layer.effect(
  Events,
  Effect.gen(function* () {
    const memory = yield* Memory
    const { tables } = memory
    const takenBy = (orgId: OrgId, key: string) => tables.eventKeys.get(`${orgId} ${key}`) ?? null

    return Events.of({
      matching: (orgId, eventType) =>
        Effect.sync(() =>
          [...tables.destinations.values()]
            .filter(
              ({ destination, removed }) => !removed && destination.orgId === orgId && destination.alerting === null
            )
            .flatMap(({ destination: { id, channel, settings } }) => {
              const wishes = (settings as { eventTypes?: ReadonlyArray<string> | null }).eventTypes
              return wishes !== undefined && fulfils(eventType, wishes)
                ? [{ destination: id, channel, retry: settings.retry }]
                : []
            })
            .toSorted((a, b) => (a.destination < b.destination ? -1 : 1))
        ),
      publish: (events) =>
        Effect.sync(() => {
          const results = events.map(({ id, fact, at, actor, body, idempotency, messages }): PublishResult => {
            const used = idempotency === null ? null : takenBy(fact.orgId, idempotency.key)
            if (used !== null) return { type: "DuplicateKey", ...used }
            if (tables.events.has(id)) return { type: "AlreadyThere" }
            addToJournal(tables, journalOf(id), [toRecorded(fact)], at, actor)
            tables.events.set(id, { orgId: fact.orgId, at, messages: new Map() })
            tables.eventBodies.set(id, body)
            if (idempotency !== null) {
              const { key, requestHash } = idempotency
              tables.eventKeys.set(`${fact.orgId} ${key}`, { eventId: id, requestHash })
            }
            for (const entry of messages) write(memory, entry)
            return { type: "Published" }
          })
          announceDueWork(memory)
          return results
        }),
      publishedUnder: (orgId, key) => Effect.sync(() => takenBy(orgId, key)),
      list: (orgId, filter, { cursor, limit }) =>
        Effect.sync(() =>
          paged(
            viewsOf(tables, orgId)
              .filter((view) => isAsked(view, filter) && (cursor === null || placeOf(view) < cursor))
              .toSorted((a, b) => (placeOf(a) > placeOf(b) ? -1 : 1)),
            limit,
            placeOf
          )
        ),
      messagesOf: (id, { cursor, limit }) =>
        Effect.sync(() => {
          const rows = [...(tables.events.get(id)?.messages ?? [])]
            .filter(([destination]) => cursor === null || destination > cursor)
            .toSorted(([a], [b]) => (a < b ? -1 : 1))
          const { items, nextCursor } = paged(rows, limit, ([destination]) => destination)
          return { items: items.map(([, message]) => message), nextCursor }
        }),
      body: (id) => Effect.sync(() => tables.eventBodies.get(id) ?? null),
      erase: (id) =>
        Effect.sync(() => {
          tables.eventBodies.delete(id)
          for (const message of tables.events.get(id)?.messages.values() ?? []) eraseIn(tables, message)
        }),
      types: (orgId) =>
        Effect.sync(() => [...new Set(viewsOf(tables, orgId).map(({ eventType }) => eventType))].toSorted())
    })
  })
)
