/** Builds the two requests to a target: the call, and the question whether it was done. */
import type { Dispatcher } from "undici"
import type { Doubted, OutboundMessage } from "../../../application/ports/Channels.ts"
import type { OpenDestination } from "../../../application/ports/Destinations.ts"
import { type Call, shownUrl } from "../../../domain/delivery/exchange.ts"
import { agent, agentHeaders, maskedHeaders } from "../net/requestPolicy.ts"
import { destinationOf, type Prepared } from "../net/tries.ts"
import { filled, withFields } from "./fields.ts"
import { checkHeaders, checkSettings, type HttpTargetSettings, PLACEHOLDER } from "./settings.ts"

type Target = OpenDestination<HttpTargetSettings>

/** Headers of any request to the target, or the reason why there can be none. */
const headersFor = ({ destination, secrets }: Target): ReadonlyArray<string> | string => {
  const problem = checkSettings(destination)
  if (problem !== null) return problem
  const headers = filled(destination.settings.headers, secrets)
  // A filled-in secret can make a value too long.
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

/** Answers a text when the target can't be called. */
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
      // Sent with or without a key: a target needs it to answer the question later.
      ...["x-message-id", message.messageId],
      ...(message.traceparent === undefined ? [] : ["traceparent", message.traceparent]),
      ...(idempotency === "header" ? ["idempotency-key", message.messageId] : []),
      ...headers
    ],
    body: Buffer.from(body)
  })
}

/** The request without its secrets; a test compares it with `requestOf`. */
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

/** Null when the target has no address for questions; a text says why it can't be asked. */
export const questionOf = (message: Doubted, target: Target): Prepared | string | null => {
  const { reconcile } = target.destination.settings
  if (reconcile === null) return null
  const headers = headersFor(target)
  if (typeof headers === "string") return headers
  const url = reconcile.url.replaceAll(PLACEHOLDER, message.messageId)
  return prepared(target, url, { method: "GET", headers: [...headers] })
}
