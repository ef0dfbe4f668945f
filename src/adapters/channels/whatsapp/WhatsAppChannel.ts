/**
 * The channel `whatsapp`: sends through Meta's Cloud API, which drops no duplicates and can't be asked. A try that may
 * have been taken waits for a receipt, which repeats the attempt's id; without one the account's settings decide.
 * Throttles and refusals of the sender cost no attempt.
 */
import { Clock, Effect, Result } from "effect"
import type { Channel, Connection, Reply } from "../../../application/ports/Channels.ts"
import type { Fault } from "../../../application/ports/errors.ts"
import { outcomeOfFailure, withoutDedupe } from "../../../domain/delivery/classify.ts"
import type { DeliveryError } from "../../../domain/delivery/DeliveryError.ts"
import type { AttemptOutcome } from "../../../domain/delivery/outcome.ts"
import { presets } from "../../../domain/delivery/retry.ts"
import { readPayload } from "../../../domain/whatsapp/content.ts"
import { recipientOf } from "../../../domain/whatsapp/recipient.ts"
import { parseNetworks } from "../net/addressGuard.ts"
import type { Tried } from "../net/attempt.ts"
import type { EgressProxy } from "../net/egressProxy.ts"
import { makeTries } from "../net/tries.ts"
import { graphErrorOf, providerMessageIdOf } from "./answer.ts"
import { type CodeClass, type CodeOverrides, classOfStatus, deliveryErrorOf, verdictOf } from "./errors.ts"
import { type Account, callOf, ownershipAt, requestOf } from "./request.ts"
import { secrets, settings, type WhatsAppSettings } from "./settings.ts"

export interface Options {
  readonly baseUrl: URL
  readonly codes: CodeOverrides
  readonly proxy?: EgressProxy | null
}

/** Meta asks for 6 s between messages from one number to one recipient. */
const PAIR_WAIT_MS = 6_000
/** Short: the circuit of the account holds its messages back. */
const ACCOUNT_WAIT_MS = 1_000
const DAY_MS = 24 * 3600 * 1000

const reply = (outcome: AttemptOutcome, responseBody: string | null = null): Reply => ({ outcome, responseBody })

const inDoubt = (error: DeliveryError, reconcileAfterMs: number | null): Effect.Effect<Reply> =>
  Effect.succeed(reply({ type: "Unknown", error, status: null, reconcileAfterMs, durationMs: 0 }))

const noReceipt: DeliveryError = {
  code: "outcome_unknown",
  message: "the message may have been taken, no receipt has shown it in time, and WhatsApp can't be asked",
  retryable: false
}

/** The operator chose the API's address, so all but metadata addresses are allowed. */
const rules = { allowedNetworks: Result.getOrThrow(parseNetworks("0.0.0.0/0,::/0")), exemptions: [] }

export const channel = (options: Options): Channel<WhatsAppSettings> => ({
  name: "whatsapp",
  journal: "whatsapp-account",
  path: "whatsapp-accounts",
  typeName: "WhatsAppAccount",
  article: "a",
  noun: "WhatsApp account",
  example: {
    phoneNumberId: "106540352242922",
    accessToken: "EAAGm0PX4ZCpsBAK",
    appSecret: "0123456789abcdef0123456789abcdef",
    verifyToken: "5f2a9c1e7b3d4068"
  },
  settings,
  secrets,
  ownSecretsMax: 0,
  faultsOf: () => [],
  ownership: ownershipAt(options.baseUrl, { ...rules, proxy: options.proxy ?? null }),
  // `to` is a phone number; the destination is the account that writes to it.
  addresseeOf: ({ to, templateCode, body }) => {
    const recipient = recipientOf(to)
    const payload = readPayload(templateCode, body)
    return recipient !== null && Result.isSuccess(payload)
      ? Result.succeed({ to: recipient, destination: payload.success.from })
      : Result.fail([
          ...(recipient === null ? [noPhoneNumber] : []),
          ...(Result.isFailure(payload) ? payload.failure : [])
        ])
  },
  addressField: "payloadJson.from",
  retry: presets.whatsapp,
  reachesPerson: true,
  callOf: (settings) => callOf(settings, options.baseUrl),
  dedupes: false,
  doubtMs: ({ reconcile }) => reconcile.waitMs,
  missing: "account_missing",
  open: open(options)
})

const noPhoneNumber: Fault = {
  field: "to",
  reason: "must be a phone number with its country code, 8 to 15 digits, such as +4915112345678"
}

const open = Effect.fnUntraced(function* ({ baseUrl, codes, proxy }: Options) {
  const clock = yield* Clock.Clock
  const attempt = yield* makeTries({ ...rules, proxy: proxy ?? null })
  const throttles = makeThrottles()
  const connection: Connection<WhatsAppSettings> = {
    send: (message, account) => {
      const pair = `${account.destination.settings.phoneNumberId}/${message.to}`
      const waitMs = throttles.waitMs(pair, clock.currentTimeMillisUnsafe())
      if (waitMs > 0) return Effect.succeed(reply(held(waitMs)))
      const prepared = requestOf(message, account, baseUrl)
      if (prepared === null) return Effect.succeed(reply(outcomeOfFailure("payload_invalid", 0)))
      return Effect.map(
        attempt(prepared.destination, () => prepared.request),
        (tried) => {
          const throttling = { throttles, pair, now: clock.currentTimeMillisUnsafe() }
          const { begun: _, ...reply } = tried
          return { ...reply, outcome: outcomeOf(tried, account, codes, throttling) }
        }
      )
    },
    // Meta can't be asked, and a receipt would have settled the attempt earlier.
    reconcile: (_, { destination }) =>
      destination.settings.reconcile.otherwise === "resend"
        ? Effect.succeed(reply(sendAgain))
        : inDoubt(noReceipt, null)
  }
  return connection
})

const sendAgain: AttemptOutcome = {
  type: "Unreachable",
  error: { code: "no_receipt", message: "no receipt came in time; the account says to send again", retryable: true },
  status: null,
  retryAfterMs: null,
  durationMs: 0
}

/** Deferred without a request: Meta would refuse it. */
const held = (afterMs: number): AttemptOutcome => ({
  type: "Deferred",
  error: errorOf("pair_throttled", "too many messages from this number to this recipient in a short time", true),
  status: null,
  scope: "message",
  afterMs,
  durationMs: 0
})

const errorOf = (code: string, message: string, retryable: boolean): DeliveryError => ({ code, message, retryable })

interface Throttling {
  readonly throttles: Throttles
  readonly pair: string
  readonly now: number
}

const outcomeOf = (
  tried: Tried,
  { destination }: Account,
  codes: CodeOverrides,
  throttling: Throttling
): AttemptOutcome => {
  const account = destination.settings
  const { outcome, responseBody, begun } = tried
  const { durationMs, status } = outcome
  if (outcome.type === "Accepted") {
    throttling.throttles.passed(throttling.pair, throttling.now)
    throttling.throttles.passed(account.phoneNumberId, throttling.now)
    const providerMessageId = providerMessageIdOf(responseBody)
    if (providerMessageId !== null) return { ...outcome, providerMessageId, delivered: false }
    const error = errorOf("answer_unreadable", "answered 2xx, but not with the id of a message", true)
    return { type: "Unknown", error, status, reconcileAfterMs: account.reconcile.waitMs, durationMs }
  }
  const graphError = graphErrorOf(responseBody)
  if (status !== null && graphError !== null) {
    const verdict = verdictOf(graphError, status, codes)
    const error = deliveryErrorOf(graphError.code, verdict)
    return judged(verdict.class, outcome, error, account.phoneNumberId, throttling)
  }
  // A gateway answered. It refuses senders before Meta takes a message.
  if (status === 401 || status === 403 || status === 429) {
    return judged(
      classOfStatus(status),
      outcome,
      { ...outcome.error, retryable: true },
      account.phoneNumberId,
      throttling
    )
  }
  // A 503 may come from a gateway that gave up on a request Meta has taken.
  const doubted = status !== null && status >= 500 ? asUnknown(outcome) : withoutDedupe(outcome, begun)
  return doubted.type === "Unknown" ? { ...doubted, reconcileAfterMs: account.reconcile.waitMs } : doubted
}

type Failed = Exclude<AttemptOutcome, { readonly type: "Accepted" }>

const asUnknown = ({ error, status, durationMs }: Failed): AttemptOutcome => ({
  type: "Unknown",
  error,
  status,
  reconcileAfterMs: null,
  durationMs
})

const judged = (
  verdict: CodeClass,
  outcome: Failed,
  error: DeliveryError,
  phoneNumberId: string,
  { throttles, pair, now }: Throttling
): AttemptOutcome => {
  const { status, durationMs } = outcome
  const retryAfterMs = outcome.type === "Unreachable" ? outcome.retryAfterMs : null
  const deferred = (scope: "message" | "lane" | "circuit", afterMs: number): AttemptOutcome => ({
    ...{ type: "Deferred", error, status, scope, afterMs, durationMs }
  })
  switch (verdict) {
    case "throttle":
      return deferred("lane", throttles.refused(phoneNumberId, now, retryAfterMs ?? 0))
    case "pair":
      return deferred("message", throttles.refused(pair, now, PAIR_WAIT_MS))
    case "wait":
      return deferred("message", DAY_MS)
    case "account":
      return deferred("circuit", ACCOUNT_WAIT_MS)
    case "standing":
      return deferred("circuit", DAY_MS)
    case "temporary":
      return { type: "Unreachable", error, status, retryAfterMs, durationMs }
    case "permanent":
      return { type: "Refused", error, status, durationMs }
  }
}

/**
 * Backoff that Meta asks for: 1 s, 4 s, 16 s, … Refusals during a wait don't prolong it. In memory only: another
 * process learns of a wait from Meta.
 */
export interface Throttles {
  readonly waitMs: (name: string, now: number) => number
  readonly refused: (name: string, now: number, atLeastMs: number) => number
  /** Ignored for messages sent before the last refusal. */
  readonly passed: (name: string, now: number) => void
}

const FIRST_MS = 1_000
const GROWTH = 4
const WAIT_MAX_MS = 3_600_000
const REMEMBERED = 10_000

export const makeThrottles = (): Throttles => {
  const waits = new Map<string, { readonly refusals: number; readonly until: number }>()
  return {
    waitMs: (name, now) => Math.max(0, (waits.get(name)?.until ?? 0) - now),
    refused: (name, now, atLeastMs) => {
      const { refusals, until } = waits.get(name) ?? { refusals: 0, until: 0 }
      if (until > now) return until - now
      const wait = Math.min(Math.max(FIRST_MS * GROWTH ** refusals, atLeastMs), WAIT_MAX_MS)
      // Re-inserted last, so that the oldest is forgotten first.
      waits.delete(name)
      waits.set(name, { refusals: refusals + 1, until: now + wait })
      if (waits.size > REMEMBERED) waits.delete(waits.keys().next().value!)
      return wait
    },
    passed: (name, now) => {
      if ((waits.get(name)?.until ?? 0) <= now) waits.delete(name)
    }
  }
}
