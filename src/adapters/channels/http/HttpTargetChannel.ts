/**
 * The channel `http`: calls an HTTP API with a message as the body. A target that honours `Idempotency-Key` gets the
 * message's id in each try. For any other a try that may have been taken is in doubt, and the target is asked by GET if
 * it has an address for that.
 */
import { Effect, Result } from "effect"
import type { Channel, Connection, Reply } from "../../../application/ports/Channels.ts"
import { outcomeOfFailure, RECONCILE_AFTER_MS, withoutDedupe } from "../../../domain/delivery/classify.ts"
import type { DeliveryError } from "../../../domain/delivery/DeliveryError.ts"
import { presets } from "../../../domain/delivery/retry.ts"
import { makeAddressGuard } from "../net/addressGuard.ts"
import type { Tried } from "../net/attempt.ts"
import type { EgressRules } from "../net/guardedConnect.ts"
import { faultsAmong, makeCheckTarget } from "../net/requestPolicy.ts"
import type { Resolve } from "../net/resolver.ts"
import { makeTries } from "../net/tries.ts"
import { checkSecret } from "./fields.ts"
import { callOf, questionOf, requestOf } from "./request.ts"
import { faultsOf, type HttpTargetSettings, settings } from "./settings.ts"

/** `reconcileAfterMs` is null when the target can't be asked. */
const unknown = (
  error: DeliveryError,
  reconcileAfterMs: number | null = RECONCILE_AFTER_MS,
  tried: { readonly durationMs: number; readonly responseBody: string | null } = { durationMs: 0, responseBody: null }
): Reply => ({
  outcome: { type: "Unknown", error, status: null, reconcileAfterMs, durationMs: tried.durationMs },
  responseBody: tried.responseBody
})

const outcomeUnknown = (message: string): DeliveryError => ({ code: "outcome_unknown", message, retryable: false })

/** Reads the answer to the question as the outcome of the attempt in doubt. */
const verdictOf = ({ outcome, responseBody }: Tried): Reply => {
  if (outcome.type === "Accepted") return { outcome, responseBody }
  const { durationMs, error } = outcome
  const tried = { durationMs, responseBody }
  if (outcome.type !== "Unknown" && outcome.status === 404) {
    const notTaken = { code: "not_taken", message: "the target says that it did not take the message", retryable: true }
    return {
      outcome: { type: "Unreachable", error: notTaken, status: 404, retryAfterMs: null, durationMs },
      responseBody
    }
  }
  // One code: a failed question says nothing about the target's health.
  return unknown(outcomeUnknown(`asking what became of the attempt: ${error.message}`), RECONCILE_AFTER_MS, tried)
}

export const channel = (rules: EgressRules, resolve?: Resolve): Channel<HttpTargetSettings> => {
  const checkUrl = makeCheckTarget(makeAddressGuard(rules))
  return {
    name: "http",
    journal: "http-target",
    path: "http-targets",
    typeName: "HttpTarget",
    article: "an",
    noun: "HTTP target",
    example: {
      url: "https://payments.example/orders",
      headers: { authorization: "Bearer {{token}}" },
      secrets: { token: "k-4711" }
    },
    settings,
    secrets: {},
    ownSecretsMax: 20,
    faultsOf: (draft) => [
      ...faultsOf(draft, checkUrl),
      ...Object.entries(draft.secrets).flatMap(([name, value]) =>
        faultsAmong({ [`secrets.${name}`]: checkSecret(name, value) })
      )
    ],
    addresseeOf: ({ to }) => Result.succeed({ to, destination: to }),
    addressField: "to",
    retry: presets.webhook,
    reachesPerson: false,
    placesOf: ({ url, reconcile }) => (reconcile === null ? [url] : [url, reconcile.url]),
    callOf,
    dedupes: ({ idempotency }) => idempotency === "header",
    missing: "target_missing",
    open: open(rules, resolve)
  }
}

const open = Effect.fnUntraced(function* (rules: EgressRules, resolve: Resolve | undefined) {
  const attempt = yield* makeTries(rules, resolve)
  const connection: Connection<HttpTargetSettings> = {
    send: (message, target) => {
      const prepared = requestOf(message, target)
      if (typeof prepared === "string") {
        return Effect.succeed({ outcome: outcomeOfFailure("target_invalid", 0, prepared), responseBody: null })
      }
      const tried = attempt(prepared.destination, () => prepared.request)
      return target.destination.settings.idempotency === "header"
        ? tried
        : Effect.map(tried, ({ begun, ...reply }) => ({ ...reply, outcome: withoutDedupe(reply.outcome, begun) }))
    },
    reconcile: (message, target) => {
      const question = questionOf(message, target)
      if (question === null) return Effect.succeed(unknown(outcomeUnknown("the target has no address to ask at"), null))
      if (typeof question === "string")
        return Effect.succeed(unknown(outcomeUnknown(`the target is invalid: ${question}`)))
      return Effect.map(
        attempt(question.destination, () => question.request),
        verdictOf
      )
    }
  }
  return connection
})
