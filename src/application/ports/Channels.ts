import { Context, type Effect } from "effect"
import type { AttemptOutcome } from "../../domain/delivery/outcome.ts"
import type { ChannelName, DestinationId, MessageId, OrgId } from "../../domain/ids.ts"

export interface OutboundMessage {
  /** Stable across attempts and replays, so the far side can drop a duplicate. */
  readonly messageId: MessageId
  readonly orgId: OrgId
  readonly destination: DestinationId
  readonly to: string
  readonly epoch: number
  readonly attempt: number
  readonly eventType: string | null
  readonly templateCode: string | null
  readonly correlationId: string | null
  /** The exact text to deliver. */
  readonly body: string
}

export interface Reply {
  readonly outcome: AttemptOutcome
  /** What the far side answered, capped; null when it said nothing. */
  readonly responseBody: string | null
}

/** What is asked of a message whose attempt is in doubt. There may be no body any more. */
export type Doubted = Omit<OutboundMessage, "body">

/**
 * A way to the outside. `send` makes one try and never fails: whatever happened is an outcome. It returns
 * within the channel's deadline whatever the far side does, and sends nothing after it was interrupted.
 * Where a duplicate would not be dropped, a try that may have been taken is `Unknown` and nothing else.
 */
export interface Channel {
  readonly send: (message: OutboundMessage) => Effect.Effect<Reply>
  /** How many sends to one destination may be under way at once in this process. */
  readonly capacity: (orgId: OrgId, destination: DestinationId) => Effect.Effect<number>
  /** Whether the far side drops a duplicate by the message's id. False too when that can't be said. */
  readonly dedupes: (orgId: OrgId, destination: DestinationId) => Effect.Effect<boolean>
  /** How long to wait before an attempt in doubt is first asked about. Absent: a few seconds. */
  readonly doubtMs?: (orgId: OrgId, destination: DestinationId) => Effect.Effect<number>
  /**
   * Finds out what became of an attempt in doubt, without sending it. Keeps the promises of `send`; absent
   * where there is nobody to ask. `Unreachable` says that it was not taken and may be sent again.
   */
  readonly reconcile?: (message: Doubted) => Effect.Effect<Reply>
}

/** Every channel Posthaste can deliver through; a channel that is not built in yet is absent. */
export class Channels extends Context.Service<Channels, { readonly [Name in ChannelName]?: Channel }>()(
  "posthaste/application/ports/Channels"
) {}
