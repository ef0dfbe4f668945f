/** The catalogue of event types over a map. Every answer is current. */
import { randomUUID } from "node:crypto"
import { Effect, Layer } from "effect"
import { CommandedBy } from "../../../src/application/commandedBy.ts"
import { type EventType, EventTypes } from "../../../src/application/ports/EventTypes.ts"
import { type ConfigurationFact, toRecorded } from "../../../src/domain/destination/facts.ts"
import { wishesFulfilledBy } from "../../../src/domain/event/eventTypes.ts"
import type { OrgId } from "../../../src/domain/ids.ts"
import { addToJournal, Memory } from "../Memory.ts"

export const layer = Layer.effect(
  EventTypes,
  Effect.gen(function* () {
    const { tables, now } = yield* Memory
    const key = (orgId: OrgId, name: string) => `${orgId} ${name}`
    const found = (orgId: OrgId, name: string) => tables.eventTypes.get(key(orgId, name)) ?? null
    const of = (orgId: OrgId) => [...tables.eventTypes.values()].filter((type) => type.orgId === orgId)
    const isEnforced = (orgId: OrgId) => of(orgId).some(({ enforce, archived }) => enforce && !archived)

    const write = (type: EventType, fact: ConfigurationFact) =>
      Effect.map(CommandedBy, (actor) => {
        tables.eventTypes.set(key(type.orgId, type.name), type)
        addToJournal(tables, `event-type-${type.id}`, [toRecorded(fact)], now(), actor)
        return type
      })

    return EventTypes.of({
      create: (orgId, name, definition) =>
        Effect.suspend((): Effect.Effect<EventType | "Taken"> => {
          if (found(orgId, name) !== null) return Effect.succeed("Taken")
          const made = {
            id: randomUUID(),
            orgId,
            name,
            version: 1,
            archived: false,
            createdAt: now(),
            updatedAt: now()
          }
          return write({ ...made, ...definition }, { type: "EventTypeCreated", orgId, name })
        }),
      change: (orgId, name, definition) =>
        Effect.suspend(() => {
          const before = found(orgId, name)
          if (before === null) return Effect.succeed(null)
          const changed = { version: before.version + 1, archived: false, updatedAt: now() }
          return write({ ...before, ...definition, ...changed }, { type: "EventTypeChanged", orgId, name })
        }),
      archive: (orgId, name) =>
        Effect.suspend(() => {
          const before = found(orgId, name)
          if (before === null || before.archived) return Effect.succeed(null)
          const changed = { version: before.version + 1, archived: true, updatedAt: now() }
          return write({ ...before, ...changed }, { type: "EventTypeArchived", orgId, name })
        }),
      get: (orgId, name) => Effect.sync(() => found(orgId, name)),
      list: (orgId, archived, { cursor, limit }) =>
        Effect.sync(() => {
          const left = of(orgId)
            .filter((type) => (archived || !type.archived) && (cursor === null || type.name > cursor))
            .toSorted((a, b) => (a.name < b.name ? -1 : 1))
          const items = left.slice(0, limit)
          return { items, nextCursor: left.length > limit ? items.at(-1)!.name : null }
        }),
      entry: (orgId, name) =>
        Effect.sync(() => {
          const type = found(orgId, name)
          return { isEnforced: isEnforced(orgId), type: type?.archived === false ? type : null }
        }),
      unfulfilled: (orgId, wishes) =>
        Effect.sync(() => {
          if (!isEnforced(orgId)) return []
          const names = of(orgId).filter(({ archived }) => !archived)
          return wishes.filter(
            (wish) => wish !== "*" && !names.some(({ name }) => wishesFulfilledBy(name).includes(wish))
          )
        })
    })
  })
)
