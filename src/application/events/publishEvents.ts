/**
 * Publishes events: each becomes one message for every destination of its org that wants its type, with the same bytes.
 * Promises, idempotency keys and order of answers are those of acceptMessage.ts. Events of one call are stored in their
 * order, which lines keep.
 */
import { DateTime, Effect } from "effect"
import type { MessageBlocked } from "../../domain/consent/facts.ts"
import type { EventView } from "../../domain/event/event.ts"
import type { EventPublished } from "../../domain/event/facts.ts"
import { type ChannelName, EventId, type OrgId } from "../../domain/ids.ts"
import type { MessageQueued } from "../../domain/message/facts.ts"
import { timeFaultsOf } from "../accept/acceptMessage.ts"
import { canonicalJson, sortedEntries } from "../canonicalJson.ts"
import { CommandedBy } from "../commandedBy.ts"
import { objectionTo, recordBlocked } from "../consents/consents.ts"
import { newMessageIds } from "../messageIds.ts"
import type { Append } from "../ports/EventStore.ts"
import { Events, type KeyOfEvent, type NewEvent, type PublishResult, type Subscriber } from "../ports/Events.ts"
import { type Fault, StoreUnavailable } from "../ports/errors.ts"
import { Fingerprint } from "../ports/Fingerprint.ts"
import { Orgs } from "../ports/Orgs.ts"
import { Telemetry } from "../ports/Telemetry.ts"
import { wellFormed } from "../traceparent.ts"
import { objectionsToEvent } from "./catalogue.ts"
import { messagesOfEvents } from "./messageOfEvent.ts"
import { loadEvent } from "./readEvents.ts"

export interface EventRequest extends Omit<EventPublished, "type" | "orgId" | "matched"> {
  /** The id that its way in has promised, and under which it is published once; absent: a new one. */
  readonly id?: EventId
  readonly data: string
  readonly idempotencyKey: string | null
  readonly traceparent?: string | null
}

export type Publication =
  | { readonly type: "Published"; readonly event: EventView }
  | { readonly type: "AlreadyPublished"; readonly event: EventView }
  | { readonly type: "KeyReused" }
  | { readonly type: "Suspended"; readonly reason: string }
  /** `by`: the request itself (a time that has passed), its type's schema, or its dossier's consent. */
  | {
      readonly type: "Refused"
      readonly by: "request" | "catalogue" | "consent"
      readonly faults: ReadonlyArray<Fault>
    }

/** The messages of one store call: a tenth of a second of its work. One event is never divided. */
const MESSAGES_AT_ONCE = 2_000
const YIELD_EVERY = 200

export const publishEvents = Effect.fnUntraced(function* (orgId: OrgId, requests: ReadonlyArray<EventRequest>) {
  const events = yield* Events
  const now = yield* DateTime.now
  const ids = yield* newMessageIds(requests.length)
  const { suspended } = yield* (yield* Orgs).settingsOf(orgId)
  const judge = yield* judging(orgId, now)
  const make = yield* making(orgId, now)
  const answers = new Array<Publication>(requests.length)
  let waiting: Array<{ readonly index: number; readonly event: NewEvent }> = []

  const store = Effect.fnUntraced(function* () {
    const results = yield* events.publish(waiting.map(({ event }) => event))
    for (const [nth, { index, event }] of waiting.entries()) {
      answers[index] = yield* settled(orgId, event, results[nth]!)
    }
    waiting = []
  })

  for (const [index, request] of requests.entries()) {
    // Judging an event by its schema can take long.
    if (index > 0) yield* Effect.yieldNow
    const judged = suspended === null ? yield* judge(request) : ({ type: "Suspended", reason: suspended } as const)
    if (judged.type !== "Wanted") {
      answers[index] = yield* refused(orgId, request, judged)
      continue
    }
    waiting.push({ index, event: yield* make(request.id ?? EventId.make(ids[index]!), request, judged.subscribers) })
    if (waiting.reduce((sum, { event }) => sum + event.messages.length, 0) >= MESSAGES_AT_ONCE) yield* store()
  }
  if (waiting.length > 0) yield* store()
  return answers as ReadonlyArray<Publication>
})

const settled = Effect.fnUntraced(function* (orgId: OrgId, event: NewEvent, result: PublishResult) {
  switch (result.type) {
    case "Published": {
      const { accepted } = yield* Telemetry
      for (const { facts } of event.messages) accepted(facts[0] as MessageQueued, "event")
      return { type: "Published", event: viewOfNew(event) } as const
    }
    case "DuplicateKey":
      return yield* repeated(orgId, result, event.idempotency!.requestHash)
    case "AlreadyThere": {
      // Only a promised id can be there already.
      const before = yield* loadEvent(orgId, event.id)
      return before === null
        ? yield* Effect.die(new Error(`the new event ${event.id} is there already`))
        : ({ type: "AlreadyPublished", event: before } as const)
    }
  }
})

type Refusal = Extract<Publication, { readonly type: "Refused" | "Suspended" }>

type Judgement = { readonly type: "Wanted"; readonly subscribers: ReadonlyArray<Subscriber> } | Refusal

/** Requests of one call often share a type or a dossier: each is looked up once. */
const judging = Effect.fnUntraced(function* (orgId: OrgId, now: DateTime.Utc) {
  const { matching } = yield* Events
  const subscribersOf = once((eventType: string) => matching(orgId, eventType))
  const objectionOf = once((channel: ChannelName, dossierId: string) => objectionTo(orgId, dossierId, channel))

  /** If a dossier's consent forbids one message of an event, none is sent, and a fact says so for each. */
  const blockedOf = Effect.fnUntraced(function* (request: EventRequest, subscribers: ReadonlyArray<Subscriber>) {
    const { dossierId, eventType, correlationId } = request
    if (dossierId === null) return []
    const blocked: Array<MessageBlocked> = []
    for (const { channel, destination: to } of subscribers) {
      const reason = yield* objectionOf(channel, dossierId)
      if (reason === null) continue
      const about = { orgId, dossierId, channel, to, eventType, templateCode: null, correlationId, reason }
      blocked.push({ type: "MessageBlocked", ...about })
    }
    return blocked
  })

  return Effect.fnUntraced(function* (request: EventRequest) {
    const faults = timeFaultsOf(request, now)
    if (faults.length > 0) return { type: "Refused", by: "request", faults } satisfies Judgement
    const unfit = yield* objectionsToEvent(orgId, request.eventType, request.data)
    if (unfit.length > 0) return { type: "Refused", by: "catalogue", faults: unfit } satisfies Judgement
    const subscribers = yield* subscribersOf(request.eventType)
    const blocked = yield* blockedOf(request, subscribers)
    if (blocked.length === 0) return { type: "Wanted", subscribers } satisfies Judgement
    yield* recordBlocked(blocked)
    const channels = new Set(blocked.map(({ channel }) => channel))
    return {
      type: "Refused",
      by: "consent",
      faults: [{ field: "dossierId", reason: `has no consent for ${[...channels].join(", ")}` }]
    } satisfies Judgement
  })
})

const once = <Texts extends ReadonlyArray<string>, A, E, R>(ask: (...texts: Texts) => Effect.Effect<A, E, R>) => {
  const answers = new Map<string, A>()
  return (...texts: Texts): Effect.Effect<A, E, R> => {
    const key = JSON.stringify(texts)
    const known = answers.get(key)
    return known !== undefined
      ? Effect.succeed(known)
      : Effect.tap(ask(...texts), (answer) => Effect.sync(() => answers.set(key, answer)))
  }
}

/** A published event stays published: a repeat is answered with it even if the request would be refused today. */
const refused = Effect.fnUntraced(function* (orgId: OrgId, request: EventRequest, refusal: Refusal) {
  const promised = request.id === undefined ? null : yield* loadEvent(orgId, request.id)
  if (promised !== null) return { type: "AlreadyPublished", event: promised } as const
  if (request.idempotencyKey === null) return refusal
  const known = yield* (yield* Events).publishedUnder(orgId, request.idempotencyKey)
  return known === null ? refusal : yield* repeated(orgId, known, (yield* Fingerprint).of(canonicalText(request)))
})

const repeated = Effect.fnUntraced(function* (orgId: OrgId, known: KeyOfEvent, requestHash: string) {
  if (known.requestHash !== requestHash) return { type: "KeyReused" } as const
  const event = yield* loadEvent(orgId, known.eventId)
  return event === null
    ? yield* new StoreUnavailable({ cause: new Error("the key is taken by an event that is not there") })
    : ({ type: "AlreadyPublished", event } as const)
})

const making = Effect.fnUntraced(function* (orgId: OrgId, now: DateTime.Utc) {
  const actor = yield* CommandedBy
  const fingerprint = yield* Fingerprint
  const messageOf = yield* messagesOfEvents(orgId)
  let made = 0

  return Effect.fnUntraced(function* (id: EventId, request: EventRequest, subscribers: ReadonlyArray<Subscriber>) {
    const { id: _, data, idempotencyKey, traceparent: given, ...said } = request
    const traceparent = wellFormed(given)
    const origin = traceparent === null ? {} : { traceparent }
    const fact: EventPublished = { type: "EventPublished", orgId, matched: subscribers.length, ...said }
    const messages: Array<Append> = []
    for (const subscriber of subscribers) {
      messages.push(messageOf({ id, ...fact }, subscriber, now, origin))
      if (++made % YIELD_EVERY === 0) yield* Effect.yieldNow
    }
    const idempotency =
      idempotencyKey === null ? null : { key: idempotencyKey, requestHash: fingerprint.of(canonicalText(request)) }
    return { id, fact, at: now, actor, body: bodyOf(request, now), idempotency, messages } satisfies NewEvent
  })
})

const bodyOf = ({ eventType, data }: EventRequest, now: DateTime.Utc): string =>
  `{"type":${JSON.stringify(eventType)},"timestamp":"${DateTime.formatIso(now)}","data":${data}}`

const viewOfNew = ({ id, fact: { type: _, ...said }, at }: NewEvent): EventView => ({
  id,
  ...said,
  createdAt: at,
  bodyErased: false
})

/** Requests with the same meaning get the same text: fields in a fixed order, then the data by its meaning. */
const canonicalText = (request: EventRequest): string => {
  const { eventType, dossierId, orderingKey, correlationId, metadata, deliverAt, expiresAt, data } = request
  return JSON.stringify([
    ...[eventType, dossierId, orderingKey, correlationId],
    metadata === null ? null : sortedEntries(metadata),
    deliverAt === null ? null : DateTime.toEpochMillis(deliverAt),
    expiresAt === null ? null : DateTime.toEpochMillis(expiresAt),
    canonicalJson(data)
  ])
}
