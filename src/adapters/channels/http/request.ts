/** Turns a message and its target into requests: the one that does the work, and the one that asks whether it was done. */
import type { Dispatcher } from "undici"
import type { Doubted, OutboundMessage } from "../../../application/ports/Channels.ts"
import type { OpenDestination } from "../../../application/ports/Destinations.ts"
import { type Call, shownUrl } from "../../../domain/delivery/exchange.ts"
import { agent, agentHeaders } from "../net/agent.ts"
import { maskedHeaders } from "../net/requestPolicy.ts"
import { destinationOf, type Prepared } from "../net/tries.ts"
import { withFields } from "./bodyFields.ts"
import { filled } from "./secretHeaders.ts"
import { checkHeaders, checkSettings, type HttpTargetSettings, PLACEHOLDER } from "./settings.ts"

export type Target = OpenDestination<HttpTargetSettings>

/** The headers of any request to the target; a text says why there can be no request. */
const headersFor = ({ destination, secrets }: Target): ReadonlyArray<string> | string => {
  const problem = checkSettings(destination)
  if (problem !== null) return problem
  const headers = filled(destination.settings.headers, secrets)
  // A secret may have made a value too long.
  return checkHeaders(headers) ?? [...agentHeaders, ...Object.entries(headers).flat()]
}

const prepared = (
  { destination }: Target,
  address: string,
  request: Omit<Dispatcher.DispatchOptions, "path">
): Prepared => {
  const url = new URL(address)
  return {
    destination: destinationOf(destination, url, destination.settings.timeoutMs),
    request: { ...request, path: url.pathname + url.search }
  }
}

/** A text says why the target can't be called; nothing is sent then. */
export const requestOf = (message: OutboundMessage, target: Target): Prepared | string => {
  const headers = headersFor(target)
  if (typeof headers === "string") return headers
  const { url, method, idempotency, bodyFields } = target.destination.settings
  const body = withFields(message.body, filled(bodyFields, target.secrets))
  if (body === null) return "bodyFields can be added to a JSON object only"
  return prepared(target, url, {
    method,
    headers: [
      ...["content-type", "application/json"],
      // What a target must remember to be able to answer the question later, key or no key.
      ...["x-message-id", message.messageId],
      ...(message.traceparent === undefined ? [] : ["traceparent", message.traceparent]),
      ...(idempotency === "header" ? ["idempotency-key", message.messageId] : []),
      ...headers
    ],
    body: Buffer.from(body)
  })
}

/** The same request without its secrets: a test holds the two together. */
export const callOf = ({ url, method, headers, idempotency }: HttpTargetSettings): Call => ({
  method,
  url: shownUrl(new URL(url)),
  headers: {
    "content-type": "application/json",
    "x-message-id": "{messageId}",
    traceparent: "{traceparent}",
    ...(idempotency === "header" && { "idempotency-key": "{messageId}" }),
    ...agent,
    ...maskedHeaders(headers)
  }
})

/** Null when there is nobody to ask; a text says why they can't be asked. */
export const questionOf = (message: Doubted, target: Target): Prepared | string | null => {
  const { reconcile } = target.destination.settings
  if (reconcile === null) return null
  const headers = headersFor(target)
  if (typeof headers === "string") return headers
  const url = reconcile.url.replaceAll(PLACEHOLDER, message.messageId)
  return prepared(target, url, { method: "GET", headers: [...headers] })
}
