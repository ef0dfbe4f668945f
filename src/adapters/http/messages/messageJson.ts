/** A message, its facts and its attempts in the words of the API. */
import { DateTime } from "effect"
import { typeOf } from "../../../application/log/feed.ts"
import type { StreamFact } from "../../../application/log/readStream.ts"
import { detailsOf } from "../../../domain/message/facts.ts"
import type { MessageStatus } from "../../../domain/message/machine.ts"
import { toRecorded } from "../../../domain/message/recorded.ts"
import type { Status } from "../../../domain/message/transitions.ts"
import type { AttemptView, MessageView, StoredFact } from "../../../domain/message/view.ts"

export const moment = (time: DateTime.Utc): string => DateTime.formatIso(time)
const momentOrNull = (time: DateTime.Utc | null | undefined) => (time ? moment(time) : null)

export const messageJson = (view: MessageView) => ({
  id: view.id,
  orgId: view.orgId,
  channel: view.channel,
  to: view.to,
  destination: view.destination,
  status: view.status,
  epoch: view.epoch,
  attempts: view.attempts,
  attemptsMax: view.attemptsMax,
  nextAttemptAt: momentOrNull(view.nextAttemptAt),
  lastError: view.lastError,
  providerMessageId: view.providerMessageId,
  ...detailsOf(view),
  deliverAt: momentOrNull(view.deliverAt),
  expiresAt: momentOrNull(view.expiresAt),
  createdAt: moment(view.createdAt),
  updatedAt: moment(view.updatedAt),
  lastAttemptAt: momentOrNull(view.lastAttemptAt),
  endedAt: momentOrNull(view.endedAt),
  deliveredAt: momentOrNull(view.deliveredAt),
  readAt: momentOrNull(view.readAt),
  bodyErased: view.bodyErased,
  contradicted: view.contradicted
})

/** A stored fact of any stream. */
export const factJson = (fact: StreamFact) => ({
  version: fact.version,
  name: fact.name,
  type: typeOf(fact),
  at: moment(fact.at),
  data: JSON.parse(fact.data) as unknown
})

export const eventJson = (step: StoredFact & { readonly status: Status }) => {
  const { version, at, fact } = step
  const { name: _, ...event } = factJson({ version, at, ...toRecorded(fact) })
  // After a fact a message is never NEW.
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
