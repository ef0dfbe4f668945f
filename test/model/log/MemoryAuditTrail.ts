/** Audit and timelines over the facts in memory: every question is a filter and a sort. */
import { DateTime, Effect, Layer } from "effect"
import { AuditTrail, activityIn, itemOf } from "../../../src/application/ports/AuditTrail.ts"
import type { LoggedFact } from "../../../src/application/ports/EventStore.ts"
import { entryOf, orgTold } from "../../../src/domain/audit/entry.ts"
import { activityOf } from "../../../src/domain/consent/activity.ts"
import { DestinationId, type MessageId } from "../../../src/domain/ids.ts"
import { queuedOf } from "../../../src/domain/message/recorded.ts"
import { partsOf } from "../../../src/domain/recorded.ts"
import { messageOf } from "../../../src/domain/streams.ts"
import { factAt, Memory, type Tables } from "../Memory.ts"
import { newestFirst } from "../store/entries.ts"

const logged = (tables: Tables): ReadonlyArray<LoggedFact> =>
  tables.feed.flatMap((entry, place) => {
    const row = factAt(tables, entry)
    return row === undefined ? [] : [{ ...row, ...entry, position: String(place + 1) }]
  })

const openingOf = ({ streams }: Tables, id: MessageId) => {
  const first = streams.get(id)?.[0]
  return first === undefined ? null : queuedOf(partsOf(first))
}

/** The org whose audit lists the fact without being asked for its subject. */
const orgOf = (tables: Tables, { stream, messageId, version, actor, name, data }: LoggedFact) => {
  if (messageId !== null) return actor === null || version === 1 ? null : openingOf(tables, messageId)?.orgId
  if (stream.startsWith("circuit-")) {
    return actor === null
      ? null
      : tables.destinations.get(DestinationId.make(stream.slice("circuit-".length)))?.destination.orgId
  }
  const org = orgTold({ name, data })
  return org === "" ? orgTold(tables.journals.get(stream)![0]!) : org
}

export const layer = Layer.effect(
  AuditTrail,
  Effect.gen(function* () {
    const { tables } = yield* Memory
    return AuditTrail.of({
      list: (orgId, { operation, actor, subject, from, to }, page) =>
        Effect.sync(() => {
          const isOwn = (stream: string) => {
            const id = messageOf(stream)
            return id !== null && openingOf(tables, id)?.orgId === orgId
          }
          const rows = logged(tables).filter((fact) => {
            const entry = entryOf(fact)
            return (
              entry !== null &&
              (orgOf(tables, fact) === orgId || (fact.stream === subject && isOwn(subject))) &&
              (subject === undefined || fact.stream === subject) &&
              (operation === undefined || entry.operation === operation) &&
              (actor === undefined || fact.actor === actor) &&
              (from === undefined || DateTime.isGreaterThanOrEqualTo(fact.at, from)) &&
              (to === undefined || DateTime.isLessThan(fact.at, to))
            )
          })
          const { items, nextCursor } = newestFirst(rows, page)
          return { items: items.map((fact) => itemOf(orgId, fact)), nextCursor }
        }),
      timeline: (orgId, dossierId, consents, page) =>
        Effect.sync(() => {
          const isOf = ({ stream, messageId, data }: LoggedFact) => {
            if (messageId !== null) {
              const opening = openingOf(tables, messageId)
              return opening?.orgId === orgId && opening.dossierId === dossierId
            }
            if (stream.startsWith("consent-")) return consents.some((journal) => journal === stream)
            const said = JSON.parse(data)
            return stream.startsWith("blocked-") && said.orgId === orgId && said.dossierId === dossierId
          }
          const rows = logged(tables).filter((fact) => {
            const operation = entryOf(fact)?.operation
            return operation !== undefined && activityOf(operation) !== null && isOf(fact)
          })
          const { items, nextCursor } = newestFirst(rows, page)
          const channelOf = (id: MessageId | null) => (id === null ? null : (openingOf(tables, id)?.channel ?? null))
          return {
            items: items.map((fact) => activityIn(dossierId, fact, channelOf(fact.messageId))),
            nextCursor
          }
        })
    })
  })
)
