/**
 * What an endpoint may ask for, judged when it is written so that its owner is told at once, and again
 * when it is used.
 */
import { Layer } from "effect"
import { EndpointPolicy } from "../../../application/ports/EndpointPolicy.ts"
import { type AddressGuard, type AddressRules, makeAddressGuard } from "../net/addressGuard.ts"
import { checkUrl, type Headers, makeCheckHeaders, makeCheckTarget } from "../net/requestPolicy.ts"
import { checkSecret, generateSecret } from "./signature.ts"

/** Headers that a request is signed with, or that say what it is about. */
const ours = new Set(["x-correlation-id", "x-event-type", "x-signature", "x-timestamp"])

const checkHeaders = makeCheckHeaders((name) => ours.has(name) || name.startsWith("webhook-"))

/** Why the settings can't make a request, whatever the network; null when they can. */
export const checkSettings = (settings: { readonly url: string; readonly headers: Headers }): string | null =>
  checkUrl(settings.url) ?? checkHeaders(settings.headers)

export const make = (guard: AddressGuard): EndpointPolicy["Service"] => ({
  checkUrl: makeCheckTarget(guard),
  checkHeaders,
  checkSecret,
  generateSecret
})

export const layer = (rules: AddressRules): Layer.Layer<EndpointPolicy> =>
  Layer.succeed(EndpointPolicy, make(makeAddressGuard(rules)))
