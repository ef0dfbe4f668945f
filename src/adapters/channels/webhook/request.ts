/** Builds the request for a message and its endpoint: URL, headers, signature, exact bytes. */
import type { KeyObject } from "node:crypto"
import { DateTime } from "effect"
import type { Dispatcher } from "undici"
import type { OutboundMessage } from "../../../application/ports/Channels.ts"
import type { OpenDestination } from "../../../application/ports/Destinations.ts"
import { type Call, headerText, MASKED, shownUrl } from "../../../domain/delivery/exchange.ts"
import { agent, agentHeaders, maskedHeaders } from "../net/requestPolicy.ts"
import { type Destination, destinationOf } from "../net/tries.ts"
import { secureContextOf } from "./certificates.ts"
import { checkSettings, type EndpointSettings } from "./settings.ts"
import { checkSecret, type Style, signEd25519, signingKey, signLegacy, signStandard } from "./signature.ts"

type Endpoint = OpenDestination<EndpointSettings>

interface TimedKey {
  readonly key: KeyObject
  readonly untilMs: number
}

/** Shared by the attempts at one version of an endpoint. */
interface Target extends Destination {
  readonly path: string
  readonly style: Style
  readonly keys: ReadonlyArray<TimedKey>
  readonly headers: ReadonlyArray<string>
}

/** Answers a text when the endpoint can't be called. */
const targetOf = ({ destination, secrets, previousSecrets }: Endpoint): Target | string => {
  const { settings } = destination
  const { secret } = secrets
  if (secret === undefined) return "there is no secret to sign with"
  const problem = checkSettings(settings) ?? checkSecret(secret, settings.signature)
  if (problem !== null) return problem
  const secureContext = secureContextOf(settings, secrets)
  if (typeof secureContext === "string") return secureContext
  const url = new URL(settings.url)
  return {
    ...destinationOf(destination, url, settings.timeoutMs, secureContext ?? undefined),
    path: url.pathname + url.search,
    style: settings.signature,
    keys: [
      { key: signingKey(secret), untilMs: Number.POSITIVE_INFINITY },
      ...previousSecrets.map(({ secret, until }) => ({
        key: signingKey(secret),
        untilMs: DateTime.toEpochMillis(until)
      }))
    ],
    headers: [...["content-type", "application/json"], ...agentHeaders, ...Object.entries(settings.headers).flat()]
  }
}

/**
 * Caches targets: parsing a URL and decoding keys costs more than signing. An open endpoint is one immutable object, so
 * each attempt uses one version of it.
 */
export const makeTargets = (): ((endpoint: Endpoint) => Target | string) => {
  const known = new WeakMap<Endpoint, Target | string>()
  return (endpoint) => {
    const before = known.get(endpoint)
    if (before !== undefined) return before
    const target = targetOf(endpoint)
    known.set(endpoint, target)
    return target
  }
}

/** The request without its secrets; a test compares it with `requestOf`. */
export const callOf = ({ url, headers, signature }: EndpointSettings): Call => ({
  method: "POST",
  url: shownUrl(new URL(url)),
  headers: {
    "content-type": "application/json",
    ...agent,
    ...maskedHeaders(headers),
    "webhook-id": "{messageId}",
    "webhook-event-type": "{eventType}",
    "webhook-correlation-id": "{correlationId}",
    "webhook-test": "{test}",
    traceparent: "{traceparent}",
    ...(signature === "legacy"
      ? {
          "x-timestamp": "{seconds}",
          "x-signature": MASKED,
          "x-correlation-id": "{correlationId}",
          "x-event-type": "{eventType}"
        }
      : { "webhook-timestamp": "{seconds}", "webhook-signature": MASKED })
  }
})

/** `now` is in unix milliseconds. The message's id is sent in every style. */
export const requestOf = (message: OutboundMessage, target: Target, now: number): Dispatcher.DispatchOptions => {
  const body = Buffer.from(message.body)
  const timestamp = String(Math.floor(now / 1000))
  const headers = [...target.headers, "webhook-id", message.messageId]
  if (message.eventType !== null) headers.push("webhook-event-type", headerText(message.eventType))
  if (message.correlationId !== null) headers.push("webhook-correlation-id", headerText(message.correlationId))
  if (message.test === true) headers.push("webhook-test", "true")
  if (message.traceparent !== undefined) headers.push("traceparent", message.traceparent)
  if (target.style !== "legacy") {
    const keys = target.keys.filter(({ untilMs }) => untilMs > now).map(({ key }) => key)
    const sign = target.style === "standard" ? signStandard : signEd25519
    const signature = sign(keys, message.messageId, timestamp, body)
    headers.push("webhook-timestamp", timestamp, "webhook-signature", signature)
  } else {
    headers.push("x-timestamp", timestamp, "x-signature", signLegacy(target.keys[0]!.key, timestamp, body))
    if (message.correlationId !== null) headers.push("x-correlation-id", headerText(message.correlationId))
    if (message.eventType !== null) headers.push("x-event-type", headerText(message.eventType))
  }
  return { method: "POST", path: target.path, headers, body }
}
