/** Builds the request that sends a message from its account. */
import { Redacted, Result } from "effect"
import type { OutboundMessage } from "../../../application/ports/Channels.ts"
import type { OpenDestination } from "../../../application/ports/Destinations.ts"
import { type Call, MASKED, shownUrl } from "../../../domain/delivery/exchange.ts"
import { callbackData } from "../../../domain/whatsapp/callbackData.ts"
import { type Content, readPayload } from "../../../domain/whatsapp/content.ts"
import { agent, agentHeaders } from "../net/agent.ts"
import { destinationOf, type Prepared } from "../net/tries.ts"
import type { WhatsAppSettings } from "./settings.ts"

export type Account = OpenDestination<WhatsAppSettings>

/** Null when the payload, replaced after acceptance, can't be sent. */
export const requestOf = (
  message: OutboundMessage,
  { destination: account, secrets }: Account,
  base: URL
): Prepared | null => {
  const payload = readPayload(message.templateCode, message.body)
  if (Result.isFailure(payload)) return null
  const { timeoutMs } = account.settings
  const url = urlOf(account.settings, base)
  return {
    destination: destinationOf(account, url, timeoutMs),
    request: {
      method: "POST",
      path: url.pathname,
      headers: [
        ...["content-type", "application/json"],
        ...["authorization", `Bearer ${Redacted.value(secrets["accessToken"]!)}`],
        ...agentHeaders
      ],
      body: Buffer.from(
        JSON.stringify({
          messaging_product: "whatsapp",
          recipient_type: "individual",
          to: message.to,
          ...saying(payload.success.content),
          biz_opaque_callback_data: callbackData(message)
        })
      )
    }
  }
}

const urlOf = ({ phoneNumberId, graphVersion }: WhatsAppSettings, base: URL): URL =>
  new URL(`${base.pathname.replace(/\/$/, "")}/${graphVersion}/${phoneNumberId}/messages`, base)

/** The request without its secrets. */
export const callOf = (settings: WhatsAppSettings, base: URL): Call => ({
  method: "POST",
  url: shownUrl(urlOf(settings, base)),
  headers: { "content-type": "application/json", authorization: MASKED, ...agent }
})

const saying = (content: Content) => {
  if (content.type === "text") {
    const { body, previewUrl } = content
    return { type: "text", text: { ...(previewUrl === null ? {} : { preview_url: previewUrl }), body } }
  }
  const { name, language, components } = content
  return { type: "template", template: { name, language, ...(components === null ? {} : { components }) } }
}
