/** A message, its facts and its attempts in the words of the API. */
import { DateTime } from "effect"
import type { MessageStatus } from "../../domain/message/machine.ts"
import { toRecorded } from "../../domain/message/recorded.ts"
import type { Status } from "../../domain/message/transitions.ts"
import type { AttemptView, MessageView, StoredFact } from "../../domain/message/view.ts"

export const moment = (time: DateTime.Utc): string => DateTime.formatIso(time)
const momentOrNull = (time: DateTime.Utc | null) => (time === null ? null : moment(time))

export const messageJson = (view: MessageView) => ({
  id: view.id,
  orgId: view.orgId,
  channel: view.channel,
  to: view.to,
  status: view.status,
  epoch: view.epoch,
  attempts: view.attempts,
  attemptsMax: view.attemptsMax,
  nextAttemptAt: momentOrNull(view.nextAttemptAt),
  lastError: view.lastError,
  providerMessageId: view.providerMessageId,
  eventType: view.eventType,
  dossierId: view.dossierId,
  orderingKey: view.orderingKey,
  correlationId: view.correlationId,
  createdAt: moment(view.createdAt),
  updatedAt: moment(view.updatedAt)
})

export const factJson = ({ version, at, fact }: StoredFact) => {
  const { name, data } = toRecorded(fact)
  return { version, name, type: fact.type, at: moment(at), data: JSON.parse(data) as unknown }
}

export const eventJson = (step: StoredFact & { readonly status: Status }) => {
  const { name: _, ...event } = factJson(step)
  // Behind a fact a message is never NEW any more.
  return { ...event, status: step.status as MessageStatus }
}

export const attemptJson = ({
  number,
  epoch,
  startedAt,
  endedAt,
  outcome,
  error,
  status,
  responseBody
}: AttemptView & { readonly responseBody: string | null }) => ({
  number,
  epoch,
  startedAt: moment(startedAt),
  endedAt: momentOrNull(endedAt),
  outcome,
  error,
  response: { status, body: responseBody }
})
