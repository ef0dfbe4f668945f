/** Builds the request that sends a message from its account, and asks whose phone number it is. */
import { Effect, Redacted, Result } from "effect"
import { type OutboundMessage, OwnershipNotKnown } from "../../../application/ports/Channels.ts"
import type { OpenDestination } from "../../../application/ports/Destinations.ts"
import type { Fault } from "../../../application/ports/errors.ts"
import { type Call, MASKED, shownUrl } from "../../../domain/delivery/exchange.ts"
import { callbackData } from "../../../domain/whatsapp/callbackData.ts"
import { type Content, readPayload } from "../../../domain/whatsapp/content.ts"
import type { EgressRules } from "../net/guardedConnect.ts"
import { agent, agentHeaders } from "../net/requestPolicy.ts"
import { destinationOf, makeTries, type Prepared } from "../net/tries.ts"
import { graphErrorOf, idOf } from "./answer.ts"
import type { WhatsAppSettings } from "./settings.ts"

type Numbered = Pick<WhatsAppSettings, "phoneNumberId" | "graphVersion">

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
  const url = urlOf(account.settings, base, "/messages")
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

const urlOf = ({ phoneNumberId, graphVersion }: Numbered, base: URL, resource = ""): URL =>
  new URL(`${base.pathname.replace(/\/$/, "")}/${graphVersion}/${phoneNumberId}${resource}`, base)

export const callOf = (settings: WhatsAppSettings, base: URL): Call => ({
  method: "POST",
  url: shownUrl(urlOf(settings, base, "/messages")),
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

const TIMEOUT_MS = 10_000

const notKnown = (why: string) =>
  new OwnershipNotKnown({ message: `Meta was asked whether the access token acts for the phone number, and ${why}.` })

/**
 * Asks Meta whether an access token acts for a phone number. Phone number ids are public: without this check an org
 * could bind another's number and get its receipts.
 */
export const ownershipAt = (baseUrl: URL, rules: EgressRules) =>
  Effect.fnUntraced(function* (
    { phoneNumberId, graphVersion }: WhatsAppSettings,
    { accessToken }: Readonly<Record<string, string>>
  ): Effect.fn.Return<ReadonlyArray<Fault>, OwnershipNotKnown> {
    // An unchanged token needs no new proof.
    if (accessToken === undefined) return []
    const { pathname: path } = urlOf({ phoneNumberId, graphVersion }, baseUrl)
    const asked = { id: `ownership of ${phoneNumberId}`, version: 1 }
    const destination = destinationOf(asked, new URL(path, baseUrl), TIMEOUT_MS)
    const headers = [...["authorization", `Bearer ${accessToken}`], ...agentHeaders]
    const { outcome, responseBody } = yield* Effect.flatMap(makeTries(rules), (attempt) =>
      attempt(destination, () => ({ method: "GET", path: `${path}?fields=id`, headers }))
    ).pipe(Effect.scoped)
    if (outcome.type === "Accepted" && idOf(responseBody) === phoneNumberId) return []
    const error = graphErrorOf(responseBody)
    if (outcome.type === "Refused" && error !== null && !error.isTransient) {
      const reason = `does not act for this phone number, as Meta says (error ${error.code})`
      return [{ field: "accessToken", reason }]
    }
    const status = "status" in outcome ? outcome.status : null
    return yield* notKnown(status === null ? "did not answer" : `answered ${status} without saying`)
  })
