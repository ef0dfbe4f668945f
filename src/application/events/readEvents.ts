/** Reads one event of an org, its body and its messages, and erases it. */
import { DateTime, Effect, Result, Schema } from "effect"
import { can, journalOf, replay, viewOf } from "../../domain/event/event.ts"
import type { EventFact } from "../../domain/event/facts.ts"
import { fromRecorded, toRecorded } from "../../domain/event/facts.ts"
import type { EventId, MessageId, OrgId } from "../../domain/ids.ts"
import { type MessageView, viewOf as viewOfMessage } from "../../domain/message/view.ts"
import { appendToJournal, command } from "../command.ts"
import { eraseMessage, MessageBusy } from "../messages/commandMessage.ts"
import { EventStore } from "../ports/EventStore.ts"
import { Events } from "../ports/Events.ts"
import type { Page, PageRequest } from "../ports/errors.ts"
import { Journals } from "../ports/Journals.ts"

export class EventNotFound extends Schema.TaggedError<EventNotFound>()("EventNotFound", { id: Schema.String }) {}

const historyOf = Effect.fnUntraced(function* (id: EventId) {
  const stored = yield* (yield* Journals).load(journalOf(id))
  return stored.map((row) => ({ ...row, fact: Result.getOrThrow(fromRecorded(row)) }))
})

const viewIn = (id: EventId, history: Effect.Success<ReturnType<typeof historyOf>>) =>
  history[0] === undefined
    ? null
    : viewOf(
        id,
        history[0].at,
        history.map(({ fact }) => fact)
      )

export const loadEvent = Effect.fnUntraced(function* (orgId: OrgId, id: EventId) {
  const event = viewIn(id, yield* historyOf(id))
  return event?.orgId === orgId ? event : null
})

export const readEvent = Effect.fnUntraced(function* (orgId: OrgId, id: EventId) {
  return (yield* loadEvent(orgId, id)) ?? (yield* new EventNotFound({ id }))
})

export const readBody = Effect.fnUntraced(function* (orgId: OrgId, id: EventId) {
  yield* readEvent(orgId, id)
  return yield* (yield* Events).body(id)
})

/** The messages it became; those that retention has forgotten are left out. */
export const readMessages = Effect.fnUntraced(function* (orgId: OrgId, id: EventId, page: PageRequest) {
  yield* readEvent(orgId, id)
  const { items: ids, nextCursor } = yield* (yield* Events).messagesOf(id, page)
  const streams = yield* (yield* EventStore).loadMany(ids)
  const items = ids.flatMap((each): ReadonlyArray<MessageView> => {
    const view = viewOfMessage(each, streams.get(each)?.facts ?? [])
    return view === null ? [] : [view]
  })
  return { items, nextCursor } satisfies Page<MessageView>
})

const AT_ONCE = 200

/**
 * Removes the body of the event and the bodies and answers of all its messages. The texts go first: after a crash more
 * is gone than the history says, and a repeat completes it.
 */
export const eraseEvent = Effect.fnUntraced(function* (orgId: OrgId, id: EventId, reason: string | null) {
  const events = yield* Events
  yield* readEvent(orgId, id)
  yield* events.erase(id)
  for (let cursor: string | null = null; ; ) {
    const page: Page<MessageId> = yield* events.messagesOf(id, { cursor, limit: AT_ONCE })
    yield* Effect.forEach(
      page.items,
      (messageId) =>
        Effect.catchTags(eraseMessage(orgId, messageId, reason), {
          MessageNotFound: () => Effect.void,
          CommandRefused: () => Effect.void
        }),
      { concurrency: 8, discard: true }
    )
    if (page.nextCursor === null) break
    cursor = page.nextCursor
  }
  const fact: EventFact = { type: "EventErased", orgId, reason }
  return yield* command(
    {
      load: historyOf(id),
      decide: Effect.fnUntraced(function* (history) {
        const before = viewIn(id, history) ?? (yield* new EventNotFound({ id }))
        if (!can(replay(history.map((each) => each.fact)), fact)) return { entry: null, answer: before }
        const entry = { expected: history.length, facts: [toRecorded(fact)], at: yield* DateTime.now }
        return { entry, answer: { ...before, bodyErased: true } }
      }),
      append: appendToJournal(journalOf(id))
    },
    { tries: 6 }
  ).pipe(Effect.catchTag("Overtaken", () => Effect.fail(new MessageBusy({ id }))))
})
