/** An endpoint, a message for it and the channel that knows both. */
import { randomUUID } from "node:crypto"
import { Effect, Result, type Scope } from "effect"
import { parseNetworks } from "../../../../src/adapters/channels/net/addressGuard.ts"
import type { Resolve } from "../../../../src/adapters/channels/net/resolver.ts"
import type { EndpointSettings } from "../../../../src/adapters/channels/webhook/settings.ts"
import { generateSecret } from "../../../../src/adapters/channels/webhook/signature.ts"
import * as WebhookChannel from "../../../../src/adapters/channels/webhook/WebhookChannel.ts"
import type { Sender } from "../../../../src/application/deliver/Senders.ts"
import type { OutboundMessage } from "../../../../src/application/ports/Channels.ts"
import type { Destination, OpenDestination, PreviousSecret } from "../../../../src/application/ports/Destinations.ts"
import type { StoreUnavailable } from "../../../../src/application/ports/errors.ts"
import { MessageId, OrgId } from "../../../../src/domain/ids.ts"
import { destinationOf, senderKnowing, webhook } from "../../../contracts/destinations/samples.ts"

export const org = OrgId.make("acme")

export type Endpoint = Destination<EndpointSettings>

export const endpointAt = (url: string, change: Partial<EndpointSettings> = {}): Endpoint =>
  destinationOf<EndpointSettings>(webhook, org, { url, maxInFlight: 16, timeoutMs: 5_000, ...change })

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

/** A channel that knows one endpoint, with whatever secrets it has. */
export const channelKnowing = (open: OpenDestination<EndpointSettings>) => channelFor(Effect.succeed(open))

/** A channel that knows the endpoints given, signs with `secret` and may call loopback. */
export const channelFor = (
  endpoints: ReadonlyArray<Endpoint> | Effect.Effect<OpenDestination | null, StoreUnavailable>,
  options: {
    readonly previousSecrets?: ReadonlyArray<PreviousSecret>
    readonly networks?: string
    readonly exempt?: number
    readonly resolve?: Resolve
  } = {}
): Effect.Effect<Sender, never, Scope.Scope> => {
  const { previousSecrets = [] } = options
  const known = new Map(
    Effect.isEffect(endpoints)
      ? []
      : endpoints.map((destination) => [destination.id, { destination, secrets: { secret }, previousSecrets }] as const)
  )
  const channel = WebhookChannel.channel(
    {
      allowedNetworks: Result.getOrThrow(parseNetworks(options.networks ?? "127.0.0.0/8")),
      exemptions: options.exempt === undefined ? [] : [{ address: "127.0.0.1", port: options.exempt }]
    },
    options.resolve
  )
  return senderKnowing(channel, (_, id) =>
    Effect.isEffect(endpoints) ? endpoints : Effect.succeed(known.get(id) ?? null)
  )
}
