import { createHmac } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Duration, Effect, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { generateSecret } from "../../../../src/adapters/channels/webhook/signature.ts"
import { StoreUnavailable } from "../../../../src/application/ports/errors.ts"
import { answer, type Received, receiver } from "../net/receiver.ts"
import { channelFor, endpointAt, messageTo, secret } from "./endpoint.ts"

/** The specification's check, written from its text and sharing nothing with the code that signs. */
const isSignedBy = (key: Redacted.Redacted, { headers, body }: Received): boolean => {
  const bytes = Buffer.from(Redacted.value(key).replace("whsec_", ""), "base64")
  const content = Buffer.concat([
    Buffer.from(`${headers.get("webhook-id")}.${headers.get("webhook-timestamp")}.`),
    body
  ])
  const expected = `v1,${createHmac("sha256", bytes).update(content).digest("base64")}`
  return headers.get("webhook-signature")!.split(" ").includes(expected)
}

const KIB = 1024

describe("a message that is taken", () => {
  it.live("arrives as the exact bytes, signed, under its own id", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket) => answer(socket, 201, {}, "thanks") })
      const endpoint = endpointAt(far.url, { headers: { Authorization: "Bearer t", "X-Tenant": "7" } })
      const channel = yield* channelFor([endpoint])
      const body = '{ "n": 12345678901234567890, "d": 1.10, "s": "Åse 🐎 \\u0000", "half": "\ud83d" }\n'
      const message = messageTo(endpoint, { body })
      const before = Math.floor(Date.now() / 1000)
      const reply = yield* channel.send(message)

      expect(reply.outcome).toMatchObject({ type: "Accepted", status: 201, delivered: true, providerMessageId: null })
      expect(reply.responseBody).toBe("thanks")
      const [request] = far.requests
      expect(request!.line).toBe("POST /hooks?a=b HTTP/1.1")
      expect(request!.body.equals(Buffer.from(body))).toBe(true)
      expect(isSignedBy(secret, request!)).toBe(true)
      expect(isSignedBy(generateSecret(), request!)).toBe(false)
      expect(request!.headers.get("webhook-id")).toBe(message.messageId)
      const timestamp = Number(request!.headers.get("webhook-timestamp"))
      expect(timestamp).toBeGreaterThanOrEqual(before)
      expect(timestamp).toBeLessThanOrEqual(Date.now() / 1000)
      expect(Object.fromEntries(request!.headers)).toMatchObject({
        host: `127.0.0.1:${far.port}`,
        "content-type": "application/json",
        "accept-encoding": "identity",
        "user-agent": expect.stringMatching(/^Posthaste\/\d/),
        authorization: "Bearer t",
        "x-tenant": "7"
      })
      expect(request!.headers.has("x-signature")).toBe(false)
    })
  )

  it.live("may be empty or large", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket) => answer(socket, 200) })
      const endpoint = endpointAt(far.url)
      const channel = yield* channelFor([endpoint])
      const bodies = ["", "x".repeat(2 * 1024 * KIB)]
      for (const body of bodies) {
        expect((yield* channel.send(messageTo(endpoint, { body }))).outcome.type).toBe("Accepted")
      }
      expect(far.requests.map((request) => request.body.toString())).toEqual(bodies)
      expect(far.requests.every((request) => isSignedBy(secret, request))).toBe(true)
    })
  )

  it.effect("is signed with each secret whose grace lasts, judged when the attempt is made", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket) => answer(socket, 200) })
      const endpoint = endpointAt(far.url)
      const [older, oldest] = [generateSecret(), generateSecret()]
      const start = yield* DateTime.now
      const previousSecrets = [
        { name: "secret", secret: older, until: DateTime.add(start, { hours: 24 }) },
        { name: "secret", secret: oldest, until: DateTime.add(start, { hours: 1 }) }
      ]
      const channel = yield* channelFor([endpoint], { previousSecrets })
      const signers = Effect.gen(function* () {
        yield* channel.send(messageTo(endpoint))
        return [secret, older, oldest, generateSecret()].map((key) => isSignedBy(key, far.requests.at(-1)!))
      })
      expect(yield* signers).toEqual([true, true, true, false])
      yield* TestClock.adjust("1 hour")
      expect(yield* signers).toEqual([true, true, false, false])
      yield* TestClock.adjust(Duration.subtract(Duration.hours(23), Duration.millis(1)))
      expect(yield* signers).toEqual([true, true, false, false])
      yield* TestClock.adjust("1 millis")
      expect(yield* signers).toEqual([true, false, false, false])
    })
  )

  it.live("is signed and addressed by one version of its endpoint, whatever is changed meanwhile", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket) => answer(socket, 200) })
      const versions = Array.from({ length: 20 }, (_, n) => ({
        destination: endpointAt(far.url, { url: `${far.url}?v=${n}`, headers: { "x-version": `${n}` } }),
        secrets: { secret: generateSecret() },
        previousSecrets: []
      }))
      let now = 0
      const channel = yield* channelFor(Effect.sync(() => versions[now++ % versions.length]!))
      const message = () => channel.send(messageTo(versions[0]!.destination))
      yield* Effect.forEach(Array.from({ length: 60 }), message, { concurrency: 8 })
      expect(far.requests).toHaveLength(60)
      for (const request of far.requests) {
        const version = request.headers.get("x-version")!
        expect(request.line).toContain(`v=${version} `)
        const signers = versions.filter(({ secrets }) => isSignedBy(secrets.secret, request))
        expect(signers).toEqual([versions[Number(version)]])
      }
    })
  )

  it.live("is signed with what the endpoint has now, although the last attempt's keys are remembered", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket) => answer(socket, 200) })
      const endpoint = endpointAt(far.url)
      let secret = generateSecret()
      const channel = yield* channelFor(
        Effect.sync(() => ({ destination: endpoint, secrets: { secret }, previousSecrets: [] }))
      )
      yield* channel.send(messageTo(endpoint))
      const rotated = generateSecret()
      secret = rotated
      yield* channel.send(messageTo(endpoint))
      expect(far.requests.map((request) => isSignedBy(rotated, request))).toEqual([false, true])
    })
  )

  it.live.each(["standard", "legacy"] as const)("says what it is about, where it knows, in the style %s", (signature) =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket) => answer(socket, 200) })
      const endpoint = endpointAt(far.url, { signature })
      const channel = yield* channelFor([endpoint])
      yield* channel.send(messageTo(endpoint, { eventType: "påske", correlationId: "c-1\r\nx-evil: 1" }))
      yield* channel.send(messageTo(endpoint, { eventType: null, correlationId: null }))
      const [named, nameless] = far.requests.map(({ headers }) => headers)
      expect(decodeURIComponent(named!.get("webhook-event-type")!)).toBe("påske")
      expect(decodeURIComponent(named!.get("webhook-correlation-id")!)).toBe("c-1\r\nx-evil: 1")
      expect(named!.has("x-evil")).toBe(false)
      expect([nameless!.has("webhook-event-type"), nameless!.has("webhook-correlation-id")]).toEqual([false, false])
    })
  )

  it.live("carries the legacy headers when its endpoint asks for them", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket) => answer(socket, 200) })
      const endpoint = endpointAt(far.url, { signature: "legacy" })
      const channel = yield* channelFor([endpoint])
      const message = messageTo(endpoint, { correlationId: "påske\r\nx-evil: 1" })
      yield* channel.send(message)
      const { headers, body } = far.requests[0]!
      const timestamp = headers.get("x-timestamp")!
      const key = Buffer.from(Redacted.value(secret).slice(6), "base64")
      expect(headers.get("x-signature")).toBe(
        createHmac("sha256", key).update(`${timestamp}.`).update(body).digest("hex")
      )
      expect(Math.abs(Number(timestamp) - Date.now() / 1000)).toBeLessThan(5)
      expect(headers.get("x-event-type")).toBe("order.paid")
      expect(decodeURIComponent(headers.get("x-correlation-id")!)).toBe("påske\r\nx-evil: 1")
      expect(headers.has("x-evil")).toBe(false)
      expect(headers.get("webhook-id")).toBe(message.messageId)
      expect(headers.has("webhook-signature")).toBe(false)
    })
  )
})

describe("what came of a try", () => {
  it.live("is the answer to the message, its body kept", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket) => answer(socket, 503, { "retry-after": "7" }, "because") })
      const endpoint = endpointAt(far.url)
      const channel = yield* channelFor([endpoint])
      const reply = yield* channel.send(messageTo(endpoint))
      expect(reply.outcome).toMatchObject({ type: "Unreachable", status: 503, retryAfterMs: 7_000 })
      expect(reply.responseBody).toBe("because")
    })
  )

  it.live(
    "may be that the receiver did the work and did not say so: it drops a duplicate, so another try may come",
    () =>
      Effect.gen(function* () {
        const far = yield* receiver({ request: (socket) => void socket.resetAndDestroy() })
        const endpoint = endpointAt(far.url)
        const channel = yield* channelFor([endpoint])
        expect((yield* channel.send(messageTo(endpoint))).outcome.type).toBe("Unreachable")
        expect(yield* channel.dedupes(endpoint.orgId, endpoint.id)).toBe(true)
      })
  )

  it.live("is known within the endpoint's own deadline", () =>
    Effect.gen(function* () {
      const far = yield* receiver({})
      const endpoint = endpointAt(far.url, { timeoutMs: 100 })
      const channel = yield* channelFor([endpoint])
      const { outcome } = yield* channel.send(messageTo(endpoint))
      expect(outcome).toMatchObject({ type: "Unreachable", error: { code: "timeout" } })
      expect(outcome.durationMs).toBeGreaterThanOrEqual(100)
      expect(outcome.durationMs).toBeLessThan(20_000)
    })
  )

  it.live("is a refusal where the address may not be called", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket) => answer(socket, 200) })
      const endpoint = endpointAt(far.url)
      const channel = yield* channelFor([endpoint], { networks: "" })
      const { outcome } = yield* channel.send(messageTo(endpoint))
      expect(outcome).toMatchObject({ type: "Refused", error: { code: "forbidden_address" } })
      expect(far.connections()).toBe(0)
    })
  )
})

describe("an endpoint", () => {
  it.live("that is gone is refused", () =>
    Effect.gen(function* () {
      const channel = yield* channelFor([])
      const reply = yield* channel.send(messageTo(endpointAt("http://127.0.0.1/")))
      expect(reply.outcome).toMatchObject({ type: "Refused", error: { code: "endpoint_missing", retryable: false } })
    })
  )

  it.live("whose settings can't be read now is tried later", () =>
    Effect.gen(function* () {
      const channel = yield* channelFor(Effect.fail(new StoreUnavailable({ cause: "down" })))
      const reply = yield* channel.send(messageTo(endpointAt("http://127.0.0.1/")))
      expect(reply.outcome).toMatchObject({ type: "Deferred", error: { code: "store_unavailable" } })
    })
  )

  it.live.each([
    ["a header that would split the request", { headers: { "x-a": "1\r\nhost: evil" } }, "x-a"],
    ["a URL of another scheme", { url: "ftp://example.com/" }, "http"]
  ] as const)("stored with %s is refused with the reason", ([, change, reason]) =>
    Effect.gen(function* () {
      const far = yield* receiver({})
      const endpoint = endpointAt(far.url, change)
      const channel = yield* channelFor([endpoint])
      const { outcome } = yield* channel.send(messageTo(endpoint))
      expect(outcome).toMatchObject({ type: "Refused", error: { code: "endpoint_invalid", retryable: false } })
      expect(outcome.type === "Refused" && outcome.error.message).toContain(reason)
      expect(far.connections()).toBe(0)
    })
  )

  it.live("says how much it takes at once", () =>
    Effect.gen(function* () {
      const endpoint = endpointAt("http://127.0.0.1/", { maxInFlight: 3 })
      const channel = yield* channelFor([endpoint])
      expect(yield* channel.capacity(endpoint.orgId, endpoint.id)).toBe(3)
    })
  )
})
