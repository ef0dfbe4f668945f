import { Context, type Effect, type Redacted, type Result, Schema, type Scope } from "effect"
import type { FailureCode } from "../../domain/delivery/classify.ts"
import type { Call, Exchange } from "../../domain/delivery/exchange.ts"
import type { AttemptOutcome } from "../../domain/delivery/outcome.ts"
import type { RetryPolicy } from "../../domain/delivery/retry.ts"
import type { ChannelName, MessageId } from "../../domain/ids.ts"
import type { MessageQueued } from "../../domain/message/facts.ts"
import type { DestinationSettings, OpenDestination } from "./Destinations.ts"
import type { Fault } from "./errors.ts"
import type { Setting } from "./fields.ts"

export interface OutboundMessage
  extends Pick<
    MessageQueued,
    "orgId" | "destination" | "to" | "routingKey" | "test" | "eventType" | "templateCode" | "correlationId"
  > {
  /** The same for all attempts and replays, so the destination can drop a duplicate. */
  readonly messageId: MessageId
  readonly epoch: number
  readonly attempt: number
  readonly traceparent?: string
  readonly body: string
}

export interface Reply {
  readonly outcome: AttemptOutcome
  readonly responseBody: string | null
  readonly exchange?: Exchange
  /** Of the answer, capped, without possible secrets. */
  readonly responseHeaders?: Headers
}

/** By name, in lower case. */
export type Headers = Readonly<Record<string, string>>

/** A message whose attempt is in doubt. Its body may be erased. */
export type Doubted = Omit<OutboundMessage, "body">

/**
 * An open channel. `send` makes one attempt and never fails: every result is an outcome. It returns within the
 * destination's deadline, and sends nothing after an interruption. Rate limits, circuits and the number of requests
 * under way are its caller's. Where a duplicate would not be dropped, an attempt that may have been taken is `Unknown`.
 */
export interface Connection<Settings extends DestinationSettings> {
  readonly send: (message: OutboundMessage, to: OpenDestination<Settings>) => Effect.Effect<Reply>
  /**
   * Asks for the outcome of an attempt in doubt, with the promises of `send`; absent where the destination can't be
   * asked. `Unreachable`: the message was not taken and may be sent again.
   */
  readonly reconcile?: (message: Doubted, to: OpenDestination<Settings>) => Effect.Effect<Reply>
}

export interface Addressee {
  readonly to: string
  /** An id or a public key; null: the only one. */
  readonly destination: string | null
}

/** The owner of the public key could not be found out: nothing was stored, and another try may help. */
export class OwnershipNotKnown extends Schema.TaggedError<OwnershipNotKnown>()("OwnershipNotKnown", {
  message: Schema.String
}) {}

export interface SecretField<Settings extends DestinationSettings = DestinationSettings> {
  readonly schema: Schema.Codec<string, string>
  /** Generates a secret that was left out. Absent: required. */
  readonly generate?: (settings: Settings) => Redacted.Redacted
  /**
   * The public half of a secret, kept in the clear and shown with the destination. The secret itself never leaves; only
   * a rotation replaces it. `of` answers null for one without.
   */
  readonly publishes?: {
    readonly name: string
    readonly description: string
    readonly of: (secret: Redacted.Redacted) => string | null
  }
  readonly replaceable: boolean
  /**
   * True if it can be rotated: until the grace ends the channel also uses the ones before it
   * (`OpenDestination.previousSecrets`). It has a `generate`, and its owner can read it again.
   */
  readonly rotates?: true
  /** A request from outside asks by it whether the secret is known (`Destinations.knowsLookup`). */
  readonly lookup?: true
  readonly staysHere?: true
  /** Other forms that an answer may repeat. */
  readonly alsoWritten?: (secret: string) => ReadonlyArray<string>
  /**
   * A part of a setting's text, such as the password in a URL, without a field of its own: it is taken out before
   * anything is judged or kept. A new text must bring it again, except a URL of the same place (`placesOf`).
   */
  readonly within?: {
    readonly setting: string
    readonly takenOut: (text: string) => { readonly text: string; readonly secret: string | null }
  }
}

/** New secrets are given, existing ones only named. */
export interface DestinationDraft<Settings extends DestinationSettings> {
  readonly settings: Settings
  readonly secretNames: ReadonlyArray<string>
  readonly secrets: Readonly<Record<string, string>>
  readonly given: ReadonlyArray<string>
  readonly before: Settings | null
}

/**
 * A way to the outside in one record. Routes, OpenAPI, addressing, audit, alerts, verification and the command line are
 * made from it; a new channel is a record that setup/channels.ts names.
 */
export interface Channel<Settings extends DestinationSettings = DestinationSettings> {
  /** In facts, messages and the API, for ever. */
  readonly name: ChannelName
  readonly journal: string
  /** The path of its destinations in the API, such as `webhook-endpoints`. */
  readonly path: string
  /** The OpenAPI type of one destination, such as `WebhookEndpoint`. */
  readonly typeName: string
  /** The noun for one destination, such as `a` `webhook endpoint`; an s makes the plural. */
  readonly article: "a" | "an"
  readonly noun: string
  readonly example: Readonly<Record<string, unknown>>
  /** Its own and those of every kind (`commonSettings`). */
  readonly settings: { readonly [Name in keyof Settings]: Setting }
  readonly secrets: Readonly<Record<string, SecretField<Settings>>>
  readonly ownSecretsMax: number
  /** The faults of a draft, field by field, for its owner. None repeats a secret. */
  readonly faultsOf: (draft: DestinationDraft<Settings>) => ReadonlyArray<Fault>
  /**
   * Asks outside whether the holder of these secrets may use the public key; a fault refuses. For a new destination,
   * and before a replaceable secret changes.
   */
  readonly ownership?: (
    settings: Settings,
    secrets: Readonly<Record<string, string>>
  ) => Effect.Effect<ReadonlyArray<Fault>, OwnershipNotKnown>
  readonly addresseeOf: (
    request: Pick<OutboundMessage, "to" | "templateCode" | "body">
  ) => Result.Result<Addressee, ReadonlyArray<Fault>>
  readonly addressField: string
  readonly takesRoutingKey?: true
  readonly retry: RetryPolicy
  /** True if a message reaches a person: then a dossier's consent is needed first. */
  readonly reachesPerson: boolean
  /**
   * The URLs that secrets go to. When one moves to another place (scheme, user, host or port), the secrets must be
   * given again. Absent: the owner can't choose them.
   */
  readonly placesOf?: (settings: Settings) => ReadonlyArray<string>
  readonly callOf: (settings: Settings) => Call | null
  /** True if the far side drops a duplicate by the message's id. */
  readonly dedupes: boolean | ((settings: Settings) => boolean)
  /** The wait before an attempt in doubt is first asked about. Absent: a few seconds. */
  readonly doubtMs?: (settings: Settings) => number
  /** The status of a destination that is gone for good: it disables the destination. */
  readonly goneStatus?: number
  /** The time of failing attempts after which a destination is disabled; null or absent: never. */
  readonly disableAfterMs?: (settings: Settings) => number | null
  readonly missing: FailureCode
  readonly open: Effect.Effect<Connection<Settings>, never, Scope.Scope>
}

// Records of different settings are kept together; each is only ever given destinations of its own kind.
// biome-ignore lint/suspicious/noExplicitAny: see above
export type AnyChannel = Channel<any>

export class Channels extends Context.Service<Channels, ReadonlyMap<ChannelName, AnyChannel>>()(
  "posthaste/application/ports/Channels"
) {}

export const channelsOf = (channels: ReadonlyArray<AnyChannel>): ReadonlyMap<ChannelName, AnyChannel> =>
  new Map(channels.map((channel) => [channel.name, channel]))
