/** Turns a message and its target into requests: the one that does the work, and the one that asks whether it was done. */
import type { Dispatcher } from "undici"
import type { Doubted, OutboundMessage } from "../../../application/ports/Channels.ts"
import type { Calling } from "../../../application/ports/HttpTargets.ts"
import { agentHeaders } from "../net/agent.ts"
import { type Destination, timeoutNanosOf } from "../net/tries.ts"
import { withFields } from "./bodyFields.ts"
import { checkHeaders, checkSettings, PLACEHOLDER } from "./GuardedTargetPolicy.ts"
import { filled } from "./secretHeaders.ts"

export interface Prepared {
  readonly destination: Destination
  readonly request: Dispatcher.DispatchOptions
}

/** The headers of any request to the target; a text says why there can be no request. */
const headersFor = ({ target, secrets }: Calling): ReadonlyArray<string> | string => {
  const problem = checkSettings(target)
  if (problem !== null) return problem
  const headers = filled(target.headers, secrets)
  // A secret may have made a value too long.
  return checkHeaders(headers) ?? [...agentHeaders, ...Object.entries(headers).flat()]
}

const prepared = (
  { target }: Calling,
  address: string,
  request: Omit<Dispatcher.DispatchOptions, "path">
): Prepared => {
  const url = new URL(address)
  return {
    destination: { url, timeoutNanos: timeoutNanosOf(target.timeoutMs) },
    request: { ...request, path: url.pathname + url.search }
  }
}

/** A text says why the target can't be called; nothing is sent then. */
export const requestOf = (message: OutboundMessage, calling: Calling): Prepared | string => {
  const headers = headersFor(calling)
  if (typeof headers === "string") return headers
  const { url, method, idempotency, bodyFields } = calling.target
  const body = withFields(message.body, filled(bodyFields, calling.secrets))
  if (body === null) return "bodyFields can be added to a JSON object only"
  return prepared(calling, url, {
    method,
    headers: [
      ...["content-type", "application/json"],
      // What a target must remember to be able to answer the question later, key or no key.
      ...["x-message-id", message.messageId],
      ...(idempotency === "header" ? ["idempotency-key", message.messageId] : []),
      ...headers
    ],
    body: Buffer.from(body)
  })
}

/** Null when there is nobody to ask; a text says why they can't be asked. */
export const questionOf = (message: Doubted, calling: Calling): Prepared | string | null => {
  const { reconcile } = calling.target
  if (reconcile === null) return null
  const headers = headersFor(calling)
  if (typeof headers === "string") return headers
  const url = reconcile.url.replaceAll(PLACEHOLDER, message.messageId)
  return prepared(calling, url, { method: "GET", headers: [...headers] })
}
