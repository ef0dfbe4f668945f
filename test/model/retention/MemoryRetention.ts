/** Sweeps over the views in the order of their ids. One synchronous step each, so two are never under way at once. */
import { DateTime, Duration, Effect, Equal, Layer } from "effect"
import type { RetentionDays } from "../../../src/application/ports/Orgs.ts"
import { type Before, Retention } from "../../../src/application/ports/Retention.ts"
import { journalsOf } from "../../../src/domain/destination/changes.ts"
import { endless } from "../../../src/domain/endless.ts"
import { journalOf } from "../../../src/domain/event/event.ts"
import type { DestinationId, MessageId, OrgId, ReplayId } from "../../../src/domain/ids.ts"
import { endedWell, type MessageView } from "../../../src/domain/message/view.ts"
import { halvesOf } from "../../../src/domain/streams.ts"
import { untouched } from "../deliver/lanes.ts"
import { liveViews } from "../log/runs.ts"
import { eraseIn, Memory, type Tables } from "../Memory.ts"

const ended: ReadonlySet<MessageView["status"]> = new Set(endedWell)

const isDead: ReadonlySet<MessageView["status"]> = new Set(["FAILED", "DEAD_LETTER"])

/** Its places in the feed stay, so that positions keep their meaning; there is nothing left to read at them. */
const forget = (tables: Tables, id: MessageId): void => {
  tables.streams.delete(id)
  eraseIn(tables, id)
  tables.forgotten.add(id)
  for (const views of tables.views.values()) views.delete(id)
  for (const [key, { messageId }] of tables.idempotencyKeys) if (messageId === id) tables.idempotencyKeys.delete(key)
}

const holdsPlace = (tables: Tables, id: MessageId): boolean =>
  [...tables.lines.values()].some((turns) => turns.some(({ message }) => message.messageId === id))

/** Whatever lists know: here the streams themselves can be asked. */
const isPointedAt = (tables: Tables, destination: DestinationId): boolean =>
  (tables.lanes.get(destination)?.length ?? 0) > 0 ||
  [...tables.streams.values()].some(
    ([first]) => first !== undefined && JSON.parse(first.data).destination === destination
  )

/** How much of the feed everybody has read who keeps a place in it. */
const readBy = ({ runs, alerting, factOutlet: { begun, position, until } }: Tables, since: DateTime.Utc): number => {
  const isHeld = begun && until !== null && !DateTime.isLessThan(until, since)
  const positions = [...runs.map(({ position }) => position), alerting.position, ...(isHeld ? [position] : [])]
  return Math.min(...positions.map((position) => Number(position ?? 0)))
}

/** Those that are nobody's, and as a message would make them anew. */
const forgetLanes = (tables: Tables): void => {
  for (const [lane, row] of tables.laneRows) {
    if (!tables.destinations.has(lane) && Equal.equals(row, untouched)) tables.laneRows.delete(lane)
  }
}

const beforeOf = (tables: Tables, orgId: OrgId, name: keyof RetentionDays, { now, daysMax, ended, dead }: Before) => {
  const days = tables.orgs.get(orgId)?.retention[name]
  if (days === undefined) return name === "endedDays" ? ended : dead
  return DateTime.subtractDuration(now, Duration.days(Math.min(days, daysMax ?? days)))
}

export const layer = Layer.effect(
  Retention,
  Effect.gen(function* () {
    const { tables } = yield* Memory
    return Retention.of({
      sweep: (before, from, limit) =>
        Effect.sync(() => {
          const views = liveViews(tables)
          const seen = [...views.keys()]
            .filter((id) => from === null || id > from)
            .toSorted()
            .slice(0, limit)
          const old = seen.filter((id) => {
            const { orgId, status, endedAt, createdAt, version } = views.get(id)!
            const endedBefore = beforeOf(tables, orgId, "endedDays", before)
            const deadBefore = beforeOf(tables, orgId, "deadLetterDays", before)
            const isBefore = (at: DateTime.Utc | null, before: DateTime.Utc | null) =>
              at !== null && before !== null && DateTime.isLessThan(at, before)
            if (ended.has(status)) return isBefore(endedAt, endedBefore)
            if (tables.streams.get(id)?.length !== version) return false
            if (status === "SENT") return isBefore(createdAt, deadBefore)
            return isDead.has(status) && isBefore(endedAt, deadBefore) && !holdsPlace(tables, id)
          })
          for (const id of old) forget(tables, id)
          return { removed: old.length, next: seen.length < limit ? null : seen.at(-1)! }
        }),
      sweepEvents: (before, from, limit) =>
        Effect.sync(() => {
          const seen = [...tables.events]
            .filter(([id, { at, orgId }]) => {
              const publishedBefore = beforeOf(tables, orgId, "endedDays", before)
              return (
                (from === null || id > from) && publishedBefore !== null && DateTime.isLessThan(at, publishedBefore)
              )
            })
            .toSorted(([a], [b]) => (a < b ? -1 : 1))
            .slice(0, limit)
          const gone = seen.filter(([, { messages }]) => [...messages.values()].every((id) => !tables.streams.has(id)))
          for (const [id] of gone) {
            tables.events.delete(id)
            tables.eventBodies.delete(id)
            for (const [key, { eventId }] of tables.eventKeys) if (eventId === id) tables.eventKeys.delete(key)
            tables.journals.delete(journalOf(id))
          }
          return { removed: gone.length, next: seen.length < limit ? null : seen.at(-1)![0] }
        }),
      sweepFronts: (restedBefore, from, limit) =>
        Effect.sync(() => {
          const seen = [...tables.journals.keys()]
            .filter((name) => endless.has(halvesOf(name)[0]) && (from === null || name > from))
            .toSorted()
            .slice(0, limit)
          const read = readBy(tables, restedBefore)
          const isHeld = (journal: string, rest: number) =>
            tables.feed.findLastIndex(({ stream, version }) => stream === journal && version <= rest) >= read ||
            tables.parked.has(journal)
          let removed = 0
          for (const name of seen) {
            const facts = tables.journals.get(name)!
            const rests = endless.get(halvesOf(name)[0])!
            const rest = facts.findLastIndex(
              ({ name, at }) => rests.includes(name.split("@")[0]!) && DateTime.isLessThan(at, restedBefore)
            )
            if (rest < 1 || isHeld(name, facts[rest]!.version)) continue
            tables.journals.set(name, facts.slice(rest))
            removed += rest
          }
          return { removed, next: seen.length < limit ? null : seen.at(-1)! }
        }),
      sweepDestinations: (removedBefore, journals, from, limit) =>
        Effect.sync(() => {
          if (from === null) forgetLanes(tables)
          const seen = [...tables.destinations]
            .filter(([id, { removed }]) => removed && (from === null || id > from))
            .toSorted(([a], [b]) => (a < b ? -1 : 1))
            .slice(0, limit)
          const gone = seen.filter(([id, { destination }]) => {
            const prefix = journals.get(destination.channel)
            if (prefix === undefined) return false
            const names = journalsOf(prefix, id)
            const facts = names.flatMap((name) => tables.journals.get(name) ?? [])
            return (
              facts.every(({ at }) => DateTime.isLessThan(at, removedBefore)) &&
              !names.some((name) => tables.parked.has(name)) &&
              !isPointedAt(tables, id)
            )
          })
          for (const [id, { destination }] of gone) {
            for (const name of journalsOf(journals.get(destination.channel)!, id)) {
              tables.journals.delete(name)
            }
            for (const health of tables.health.values()) health.delete(id)
            for (const [key, { target, destination }] of tables.alerting.notices) {
              if (target === id || destination === id) tables.alerting.notices.delete(key)
            }
            tables.laneRows.delete(id)
            tables.destinations.delete(id)
          }
          return { removed: gone.length, next: seen.length < limit ? null : seen.at(-1)![0] }
        }),
      sweepDeeds: (doneBefore, from, limit) =>
        Effect.sync(() => {
          const seen = [...tables.journals]
            .filter(([name]) => /^(access|blocked|command|replay)-/.test(name) && (from === null || name > from))
            .filter(([, facts]) => DateTime.isLessThan(facts[0]!.at, doneBefore))
            .toSorted(([a], [b]) => (a < b ? -1 : 1))
            .slice(0, limit)
          const gone = seen.filter(([name]) => {
            const replay = tables.replays.get(name.slice("replay-".length) as ReplayId)
            return replay === undefined || replay.nextAt === null
          })
          for (const [name] of gone) {
            tables.replays.delete(name.slice("replay-".length) as ReplayId)
            tables.journals.delete(name)
          }
          return { removed: gone.length, next: seen.length < limit ? null : seen.at(-1)![0] }
        })
    })
  })
)
