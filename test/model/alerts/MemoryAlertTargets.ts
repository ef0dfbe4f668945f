/** Alert targets over a map. Rows stay when their destinations go, so that nobody ever alerts about an alert. */
import { Effect, Layer } from "effect"
import { type AlertTarget, AlertTargets, channelOfType } from "../../../src/application/ports/AlertTargets.ts"
import { changesOf } from "../../../src/domain/destination/changes.ts"
import { Memory } from "../Memory.ts"
import { noterOf } from "../store/appendToJournal.ts"

export const layer = Layer.effect(
  AlertTargets,
  Effect.gen(function* () {
    const memory = yield* Memory
    const { tables, now } = memory
    const { alertTargets, endpoints, httpTargets } = tables
    const living = () =>
      [...alertTargets.values()]
        .filter(({ id }) => endpoints.has(id) || httpTargets.has(id))
        .toSorted((a, b) => (a.id < b.id ? -1 : 1))
    const find = (orgId: string, id: string) =>
      living().find((target) => target.orgId === orgId && target.id === id) ?? null

    return AlertTargets.of({
      add: (orgId, id, type, settings) =>
        Effect.sync(() => {
          const target: AlertTarget = { ...settings, id, orgId, type, createdAt: now(), updatedAt: now() }
          alertTargets.set(id, target)
          return target
        }),
      get: (orgId, id) => Effect.sync(() => find(orgId, id)),
      list: (orgId, { cursor, limit }) =>
        Effect.sync(() => {
          const left = living().filter((target) => target.orgId === orgId && (cursor === null || target.id > cursor))
          const items = left.slice(0, limit)
          return { items, nextCursor: left.length > limit ? items.at(-1)!.id : null }
        }),
      update: (orgId, id, change) =>
        Effect.suspend(() => {
          const before = find(orgId, id)
          if (before === null) return Effect.succeed(null)
          const channel = channelOfType[before.type]
          return noterOf(
            memory,
            channel
          )((note) => {
            const target = { ...before, ...change, updatedAt: now() }
            alertTargets.set(id, target)
            note(id, changesOf({ orgId, channel }, change))
            return target
          })
        }),
      all: Effect.sync(living)
    })
  })
)
