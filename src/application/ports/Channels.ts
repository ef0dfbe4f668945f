import { Context, type Effect, type Redacted, type Result, Schema, type Scope } from "effect"
import type { FailureCode } from "../../domain/delivery/classify.ts"
import type { Call, Exchange } from "../../domain/delivery/exchange.ts"
import type { AttemptOutcome } from "../../domain/delivery/outcome.ts"
import type { RetryPolicy } from "../../domain/delivery/retry.ts"
import type { ChannelName, MessageId } from "../../domain/ids.ts"
import type { MessageQueued } from "../../domain/message/facts.ts"
import type { Setting } from "../destinations/fields.ts"
import type { Fault } from "../errors.ts"
import type { DestinationSettings, OpenDestination } from "./Destinations.ts"

export interface OutboundMessage
  extends Pick<
    MessageQueued,
    "orgId" | "destination" | "to" | "routingKey" | "test" | "eventType" | "templateCode" | "correlationId"
  > {
  /** The same for all attempts and replays, so the destination can drop a duplicate. */
  readonly messageId: MessageId
  readonly epoch: number
  readonly attempt: number
  /** The trace that the receiver may join; absent without one. */
  readonly traceparent?: string
  /** The exact text to deliver. */
  readonly body: string
}

export interface Reply {
  readonly outcome: AttemptOutcome
  /** The destination's answer, capped; null without one. */
  readonly responseBody: string | null
  /** Absent where nothing was asked of the network. */
  readonly exchange?: Exchange
  /** Of the answer, capped, without what may be a secret; absent where they say nothing. */
  readonly responseHeaders?: Headers
}

/** By name, in lower case. */
export type Headers = Readonly<Record<string, string>>

/** A message whose attempt is in doubt. Its body may be erased. */
export type Doubted = Omit<OutboundMessage, "body">

/**
 * A channel that is open for sending. `send` makes one attempt and never fails: every result is an outcome. It returns
 * within the destination's deadline, and sends nothing after it was interrupted. Rate limits, circuits and the number of
 * requests under way are checked before it is called. Where a duplicate would not be dropped, an attempt that may have
 * been taken is `Unknown` and nothing else.
 */
export interface Connection<Settings extends DestinationSettings> {
  readonly send: (message: OutboundMessage, to: OpenDestination<Settings>) => Effect.Effect<Reply>
  /**
   * Asks for the outcome of an attempt in doubt, without sending it. Keeps the promises of `send`; absent where the
   * destination can't be asked. `Unreachable` says that the message was not taken and may be sent again.
   */
  readonly reconcile?: (message: Doubted, to: OpenDestination<Settings>) => Effect.Effect<Reply>
}

/** The destination that a request names, before it is looked up. */
export interface Addressee {
  /** The recipient as it is stored, sent and shown. */
  readonly to: string
  /** An id or a public key; null when there is no choice. */
  readonly destination: string | null
}

/** Nobody could say whose the public key is: nothing was stored, and another try may find out. */
export class OwnershipNotKnown extends Schema.TaggedError<OwnershipNotKnown>()("OwnershipNotKnown", {
  message: Schema.String
}) {}

/** A named secret beside the settings. */
export interface SecretField<Settings extends DestinationSettings = DestinationSettings> {
  readonly schema: Schema.Codec<string, string>
  /**
   * Generates a secret that was left out; the answer to that request shows it, and a later one only where it rotates.
   * Absent: required.
   */
  readonly generate?: (settings: Settings) => Redacted.Redacted
  /**
   * What everybody may know of it, such as the public half of a key: kept in the clear and shown with the destination.
   * A secret of which something is published never leaves; only a rotation replaces it. `of` answers null for one of
   * which nothing is.
   */
  readonly publishes?: {
    readonly name: string
    readonly description: string
    readonly of: (secret: Redacted.Redacted) => string | null
  }
  /** Whether a change may replace it. */
  readonly replaceable: boolean
  /**
   * Whether it can be rotated: until the grace ends the channel uses it together with the ones before it
   * (`OpenDestination.previousSecrets`). It has a `generate`, and its owner can read it again.
   */
  readonly rotates?: true
  /** A request from outside asks by it whether the secret is known (`Destinations.knowsLookup`). */
  readonly lookup?: true
  /** It is used here and sent nowhere, so a destination that moves to another place keeps it. */
  readonly staysHere?: true
  /** Other texts by which the far side knows it: an answer may repeat them too (destinations/masking.ts). */
  readonly alsoWritten?: (secret: string) => ReadonlyArray<string>
  /**
   * It comes as a part of a setting's text, such as the password in a URL, and has no field of its own: it is taken out
   * before anything is judged or kept. A new text must bring it again, but for a URL of the same place (`placesOf`).
   */
  readonly within?: {
    readonly setting: string
    readonly takenOut: (text: string) => { readonly text: string; readonly secret: string | null }
  }
}

/** A destination as a request would make it. New secrets are given, existing ones only named. */
export interface DestinationDraft<Settings extends DestinationSettings> {
  readonly settings: Settings
  readonly secretNames: ReadonlyArray<string>
  readonly secrets: Readonly<Record<string, string>>
  /** The settings that were named in the request. */
  readonly given: ReadonlyArray<string>
  /** The settings as they are; null when it is created. */
  readonly before: Settings | null
}

/**
 * A way to the outside, in one record: what its destinations are called and made of, how a message names one, what it
 * promises, and how it is opened for sending. Routes, OpenAPI, addressing, audit, alerts, verification and the command
 * line are made from it; to add a channel is to write its record and to name it in setup/channels.ts.
 */
export interface Channel<Settings extends DestinationSettings = DestinationSettings> {
  /** In facts, messages and the API, for ever. */
  readonly name: ChannelName
  /** The prefix of the journals of its destinations, for ever. */
  readonly journal: string
  /** The path of its destinations in the API, such as `webhook-endpoints`. */
  readonly path: string
  /** The name of one destination's type in the OpenAPI document, such as `WebhookEndpoint`. */
  readonly typeName: string
  /** The noun for one destination with its article, such as `a` `webhook endpoint`; an s makes the plural. */
  readonly article: "a" | "an"
  readonly noun: string
  /** A request that makes a destination, for the OpenAPI document. */
  readonly example: Readonly<Record<string, unknown>>
  /** Its own and those of every kind (`commonSettings`). */
  readonly settings: { readonly [Name in keyof Settings]: Setting }
  readonly secrets: Readonly<Record<string, SecretField<Settings>>>
  /** How many secrets an owner may name beside these; 0 takes none. */
  readonly ownSecretsMax: number
  /** Why a draft is invalid, field by field, in words its owner can act on. No reason repeats a secret. */
  readonly faultsOf: (draft: DestinationDraft<Settings>) => ReadonlyArray<Fault>
  /**
   * Asks outside whether whoever brings these secrets may use the destination's public key; a fault refuses. It is asked for a
   * new destination, and before a replaceable secret of one is changed. Absent: there is nobody to ask.
   */
  readonly ownership?: (
    settings: Settings,
    secrets: Readonly<Record<string, string>>
  ) => Effect.Effect<ReadonlyArray<Fault>, OwnershipNotKnown>
  /** The addressee of a request; the fields are judged as they were written. */
  readonly addresseeOf: (
    request: Pick<OutboundMessage, "to" | "templateCode" | "body">
  ) => Result.Result<Addressee, ReadonlyArray<Fault>>
  /** The field of a request that names the destination. */
  readonly addressField: string
  /** Whether a message may say where at its destination it goes: its `routingKey`. */
  readonly takesRoutingKey?: true
  /** Where neither the message nor its destination nor its org has a policy. */
  readonly retry: RetryPolicy
  /** Whether a message reaches a person: then a dossier's consent is needed first. */
  readonly reachesPerson: boolean
  /**
   * The URLs that secrets go to. When one of them is at another place (scheme, user, host or port) than all before, the
   * secrets must be given again. Absent: its owner can't say where they go.
   */
  readonly placesOf?: (settings: Settings) => ReadonlyArray<string>
  /** How a destination of these settings is called, for whoever reads of an attempt; no secret is in it. */
  readonly callOf: (settings: Settings) => Call | null
  /** Whether the far side drops a duplicate by the message's id: of every destination, or as its settings say. */
  readonly dedupes: boolean | ((settings: Settings) => boolean)
  /** How long to wait before an attempt in doubt is first asked about. Absent: a few seconds. */
  readonly doubtMs?: (settings: Settings) => number
  /** The status with which a destination says that it is gone for good: it is disabled then. Absent: none says so. */
  readonly goneStatus?: number
  /** For how long every attempt may fail until a destination is disabled; null: for ever. Absent: none is. */
  readonly disableAfterMs?: (settings: Settings) => number | null
  /** The error code of an attempt whose destination is removed. */
  readonly missing: FailureCode
  /** Connections close with the scope. */
  readonly open: Effect.Effect<Connection<Settings>, never, Scope.Scope>
}

// Records of different settings are kept together; each is only ever given destinations of its own kind.
// biome-ignore lint/suspicious/noExplicitAny: see above
export type AnyChannel = Channel<any>

/** Every channel Posthaste has, by name. */
export class Channels extends Context.Service<Channels, ReadonlyMap<ChannelName, AnyChannel>>()(
  "posthaste/application/ports/Channels"
) {}

export const channelsOf = (channels: ReadonlyArray<AnyChannel>): ReadonlyMap<ChannelName, AnyChannel> =>
  new Map(channels.map((channel) => [channel.name, channel]))
