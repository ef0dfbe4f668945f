/** Looks at the views in the order of their ids. One synchronous step each, so two are never under way at once. */
import { DateTime, Duration, Effect, Layer } from "effect"
import type { RetentionDays } from "../../../src/application/ports/Orgs.ts"
import { type Before, Retention } from "../../../src/application/ports/Retention.ts"
import { journalsOf } from "../../../src/domain/destination/changes.ts"
import { journalOf } from "../../../src/domain/event/event.ts"
import type { DestinationId, MessageId, OrgId } from "../../../src/domain/ids.ts"
import { endedWell, type MessageView } from "../../../src/domain/message/view.ts"
import { streamOf } from "../../../src/domain/streams.ts"
import { liveViews } from "../log/runs.ts"
import { eraseIn, Memory, type Tables } from "../Memory.ts"

const ended: ReadonlySet<MessageView["status"]> = new Set(endedWell)
const isDead: ReadonlySet<MessageView["status"]> = new Set(["FAILED", "DEAD_LETTER"])

/** Its places in the feed stay, so that positions keep their meaning; there is nothing left to read at them. */
const forgetIn = (tables: Tables, id: MessageId): void => {
  tables.streams.delete(id)
  tables.messages.delete(id)
  eraseIn(tables, id)
  for (const views of tables.views.values()) views.delete(id)
  for (const [key, { messageId }] of tables.idempotencyKeys) if (messageId === id) tables.idempotencyKeys.delete(key)
}

const holdsPlace = (tables: Tables, id: MessageId): boolean =>
  [...tables.lines.values()].some((turns) => turns.some(({ message }) => message.messageId === id))

/** A follower of the log has yet to read a fact of it. */
const isUnread = ({ runs, feed, followers }: Tables, stream: string): boolean => {
  const facts = followers.get("facts")
  const alerts = followers.get("alerts")?.position ?? null
  const positions = [...runs.map(({ position }) => position), alerts, ...(facts?.begun ? [facts.position] : [])]
  return (
    feed.findLastIndex((entry) => entry.stream === stream) >= Math.min(...positions.map((at) => Number(at ?? 0) || 0))
  )
}

const isHeld = (tables: Tables, lane: DestinationId): boolean =>
  (tables.lanes.get(lane)?.length ?? 0) > 0 ||
  [...tables.lines.values()].some((turns) => turns.some(({ message }) => message.lane === lane)) ||
  [...tables.claims.values()].some(({ messages }) => messages.some((message) => message.lane === lane))

const beforeOf = (tables: Tables, orgId: OrgId, name: keyof RetentionDays, { now, daysMax, ended, dead }: Before) => {
  const days = tables.orgs.get(orgId)?.retention[name]
  if (days === undefined) return name === "endedDays" ? ended : dead
  return DateTime.subtractDuration(now, Duration.days(Math.min(days, daysMax ?? days)))
}

const isBefore = (at: DateTime.Utc | null, before: DateTime.Utc | null) =>
  at !== null && before !== null && DateTime.isLessThan(at, before)

const nextOf = <Seen>(seen: ReadonlyArray<Seen>, limit: number, idOf: (last: Seen) => string) =>
  seen.length < limit ? null : idOf(seen.at(-1)!)

export const layer = Layer.effect(
  Retention,
  Effect.gen(function* () {
    const { tables } = yield* Memory
    return Retention.of({
      find: (before, from, limit) =>
        Effect.sync(() => {
          const views = liveViews(tables)
          const seen = [...views.keys()]
            .filter((id) => from === null || id > from)
            .toSorted()
            .slice(0, limit)
          const isOver = ({ id, orgId, status, endedAt, updatedAt }: MessageView) => {
            if (ended.has(status)) return isBefore(endedAt, beforeOf(tables, orgId, "endedDays", before))
            const deadBefore = beforeOf(tables, orgId, "deadLetterDays", before)
            if (status === "SENT") return isBefore(updatedAt, deadBefore)
            return isDead.has(status) && isBefore(endedAt, deadBefore) && !holdsPlace(tables, id)
          }
          const messages = seen.flatMap((id) => {
            const view = views.get(id)!
            return isOver(view) && !isUnread(tables, streamOf(id)) ? [{ id, version: view.version }] : []
          })
          return { messages, next: nextOf(seen, limit, (id) => id) }
        }),
      forget: (messages) =>
        Effect.sync(() => {
          const gone = messages.filter(({ id, version }) => tables.streams.get(id)?.length === version)
          for (const { id } of gone) forgetIn(tables, id)
          return gone.length
        }),
      forgetEvents: (before, from, limit) =>
        Effect.sync(() => {
          const seen = [...tables.events]
            .filter(([id, { at, orgId }]) => {
              return (from === null || id > from) && isBefore(at, beforeOf(tables, orgId, "endedDays", before))
            })
            .toSorted(([a], [b]) => (a < b ? -1 : 1))
            .slice(0, limit)
          const gone = seen.filter(
            ([id, { messages }]) =>
              [...messages.values()].every((message) => !tables.streams.has(message)) &&
              !isUnread(tables, journalOf(id))
          )
          for (const [id] of gone) {
            tables.events.delete(id)
            tables.eventBodies.delete(id)
            for (const [key, { eventId }] of tables.eventKeys) if (eventId === id) tables.eventKeys.delete(key)
            tables.journals.delete(journalOf(id))
          }
          return { removed: gone.length, next: nextOf(seen, limit, ([id]) => id) }
        }),
      forgetDestinations: (removedBefore, prefixes, limit) =>
        Effect.sync(() => {
          const gone = [...tables.destinations]
            .flatMap(([id, { removed, destination }]) => {
              const prefix = removed ? prefixes.get(destination.channel) : undefined
              return prefix === undefined ? [] : [{ id, journals: journalsOf(prefix, id) }]
            })
            .filter(({ id, journals }) => {
              const facts = journals.flatMap((name) => tables.journals.get(name) ?? [])
              const isOld = facts.every(({ at }) => DateTime.isLessThan(at, removedBefore))
              return isOld && !journals.some((name) => isUnread(tables, name)) && !isHeld(tables, id)
            })
            .slice(0, limit)
          for (const { id, journals } of gone) {
            for (const name of journals) {
              tables.journals.delete(name)
            }
            for (const health of tables.health.values()) health.delete(id)
            for (const [key, { target, destination }] of tables.notices) {
              if (target === id || destination === id) tables.notices.delete(key)
            }
            tables.laneRows.delete(id)
            tables.destinations.delete(id)
          }
          return gone.length
        })
    })
  })
)
