/**
 * Sends a message again as a new one that names it, for a delivery that was lost behind the receiver's door or went to
 * a wrong place. The new id escapes the receiver's dropping of duplicates. Destination and consent are judged as they
 * are now.
 */
import { Effect, Schema } from "effect"
import type { MessageId, OrgId, ReplayId } from "../../domain/ids.ts"
import { detailsOf } from "../../domain/message/facts.ts"
import { acceptMessages } from "../accept/acceptMessage.ts"
import { Bodies } from "../ports/Bodies.ts"
import { loadStream, MessageNotFound } from "./readMessage.ts"

export class BodyErased extends Schema.TaggedError<BodyErased>()("BodyErased", { id: Schema.String }) {}

/** Null keeps the old message's own. */
export interface Instead {
  readonly to: string | null
  readonly body: string | null
  readonly idempotencyKey: string | null
}

export const resendMessage = Effect.fnUntraced(function* (
  orgId: OrgId,
  id: MessageId,
  instead: Instead,
  replayId: ReplayId | null = null
) {
  const { facts } = yield* loadStream(orgId, id)
  const old = facts[0]!.fact
  if (old.type !== "MessageQueued") return yield* new MessageNotFound({ id })
  const body = instead.body ?? (yield* readBody(orgId, id))
  const [acceptance] = yield* acceptMessages(orgId, [
    {
      channel: old.channel,
      to: instead.to ?? old.to,
      ...(old.routingKey !== undefined && { routingKey: old.routingKey }),
      ...detailsOf(old),
      resendOf: id,
      ...(old.test === true && { test: true }),
      ...(replayId !== null && { replayId }),
      deliverAt: null,
      expiresAt: null,
      retry: null,
      body,
      idempotencyKey: instead.idempotencyKey
    }
  ])
  return acceptance!
})

export const readBody = Effect.fnUntraced(function* (orgId: OrgId, id: MessageId) {
  yield* loadStream(orgId, id)
  const body = yield* (yield* Bodies).load(id)
  return body === null ? yield* new BodyErased({ id }) : body
})
