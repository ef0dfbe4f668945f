import { Context, type DateTime } from "effect"
import type { RetryPolicy } from "../../domain/delivery/retry.ts"
import type { EventView } from "../../domain/event/event.ts"
import type { EventPublished } from "../../domain/event/facts.ts"
import type { ChannelName, DestinationId, EventId, MessageId, OrgId } from "../../domain/ids.ts"
import type { FromStore, Page, PageRequest } from "../errors.ts"
import type { Append } from "./EventStore.ts"

/** A destination that wants events of a type. */
export interface Subscriber {
  readonly destination: DestinationId
  readonly channel: ChannelName
  /** Null: it has none of its own. */
  readonly retry: RetryPolicy | null
}

export interface NewEvent {
  readonly id: EventId
  readonly fact: EventPublished
  readonly at: DateTime.Utc
  readonly actor: string | null
  /** UTF-8 text, delivered byte for byte to all. */
  readonly body: string
  readonly idempotency: { readonly key: string; readonly requestHash: string } | null
  /** The first entry of each message it becomes; they share its body. */
  readonly messages: ReadonlyArray<Append>
}

/** The event that used an idempotency key. */
export interface KeyOfEvent {
  readonly eventId: EventId
  readonly requestHash: string
}

export type PublishResult =
  | { readonly type: "Published" }
  | ({ readonly type: "DuplicateKey" } & KeyOfEvent)
  /** The event itself is stored already. Nothing was written. */
  | { readonly type: "AlreadyThere" }

export interface EventFilter {
  readonly eventType?: string
  readonly correlationId?: string
  readonly dossierId?: string
  readonly createdAfter?: DateTime.Utc
  readonly createdBefore?: DateTime.Utc
}

/**
 * Events and the messages they became.
 *
 * - `matching` reads the destinations that want a type, and no others, however many the org has. A destination that was
 *   created before the call is among them; one that was removed before it is not.
 * - `publish` stores each event with its fact, its key, its body (once) and all its messages, or nothing of it. Once it
 *   answers `Published` all of them survive any crash. On `StoreUnavailable` each event may or may not have been stored;
 *   a repeat with the same key then answers `DuplicateKey`. Where streams can't be written in one transaction, the
 *   messages are stored one by one after the event; none is left out, whatever crashes.
 * - A message that opens with `ofEvent` becomes one of the event's messages, whoever stores it. A destination has at
 *   most one message of an event: its id is made of both.
 * - The body stays as long as the event or one of its messages has it. `erase` takes it, and every answer, from all.
 */
export class Events extends Context.Service<
  Events,
  {
    readonly matching: (orgId: OrgId, eventType: string) => FromStore<ReadonlyArray<Subscriber>>
    /** Answers in the order of the events. */
    readonly publish: (events: ReadonlyArray<NewEvent>) => FromStore<ReadonlyArray<PublishResult>>
    readonly publishedUnder: (orgId: OrgId, key: string) => FromStore<KeyOfEvent | null>
    /** Newest first. */
    readonly list: (orgId: OrgId, filter: EventFilter, page: PageRequest) => FromStore<Page<EventView>>
    /** The messages it became, also those that are forgotten. */
    readonly messagesOf: (id: EventId, page: PageRequest) => FromStore<Page<MessageId>>
    /** The text to deliver; null when it was erased. */
    readonly body: (id: EventId) => FromStore<string | null>
    readonly erase: (id: EventId) => FromStore<void>
    /** The types of all events the org has, however many events. */
    readonly types: (orgId: OrgId) => FromStore<ReadonlyArray<string>>
  }
>()("posthaste/application/ports/Events") {}
