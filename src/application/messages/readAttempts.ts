/**
 * The attempts of a message as its proof: request, time, address, answer and durations, without secrets. A request
 * follows from the version of the settings that its fact names. Up to a thousand attempts with answers of 64 KiB come
 * in pages.
 */
import { Effect } from "effect"
import { type Call, headersOf } from "../../domain/delivery/exchange.ts"
import { callIn } from "../../domain/destination/situation.ts"
import type { MessageId, OrgId } from "../../domain/ids.ts"
import type { MessageQueued } from "../../domain/message/facts.ts"
import { type AttemptView, attemptsOf } from "../../domain/message/view.ts"
import { type AttemptPlace, Bodies } from "../ports/Bodies.ts"
import { Channels } from "../ports/Channels.ts"
import { Destinations } from "../ports/Destinations.ts"
import type { PageRequest } from "../ports/errors.ts"
import { loadStream } from "./readMessage.ts"
import { configurationHistory } from "./situation.ts"

export const readAttempts = Effect.fnUntraced(function* (orgId: OrgId, id: MessageId, { cursor, limit }: PageRequest) {
  const { facts } = yield* loadStream(orgId, id)
  // A stream that was loaded is one of a message.
  const queued = facts[0]!.fact as MessageQueued
  const all = attemptsOf(facts)
  const from = Number(cursor ?? 0)
  const attempts = all.slice(from, from + limit)
  const [first] = attempts
  const wasCalled = attempts.some(({ exchange }) => exchange !== null)
  const [{ answers, end }, callOf] = yield* Effect.all(
    [
      Effect.flatMap(Bodies, ({ responses }) => responses(id, first && placeOf(first))),
      wasCalled ? callsOf(queued) : Effect.succeed(() => null)
    ],
    { concurrency: 2 }
  )
  const beyond = end === null ? -1 : attempts.findIndex((attempt) => isBeyond(placeOf(attempt), end))
  const shown = beyond === -1 ? attempts : attempts.slice(0, beyond)
  const next = from + shown.length
  return {
    items: shown.map((attempt) => ({
      ...attempt,
      request: requestOf(id, queued, attempt, callOf),
      answer: answers.get(`${attempt.epoch}/${attempt.number}`) ?? null
    })),
    nextCursor: next < all.length ? String(next) : null
  }
})

const placeOf = ({ epoch, number }: AttemptView): AttemptPlace => ({ epoch, attempt: number })

const isBeyond = (place: AttemptPlace, end: AttemptPlace): boolean =>
  place.epoch > end.epoch || (place.epoch === end.epoch && place.attempt > end.attempt)

type CallOf = (settings: number) => Call | null

const callsOf = Effect.fnUntraced(function* ({ orgId, channel, destination }: MessageQueued) {
  const history = yield* configurationHistory(channel, destination)
  // The present settings, for a journal that does not tell them.
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
