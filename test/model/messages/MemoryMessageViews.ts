/** The list projection over a map: every question is a filter and a sort. */
import { DateTime, Effect, Layer } from "effect"
import { countsOf, type MessageFilter, MessageViews } from "../../../src/application/ports/MessageViews.ts"
import type { MessageStatus } from "../../../src/domain/message/machine.ts"
import { queuedOf } from "../../../src/domain/message/recorded.ts"
import { isDead, type MessageView } from "../../../src/domain/message/view.ts"
import { partsOf } from "../../../src/domain/recorded.ts"
import { clearRows, liveViews, moveRun, rowsOf } from "../log/runs.ts"
import { Memory } from "../Memory.ts"
import { deadLettersIn } from "../replays/deadLetters.ts"

const matches = (view: MessageView, filter: MessageFilter): boolean => {
  const {
    createdAfter,
    createdBefore,
    updatedAfter,
    metadata,
    attempts,
    errorCode,
    idempotencyKey: _,
    ...equal
  } = filter
  return (
    (updatedAfter === undefined || DateTime.isGreaterThan(view.updatedAt, updatedAfter)) &&
    (metadata === undefined || view.metadata?.[metadata.name] === metadata.value) &&
    (attempts === undefined || view.attempts >= attempts) &&
    (errorCode === undefined || (isDead(view.status) && view.lastError?.code === errorCode)) &&
    (createdAfter === undefined || DateTime.isGreaterThan(view.createdAt, createdAfter)) &&
    (createdBefore === undefined || DateTime.isLessThan(view.createdAt, createdBefore)) &&
    Object.entries(equal).every(([field, wanted]) => view[field as keyof typeof equal] === wanted)
  )
}

/** Where a view stands in the list; as text it sorts the way the list does. */
const placeAt = (time: DateTime.Utc, { id }: MessageView) =>
  `${String(DateTime.toEpochMillis(time)).padStart(16, "0")} ${id}`
const place = (view: MessageView) => placeAt(view.createdAt, view)
const placeOfEnding = (view: MessageView) => placeAt(view.endsAt!, view)
const listed = ({ id, version }: MessageView) => ({ id, version })
const placeOfDead = (view: MessageView) => placeAt(view.endedAt!, view)

export const layer = Layer.effect(
  MessageViews,
  Effect.gen(function* () {
    const memory = yield* Memory
    const { tables, now } = memory
    const ofOrg = (orgId: string | null) =>
      [...liveViews(tables).values()].filter((view) => orgId === null || view.orgId === orgId)

    return MessageViews.of({
      list: (orgId, filter, { cursor, limit }) =>
        Effect.sync(() => {
          const left = ofOrg(orgId)
            .filter((view) => matches(view, filter))
            .filter(({ id, orgId: whose }) => {
              const { idempotencyKey: key } = filter
              return key === undefined || tables.idempotencyKeys.get(`${whose} ${key}`)?.messageId === id
            })
            .filter((view) => cursor === null || place(view) < cursor)
            .toSorted((a, b) => (place(a) > place(b) ? -1 : 1))
          const items = left.slice(0, limit)
          return { items: items.map(listed), nextCursor: left.length > limit ? place(items.at(-1)!) : null }
        }),
      deadLetters: (orgId, filter, { cursor, limit }) =>
        Effect.sync(() => {
          const left = deadLettersIn(tables, orgId, filter)
            .filter((view) => cursor === null || placeOfDead(view) < cursor)
            .toSorted((a, b) => (placeOfDead(a) > placeOfDead(b) ? -1 : 1))
          const items = left.slice(0, limit)
          return { items: items.map(listed), nextCursor: left.length > limit ? placeOfDead(items.at(-1)!) : null }
        }),
      countDeadLetters: (orgId, filter) =>
        Effect.sync(() => {
          const dead = deadLettersIn(tables, orgId, filter)
          return { matched: dead.length, contradicted: dead.filter(({ contradicted }) => contradicted).length }
        }),
      ofReplay: (id) =>
        Effect.sync(() => {
          const counts = new Map<MessageStatus, number>()
          for (const { replayId, status } of liveViews(tables).values()) {
            if (replayId === id) counts.set(status, (counts.get(status) ?? 0) + 1)
          }
          return counts
        }),
      ending: (at, { cursor, limit }) =>
        Effect.sync(() => {
          const left = [...liveViews(tables).values()]
            .filter(
              ({ status, endsAt }) => status === "QUEUED" && endsAt != null && !DateTime.isGreaterThan(endsAt, at)
            )
            .filter((view) => cursor === null || placeOfEnding(view) > cursor)
            .toSorted((a, b) => (placeOfEnding(a) < placeOfEnding(b) ? -1 : 1))
          const items = left.slice(0, limit)
          return {
            items: items.map(({ id }) => id),
            nextCursor: left.length > limit ? placeOfEnding(items.at(-1)!) : null
          }
        }),
      ofDossier: ({ orgId, dossierId, channel }, after, limit) =>
        Effect.sync(() =>
          [...tables.streams]
            .flatMap(([id, [first]]) => {
              const opening = first === undefined ? null : queuedOf(partsOf(first))
              const isOf = opening?.orgId === orgId && opening.dossierId === dossierId && opening.channel === channel
              return isOf && (after === null || id > after) ? [id] : []
            })
            .toSorted()
            .slice(0, limit)
        ),
      stats: (orgId) =>
        Effect.sync(() => {
          const views = ofOrg(orgId)
          const late = views.flatMap(({ nextAttemptAt }) =>
            nextAttemptAt !== null && DateTime.isLessThan(nextAttemptAt, now()) ? [nextAttemptAt] : []
          )
          return {
            ...countsOf(views.map(({ channel, status }) => ({ channel, status, count: 1 }))),
            oldestDueAt: late.length === 0 ? null : late.reduce((a, b) => DateTime.min(a, b))
          }
        }),
      project: (step, news) =>
        Effect.sync(() => {
          if (!moveRun(memory, "messages", step)) return false
          const views = rowsOf(tables.views, step.generation)
          for (const view of news) {
            if (view.version > (views.get(view.id)?.version ?? 0)) views.set(view.id, view)
          }
          return true
        }),
      clear: () => Effect.sync(() => clearRows(tables, "messages", tables.views))
    })
  })
)
