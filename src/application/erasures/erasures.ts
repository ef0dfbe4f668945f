/**
 * Erases a person: bodies, answers, recipients and details of every message and event that one field finds. A request
 * is stored; a job then repeats until nothing is found. Waiting messages are cancelled and those under way awaited,
 * because only ended ones stay as they are.
 */
import { Duration, Effect } from "effect"
import type { ErasureField } from "../../domain/erasure/facts.ts"
import type { EventId, MessageId, OrgId } from "../../domain/ids.ts"
import { recipientOf } from "../../domain/whatsapp/recipient.ts"
import { backgroundOn } from "../background.ts"
import { eraseEvent } from "../events/readEvents.ts"
import { newMessageIds } from "../messageIds.ts"
import { commandMessage, eraseMessage } from "../messages/commandMessage.ts"
import { type ErasureJob, Erasures } from "../ports/Erasures.ts"
import { Pulse } from "../ports/Pulse.ts"

/** Exactly one of the fields. */
export interface Person {
  readonly dossierId?: string | null | undefined
  readonly recipient?: string | null | undefined
  readonly correlationId?: string | null | undefined
  readonly metadata?: Readonly<Record<string, string>> | null | undefined
}

export const requestErasure = Effect.fnUntraced(function* (orgId: OrgId, person: Person, reason: string | null) {
  const [id] = yield* newMessageIds(1)
  const opened = yield* (yield* Erasures).open({ id: id!, orgId, reason, ...soughtOf(person) })
  yield* (yield* Pulse).wake("jobs")
  return opened
})

const soughtOf = (person: Person): { readonly by: ErasureField; readonly sought: ReadonlyArray<string> } => {
  const { dossierId, recipient, correlationId, metadata } = person
  if (dossierId != null) return { by: "dossierId", sought: [dossierId] }
  if (correlationId != null) return { by: "correlationId", sought: [correlationId] }
  // Messages have the digits of a phone number, however its sender wrote it.
  if (recipient != null)
    return { by: "recipient", sought: [...new Set([recipient, recipientOf(recipient) ?? recipient])] }
  return { by: "metadata", sought: Object.entries(metadata ?? {})[0]! }
}

const ROWS_MAX = 200
const LEASE = Duration.seconds(60)
const PAUSE = Duration.millis(200)
const PATIENCE = Duration.seconds(2)

export const eraseOnce = Effect.fnUntraced(function* () {
  const erasures = yield* Erasures
  const job = yield* erasures.take(LEASE)
  if (job === null) return false
  const { messages, events } = yield* erasures.find(job, ROWS_MAX)
  if (messages.length === 0 && events.length === 0) {
    if (!(yield* erasures.close(job))) yield* erasures.back(job.id, PAUSE)
    return true
  }
  yield* Effect.forEach(events, (id) => withoutEventBody(job.orgId, id), { discard: true })
  const ended = yield* Effect.forEach(messages, (id) => ending(job, id), { concurrency: 8 })
  const erased = ended.flatMap((id) => id ?? [])
  const hasWork = erased.length > 0 || events.length > 0
  const isDone = hasWork && (yield* erasures.erase(job, erased, events))
  yield* erasures.back(job.id, isDone ? Duration.zero : PATIENCE)
  return true
})

const withoutEventBody = (orgId: OrgId, id: EventId) =>
  Effect.catchTags(eraseEvent(orgId, id, null), {
    // Its journal was forgotten, and its body with it.
    EventNotFound: () => Effect.void,
    MessageBusy: () => Effect.void,
    MessageParked: () => Effect.void
  })

/** The message, once it has no body and has ended; null while it has not, or other writers are changing it. */
const ending = ({ orgId }: ErasureJob, id: MessageId) =>
  Effect.gen(function* () {
    const { status } = yield* eraseMessage(orgId, id, null)
    if (status === "SENDING") return null
    if (status === "QUEUED") yield* commandMessage(orgId, id, "CancelMessage", null)
    return id
  }).pipe(
    Effect.catchTags({
      MessageNotFound: () => Effect.succeed(null),
      MessageBusy: () => Effect.succeed(null),
      CommandRefused: () => Effect.succeed(null),
      MessageParked: () => Effect.succeed(id)
    })
  )

export const carryOutErasures = backgroundOn("jobs", "erasing", Effect.suspend(eraseOnce))
