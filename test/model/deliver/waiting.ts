/**
 * The waiting state of the queue as two changes on the tables: put a message in its lane, take it out. The
 * event store applies them with the facts that cause them, the queue when it hands messages out or back.
 */
import { DateTime } from "effect"
import type { AbandonedMessage } from "../../../src/application/ports/Queue.ts"
import type { DestinationId, MessageId } from "../../../src/domain/ids.ts"
import type { Memory, Tables } from "../Memory.ts"

const isSame = (waiting: AbandonedMessage, messageId: MessageId, dueAt: DateTime.Utc) =>
  waiting.messageId === messageId && DateTime.Equivalence(waiting.dueAt, dueAt)

const isAfter = (a: AbandonedMessage, b: AbandonedMessage) =>
  DateTime.isGreaterThan(a.dueAt, b.dueAt) || (DateTime.Equivalence(a.dueAt, b.dueAt) && a.messageId > b.messageId)

export const isDue = (waiting: AbandonedMessage, now: DateTime.Utc) => DateTime.isLessThanOrEqualTo(waiting.dueAt, now)

/** Putting what already waits changes nothing. Whoever puts announces when the whole change is made. */
export const putWaiting = ({ tables, now }: Memory["Service"], message: AbandonedMessage): void => {
  const lane = tables.lanes.get(message.lane) ?? []
  if (lane.some((waiting) => isSame(waiting, message.messageId, message.dueAt))) return
  const place = lane.findIndex((waiting) => isAfter(waiting, message))
  lane.splice(place === -1 ? lane.length : place, 0, message)
  tables.lanes.set(message.lane, lane)
  if (isDue(message, now())) tables.hasNews = true
}

/** Wakes those who wait for work. Not from within a change: who wakes may claim at once. */
export const announceDueWork = ({ tables, onDueWork }: Memory["Service"]): void => {
  if (!tables.hasNews) return
  tables.hasNews = false
  for (const wake of onDueWork) wake()
}

/** Removing what does not wait changes nothing: a worker may have claimed it a moment ago. */
export const removeWaiting = (
  { lanes }: Tables,
  { lane, messageId, dueAt }: { lane: DestinationId; messageId: MessageId; dueAt: DateTime.Utc }
): void => {
  const left = (lanes.get(lane) ?? []).filter((waiting) => !isSame(waiting, messageId, dueAt))
  // `set` on a lane that exists keeps its turn.
  if (left.length === 0) lanes.delete(lane)
  else lanes.set(lane, left)
}
