/**
 * Posts a message to its webhook endpoint, signed, and reports what came of it: one call, at most one
 * request, within the endpoint's deadline (see net/tries.ts). The receiver can drop a duplicate by its
 * `webhook-id`, so a try that got no answer may simply be made again.
 *
 * It leaves out rate limits, circuits and how many requests may be under way: they are settled before.
 */
import { Effect, type Scope } from "effect"
import type { Channel, OutboundMessage, Reply } from "../../../application/ports/Channels.ts"
import { Endpoints } from "../../../application/ports/Endpoints.ts"
import { type FailureCode, outcomeOfFailure } from "../../../domain/delivery/classify.ts"
import type { AddressRules } from "../net/addressGuard.ts"
import { CONNECTIONS_PER_ORIGIN_MAX } from "../net/connections.ts"
import type { Resolve } from "../net/guardedConnect.ts"
import { makeTries } from "../net/tries.ts"
import { makeTargets, requestOf, type Signing } from "./request.ts"

const unsent = (code: FailureCode, detail?: string): Effect.Effect<Reply> =>
  Effect.succeed({ outcome: outcomeOfFailure(code, 0, detail), responseBody: null })

/** `resolve` replaces the system's resolver. Connections close with the scope. */
export const make = Effect.fnUntraced(function* (
  rules: AddressRules,
  resolve?: Resolve
): Effect.fn.Return<Channel, never, Endpoints | Scope.Scope> {
  const endpoints = yield* Endpoints
  const attempt = yield* makeTries(rules, resolve)
  const targetOf = makeTargets()

  const post = (message: OutboundMessage, signing: Signing): Effect.Effect<Reply> => {
    const target = targetOf(signing)
    return typeof target === "string"
      ? unsent("endpoint_invalid", target)
      : attempt(target, (now) => requestOf(message, target, now))
  }

  return {
    send: (message) =>
      Effect.matchEffect(endpoints.signing(message.orgId, message.destination), {
        onFailure: () => unsent("store_unavailable"),
        onSuccess: (signing) => (signing === null ? unsent("endpoint_missing") : post(message, signing))
      }),
    // Sends to an endpoint that is gone are answered here: no limit holds them up.
    capacity: (orgId, destination) =>
      Effect.match(endpoints.signing(orgId, destination), {
        onFailure: () => 1,
        onSuccess: (signing) => signing?.endpoint.maxInFlight ?? CONNECTIONS_PER_ORIGIN_MAX
      }),
    dedupes: () => Effect.succeed(true)
  }
})
