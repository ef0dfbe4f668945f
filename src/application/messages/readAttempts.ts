/**
 * Every attempt of a message as its proof: what was called and when, which address answered what, and how long each step
 * took. A fact names the version of the settings that its request was made from; how such a request looks, its
 * destination's journal tells. No secret is among it, because none is kept.
 */
import { Effect } from "effect"
import { type Call, headersOf } from "../../domain/delivery/exchange.ts"
import { callIn } from "../../domain/destination/situation.ts"
import type { MessageId, OrgId } from "../../domain/ids.ts"
import type { MessageQueued } from "../../domain/message/facts.ts"
import { type AttemptView, attemptsOf } from "../../domain/message/view.ts"
import { configurationHistory } from "../destinations/situation.ts"
import { Bodies } from "../ports/Bodies.ts"
import { Channels } from "../ports/Channels.ts"
import { Destinations } from "../ports/Destinations.ts"
import { loadStream } from "./readMessage.ts"

export const readAttempts = Effect.fnUntraced(function* (orgId: OrgId, id: MessageId) {
  const { facts } = yield* loadStream(orgId, id)
  // A stream that was loaded is one of a message.
  const queued = facts[0]!.fact as MessageQueued
  const attempts = attemptsOf(facts)
  const wasCalled = attempts.some(({ exchange }) => exchange !== null)
  const [answers, callOf] = yield* Effect.all(
    [
      Effect.flatMap(Bodies, ({ responses }) => responses(id)),
      wasCalled ? callsOf(queued) : Effect.succeed(() => null)
    ],
    { concurrency: 2 }
  )
  return attempts.map((attempt) => ({
    ...attempt,
    request: requestOf(id, queued, attempt, callOf),
    answer: answers.get(`${attempt.epoch}/${attempt.number}`) ?? null
  }))
})

type CallOf = (settings: number) => Call | null

/** How its destination was called under a version of its settings. */
const callsOf = Effect.fnUntraced(function* ({ orgId, channel, destination }: MessageQueued) {
  const history = yield* configurationHistory(channel, destination)
  // One from before its journal told this is known as it is now.
  const now = yield* (yield* Destinations).get(orgId, destination)
  const record = (yield* Channels).get(channel)
  const present = now === null || record === undefined ? null : record.callOf(now.settings)
  const callOf: CallOf = (settings) => callIn(history, settings) ?? (now?.version === settings ? present : null)
  return callOf
})

const requestOf = (
  messageId: MessageId,
  { orgId, eventType, correlationId, ...queued }: MessageQueued,
  { epoch, number, exchange }: AttemptView,
  callOf: CallOf
) => {
  if (exchange === null) return null
  const { settings, sentAt } = exchange
  const address = exchange.address ?? null
  const call = callOf(settings)
  if (call === null) return { method: null, url: null, headers: null, sentAt, address }
  const called = {
    ...{ messageId, orgId, epoch, attempt: number, eventType, correlationId, sentAt },
    routingKey: queued.routingKey ?? null,
    traceparent: queued.traceparent ?? null,
    test: queued.test === true
  }
  return { method: call.method, url: call.url, headers: headersOf(call, called), sentAt, address }
}
