import { Context, type DateTime } from "effect"
import type { RetryPolicy } from "../../domain/delivery/retry.ts"
import type { EventView } from "../../domain/event/event.ts"
import type { EventPublished } from "../../domain/event/facts.ts"
import type { ChannelName, DestinationId, EventId, MessageId, OrgId } from "../../domain/ids.ts"
import type { Append } from "./EventStore.ts"
import type { FromStore, Page, PageRequest } from "./errors.ts"

export interface Subscriber {
  readonly destination: DestinationId
  readonly channel: ChannelName
  readonly retry: RetryPolicy | null
}

export interface NewEvent {
  readonly id: EventId
  readonly fact: EventPublished
  readonly at: DateTime.Utc
  readonly actor: string | null
  readonly body: string
  readonly idempotency: { readonly key: string; readonly requestHash: string } | null
  /** The first entry of each message it becomes; they share its body. */
  readonly messages: ReadonlyArray<Append>
}

export interface KeyOfEvent {
  readonly eventId: EventId
  readonly requestHash: string
}

export type PublishResult =
  | { readonly type: "Published" }
  | ({ readonly type: "DuplicateKey" } & KeyOfEvent)
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
 * - `matching` reads only the destinations that want a type, as they were at the call.
 * - `publish` stores each event with its fact, key, body and all its messages, or nothing. After `Published` all
 *   survive any crash. On `StoreUnavailable` a repeat with the same key is safe. Where streams can't be written in one
 *   transaction, the messages follow the event; none is lost in a crash.
 * - A message that opens with `ofEvent` becomes one of the event's. Its id is made of event and destination, so there
 *   is one.
 * - The body stays as long as the event or one of its messages has it. `erase` takes it, and every answer, from all.
 */
export class Events extends Context.Service<
  Events,
  {
    readonly matching: (orgId: OrgId, eventType: string) => FromStore<ReadonlyArray<Subscriber>>
    /** Answers in the order of the events. */
    readonly publish: (events: ReadonlyArray<NewEvent>) => FromStore<ReadonlyArray<PublishResult>>
    readonly publishedUnder: (orgId: OrgId, key: string) => FromStore<KeyOfEvent | null>
    readonly list: (orgId: OrgId, filter: EventFilter, page: PageRequest) => FromStore<Page<EventView>>
    /** Also forgotten ones. */
    readonly messagesOf: (id: EventId, page: PageRequest) => FromStore<Page<MessageId>>
    readonly body: (id: EventId) => FromStore<string | null>
    readonly erase: (id: EventId) => FromStore<void>
    readonly types: (orgId: OrgId) => FromStore<ReadonlyArray<string>>
  }
>()("posthaste/application/ports/Events") {}
