/** The views of one message, each folded from its stream, so always current. A message of another org is not found. */
import { DateTime, Effect, Schema } from "effect"
import type { MessageId, OrgId } from "../../domain/ids.ts"
import { timeline, viewOf } from "../../domain/message/view.ts"
import { EventStore } from "../ports/EventStore.ts"
import { Parked } from "../ports/Parked.ts"

export class MessageNotFound extends Schema.TaggedError<MessageNotFound>()("MessageNotFound", {
  id: Schema.String
}) {}

/** A message whose stream can't be read is only known to be parked. */
export class MessageParked extends Schema.TaggedError<MessageParked>()("MessageParked", {
  at: Schema.DateTimeUtc
}) {}

export const loadStream = Effect.fnUntraced(function* (orgId: OrgId, id: MessageId) {
  const stream = yield* Effect.catchDefect((yield* EventStore).load(id), (defect) => unreadable(orgId, id, defect))
  const opening = stream.facts[0]?.fact
  if (opening?.type !== "MessageQueued" || opening.orgId !== orgId) return yield* new MessageNotFound({ id })
  return stream
})

/** An unreadable stream that is not parked is a bug like any other. */
const unreadable = Effect.fnUntraced(function* (orgId: OrgId, id: MessageId, defect: unknown) {
  const found = yield* (yield* Parked).find(orgId, id)
  return found === null ? yield* Effect.die(defect) : yield* new MessageParked({ at: found.at })
})

export const readMessage = Effect.fnUntraced(function* (orgId: OrgId, id: MessageId, at: DateTime.Utc | null) {
  const { facts } = yield* loadStream(orgId, id)
  const view = viewOf(id, upTo(facts, at))
  return view === null ? yield* new MessageNotFound({ id }) : view
})

/**
 * The facts that were known at a time; null: all. Times may run backwards a little when writers' clocks differ, so a
 * history ends at the first later fact.
 */
export const upTo = <Fact extends { readonly at: DateTime.Utc }>(
  facts: ReadonlyArray<Fact>,
  at: DateTime.Utc | null
): ReadonlyArray<Fact> => {
  if (at === null) return facts
  const later = facts.findIndex((fact) => DateTime.isGreaterThan(fact.at, at))
  return later === -1 ? facts : facts.slice(0, later)
}

export const readEvents = Effect.fnUntraced(function* (orgId: OrgId, id: MessageId) {
  return timeline((yield* loadStream(orgId, id)).facts).steps
})
