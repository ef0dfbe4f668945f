/**
 * The channel `amqp`: publishes a message to an exchange of the org's RabbitMQ. A confirm is DELIVERED, a return is
 * final; without either the message is published again under the same `message-id`, or left to a person. A missing
 * exchange, a refused login and a blocked broker use up no attempt.
 */
import { Clock, DateTime, Duration, Effect, RcMap, Redacted, Result } from "effect"
import type { Channel, Connection, OutboundMessage, Reply } from "../../../application/ports/Channels.ts"
import type { OpenDestination } from "../../../application/ports/Destinations.ts"
import { deferredBy, type FailureCode, outcomeOfFailure } from "../../../domain/delivery/classify.ts"
import { shownUrl } from "../../../domain/delivery/exchange.ts"
import type { AttemptOutcome } from "../../../domain/delivery/outcome.ts"
import { presets } from "../../../domain/delivery/retry.ts"
import { connect, type NotConnected } from "../../rabbitmq/client/connect.ts"
import { fitsShort, type Published, publisher, TRY_HEADER } from "../../rabbitmq/client/publisher.ts"
import { type AddressGuard, literalAddress, makeAddressGuard } from "../net/addressGuard.ts"
import { type EgressRules, guardedLookup } from "../net/guardedConnect.ts"
import { faultsAmong } from "../net/requestPolicy.ts"
import type { Resolve } from "../net/resolver.ts"
import { tlsTerms } from "../net/sockets.ts"
import { type AmqpTargetSettings, checkUrl, hostOf, portOf, secrets, settings, withPassword } from "./settings.ts"

type Target = OpenDestination<AmqpTargetSettings>

export const channel = (rules: EgressRules, resolve?: Resolve): Channel<AmqpTargetSettings> => {
  const guard = makeAddressGuard(rules)
  const isProxied = rules.proxy != null
  return {
    name: "amqp",
    journal: "amqp-target",
    path: "amqp-targets",
    typeName: "AmqpTarget",
    article: "an",
    noun: "AMQP target",
    example: { url: "amqps://orders:secret@broker.example/shop", exchange: "orders" },
    settings,
    secrets,
    ownSecretsMax: 0,
    // An unchanged URL is not judged again: the operator may have closed its network since.
    faultsOf: ({ settings: { url }, given }) =>
      faultsAmong({ url: !given.includes("url") ? null : isProxied ? NO_WAY : checkUrl(url, guard) }),
    addresseeOf: ({ to }) => Result.succeed({ to, destination: to }),
    addressField: "to",
    takesRoutingKey: true,
    retry: presets.exponential,
    reachesPerson: false,
    placesOf: ({ url }) => [url],
    callOf: ({ url, exchange, routingKey }) => ({
      method: "PUBLISH",
      url: shownUrl(new URL(url)),
      headers: {
        exchange,
        "routing-key": routingKey,
        "message-id": "{messageId}",
        type: "{eventType}",
        "correlation-id": "{correlationId}",
        "x-org-id": "{orgId}",
        [TRY_HEADER]: "{try}",
        traceparent: "{traceparent}"
      }
    }),
    dedupes: ({ unconfirmed }) => unconfirmed === "resend",
    missing: "amqp_target_missing",
    open: isProxied ? Effect.succeed(withoutWay) : open(guard, resolve)
  }
}

/** The proxy exists so that no traffic bypasses it. */
const NO_WAY = "brokers can't be called: this Posthaste calls through POSTHASTE_EGRESS_PROXY, which is for HTTP"

/** Accepted messages wait until the proxy or the target is gone. */
const withoutWay: Connection<AmqpTargetSettings> = {
  send: () =>
    Effect.succeed({ outcome: deferredBy("proxy_failed", "circuit", REPAIR_WAIT_MS, 0, NO_WAY), responseBody: null })
}

const IDLE = Duration.minutes(1)
/** Bounds confirms and returned messages, which repeat the bytes sent. */
const ANSWERS_MAX = { bytes: 1_048_576, perByte: 4 }
const BLOCKED_WAIT_MS = 2_000
/** Short: the circuit of the target holds its messages back. */
const REPAIR_WAIT_MS = 1_000

/** A connection with its channel, or the reason why there is none. Kept until a use finds it broken. */
interface Session {
  readonly key: string
  readonly made: Result.Result<
    {
      readonly publish: (message: OutboundMessage, target: Target) => Effect.Effect<Published>
      readonly isOpen: () => boolean
      readonly isBlocked: () => boolean
    },
    NotConnected
  >
  isKept: boolean
}

const open = Effect.fnUntraced(function* (guard: AddressGuard, resolve: Resolve | undefined) {
  const clock = yield* Clock.Clock
  /** Target for which the next session of a key is opened. */
  const wanted = new Map<string, Target>()
  const sessions = yield* RcMap.make({
    lookup: (key: string) =>
      sessionTo(wanted.get(key)!, guard, resolve).pipe(
        Effect.result,
        Effect.map((made): Session => ({ key, made, isKept: true }))
      ),
    idleTimeToLive: IDLE
  })

  /** Only the first to find out: the next session of the key may exist already. */
  const giveUp = (session: Session) =>
    Effect.suspend(() => {
      if (!session.isKept) return Effect.void
      session.isKept = false
      return RcMap.invalidate(sessions, session.key)
    })

  const send = Effect.fnUntraced(function* (message: OutboundMessage, target: Target) {
    const { id, version, settings } = target.destination
    const fault = checkUrl(settings.url, guard)
    if (fault !== null) return outcomeOfFailure(codeOfFault(settings.url, guard), 0, fault)
    const key = `${id}/${version}`
    wanted.set(key, target)
    const startedAt = clock.monotonicTimeNanosUnsafe()
    const durationMs = () => Number((clock.monotonicTimeNanosUnsafe() - startedAt) / 1_000_000n)
    let session: Session | null = null
    const tried = Effect.gen(function* () {
      session = yield* RcMap.get(sessions, key)
      wanted.delete(key)
      if (Result.isFailure(session.made)) {
        yield* giveUp(session)
        return notConnected(session.made.failure, durationMs())
      }
      const broker = session.made.success
      if (broker.isBlocked()) return deferredBy("broker_blocked", "lane", BLOCKED_WAIT_MS, durationMs())
      const published = yield* broker.publish(message, target)
      if (!broker.isOpen()) yield* giveUp(session)
      return outcomeOf(published, settings, durationMs())
    })
    return yield* tried.pipe(
      Effect.scoped,
      Effect.timeoutOrElse({
        duration: Duration.millis(settings.timeoutMs),
        orElse: () => {
          const blocked = session !== null && Result.isSuccess(session.made) && session.made.success.isBlocked()
          // A silent connection is given up; a blocked one reports when it is free.
          const given = session === null || blocked ? Effect.void : giveUp(session)
          const code = session === null ? "timeout" : blocked ? "broker_blocked" : "unconfirmed"
          return Effect.as(
            given,
            session === null ? outcomeOfFailure(code, durationMs()) : doubted(code, settings, durationMs())
          )
        }
      })
    )
  })

  const connection: Connection<AmqpTargetSettings> = {
    send: (message, target) =>
      Effect.suspend(() => {
        const exchange = {
          settings: target.destination.version,
          sentAt: DateTime.makeUnsafe(clock.currentTimeMillisUnsafe())
        }
        return Effect.map(send(message, target), (outcome): Reply => ({ outcome, exchange, responseBody: null }))
      })
  }
  return connection
})

const codeOfFault = (url: string, guard: AddressGuard): FailureCode => {
  const parsed = URL.parse(url)
  const address = parsed === null ? null : literalAddress(parsed.hostname)
  return address !== null && !guard.allows(address, portOf(parsed!)) ? "forbidden_address" : "amqp_target_invalid"
}

const sessionTo = Effect.fnUntraced(function* (target: Target, guard: AddressGuard, resolve: Resolve | undefined) {
  const { destination, secrets } = target
  const url = new URL(destination.settings.url)
  const host = hostOf(url)
  const port = portOf(url)
  const password = secrets["password"]
  const link = yield* connect({
    url: Redacted.make(withPassword(url.href, password === undefined ? null : Redacted.value(password))),
    name: `posthaste ${destination.id}`,
    timeout: Duration.millis(destination.settings.timeoutMs),
    answersMax: ANSWERS_MAX,
    socket: { host, port, lookup: guardedLookup(guard, port, resolve) },
    ...(url.protocol === "amqps:" && {
      tls: { ...tlsTerms, ...(literalAddress(host) === null && { servername: host }) }
    })
  })
  const { publish, isOpen } = yield* publisher(link)
  return {
    publish: (message: OutboundMessage, { destination: { settings } }: Target) =>
      publish(envelopeOf(message, settings), Buffer.from(message.body)),
    isOpen,
    isBlocked: link.isBlocked
  }
})

const envelopeOf = (message: OutboundMessage, { exchange, routingKey }: AmqpTargetSettings) => {
  const { messageId, orgId, epoch, attempt, eventType, correlationId } = message
  const short = (text: string | null) => (text !== null && fitsShort(text) ? text : null)
  const type = short(eventType)
  const correlation = short(correlationId)
  return {
    exchange,
    routingKey: message.routingKey ?? routingKey,
    mandatory: true,
    messageId,
    contentType: "application/json",
    appId: "posthaste",
    ...(type !== null && { type }),
    ...(correlation !== null && { correlationId: correlation }),
    headers: {
      "x-org-id": orgId,
      [TRY_HEADER]: `${epoch}.${attempt}`,
      ...(message.traceparent !== undefined && { traceparent: message.traceparent }),
      ...(eventType !== null && type === null && { "x-event-type": eventType }),
      ...(correlationId !== null && correlation === null && { "x-correlation-id": correlationId })
    }
  }
}

const outcomeOf = (published: Published, settings: AmqpTargetSettings, durationMs: number): AttemptOutcome => {
  switch (published.type) {
    case "Confirmed":
      return { type: "Accepted", status: null, providerMessageId: null, delivered: true, durationMs }
    case "Returned":
      return outcomeOfFailure("not_routed", durationMs, published.reason)
    case "Nacked":
      return outcomeOfFailure("nacked", durationMs)
    case "Lost":
      return doubted("unconfirmed", settings, durationMs)
    case "ChannelClosed":
      if (published.code === "NOT_FOUND") return deferredBy("exchange_missing", "circuit", REPAIR_WAIT_MS, durationMs)
      if (published.code === "ACCESS_REFUSED") return deferredBy("login_refused", "circuit", REPAIR_WAIT_MS, durationMs)
      return doubted("channel_closed", settings, durationMs, published.code)
  }
}

const notConnected = ({ code }: NotConnected, durationMs: number): AttemptOutcome =>
  code === "login_refused"
    ? deferredBy(code, "circuit", REPAIR_WAIT_MS, durationMs)
    : outcomeOfFailure(code, durationMs)

const doubted = (
  code: FailureCode,
  { unconfirmed }: AmqpTargetSettings,
  durationMs: number,
  detail?: string
): AttemptOutcome => {
  const failed = outcomeOfFailure(code, durationMs, detail)
  if (unconfirmed === "resend" || failed.type !== "Unreachable") return failed
  return { type: "Unknown", error: failed.error, status: null, reconcileAfterMs: null, durationMs }
}
