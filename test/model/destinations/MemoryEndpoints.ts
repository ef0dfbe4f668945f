/** Endpoints over a map. Secrets stay redacted; nothing is at rest here, so nothing is encrypted. */
import { randomUUID } from "node:crypto"
import { Effect, Layer } from "effect"
import { type Endpoint, Endpoints } from "../../../src/application/ports/Endpoints.ts"
import { changesOf, pauseOf } from "../../../src/domain/destination/changes.ts"
import { DestinationId } from "../../../src/domain/ids.ts"
import { freeLane, instructLane } from "../deliver/lanes.ts"
import { Memory } from "../Memory.ts"
import { noterOf } from "../store/appendToJournal.ts"

const channel = "webhook"

export const layer = Layer.effect(
  Endpoints,
  Effect.gen(function* () {
    const memory = yield* Memory
    const { tables, now } = memory
    const { endpoints } = tables
    const noting = noterOf(memory, channel)
    const find = (orgId: string, id: DestinationId) => {
      const row = endpoints.get(id)
      return row?.endpoint.orgId === orgId ? row : null
    }

    const instructed = (endpoint: Endpoint): Endpoint => {
      instructLane(memory, endpoint)
      return endpoint
    }

    return Endpoints.of({
      create: (orgId, settings, secret) =>
        noting((note) => {
          const id = DestinationId.make(randomUUID())
          const endpoint = { ...settings, id, orgId, paused: false, version: 1, createdAt: now(), updatedAt: now() }
          endpoints.set(id, { endpoint, secrets: [secret] })
          note(id, [{ type: "DestinationCreated", orgId, channel }])
          return instructed(endpoint)
        }),
      get: (orgId, id) => Effect.sync(() => find(orgId, id)?.endpoint ?? null),
      list: (orgId, { cursor, limit }) =>
        Effect.sync(() => {
          const all = [...endpoints.values()]
            .map((row) => row.endpoint)
            .filter((endpoint) => endpoint.orgId === orgId)
            .toSorted((a, b) => (a.id < b.id ? -1 : 1))
          const left = cursor === null ? all : all.filter((endpoint) => endpoint.id > cursor)
          const items = left.slice(0, limit)
          return { items, nextCursor: left.length > limit ? items.at(-1)!.id : null }
        }),
      update: (orgId, id, change) =>
        noting((note) => {
          const row = find(orgId, id)
          if (row === null) return null
          row.endpoint = { ...row.endpoint, ...change, version: row.endpoint.version + 1, updatedAt: now() }
          note(id, changesOf({ orgId, channel }, change))
          return instructed(row.endpoint)
        }),
      setPaused: (orgId, id, paused) =>
        noting((note) => {
          const row = find(orgId, id)
          if (row === null) return null
          if (row.endpoint.paused !== paused) {
            row.endpoint = { ...row.endpoint, paused, updatedAt: now() }
            note(id, [pauseOf({ orgId, channel }, paused)])
          }
          return instructed(row.endpoint)
        }),
      remove: (orgId, id) =>
        noting((note) => {
          if (find(orgId, id) === null) return false
          note(id, [{ type: "DestinationRemoved", orgId, channel }])
          freeLane(memory, id)
          return endpoints.delete(id)
        }),
      signing: (orgId, id) => Effect.sync(() => find(orgId, id))
    })
  })
)
