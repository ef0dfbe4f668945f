/** All channels. */
import { Layer } from "effect"
import * as AmqpChannel from "../adapters/channels/amqp/AmqpChannel.ts"
import * as HttpTargetChannel from "../adapters/channels/http/HttpTargetChannel.ts"
import type { EgressRules } from "../adapters/channels/net/guardedConnect.ts"
import * as WebhookChannel from "../adapters/channels/webhook/WebhookChannel.ts"
import * as WhatsAppChannel from "../adapters/channels/whatsapp/WhatsAppChannel.ts"
import { Channels, channelsOf } from "../application/ports/Channels.ts"

export const layer = (rules: EgressRules, whatsApp: WhatsAppChannel.Options) =>
  Layer.succeed(
    Channels,
    channelsOf([
      WebhookChannel.channel(rules),
      HttpTargetChannel.channel(rules),
      AmqpChannel.channel(rules),
      WhatsAppChannel.channel(whatsApp)
    ])
  )

/** Channels for readers that send nothing. */
export const unused = layer(
  { allowedNetworks: [], exemptions: [] },
  { baseUrl: new URL("https://graph.facebook.com"), codes: new Map() }
)
