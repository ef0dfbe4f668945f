import { Context, type Effect } from "effect"
import type { ChannelName, DestinationId, MessageId, OrgId } from "../../domain/ids.ts"
import type { AttemptOutcome } from "../../domain/message/outcome.ts"

export interface OutboundMessage {
  /** Stable across attempts and replays, so the far side can drop a duplicate. */
  readonly messageId: MessageId
  readonly orgId: OrgId
  readonly destination: DestinationId
  readonly to: string
  readonly epoch: number
  readonly attempt: number
  readonly eventType: string | null
  readonly correlationId: string | null
  /** The exact text to deliver. */
  readonly body: string
}

export interface Reply {
  readonly outcome: AttemptOutcome
  /** What the far side answered, capped; null when it said nothing. */
  readonly responseBody: string | null
}

/**
 * A way to the outside. `send` makes one try and never fails: whatever happened is an outcome. It returns
 * within the channel's deadline whatever the far side does, and sends nothing after it was interrupted.
 */
export interface Channel {
  readonly send: (message: OutboundMessage) => Effect.Effect<Reply>
}

/** Every channel Posthaste can deliver through; a channel that is not built in yet is absent. */
export class Channels extends Context.Service<Channels, { readonly [Name in ChannelName]?: Channel }>()(
  "posthaste/application/ports/Channels"
) {}
