/**
 * The stored form of a message's facts. Those of a delivery that goes well have a short cut; a test holds each to the
 * schema.
 */
import { DateTime, Result, Schema } from "effect"
import type { Exchange } from "../delivery/exchange.ts"
import { RetryPolicy } from "../delivery/retry.ts"
import { ChannelName, isUuid, OrgId } from "../ids.ts"
import { codecOf, fillErased, type RecordedFact } from "../recorded.ts"
import { type FactOf, forgettableOfQueued, type MessageFact, type MessageQueued, recorded } from "./facts.ts"

const codec = codecOf<MessageFact>(recorded)

export const { fromRecorded } = codec

/**
 * Facts that are written by hand: 0.02 to 0.17 µs each for an attempt's three, where the schema takes 0.3 to 0.5; 1.3
 * for `MessageQueued`, where it takes 5.5. Null where a value breaks the fact's shape: the schema then says so.
 */
const byHand: { readonly [T in MessageFact["type"]]?: (fact: FactOf<T>) => RecordedFact | null } = {
  MessageQueued: (fact) => {
    if (!isUsual(fact)) return null
    const { orgId, channel, to, destination, eventId, eventType, line } = fact
    const { retry, acceptedAt, dueAt, expiresAt } = fact
    const isKept = isUuid(to)
    const data = JSON.stringify({
      ...{ orgId, channel, to: isKept ? to : undefined, destination, eventId, eventType, line },
      retry: policyOf(retry),
      acceptedAt: isoOf(acceptedAt),
      dueAt: isoOf(dueAt),
      expiresAt: expiresAt === null ? null : isoOf(expiresAt)
    })
    const forgettable = JSON.stringify({
      to: isKept ? undefined : to,
      templateCode: fact.templateCode ?? undefined,
      dossierId: fact.dossierId ?? undefined,
      orderingKey: fact.orderingKey ?? undefined,
      correlationId: fact.correlationId ?? undefined,
      metadata: fact.metadata ?? undefined,
      routingKey: fact.routingKey,
      traceparent: fact.traceparent
    })
    return { name: "MessageQueued@1", data, forgettable: forgettable === "{}" ? null : forgettable }
  },
  AttemptStarted: ({ epoch, attempt }) =>
    areInts(epoch, attempt) ? kept("AttemptStarted@1", `{"epoch":${epoch},"attempt":${attempt}}`) : null,
  AttemptSucceeded: ({ attempt, status, providerMessageId, durationMs, exchange }) => {
    const exchanged = exchange === undefined ? "" : exchangeText(exchange)
    return areInts(attempt, durationMs) && (status === null || areInts(status)) && exchanged !== null
      ? {
          name: "AttemptSucceeded@1",
          data: `{"attempt":${attempt},"status":${status},"durationMs":${durationMs}${exchanged}}`,
          forgettable: providerMessageId === null ? null : `{"providerMessageId":${JSON.stringify(providerMessageId)}}`
        }
      : null
  },
  MessageDelivered: ({ proof }) =>
    proof === "response" || proof === "receipt" ? kept("MessageDelivered@1", `{"proof":"${proof}"}`) : null
}

const kept = (name: string, data: string): RecordedFact => ({ name, data, forgettable: null })

const isOrgId = Schema.is(OrgId)
const isChannelName = Schema.is(ChannelName)

const isUsual = (fact: MessageQueued): boolean =>
  fact.metadata === null &&
  (fact.line === undefined || isUuid(fact.line)) &&
  fact.replayId === undefined &&
  fact.resendOf === undefined &&
  fact.test === undefined &&
  isOrgId(fact.orgId) &&
  isChannelName(fact.channel) &&
  isUuid(fact.destination) &&
  (fact.eventId === undefined || isUuid(fact.eventId)) &&
  typeof fact.to === "string" &&
  areTexts(fact.routingKey ?? null, fact.traceparent ?? null, fact.eventType, fact.templateCode) &&
  areTexts(fact.dossierId, fact.orderingKey, fact.correlationId)

const areTexts = (...values: ReadonlyArray<string | null>) =>
  values.every((value) => value === null || typeof value === "string")

/** Few policies serve all messages; each is encoded once. */
const policies = new WeakMap<RetryPolicy, RetryPolicy>()
const encodePolicy = Schema.encodeSync(RetryPolicy)
const policyOf = (policy: RetryPolicy): RetryPolicy => {
  const known = policies.get(policy)
  if (known !== undefined) return known
  const encoded = encodePolicy(policy)
  policies.set(policy, encoded)
  return encoded
}

const exchangeText = ({ settings, sentAt, address, dnsMs, connectMs, tlsMs, firstByteMs }: Exchange): string | null =>
  areInts(settings, dnsMs ?? 0, connectMs ?? 0, tlsMs ?? 0, firstByteMs ?? 0)
    ? `,"exchange":{"settings":${settings},"sentAt":"${isoOf(sentAt)}"${
        address === undefined ? "" : `,"address":${JSON.stringify(address)}`
      }${numberText("dnsMs", dnsMs)}${numberText("connectMs", connectMs)}${numberText("tlsMs", tlsMs)}${numberText("firstByteMs", firstByteMs)}}`
    : null

let second = Number.NaN
let secondText = ""

/** `DateTime.formatIso` takes 0.34 µs, most of it for the same second again. This takes 0.02. */
const isoOf = (time: DateTime.Utc): string => {
  const millis = DateTime.toEpochMillis(time)
  const secondOf = Math.floor(millis / 1000)
  if (secondOf !== second) {
    secondText = DateTime.formatIso(time).slice(0, -"000Z".length)
    second = secondOf
  }
  return `${secondText}${String(millis - second * 1000).padStart(3, "0")}Z`
}

const numberText = (name: string, value: number | undefined): string =>
  value === undefined ? "" : `,"${name}":${value}`

const areInts = (...values: ReadonlyArray<number>) => values.every(Number.isSafeInteger)

export const toRecorded = (fact: MessageFact): RecordedFact => {
  const write = byHand[fact.type] as ((fact: MessageFact) => RecordedFact | null) | undefined
  return write?.(fact) ?? codec.toRecorded(fact)
}

/** JSON text of a whole first fact: its forgettable fields are top-level fields. */
export const wholeOfQueued = ({ data, forgettable = null }: RecordedFact): string =>
  forgettable === null ? data : `${data.slice(0, -1)},${forgettable.slice(1)}`

/**
 * The first fact of a claimed message, from parsed JSON. It is not checked again: a check takes 4 µs where parsing and
 * making its times take 1.6. `data` becomes the fact.
 */
export const queuedOf = (data: Record<string, unknown>): MessageQueued => {
  if (!makeTimes(data)) {
    return Result.getOrThrow(fromRecorded({ name: "MessageQueued@1", data: JSON.stringify(data) })) as MessageQueued
  }
  data["type"] = "MessageQueued"
  return fillErased(data, forgettableOfQueued) as unknown as MessageQueued
}

const makeTimes = (data: Record<string, unknown>): boolean => {
  const made: Record<string, DateTime.Utc> = {}
  for (const field of ["acceptedAt", "dueAt", "expiresAt"]) {
    const value = data[field]
    if (value === null) continue
    const millis = typeof value === "string" ? Date.parse(value) : Number.NaN
    if (Number.isNaN(millis)) return false
    made[field] = DateTime.makeUnsafe(millis)
  }
  Object.assign(data, made)
  return true
}
