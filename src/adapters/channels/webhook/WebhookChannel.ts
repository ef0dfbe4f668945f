/**
 * The channel `webhook`: posts a signed message to its endpoint, one request at most. The receiver can drop a duplicate
 * by its `webhook-id`, so a try without an answer may be repeated.
 */
import { Effect, Redacted, Result, Schema } from "effect"
import type { Channel, Connection } from "../../../application/ports/Channels.ts"
import { outcomeOfFailure } from "../../../domain/delivery/classify.ts"
import { presets } from "../../../domain/delivery/retry.ts"
import { makeAddressGuard } from "../net/addressGuard.ts"
import type { EgressRules } from "../net/guardedConnect.ts"
import { faultsAmong, makeCheckTarget } from "../net/requestPolicy.ts"
import type { Resolve } from "../net/resolver.ts"
import { makeTries } from "../net/tries.ts"
import { checkAuthority, checkClient, clientKey, KEY } from "./certificates.ts"
import { callOf, makeTargets, requestOf } from "./request.ts"
import { checkHeaders, type EndpointSettings, settings } from "./settings.ts"
import { checkSecret, generateSecret, publicKeyOf, type Style, textsOf } from "./signature.ts"

export const channel = (rules: EgressRules, resolve?: Resolve): Channel<EndpointSettings> => {
  const checkUrl = makeCheckTarget(makeAddressGuard(rules))
  return {
    name: "webhook",
    journal: "endpoint",
    path: "webhook-endpoints",
    typeName: "WebhookEndpoint",
    article: "a",
    noun: "webhook endpoint",
    example: { url: "https://shop.example/hooks/orders", eventTypes: ["order.paid"] },
    settings,
    secrets: {
      secret: {
        schema: Schema.String.annotate({
          description:
            "whsec_ and base64 of 24 to 64 bytes, or for ed25519 whsk_ and base64 of 32 or 64; made for you when left out."
        }),
        generate: ({ signature }) => generateSecret(signature),
        publishes: {
          name: "publicKey",
          description: "whpk_ and base64: what signatures are verified with. Null unless signature is ed25519.",
          of: publicKeyOf
        },
        replaceable: false,
        rotates: true,
        staysHere: true,
        alsoWritten: textsOf
      },
      [KEY]: clientKey
    },
    ownSecretsMax: 0,
    // Unchanged settings are not judged again: the operator may have closed its network since.
    faultsOf: ({
      settings: { url, headers, signature, caCertificate, clientCertificate },
      secrets: { secret, [KEY]: key },
      given,
      before
    }) =>
      faultsAmong({
        url: given.includes("url") ? checkUrl(url) : null,
        headers: given.includes("headers") ? checkHeaders(headers) : null,
        signature: before === null ? null : checkChange(before.signature, signature),
        caCertificate: given.includes("caCertificate") ? checkAuthority(caCertificate) : null,
        clientCertificate:
          given.includes("clientCertificate") && (key !== undefined || clientCertificate !== before?.clientCertificate)
            ? checkClient(clientCertificate, key)
            : null,
        secret: secret === undefined ? null : checkSecret(Redacted.make(secret), signature)
      }),
    addresseeOf: ({ to }) => Result.succeed({ to, destination: to }),
    addressField: "to",
    retry: presets.webhook,
    reachesPerson: false,
    placesOf: ({ url }) => [url],
    callOf,
    dedupes: true,
    goneStatus: 410,
    disableAfterMs: ({ disableAfterMs }) => (disableAfterMs === 0 ? null : disableAfterMs),
    missing: "endpoint_missing",
    open: open(rules, resolve)
  }
}

/** Secrets of the two kinds are not interchangeable. */
const checkChange = (before: Style, after: Style): string | null =>
  (before === "ed25519") === (after === "ed25519")
    ? null
    : "can't change to or from ed25519, which has keys of its own: create another endpoint"

const open = Effect.fnUntraced(function* (rules: EgressRules, resolve: Resolve | undefined) {
  const attempt = yield* makeTries(rules, resolve)
  const targetOf = makeTargets()
  const connection: Connection<EndpointSettings> = {
    send: (message, endpoint) => {
      const target = targetOf(endpoint)
      return typeof target === "string"
        ? Effect.succeed({ outcome: outcomeOfFailure("endpoint_invalid", 0, target), responseBody: null })
        : attempt(target, (now) => requestOf(message, target, now))
    }
  }
  return connection
})
