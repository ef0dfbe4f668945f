/** HTTP targets over a map. Secrets stay redacted; nothing is at rest here, so nothing is encrypted. */
import { randomUUID } from "node:crypto"
import { Effect, Layer, type Redacted } from "effect"
import { type HttpTarget, HttpTargets, type Secrets } from "../../../src/application/ports/HttpTargets.ts"
import { changesOf } from "../../../src/domain/destination/changes.ts"
import { DestinationId } from "../../../src/domain/ids.ts"
import { freeLane, instructLane } from "../deliver/lanes.ts"
import { Memory } from "../Memory.ts"
import { noterOf } from "../store/appendToJournal.ts"

const channel = "http"

const namesOf = (secrets: Secrets) => Object.keys(secrets).toSorted()

export const layer = Layer.effect(
  HttpTargets,
  Effect.gen(function* () {
    const memory = yield* Memory
    const { tables, now } = memory
    const { httpTargets } = tables
    const noting = noterOf(memory, channel)
    const find = (orgId: string, id: DestinationId) => {
      const row = httpTargets.get(id)
      return row?.target.orgId === orgId ? row : null
    }

    const instructed = (target: HttpTarget): HttpTarget => {
      instructLane(memory, target)
      return target
    }

    return HttpTargets.of({
      create: (orgId, settings, secrets) =>
        noting((note) => {
          const id = DestinationId.make(randomUUID())
          const at = now()
          const secretNames = namesOf(secrets)
          const target = { ...settings, id, orgId, secretNames, version: 1, createdAt: at, updatedAt: at }
          httpTargets.set(id, { target, secrets })
          note(id, [{ type: "DestinationCreated", orgId, channel }])
          return instructed(target)
        }),
      get: (orgId, id) => Effect.sync(() => find(orgId, id)?.target ?? null),
      list: (orgId, { cursor, limit }) =>
        Effect.sync(() => {
          const all = [...httpTargets.values()]
            .map(({ target }) => target)
            .filter((target) => target.orgId === orgId)
            .toSorted((a, b) => (a.id < b.id ? -1 : 1))
          const left = cursor === null ? all : all.filter((target) => target.id > cursor)
          const items = left.slice(0, limit)
          return { items, nextCursor: left.length > limit ? items.at(-1)!.id : null }
        }),
      update: (orgId, id, change, given) =>
        noting((note) => {
          const row = find(orgId, id)
          if (row === null) return null
          const secrets = Object.fromEntries(
            Object.entries({ ...row.secrets, ...given }).filter(
              (entry): entry is [string, Redacted.Redacted] => entry[1] !== null
            )
          )
          const version = row.target.version + 1
          const target = { ...row.target, ...change, secretNames: namesOf(secrets), version, updatedAt: now() }
          httpTargets.set(id, { target, secrets })
          note(id, changesOf({ orgId, channel }, change, given))
          return instructed(target)
        }),
      remove: (orgId, id) =>
        noting((note) => {
          if (find(orgId, id) === null) return false
          note(id, [{ type: "DestinationRemoved", orgId, channel }])
          freeLane(memory, id)
          return httpTargets.delete(id)
        }),
      calling: (orgId, id) => Effect.sync(() => find(orgId, id))
    })
  })
)
