/** Erasures over the tables: the facts of a message as the domain says, and every row made anew from them. */
import { DateTime, Effect, Layer, Result } from "effect"
import { CommandedBy } from "../../../src/application/commandedBy.ts"
import { type ErasureJob, Erasures } from "../../../src/application/ports/Erasures.ts"
import type { JournalName } from "../../../src/application/ports/Journals.ts"
import { toRecorded } from "../../../src/domain/erasure/facts.ts"
import { journalOf } from "../../../src/domain/event/event.ts"
import type { EventId, MessageId, OrgId } from "../../../src/domain/ids.ts"
import { fromRecorded } from "../../../src/domain/message/recorded.ts"
import { viewOf } from "../../../src/domain/message/view.ts"
import { keptActor, partsOf, type RecordedFact } from "../../../src/domain/recorded.ts"
import { type ReplayRequested, fromRecorded as replayFact } from "../../../src/domain/replay/facts.ts"
import { addToJournal, eraseIn, Memory, type Tables } from "../Memory.ts"

const forgotten = <Row extends RecordedFact & { readonly actor: string | null }>(row: Row): Row => ({
  ...row,
  forgettable: null,
  actor: keptActor(row.actor)
})

const eraseFacts = (tables: Tables, id: MessageId): void => {
  const rows = (tables.streams.get(id) ?? []).map(forgotten)
  tables.streams.set(id, rows)
  if (rows[0] !== undefined) tables.messages.set(id, rows[0].data)
  eraseIn(tables, id)
  for (const [key, { messageId }] of tables.idempotencyKeys) if (messageId === id) tables.idempotencyKeys.delete(key)
  const history = rows.map((row, index) => ({
    version: index + 1,
    at: row.at,
    fact: Result.getOrThrow(fromRecorded(row))
  }))
  for (const views of tables.views.values()) {
    const view = viewOf(id, history)
    if (views.has(id) && view !== null) views.set(id, view)
  }
}

/** Receipts that wait and say a person, or a message by its provider's name. */
const eraseReceipts = (tables: Tables, orgId: OrgId, messages: ReadonlyArray<MessageId>): void => {
  const names = messages.flatMap((id) => {
    const { to, destination } = JSON.parse(tables.messages.get(id) ?? "{}")
    const rows = tables.streams.get(id) ?? []
    const provided = rows.map((row) => (partsOf(row) as { readonly providerMessageId?: unknown }).providerMessageId)
    return [...provided, to === destination ? null : to].filter((name) => typeof name === "string")
  })
  for (const [key, { receipt }] of tables.receipts) {
    if (receipt.orgId === orgId && names.some((name) => receipt.raw.includes(name))) tables.receipts.delete(key)
  }
}

const eraseEventFacts = (tables: Tables, id: EventId): void => {
  const journal = journalOf(id)
  tables.journals.set(journal, (tables.journals.get(journal) ?? []).map(forgotten))
  for (const [key, { eventId }] of tables.eventKeys) if (eventId === id) tables.eventKeys.delete(key)
}

/** Jobs that are for one of these texts or messages forget it; false, and nothing is done, while one has not begun its journal. */
const eraseJobs = (
  tables: Tables,
  orgId: OrgId,
  messages: ReadonlyArray<MessageId>,
  texts: ReadonlyArray<unknown>
): boolean => {
  const jobs = [...tables.replays.values()].filter(({ job }) => {
    if (job.orgId !== orgId) return false
    const { selection } = job
    if ("ids" in selection) return selection.ids.some((id) => messages.includes(id))
    if ("filter" in selection) return texts.includes(selection.filter.to ?? null)
    if (!("waiting" in selection)) return false
    return texts.includes(selection.waiting.to ?? null) || texts.includes(selection.waiting.correlationId ?? null)
  })
  const journal = (id: string): JournalName => `replay-${id}`
  if (!jobs.every(({ job }) => tables.journals.has(journal(job.id)))) return false
  for (const row of jobs) {
    const facts = tables.journals.get(journal(row.job.id))!.map(forgotten)
    tables.journals.set(journal(row.job.id), facts)
    const opening = Result.getOrThrow(replayFact(facts[0]!)) as ReplayRequested
    row.job = { ...row.job, selection: opening.selection, reason: null }
    row.idempotency = null
  }
  return true
}

const textsOf = (tables: Tables, messages: ReadonlyArray<MessageId>): ReadonlyArray<unknown> =>
  messages.flatMap((id) => {
    const said = JSON.parse(tables.messages.get(id) ?? "{}")
    return [said.to, said.correlationId].filter((text) => typeof text === "string" && text !== said.destination)
  })

export const layer = Layer.effect(
  Erasures,
  Effect.gen(function* () {
    const { tables, now } = yield* Memory
    const { erasures } = tables
    const shown = ({ sought: _, nextAt: __, ...erasure }: ErasureJob & { readonly nextAt: DateTime.Utc }) => erasure

    return Erasures.of({
      open: Effect.fnUntraced(function* (given) {
        const actor = yield* CommandedBy
        const erasure = {
          ...given,
          messages: 0,
          events: 0,
          requestedAt: now(),
          endedAt: null,
          nextAt: now()
        }
        erasures.set(given.id, erasure)
        const { id, orgId, by, reason } = given
        addToJournal(
          tables,
          `erasure-${id}`,
          [toRecorded({ type: "ErasureRequested", orgId, by, reason })],
          now(),
          actor
        )
        return shown(erasure)
      }),
      get: (orgId, id) =>
        Effect.sync(() => {
          const found = erasures.get(id)
          return found?.orgId === orgId ? shown(found) : null
        }),
      list: (orgId, { cursor, limit }) =>
        Effect.sync(() => {
          const all = [...erasures.values()]
            .filter((one) => one.orgId === orgId && (cursor === null || one.id < cursor))
            .toSorted((a, b) => (a.id < b.id ? 1 : -1))
          const items = all.slice(0, limit).map(shown)
          return { items, nextCursor: all.length > limit ? items.at(-1)!.id : null }
        }),
      take: (lease) =>
        Effect.sync(() => {
          const [due] = [...erasures.values()]
            .filter(({ endedAt, nextAt }) => endedAt === null && DateTime.isLessThanOrEqualTo(nextAt, now()))
            .toSorted((a, b) => DateTime.Order(a.nextAt, b.nextAt))
          if (due === undefined) return null
          erasures.set(due.id, { ...due, nextAt: DateTime.addDuration(now(), lease) })
          return due
        }),
      find: ({ orgId, by, sought }, limit) =>
        Effect.sync(() => {
          const of = { dossierId: "dossierId", recipient: "to", correlationId: "correlationId" } as const
          const messages = [...tables.messages].filter(([_, data]) => {
            const said = JSON.parse(data)
            if (said.orgId !== orgId) return false
            return by === "metadata" ? said.metadata?.[sought[0]!] === sought[1] : sought.includes(said[of[by]])
          })
          const events = [...tables.events]
            .filter(([id, event]) => {
              if (event.orgId !== orgId || by === "recipient") return false
              const [first] = tables.journals.get(journalOf(id)) ?? []
              const said = (first === undefined ? {} : partsOf(first)) as {
                readonly metadata?: Readonly<Record<string, string>>
              } & Readonly<Record<string, string>>
              return by === "metadata" ? said.metadata?.[sought[0]!] === sought[1] : sought.includes(said[by]!)
            })
            .map(([id]) => id)
          return { messages: messages.map(([id]) => id).slice(0, limit), events: events.slice(0, limit) }
        }),
      erase: ({ id, orgId }, messages, events) =>
        Effect.sync(() => {
          if (!eraseJobs(tables, orgId, messages, textsOf(tables, messages))) return false
          eraseReceipts(tables, orgId, messages)
          for (const message of messages) eraseFacts(tables, message)
          for (const event of events) eraseEventFacts(tables, event)
          const job = erasures.get(id)!
          erasures.set(id, { ...job, messages: job.messages + messages.length, events: job.events + events.length })
          return true
        }),
      back: (id, pause) =>
        Effect.sync(() => void erasures.set(id, { ...erasures.get(id)!, nextAt: DateTime.addDuration(now(), pause) })),
      close: ({ id, orgId, by, sought }) =>
        Effect.sync(() => {
          const names = by === "recipient" || by === "correlationId"
          if (names && !eraseJobs(tables, orgId, [], sought)) return false
          const job = erasures.get(id)!
          const { messages, events } = job
          erasures.set(id, { ...job, sought: [], endedAt: now() })
          addToJournal(
            tables,
            `erasure-${id}`,
            [toRecorded({ type: "ErasureCompleted", orgId, messages, events })],
            now(),
            null
          )
          return true
        })
    })
  })
)
