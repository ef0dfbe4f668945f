/** What is set for orgs, over a map. */
import { Effect, Layer } from "effect"
import { CommandedBy } from "../../../src/application/commandedBy.ts"
import { type Org, Orgs, unset } from "../../../src/application/ports/Orgs.ts"
import { toRecorded } from "../../../src/domain/destination/facts.ts"
import type { OrgId } from "../../../src/domain/ids.ts"
import { copySettingsToLane } from "../deliver/lanes.ts"
import { liveViews } from "../log/runs.ts"
import { addToJournal, Memory } from "../Memory.ts"

export const layer = Layer.effect(
  Orgs,
  Effect.gen(function* () {
    const memory = yield* Memory
    const { tables, now } = memory
    const { orgs, destinations, apiKeys, replays } = tables

    const shown = (id: OrgId): Org => {
      const rows = [...liveViews(tables).values()].filter((view) => view.orgId === id)
      const count = (...statuses: ReadonlyArray<string>) =>
        rows.filter(({ status }) => statuses.includes(status)).length
      return {
        id,
        ...(orgs.get(id) ?? { ...unset, updatedAt: null }),
        destinations: [...destinations.values()].filter(
          ({ removed, destination }) => !removed && destination.orgId === id
        ).length,
        waiting: count("QUEUED", "SENDING"),
        deadLetters: count("FAILED", "DEAD_LETTER"),
        replays: [...replays.values()].filter(({ job, nextAt }) => job.orgId === id && nextAt !== null).length
      }
    }

    return Orgs.of({
      get: (id) => Effect.sync(() => shown(id)),
      set: Effect.fnUntraced(function* (id, settings) {
        const actor = yield* CommandedBy
        orgs.set(id, { ...settings, updatedAt: now() })
        for (const { destination, removed } of destinations.values())
          if (!removed && destination.orgId === id) copySettingsToLane(memory, destination)
        addToJournal(tables, `org-${id}`, [toRecorded({ type: "OrgChanged", orgId: id, ...settings })], now(), actor)
      }),
      list: ({ cursor, limit }) =>
        Effect.sync(() => {
          const ids = new Set([
            ...orgs.keys(),
            ...[...destinations.values()].map(({ destination }) => destination.orgId),
            ...[...apiKeys.values()].map(({ orgId }) => orgId),
            ...[...liveViews(tables).values()].map(({ orgId }) => orgId)
          ])
          const rest = [...ids].toSorted().filter((id) => cursor === null || id > cursor)
          const items = rest.slice(0, limit).map(shown)
          return { items, nextCursor: rest.length > limit ? items.at(-1)!.id : null }
        }),
      settingsOf: (id) =>
        Effect.sync(() => {
          const { updatedAt: _, ...settings } = orgs.get(id) ?? { ...unset, updatedAt: null }
          return settings
        })
    })
  })
)
