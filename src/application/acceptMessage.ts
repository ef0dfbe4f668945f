/**
 * From a request to a queued message. Each request is judged on its own and answered in its place: one
 * that is refused does not hurt the others. `Accepted` means the message is stored and survives any crash.
 *
 * A request that carries an idempotency key is accepted once: repeating it answers the same message
 * (`AlreadyAccepted`), another request under the same key is `KeyReused`, and the store settles which of
 * two racing requests was first. On `StoreUnavailable` a request may or may not have been accepted; asking
 * again with the same key is safe.
 *
 * It leaves out what a caller wrote wrongly in form (the way in decodes that) and everything after the
 * queue.
 */
import { DateTime, Effect, Result } from "effect"
import { type ChannelName, DestinationId, isUuid, type MessageId, type OrgId } from "../domain/ids.ts"
import { decide, initial } from "../domain/message/decider.ts"
import type { MessageQueued } from "../domain/message/facts.ts"
import { type MessageView, viewOf } from "../domain/message/view.ts"
import { presets, type RetryPolicy } from "../domain/retry.ts"
import { entryOf } from "./entry.ts"
import { newMessageIds } from "./messageIds.ts"
import { Endpoints } from "./ports/Endpoints.ts"
import { type Append, type AppendResult, EventStore, StoreUnavailable } from "./ports/EventStore.ts"
import { Fingerprint } from "./ports/Fingerprint.ts"
import { HttpTargets } from "./ports/HttpTargets.ts"

export interface MessageRequest {
  readonly channel: ChannelName
  readonly to: string
  readonly eventType: string | null
  readonly templateCode: string | null
  readonly dossierId: string | null
  readonly orderingKey: string | null
  readonly correlationId: string | null
  readonly metadata: Readonly<Record<string, string>> | null
  readonly deliverAt: DateTime.Utc | null
  readonly expiresAt: DateTime.Utc | null
  readonly retry: RetryPolicy | null
  /** The exact text to deliver. */
  readonly body: string
  readonly idempotencyKey: string | null
}

/** What is wrong with one field of a request, in words its writer can act on. */
export interface Fault {
  readonly field: string
  readonly reason: string
}

export type Acceptance =
  | { readonly type: "Accepted"; readonly message: MessageView }
  | { readonly type: "AlreadyAccepted"; readonly message: MessageView }
  | { readonly type: "KeyReused" }
  | { readonly type: "Refused"; readonly faults: ReadonlyArray<Fault> }

/** What was decided about a request before the store was asked. */
type Draft =
  | { readonly type: "Refused"; readonly faults: ReadonlyArray<Fault> }
  | { readonly type: "Entry"; readonly entry: Append; readonly message: MessageView }

/** Answers in the order of the requests. */
export const acceptMessages = Effect.fnUntraced(function* (orgId: OrgId, requests: ReadonlyArray<MessageRequest>) {
  const store = yield* EventStore
  const fingerprint = yield* Fingerprint
  const now = yield* DateTime.now
  const ids = yield* newMessageIds(requests.length)
  const destinations = yield* destinationsOf(orgId, requests)
  const drafts = requests.map((request, index) =>
    draft(orgId, ids[index]!, request, destinations.get(nameOf(request)) ?? null, now, fingerprint.of)
  )
  const entries = drafts.flatMap((one) => (one.type === "Entry" ? [one.entry] : []))
  const results = entries.length === 0 ? [] : yield* store.append(entries)

  const answers: Array<Acceptance> = []
  let next = 0
  for (const [index, one] of drafts.entries()) {
    answers.push(
      one.type === "Refused"
        ? yield* refused(orgId, requests[index]!, one, fingerprint.of)
        : yield* settled(one, results[next++]!)
    )
  }
  return answers
})

/**
 * What was accepted stays accepted: a repeat is answered with its message even if it would be refused today,
 * because its endpoint was removed or its time has passed since.
 */
const refused = Effect.fnUntraced(function* (
  orgId: OrgId,
  request: MessageRequest,
  refusal: Extract<Draft, { type: "Refused" }>,
  fingerprint: (text: string) => string
) {
  if (request.idempotencyKey === null) return refusal
  const known = yield* (yield* EventStore).acceptedUnder(orgId, request.idempotencyKey)
  return known === null ? refusal : yield* repeated(known, fingerprint(canonicalText(request)))
})

/** A key was used before: for this request, or for another. */
const repeated = Effect.fnUntraced(function* (
  known: { readonly messageId: MessageId; readonly requestHash: string },
  requestHash: string
) {
  if (known.requestHash !== requestHash) return { type: "KeyReused" } as const
  const { facts } = yield* (yield* EventStore).load(known.messageId)
  const message = viewOf(known.messageId, facts)
  return message === null
    ? yield* new StoreUnavailable({ cause: new Error("the key is taken by a message that is not stored yet") })
    : ({ type: "AlreadyAccepted", message } as const)
})

const settled = Effect.fnUntraced(function* (
  { entry, message }: Extract<Draft, { type: "Entry" }>,
  result: AppendResult
) {
  switch (result.type) {
    case "Appended":
      return { type: "Accepted", message } as const
    case "DuplicateKey":
      return yield* repeated(result, entry.opening!.idempotency!.requestHash)
    case "VersionConflict":
    case "FenceLost":
    case "GateClosed":
      // The id is new and nothing was fenced: the store or the dice are broken.
      return yield* Effect.die(new Error(`${result.type} on the new message ${entry.messageId}`))
  }
})

/** What a message can be addressed to: its `to` is the id. */
interface Destination {
  readonly id: DestinationId
  readonly retry: RetryPolicy | null
}

const nameOf = ({ channel, to }: MessageRequest) => `${channel}/${to}`

/**
 * The org's destinations that the requests name; each is asked for once. What an attempt may work with is good
 * enough here too: `signing` and `calling` remember for a second, and a read of the database for each accept
 * was a third of its cost.
 */
const destinationsOf = Effect.fnUntraced(function* (orgId: OrgId, requests: ReadonlyArray<MessageRequest>) {
  const endpoints = yield* Endpoints
  const targets = yield* HttpTargets
  const find = (channel: ChannelName, id: DestinationId): Effect.Effect<Destination | null, StoreUnavailable> => {
    switch (channel) {
      case "webhook":
        return Effect.map(endpoints.signing(orgId, id), (signing) => signing?.endpoint ?? null)
      case "http":
        return Effect.map(targets.calling(orgId, id), (calling) => calling?.target ?? null)
      case "whatsapp":
      case "amqp":
        return Effect.succeed(null)
    }
  }
  const named = new Map(
    requests.flatMap((request) => (isUuid(request.to) ? [[nameOf(request), request] as const] : []))
  )
  const found = new Map<string, Destination>()
  yield* Effect.forEach(
    named,
    ([name, { channel, to }]) =>
      Effect.map(find(channel, DestinationId.make(to)), (destination) => {
        if (destination !== null) found.set(name, destination)
      }),
    { discard: true, concurrency: 8 }
  )
  return found
})

const draft = (
  orgId: OrgId,
  id: MessageId,
  request: MessageRequest,
  destination: Destination | null,
  now: DateTime.Utc,
  fingerprint: (text: string) => string
): Draft => {
  const faults = faultsOf(request, destination, now)
  if (destination === null || faults.length > 0) return { type: "Refused", faults }
  const { deliverAt, idempotencyKey } = request
  const queued: MessageQueued = {
    type: "MessageQueued",
    orgId,
    channel: request.channel,
    to: request.to,
    destination: destination.id,
    eventType: request.eventType,
    templateCode: request.templateCode,
    dossierId: request.dossierId,
    orderingKey: request.orderingKey,
    correlationId: request.correlationId,
    metadata: request.metadata,
    retry: request.retry ?? destination.retry ?? presets.webhook,
    acceptedAt: now,
    // A time that has passed means now: a message can't jump its lane's queue by being dated back.
    dueAt: deliverAt === null ? now : DateTime.max(deliverAt, now),
    expiresAt: request.expiresAt
  }
  const facts = Result.getOrThrow(decide(initial, { type: "QueueMessage", request: queued }))
  const { entry } = entryOf(id, initial, 0, facts, now, {
    opening: {
      body: request.body,
      idempotency:
        idempotencyKey === null
          ? null
          : { orgId, key: idempotencyKey, requestHash: fingerprint(canonicalText(request)) }
    }
  })
  const message = viewOf(
    id,
    facts.map((fact, index) => ({ version: index + 1, at: now, fact }))
  )!
  return { type: "Entry", entry, message }
}

const destinationWords: { readonly [Name in ChannelName]?: string } = {
  webhook: "a webhook endpoint",
  http: "an HTTP target"
}

const faultsOf = (
  request: MessageRequest,
  destination: Destination | null,
  now: DateTime.Utc
): ReadonlyArray<Fault> => {
  const faults: Array<Fault> = []
  const { channel, deliverAt, expiresAt } = request
  const words = destinationWords[channel]
  if (words === undefined) {
    faults.push({ field: "channel", reason: `${channel} is not built in yet; webhook and http are` })
  } else if (destination === null) {
    faults.push({ field: "to", reason: `is not the id of ${words} of this org` })
  }
  if (expiresAt !== null && DateTime.isLessThanOrEqualTo(expiresAt, now)) {
    faults.push({ field: "expiresAt", reason: "must be in the future" })
  } else if (expiresAt !== null && deliverAt !== null && DateTime.isLessThanOrEqualTo(expiresAt, deliverAt)) {
    faults.push({ field: "expiresAt", reason: "must be after deliverAt" })
  }
  return faults
}

/** One text per meaning of a request: fields in a fixed order, then the payload as it was written. */
const canonicalText = (request: MessageRequest): string => {
  const { retry, metadata, deliverAt, expiresAt } = request
  return JSON.stringify([
    request.channel,
    request.to,
    request.eventType,
    request.templateCode,
    request.dossierId,
    request.orderingKey,
    request.correlationId,
    metadata === null ? null : sortedEntries(metadata),
    deliverAt === null ? null : DateTime.toEpochMillis(deliverAt),
    expiresAt === null ? null : DateTime.toEpochMillis(expiresAt),
    retry === null ? null : sortedEntries(retry),
    request.body
  ])
}

const sortedEntries = (record: object) => Object.entries(record).toSorted(([a], [b]) => (a < b ? -1 : 1))
