/**
 * Calls an HTTP API, such as a payment provider's, with a message as the request's body: one call, at most
 * one request, within the target's deadline (see net/tries.ts).
 *
 * - A target that honours `Idempotency-Key` gets the message's id under it, the same in every try: what got
 *   no answer may simply be tried again.
 * - A target that does not would do the work twice. There a try that may have been taken is in doubt. What
 *   counts as an answer is what says in so many words that it was not taken (domain/classify.ts); and nothing
 *   can have been taken before a byte of the request was written.
 * - An attempt in doubt is asked about with a GET, if the target has an address for that.
 *
 * It leaves out rate limits, circuits and how many requests may be under way: they are settled before.
 */
import { Effect, type Scope } from "effect"
import { StoreUnavailable } from "../../../application/errors.ts"
import type { Channel, Doubted, OutboundMessage, Reply } from "../../../application/ports/Channels.ts"
import { type Calling, HttpTargets } from "../../../application/ports/HttpTargets.ts"
import {
  type FailureCode,
  outcomeOfFailure,
  RECONCILE_AFTER_MS,
  withoutDedupe
} from "../../../domain/delivery/classify.ts"
import type { DestinationId, OrgId } from "../../../domain/ids.ts"
import type { DeliveryError } from "../../../domain/message/facts.ts"
import type { AddressRules } from "../net/addressGuard.ts"
import type { Tried } from "../net/attempt.ts"
import { CONNECTIONS_PER_ORIGIN_MAX } from "../net/connections.ts"
import type { Resolve } from "../net/guardedConnect.ts"
import { makeTries } from "../net/tries.ts"
import { questionOf, requestOf } from "./request.ts"

const unsent = (code: FailureCode, detail?: string): Effect.Effect<Reply> =>
  Effect.succeed({ outcome: outcomeOfFailure(code, 0, detail), responseBody: null })

/** Null for `reconcileAfterMs`: there is nobody to ask. */
const unknown = (
  error: DeliveryError,
  reconcileAfterMs: number | null = RECONCILE_AFTER_MS,
  tried: { readonly durationMs: number; readonly responseBody: string | null } = { durationMs: 0, responseBody: null }
): Reply => ({
  outcome: { type: "Unknown", error, status: null, reconcileAfterMs, durationMs: tried.durationMs },
  responseBody: tried.responseBody
})

const outcomeUnknown = (message: string): DeliveryError => ({ code: "outcome_unknown", message, retryable: false })

/** What an answer to the question means for the attempt it was about. */
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
  // One code for all of it: how the question fared says nothing about the target's own health.
  return unknown(outcomeUnknown(`asking what became of the attempt: ${error.message}`), RECONCILE_AFTER_MS, tried)
}

/** `resolve` replaces the system's resolver. Connections close with the scope. */
export const make = Effect.fnUntraced(function* (
  rules: AddressRules,
  resolve?: Resolve
): Effect.fn.Return<Channel, never, HttpTargets | Scope.Scope> {
  const targets = yield* HttpTargets
  const attempt = yield* makeTries(rules, resolve)
  // A secret that does not open, under another encryption key say, must stop this target and nothing else.
  const callingOf = (orgId: OrgId, id: DestinationId) =>
    Effect.catchDefect(targets.calling(orgId, id), (cause) => Effect.fail(new StoreUnavailable({ cause })))

  const call = (message: OutboundMessage, calling: Calling): Effect.Effect<Reply> => {
    const prepared = requestOf(message, calling)
    if (typeof prepared === "string") return unsent("target_invalid", prepared)
    const { destination, request } = prepared
    const tried = attempt(destination, () => request)
    return calling.target.idempotency === "header"
      ? tried
      : Effect.map(tried, ({ outcome, responseBody, begun }) => ({
          outcome: withoutDedupe(outcome, begun),
          responseBody
        }))
  }

  const ask = (message: Doubted, calling: Calling): Effect.Effect<Reply> => {
    const question = questionOf(message, calling)
    if (question === null) return Effect.succeed(unknown(outcomeUnknown("the target has no address to ask at"), null))
    if (typeof question === "string")
      return Effect.succeed(unknown(outcomeUnknown(`the target is invalid: ${question}`)))
    return Effect.map(
      attempt(question.destination, () => question.request),
      verdictOf
    )
  }

  return {
    send: (message) =>
      Effect.matchEffect(callingOf(message.orgId, message.destination), {
        onFailure: () => unsent("store_unavailable"),
        onSuccess: (calling) => (calling === null ? unsent("target_missing") : call(message, calling))
      }),
    reconcile: (message) =>
      Effect.matchEffect(callingOf(message.orgId, message.destination), {
        onFailure: () => Effect.succeed(unknown(outcomeUnknown("Posthaste could not read the target's settings"))),
        onSuccess: (calling) =>
          calling === null
            ? Effect.succeed(unknown(outcomeUnknown("the target does not exist any more"), null))
            : ask(message, calling)
      }),
    // Sends to a target that is gone are answered here: no limit holds them up.
    capacity: (orgId, destination) =>
      Effect.match(callingOf(orgId, destination), {
        onFailure: () => 1,
        onSuccess: (calling) => calling?.target.maxInFlight ?? CONNECTIONS_PER_ORIGIN_MAX
      }),
    dedupes: (orgId, destination) =>
      Effect.match(callingOf(orgId, destination), {
        onFailure: () => false,
        onSuccess: (calling) => calling?.target.idempotency === "header"
      })
  }
})
