/** Turns a message and its endpoint into the request to send: URL, headers, signature, exact bytes. */
import type { KeyObject } from "node:crypto"
import type { Effect } from "effect"
import type { Dispatcher } from "undici"
import type { OutboundMessage } from "../../../application/ports/Channels.ts"
import type { Endpoints } from "../../../application/ports/Endpoints.ts"
import { agentHeaders } from "../net/agent.ts"
import { timeoutNanosOf } from "../net/tries.ts"
import { checkSecret, signingKey, signLegacy, signStandard } from "./signature.ts"
import { checkSettings } from "./WebhookEndpointPolicy.ts"

export type Signing = NonNullable<Effect.Success<ReturnType<Endpoints["Service"]["signing"]>>>

/** What the attempts at one endpoint share for as long as its settings and secrets stay the same. */
export interface Target {
  readonly url: URL
  readonly path: string
  readonly style: "standard" | "legacy"
  readonly keys: ReadonlyArray<KeyObject>
  readonly headers: ReadonlyArray<string>
  readonly timeoutNanos: bigint
}

/** A text says why the endpoint can't be called; nothing is sent then. */
const targetOf = ({ endpoint, secrets }: Signing): Target | string => {
  if (secrets.length === 0) return "there is no secret to sign with"
  const problem = checkSettings(endpoint) ?? secrets.map(checkSecret).find((reason) => reason !== null) ?? null
  if (problem !== null) return problem
  const url = new URL(endpoint.url)
  return {
    url,
    path: url.pathname + url.search,
    style: endpoint.signature,
    keys: secrets.map(signingKey),
    headers: [...["content-type", "application/json"], ...agentHeaders, ...Object.entries(endpoint.headers).flat()],
    timeoutNanos: timeoutNanosOf(endpoint.timeoutMs)
  }
}

/**
 * Remembers targets: parsing a URL and decoding keys for each attempt would cost more than signing. An
 * endpoint's settings are one unchanging object; its secrets can come and go without it.
 */
export const makeTargets = (): ((signing: Signing) => Target | string) => {
  const known = new WeakMap<
    Signing["endpoint"],
    { readonly secrets: Signing["secrets"]; readonly target: Target | string }
  >()
  return (signing) => {
    const entry = known.get(signing.endpoint)
    if (entry !== undefined && sameItems(entry.secrets, signing.secrets)) return entry.target
    const target = targetOf(signing)
    known.set(signing.endpoint, { secrets: signing.secrets, target })
    return target
  }
}

const sameItems = (a: ReadonlyArray<unknown>, b: ReadonlyArray<unknown>): boolean =>
  a === b || (a.length === b.length && a.every((item, index) => item === b[index]))

/** Callers choose these texts; a header holds printable ASCII, so anything else is percent-encoded. */
const headerText = (text: string): string =>
  /^[\x20-\x7e]*$/.test(text) ? text : encodeURIComponent(text.toWellFormed())

/** `now` is the attempt's time in unix milliseconds. The message's id is sent in both styles. */
export const requestOf = (message: OutboundMessage, target: Target, now: number): Dispatcher.DispatchOptions => {
  const body = Buffer.from(message.body)
  const timestamp = String(Math.floor(now / 1000))
  const headers = [...target.headers, "webhook-id", message.messageId]
  if (target.style === "standard") {
    const signature = signStandard(target.keys, message.messageId, timestamp, body)
    headers.push("webhook-timestamp", timestamp, "webhook-signature", signature)
  } else {
    headers.push("x-timestamp", timestamp, "x-signature", signLegacy(target.keys[0]!, timestamp, body))
    if (message.correlationId !== null) headers.push("x-correlation-id", headerText(message.correlationId))
    if (message.eventType !== null) headers.push("x-event-type", headerText(message.eventType))
  }
  return { method: "POST", path: target.path, headers, body }
}
