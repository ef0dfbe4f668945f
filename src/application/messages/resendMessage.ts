/**
 * Sends a message again as a new one that names it, whatever became of the old one: for what was delivered and lost behind
 * the receiver's door, or was delivered to a wrong place. The receiver sees a new id, so it does not drop it as a
 * duplicate. The new message is judged like any other: its destination and the consent of its dossier as they are now.
 */
import { Effect, Schema } from "effect"
import type { MessageId, OrgId, ReplayId } from "../../domain/ids.ts"
import { detailsOf } from "../../domain/message/facts.ts"
import { acceptMessages } from "../accept/acceptMessage.ts"
import { Bodies } from "../ports/Bodies.ts"
import { loadStream, MessageNotFound } from "./readMessage.ts"

/** The body was erased: there is nothing to send or to show. */
export class BodyErased extends Schema.TaggedError<BodyErased>()("BodyErased", { id: Schema.String }) {}

/** What takes the place of the old message's own; null keeps that. */
export interface Instead {
  readonly to: string | null
  readonly body: string | null
  readonly idempotencyKey: string | null
}

/** `replayId`: the replay that sends it. */
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

/** The exact text that is delivered. */
export const readBody = Effect.fnUntraced(function* (orgId: OrgId, id: MessageId) {
  yield* loadStream(orgId, id)
  const body = yield* (yield* Bodies).load(id)
  return body === null ? yield* new BodyErased({ id }) : body
})
