/**
 * Messages for the contract suites: made by the domain itself, so an entry holds what the application would
 * append. Every one has ids of its own, so tests do not meet in a store.
 */
import { randomUUID } from "node:crypto"
import { DateTime, Effect, Result } from "effect"
import { entryOf } from "../../src/application/entry.ts"
import type { ApiKeys } from "../../src/application/ports/ApiKeys.ts"
import type { Archive } from "../../src/application/ports/Archive.ts"
import type { AuditTrail } from "../../src/application/ports/AuditTrail.ts"
import type { Backlogs } from "../../src/application/ports/Backlogs.ts"
import type { Bodies } from "../../src/application/ports/Bodies.ts"
import type { Channels } from "../../src/application/ports/Channels.ts"
import type { Circuits } from "../../src/application/ports/Circuits.ts"
import type { DestinationHealth } from "../../src/application/ports/DestinationHealth.ts"
import type { Destinations } from "../../src/application/ports/Destinations.ts"
import type { Erasures } from "../../src/application/ports/Erasures.ts"
import { type Append, EventStore, type LoggedFact, type Opening } from "../../src/application/ports/EventStore.ts"
import type { Events } from "../../src/application/ports/Events.ts"
import type { EventTypes } from "../../src/application/ports/EventTypes.ts"
import type { Followers } from "../../src/application/ports/Followers.ts"
import type { Journals } from "../../src/application/ports/Journals.ts"
import type { MessageViews } from "../../src/application/ports/MessageViews.ts"
import type { Orgs } from "../../src/application/ports/Orgs.ts"
import type { Parked } from "../../src/application/ports/Parked.ts"
import type { Processes } from "../../src/application/ports/Processes.ts"
import { Projections } from "../../src/application/ports/Projections.ts"
import type { ProviderMessages } from "../../src/application/ports/ProviderMessages.ts"
import type { Queue } from "../../src/application/ports/Queue.ts"
import type { ReceiptInbox } from "../../src/application/ports/ReceiptInbox.ts"
import type { Replays } from "../../src/application/ports/Replays.ts"
import type { Before, Retention } from "../../src/application/ports/Retention.ts"
import type { AttemptOutcome } from "../../src/domain/delivery/outcome.ts"
import { DestinationId, MessageId, OrgId } from "../../src/domain/ids.ts"
import { decide, initial, type MessageCommand } from "../../src/domain/message/decider.ts"
import type { MessageQueued } from "../../src/domain/message/facts.ts"
import type { Message } from "../../src/domain/message/transitions.ts"
import { fingerprints } from "../model/Fingerprints.ts"

/**
 * What a contract suite is run on: all ports of one store. Building the layer must give an empty store, for
 * every test its own, because a claim takes whatever is due.
 */
export type StorePorts =
  | EventStore
  | Archive
  | Queue
  | Circuits
  | Backlogs
  | Bodies
  | Destinations
  | Channels
  | ApiKeys
  | Journals
  | MessageViews
  | AuditTrail
  | Parked
  | DestinationHealth
  | Projections
  | Processes
  | Followers
  | Orgs
  | ProviderMessages
  | ReceiptInbox
  | Replays
  | Retention
  | Erasures
  | Events
  | EventTypes

/** A message as far as it has been written. */
export interface Sample {
  readonly id: MessageId
  readonly lane: DestinationId
  readonly message: Message
  readonly version: number
}

export interface Step {
  readonly entry: Append
  /** The message once the entry is appended. */
  readonly after: Sample
}

export const now = DateTime.nowUnsafe
export const inMillis = (milliseconds: number) => DateTime.add(now(), { milliseconds })
export const newLane = () => DestinationId.make(randomUUID())
export const newOrg = () => OrgId.make(`org-${randomUUID()}`)
export const newMessageId = () => MessageId.make(randomUUID())

/** The first entry of a new message. Due a second ago unless told otherwise. */
export const opened = ({
  body = '{"number":12345678901234567890}',
  idempotency = null,
  ...wishes
}: Partial<MessageQueued> & Partial<Opening> & { readonly id?: MessageId } = {}): Step => {
  const { id = newMessageId(), ...fields } = wishes
  const request: MessageQueued = {
    type: "MessageQueued",
    orgId: newOrg(),
    channel: "webhook",
    to: "sample",
    destination: newLane(),
    eventType: "invoice.paid",
    templateCode: null,
    dossierId: null,
    orderingKey: null,
    correlationId: null,
    metadata: { "key with ünicode": "“value”" },
    retry: { strategy: "fixed", baseMs: 0, attemptsMax: 3, jitter: [1, 1] },
    acceptedAt: now(),
    dueAt: inMillis(-1_000),
    expiresAt: null,
    ...fields
  }
  const { destination, orderingKey } = request
  const inLine =
    orderingKey === null || request.line !== undefined
      ? request
      : { ...request, line: fingerprints.line(JSON.stringify([destination, orderingKey])) }
  const blank: Sample = { id, lane: request.destination, message: initial, version: 0 }
  return next(blank, { type: "QueueMessage", request: inLine }, { opening: { body, idempotency } })
}

/** The entry that a command means for a message that has come this far. */
export const next = (
  sample: Sample,
  command: MessageCommand,
  extra: Partial<Pick<Append, "fence" | "gate" | "opening" | "response">> = {}
): Step => {
  const facts = Result.getOrThrow(decide(sample.message, command))
  const { entry, after } = entryOf(sample.id, sample.message, sample.version, facts, now(), extra)
  return { entry, after: { ...sample, message: after, version: sample.version + facts.length } }
}

export const started = (sample: Sample, extra: Partial<Pick<Append, "fence" | "gate">> = {}): Step =>
  next(sample, { type: "StartAttempt", now: now() }, extra)

export const settled = (
  sample: Sample,
  outcome: AttemptOutcome,
  extra: Partial<Pick<Append, "fence" | "response">> = {}
): Step =>
  next(
    sample,
    { type: "SettleAttempt", attempt: sample.message.progress.attempt, outcome, now: now(), die: 0.5 },
    extra
  )

export const delivered: AttemptOutcome = {
  type: "Accepted",
  status: 200,
  providerMessageId: null,
  delivered: true,
  durationMs: 3
}

export const unreachable = (retryAfterMs: number | null = null): AttemptOutcome => ({
  type: "Unreachable",
  error: { code: "http_503", message: "the endpoint answered 503", retryable: true },
  status: 503,
  retryAfterMs,
  durationMs: 3
})

/**
 * The log from its beginning, once it shows this. A store may show a fact a moment after its commit: as long as another
 * transaction runs, be it another test's, a fact might still come before it.
 */
export const readLogUntil = Effect.fnUntraced(function* (isThere: (facts: ReadonlyArray<LoggedFact>) => boolean) {
  const store = yield* EventStore
  for (;;) {
    const facts = yield* store.readAll(null, 1_000)
    if (isThere(facts)) return facts
    yield* Effect.sleep("5 millis")
  }
})

/** A step of the live rows to any place: where it is does not matter to these suites, only that it is taken once. */
export const someStep = Effect.fnUntraced(function* (name: string) {
  const live = (yield* (yield* Projections).runs).find((run) => run.name === name && run.live)!
  const to = live.position === null ? "1:1" : `1:${Number(live.position.split(":")[1]) + 1}`
  return { generation: live.generation, from: live.position, to, facts: 1 }
})

/** What ended well before then is old, and no dead letter is. */
export const endedBefore = (ended: DateTime.Utc): Before => ({ now: now(), ended, dead: null, daysMax: null })
