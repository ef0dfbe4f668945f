/** What can be alerted about, over the maps of all kinds of destinations. */
import { DateTime, Effect, Layer, Result } from "effect"
import { type AlertSubject, AlertSubjects } from "../../../src/application/ports/AlertSubjects.ts"
import { journalOf } from "../../../src/domain/destination/changes.ts"
import { fromRecorded } from "../../../src/domain/destination/recorded.ts"
import type { DestinationId, OrgId } from "../../../src/domain/ids.ts"
import type { OldestDue } from "../../../src/domain/overdue/decider.ts"
import { isDue } from "../deliver/waiting.ts"
import { Memory, type Tables } from "../Memory.ts"

const find = (tables: Tables, id: DestinationId): AlertSubject | null => {
  const endpoint = tables.endpoints.get(id)?.endpoint
  if (endpoint !== undefined)
    return { id, orgId: endpoint.orgId, channel: "webhook", url: endpoint.url, removed: false }
  const target = tables.httpTargets.get(id)?.target
  if (target !== undefined) return { id, orgId: target.orgId, channel: "http", url: target.url, removed: false }
  const account = tables.whatsAppAccounts.get(id)?.account
  if (account !== undefined) return { id, orgId: account.orgId, channel: "whatsapp", url: null, removed: false }
  return removed(tables, id)
}

/** Its row is gone; its journal says what it was. */
const removed = (tables: Tables, id: DestinationId): AlertSubject | null => {
  for (const channel of ["webhook", "http", "whatsapp"] as const) {
    const last = tables.journals.get(journalOf(channel, id))?.at(-1)
    if (last === undefined) continue
    const fact = Result.getOrThrow(fromRecorded(last))
    if (fact.type === "DestinationRemoved") return { id, orgId: fact.orgId, channel, url: null, removed: true }
  }
  return null
}

/** Null for an alert target's destination. */
const subjectOf = (tables: Tables, id: DestinationId): AlertSubject | null =>
  tables.alertTargets.has(id) ? null : find(tables, id)

export const layer = Layer.effect(
  AlertSubjects,
  Effect.gen(function* () {
    const { tables, now } = yield* Memory
    return AlertSubjects.of({
      among: (destinations) =>
        Effect.sync(() => {
          const found = destinations.flatMap((id) => subjectOf(tables, id) ?? [])
          return new Map(found.map((subject) => [subject.id, subject]))
        }),
      oldestDue: (orgs) =>
        Effect.sync(() => {
          const oldest = new Map<OrgId, OldestDue>()
          for (const [lane, waiting] of tables.lanes) {
            const orgId = subjectOf(tables, lane)?.orgId
            const first = waiting.find((message) => isDue(message, now()))
            if (orgId === undefined || first === undefined || !orgs.includes(orgId)) continue
            const known = oldest.get(orgId)
            if (known !== undefined && DateTime.isLessThanOrEqualTo(known.dueAt, first.dueAt)) continue
            oldest.set(orgId, { messageId: first.messageId, destination: lane, dueAt: first.dueAt })
          }
          return oldest
        })
    })
  })
)
