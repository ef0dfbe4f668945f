/** An endpoint, a message for it and the channel that knows both. */
import { randomUUID } from "node:crypto"
import { DateTime, Effect, type Redacted, Result, type Scope } from "effect"
import { parseNetworks } from "../../../../src/adapters/channels/net/addressGuard.ts"
import type { Resolve } from "../../../../src/adapters/channels/net/guardedConnect.ts"
import { generateSecret } from "../../../../src/adapters/channels/webhook/signature.ts"
import * as WebhookChannel from "../../../../src/adapters/channels/webhook/WebhookChannel.ts"
import type { StoreUnavailable } from "../../../../src/application/errors.ts"
import type { Channel, OutboundMessage } from "../../../../src/application/ports/Channels.ts"
import { type Endpoint, Endpoints } from "../../../../src/application/ports/Endpoints.ts"
import { DestinationId, MessageId, OrgId } from "../../../../src/domain/ids.ts"

export const org = OrgId.make("acme")

export const endpointAt = (url: string, change: Partial<Endpoint> = {}): Endpoint => ({
  id: DestinationId.make(randomUUID()),
  orgId: org,
  paused: false,
  version: 1,
  createdAt: DateTime.makeUnsafe(0),
  updatedAt: DateTime.makeUnsafe(0),
  url,
  eventTypes: null,
  description: null,
  signature: "standard",
  retry: null,
  rateLimit: null,
  maxInFlight: 16,
  timeoutMs: 5_000,
  onDeadLetter: "skip",
  headers: {},
  ...change
})

export const messageTo = (endpoint: Endpoint, change: Partial<OutboundMessage> = {}): OutboundMessage => ({
  messageId: MessageId.make(randomUUID()),
  orgId: org,
  destination: endpoint.id,
  to: endpoint.id,
  epoch: 1,
  attempt: 1,
  eventType: "order.paid",
  templateCode: null,
  correlationId: "c-17",
  body: '{"a":1}',
  ...change
})

export const secret = generateSecret()

type SigningAnswer = { readonly endpoint: Endpoint; readonly secrets: ReadonlyArray<Redacted.Redacted> } | null

/** A channel that knows the endpoints given, signs with `secret` and may call loopback. */
export const channelFor = (
  endpoints: ReadonlyArray<Endpoint> | Effect.Effect<SigningAnswer, StoreUnavailable>,
  options: {
    readonly secrets?: ReadonlyArray<Redacted.Redacted>
    readonly networks?: string
    readonly exempt?: number
    readonly resolve?: Resolve
  } = {}
): Effect.Effect<Channel, never, Scope.Scope> => {
  const secrets = options.secrets ?? [secret]
  const known = new Map(
    Effect.isEffect(endpoints) ? [] : endpoints.map((endpoint) => [endpoint.id, { endpoint, secrets }] as const)
  )
  const unused = () => Effect.die("not part of sending")
  const signing: Endpoints["Service"]["signing"] = (_org, id) =>
    Effect.isEffect(endpoints) ? endpoints : Effect.succeed(known.get(id) ?? null)
  return WebhookChannel.make(
    {
      allowedNetworks: Result.getOrThrow(parseNetworks(options.networks ?? "127.0.0.0/8")),
      exemptions: options.exempt === undefined ? [] : [{ address: "127.0.0.1", port: options.exempt }]
    },
    options.resolve
  ).pipe(
    Effect.provideService(Endpoints, {
      create: unused,
      get: unused,
      list: unused,
      update: unused,
      setPaused: unused,
      remove: unused,
      signing
    })
  )
}
