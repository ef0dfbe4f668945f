/**
 * Turns requests into queued messages. Each request is judged alone and answered in its place. `Accepted`: the message
 * is stored and survives any crash. A repeat under an idempotency key answers the same message (`AlreadyAccepted`),
 * another request with the key `KeyReused`; the store decides races, so a repeat after `StoreUnavailable` is safe.
 */
import { DateTime, Effect, Result } from "effect"
import type { MessageBlocked } from "../../domain/consent/facts.ts"
import type { RetryPolicy } from "../../domain/delivery/retry.ts"
import type { ChannelName, DestinationId, MessageId, OrgId, ReplayId } from "../../domain/ids.ts"
import { decide, initial } from "../../domain/message/decider.ts"
import { detailsOf, type MessageDetails, type MessageQueued } from "../../domain/message/facts.ts"
import { type MessageView, viewOf } from "../../domain/message/view.ts"
import { canonicalJson, sortedEntries } from "../canonicalJson.ts"
import { CommandedBy } from "../commandedBy.ts"
import { objectionsTo, recordBlocked } from "../consents/consents.ts"
import { entryOf } from "../entry.ts"
import { newMessageIds } from "../messageIds.ts"
import { type Append, type AppendResult, EventStore, type KeyHolder } from "../ports/EventStore.ts"
import type { Fault } from "../ports/errors.ts"
import { StoreUnavailable } from "../ports/errors.ts"
import { Fingerprint } from "../ports/Fingerprint.ts"
import { Orgs } from "../ports/Orgs.ts"
import { type Rejection, Telemetry } from "../ports/Telemetry.ts"
import { type Acceptance as Span, Tracing } from "../ports/Tracing.ts"
import { wellFormed } from "../traceparent.ts"
import { Via } from "../via.ts"
import { type Addressing, addressesOf } from "./addressing.ts"

/** The prefix of the idempotency keys of Posthaste's own messages, such as alerts; refused in requests. */
export const OWN_KEYS = "posthaste:"

export interface MessageRequest extends MessageDetails {
  /** The id that its way in has promised, and under which it is accepted once; absent: a new one. */
  readonly id?: MessageId
  readonly channel: ChannelName
  readonly to: string
  readonly routingKey?: string
  readonly resendOf?: MessageId
  readonly test?: true
  readonly replayId?: ReplayId
  readonly deliverAt: DateTime.Utc | null
  readonly expiresAt: DateTime.Utc | null
  readonly retry: RetryPolicy | null
  readonly body: string
  readonly idempotencyKey: string | null
  /** The W3C trace of its caller; no part of the request's meaning. */
  readonly traceparent?: string | null
}

export type Acceptance =
  | { readonly type: "Accepted"; readonly message: MessageView }
  | { readonly type: "AlreadyAccepted"; readonly message: MessageView }
  | { readonly type: "KeyReused" }
  | { readonly type: "Refused"; readonly faults: ReadonlyArray<Fault> }
  | { readonly type: "Blocked"; readonly fact: MessageBlocked }
  | { readonly type: "Suspended"; readonly reason: string }

type Refusal = Extract<Acceptance, { readonly type: "Refused" | "Blocked" | "Suspended" }>

type Draft =
  | Refusal
  | { readonly type: "Entry"; readonly entry: Append; readonly message: MessageView; readonly span: Span | null }

export const acceptMessages = Effect.fnUntraced(function* (orgId: OrgId, requests: ReadonlyArray<MessageRequest>) {
  const store = yield* EventStore
  const fingerprint = yield* Fingerprint
  const now = yield* DateTime.now
  const actor = yield* CommandedBy
  const ids = yield* newMessageIds(requests.length)
  const { suspended, retry } = yield* (yield* Orgs).settingsOf(orgId)
  const addresses = yield* addressesOf(orgId, requests, retry)
  const objections = yield* objectionsTo(orgId, requests)
  const tracing = yield* Tracing
  const via = yield* Via
  const drafts = requests.map((request, index) => {
    const id = request.id ?? ids[index]!
    const trace = (queued: MessageQueued) => tracing.acceptance(request.traceparent ?? null, queued, id, via)
    const one = draft(orgId, id, request, addresses[index]!, now, actor, fingerprint, trace)
    const reason = objections[index]!
    if (suspended !== null) return { type: "Suspended", reason: suspended } as const
    return one.type === "Entry" && reason !== null ? blocked(one.message, reason) : one
  })
  const refusals = new Map<Draft, Acceptance>()
  for (const [index, one] of drafts.entries()) {
    if (one.type !== "Entry") refusals.set(one, yield* refused(orgId, requests[index]!, one, fingerprint.of))
  }
  // Before any message is accepted: a repeat after an outage then finds no request half accepted.
  yield* recordBlocked([...refusals.values()].flatMap((one) => (one.type === "Blocked" ? [one.fact] : [])))
  const entries = drafts.flatMap((one) => (one.type === "Entry" ? [one.entry] : []))
  const results = entries.length === 0 ? [] : yield* store.append(entries)

  const answers: Array<Acceptance> = []
  let next = 0
  for (const one of drafts) {
    answers.push(one.type === "Entry" ? yield* settled(orgId, one, results[next++]!) : refusals.get(one)!)
  }
  const telemetry = yield* Telemetry
  for (const [i, { type }] of answers.entries()) {
    const one = drafts[i]!
    const reason = rejectionOf[type]
    if (reason !== undefined) telemetry.rejected(via, reason)
    if (one.type !== "Entry") continue
    if (type === "Accepted") telemetry.accepted(one.entry.facts[0] as MessageQueued, via)
    one.span?.end(type === "Accepted" ? "accepted" : "repeated")
  }
  return answers
})

const rejectionOf: { readonly [type in Acceptance["type"]]?: Rejection } = {
  Refused: "invalid",
  Blocked: "blocked",
  Suspended: "suspended",
  KeyReused: "key_reused"
}

const blocked = (
  { orgId, dossierId, channel, to, eventType, templateCode, correlationId }: MessageView,
  reason: MessageBlocked["reason"]
): Refusal => ({
  type: "Blocked",
  fact: {
    type: "MessageBlocked",
    ...{ orgId, dossierId: dossierId!, channel, to },
    ...{ eventType, templateCode, correlationId, reason }
  }
})

/**
 * An accepted message stays accepted: a repeat is answered with it even if the request would be refused today, because
 * its endpoint was removed, its time has passed or a consent was withdrawn since.
 */
const refused = Effect.fnUntraced(function* (
  orgId: OrgId,
  request: MessageRequest,
  refusal: Refusal,
  fingerprint: (text: string) => string
) {
  if (request.id !== undefined) {
    const before = yield* acceptedAs(orgId, request.id)
    if (before !== null) return { type: "AlreadyAccepted", message: before } as const
  }
  if (request.idempotencyKey === null) return refusal
  const known = yield* (yield* EventStore).acceptedUnder(orgId, request.idempotencyKey)
  return known === null ? refusal : yield* repeated(known, fingerprint(canonicalText(request)))
})

const acceptedAs = Effect.fnUntraced(function* (orgId: OrgId, id: MessageId) {
  const { facts } = yield* (yield* EventStore).load(id)
  const message = viewOf(id, facts)
  return message?.orgId === orgId ? message : null
})

const repeated = Effect.fnUntraced(function* (known: KeyHolder, requestHash: string) {
  if (known.requestHash !== requestHash) return { type: "KeyReused" } as const
  const { facts } = yield* (yield* EventStore).load(known.messageId)
  const message = viewOf(known.messageId, facts)
  return message === null
    ? yield* new StoreUnavailable({ cause: new Error("the key is taken by a message that is not stored yet") })
    : ({ type: "AlreadyAccepted", message } as const)
})

const settled = Effect.fnUntraced(function* (
  orgId: OrgId,
  { entry, message }: Extract<Draft, { type: "Entry" }>,
  result: AppendResult
) {
  switch (result.type) {
    case "Appended":
      return { type: "Accepted", message } as const
    case "DuplicateKey":
      return yield* repeated(result, entry.opening!.idempotency!.requestHash)
    case "VersionConflict": {
      // Only a promised id can be there already.
      const before = yield* acceptedAs(orgId, entry.messageId)
      return before === null
        ? yield* Effect.die(new Error(`the new message ${entry.messageId} is there already`))
        : ({ type: "AlreadyAccepted", message: before } as const)
    }
    case "FenceLost":
    case "GateClosed":
      // The id is new and nothing was fenced: the store or the dice are broken.
      return yield* Effect.die(new Error(`${result.type} on the new message ${entry.messageId}`))
  }
})

const draft = (
  orgId: OrgId,
  id: MessageId,
  request: MessageRequest,
  addressing: Addressing,
  now: DateTime.Utc,
  actor: string | null,
  fingerprint: Fingerprint["Service"],
  trace: (queued: MessageQueued) => Span | null
): Draft => {
  const faults = [...(Result.isFailure(addressing) ? addressing.failure : []), ...timeFaultsOf(request, now)]
  if (Result.isFailure(addressing) || faults.length > 0) return { type: "Refused", faults }
  const { to, destination, retry } = addressing.success
  const { deliverAt, idempotencyKey, routingKey, resendOf, test, replayId } = request
  const described: MessageQueued = {
    type: "MessageQueued",
    orgId,
    channel: request.channel,
    to,
    destination,
    ...(routingKey !== undefined && { routingKey }),
    ...(resendOf !== undefined && { resendOf }),
    ...(test === true && { test }),
    ...(replayId !== undefined && { replayId }),
    ...detailsOf(request),
    ...lineOf(fingerprint, orgId, destination, request.orderingKey),
    retry: request.retry ?? retry,
    acceptedAt: now,
    // A time in the past means now: a message can't overtake its lane by a date in the past.
    dueAt: deliverAt === null ? now : DateTime.max(deliverAt, now),
    expiresAt: request.expiresAt
  }
  const span = trace(described)
  const traceparent = span?.traceparent ?? wellFormed(request.traceparent)
  const queued = traceparent === null ? described : { ...described, traceparent }
  const facts = Result.getOrThrow(decide(initial, { type: "QueueMessage", request: queued }))
  const { entry } = entryOf(id, initial, 0, facts, now, {
    actor,
    opening: {
      body: request.body,
      idempotency:
        idempotencyKey === null
          ? null
          : { orgId, key: idempotencyKey, requestHash: fingerprint.of(canonicalText(request)) }
    }
  })
  const message = viewOf(
    id,
    facts.map((fact, index) => ({ version: index + 1, at: now, fact }))
  )!
  return { type: "Entry", entry, message, span }
}

export const lineOf = (
  { line }: Fingerprint["Service"],
  orgId: OrgId,
  destination: DestinationId,
  orderingKey: string | null
): Pick<MessageQueued, "line"> =>
  orderingKey === null ? {} : { line: line(JSON.stringify([orgId, destination, orderingKey])) }

export const timeFaultsOf = (
  { deliverAt, expiresAt }: Pick<MessageRequest, "deliverAt" | "expiresAt">,
  now: DateTime.Utc
): ReadonlyArray<Fault> => {
  const faults: Array<Fault> = []
  if (expiresAt !== null && DateTime.isLessThanOrEqualTo(expiresAt, now)) {
    faults.push({ field: "expiresAt", reason: "must be in the future" })
  } else if (expiresAt !== null && deliverAt !== null && DateTime.isLessThanOrEqualTo(expiresAt, deliverAt)) {
    faults.push({ field: "expiresAt", reason: "must be after deliverAt" })
  }
  return faults
}

/** Requests with the same meaning get the same text: fields in a fixed order, then the payload by its meaning. */
const canonicalText = (request: MessageRequest): string => {
  const { retry, deliverAt, expiresAt, routingKey, resendOf } = request
  return JSON.stringify([
    request.channel,
    request.to,
    ...Object.values(detailsOf(request)).map((detail) =>
      detail === null || typeof detail === "string" ? detail : sortedEntries(detail)
    ),
    deliverAt === null ? null : DateTime.toEpochMillis(deliverAt),
    expiresAt === null ? null : DateTime.toEpochMillis(expiresAt),
    retry === null ? null : sortedEntries(retry),
    canonicalJson(request.body),
    ...(routingKey === undefined ? [] : [routingKey]),
    ...(resendOf === undefined ? [] : [{ resendOf }])
  ])
}
