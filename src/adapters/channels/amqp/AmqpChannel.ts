/**
 * The channel `amqp`: publishes a message to an exchange of the org's own RabbitMQ: persistent, mandatory and with a
 * confirm, one call, at most one message, within the target's deadline.
 *
 * - A confirm means SENT and DELIVERED: the message is in the queues that are bound, on disk where they are durable.
 * - What the broker returned is in no queue. It is refused for good: to publish it again would change nothing.
 * - A message may have been taken when the connection, the channel or the deadline ended before its confirm. It is
 *   published again under the same `message-id`, by which consumers drop it, unless the target leaves that to a person.
 * - An exchange that does not exist, a login that is refused and a broker that takes nothing for now say nothing about
 *   the message: it waits, and no attempt is used up.
 *
 * Each target has a connection and a channel of its own, so that no target can take another one's along. They are made
 * for the first message and closed a while after the last. It leaves out rate limits, circuits and how many messages may
 * be under way: they are settled before.
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
import type { Resolve } from "../net/resolver.ts"
import { tlsTerms } from "../net/tlsTerms.ts"
import { type AmqpTargetSettings, checkUrl, hostOf, portOf, secrets, settings, withPassword } from "./settings.ts"

type Target = OpenDestination<AmqpTargetSettings>

/** `resolve` replaces the system's resolver. */
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
    // Nothing is asked about a URL that stays as it is: the operator may have closed its network since.
    faultsOf: ({ settings: { url }, given }) => {
      const reason = !given.includes("url") ? null : isProxied ? NO_WAY : checkUrl(url, guard)
      return reason === null ? [] : [{ field: "url", reason }]
    },
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

/** The proxy is there so that nothing leaves by another way. */
const NO_WAY = "brokers can't be called: this Posthaste calls through POSTHASTE_EGRESS_PROXY, which is for HTTP"

/** What is accepted already waits, until the proxy is gone or the target is. */
const withoutWay: Connection<AmqpTargetSettings> = {
  send: () =>
    Effect.succeed({ outcome: deferredBy("proxy_failed", "circuit", REPAIR_WAIT_MS, 0, NO_WAY), responseBody: null })
}

/** How long a connection that nobody uses stays. */
const IDLE = Duration.minutes(1)
/** Confirms and returned messages. What is returned was sent before. */
const ANSWERS_MAX = { bytes: 1_048_576, perByte: 4 }
/** How long the messages of a broker that takes none wait before it is looked at again. */
const BLOCKED_WAIT_MS = 2_000
/** The circuit of the target holds its messages back: by itself this one hardly waits. */
const REPAIR_WAIT_MS = 1_000

/** A connection and its channel, or why there is none. Either is used until somebody finds that it is of no more use. */
interface Line {
  readonly key: string
  readonly made: Result.Result<
    {
      readonly publish: (message: OutboundMessage, target: Target) => Effect.Effect<Published>
      readonly isOpen: () => boolean
      readonly isBlocked: () => boolean
    },
    NotConnected
  >
  given: boolean
}

const open = Effect.fnUntraced(function* (guard: AddressGuard, resolve: Resolve | undefined) {
  const clock = yield* Clock.Clock
  /** What the next line of a key is made for. */
  const wanted = new Map<string, Target>()
  const lines = yield* RcMap.make({
    lookup: (key: string) =>
      lineTo(wanted.get(key)!, guard, resolve).pipe(
        Effect.result,
        Effect.map((made): Line => ({ key, made, given: true }))
      ),
    idleTimeToLive: IDLE
  })

  /** Only the first to find out: the next line of the key may be there already. */
  const giveUp = (line: Line) =>
    Effect.suspend(() => {
      if (!line.given) return Effect.void
      line.given = false
      return RcMap.invalidate(lines, line.key)
    })

  const send = Effect.fnUntraced(function* (message: OutboundMessage, target: Target) {
    const { id, version, settings } = target.destination
    const fault = checkUrl(settings.url, guard)
    if (fault !== null) return outcomeOfFailure(isForbidden(settings.url, guard), 0, fault)
    const key = `${id}/${version}`
    wanted.set(key, target)
    const startedAt = clock.monotonicTimeNanosUnsafe()
    const durationMs = () => Number((clock.monotonicTimeNanosUnsafe() - startedAt) / 1_000_000n)
    let line: Line | null = null
    const tried = Effect.gen(function* () {
      line = yield* RcMap.get(lines, key)
      wanted.delete(key)
      if (Result.isFailure(line.made)) {
        yield* giveUp(line)
        return notConnected(line.made.failure, durationMs())
      }
      const broker = line.made.success
      if (broker.isBlocked()) return deferredBy("broker_blocked", "lane", BLOCKED_WAIT_MS, durationMs())
      const published = yield* broker.publish(message, target)
      if (!broker.isOpen()) yield* giveUp(line)
      return outcomeOf(published, settings, durationMs())
    })
    return yield* tried.pipe(
      Effect.scoped,
      Effect.timeoutOrElse({
        duration: Duration.millis(settings.timeoutMs),
        orElse: () => {
          const blocked = line !== null && Result.isSuccess(line.made) && line.made.success.isBlocked()
          // A connection that stays silent is of no use; one that is blocked will say when it is not.
          const given = line === null || blocked ? Effect.void : giveUp(line)
          const code = line === null ? "timeout" : blocked ? "broker_blocked" : "unconfirmed"
          return Effect.as(
            given,
            line === null ? outcomeOfFailure(code, durationMs()) : doubted(code, settings, durationMs())
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

const isForbidden = (url: string, guard: AddressGuard): FailureCode => {
  const parsed = URL.parse(url)
  const address = parsed === null ? null : literalAddress(parsed.hostname)
  return address !== null && !guard.allows(address, portOf(parsed!)) ? "forbidden_address" : "amqp_target_invalid"
}

const lineTo = Effect.fnUntraced(function* (target: Target, guard: AddressGuard, resolve: Resolve | undefined) {
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
    isBlocked: () => link.blocked() !== null
  }
})

/** Ids that are too long for the property of their name stand in a header. */
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

/** The broker may have taken it. */
const doubted = (
  code: FailureCode,
  { unconfirmed }: AmqpTargetSettings,
  durationMs: number,
  detail?: string
): AttemptOutcome => {
  const failed = outcomeOfFailure(code, durationMs, detail)
  if (unconfirmed === "resend" || failed.type !== "Unreachable") return failed
  // There is nobody to ask.
  return { type: "Unknown", error: failed.error, status: null, reconcileAfterMs: null, durationMs }
}
