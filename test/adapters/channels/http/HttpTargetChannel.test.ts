import { randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted, Result } from "effect"
import * as HttpTargetChannel from "../../../../src/adapters/channels/http/HttpTargetChannel.ts"
import type { HttpTargetSettings } from "../../../../src/adapters/channels/http/settings.ts"
import { parseNetworks } from "../../../../src/adapters/channels/net/addressGuard.ts"
import type { Resolve } from "../../../../src/adapters/channels/net/resolver.ts"
import type { OutboundMessage, Reply } from "../../../../src/application/ports/Channels.ts"
import type { OpenDestination } from "../../../../src/application/ports/Destinations.ts"
import { StoreUnavailable } from "../../../../src/application/ports/errors.ts"
import { DestinationId, MessageId, OrgId } from "../../../../src/domain/ids.ts"
import { destinationOf, http, senderKnowing } from "../../../contracts/destinations/samples.ts"
import { answer, receiver } from "../net/receiver.ts"

const org = OrgId.make("acme")

const callingAt = (
  url: string,
  change: Partial<HttpTargetSettings> = {},
  secrets: Readonly<Record<string, string>> = {}
): Calling => ({
  destination: {
    ...destinationOf<HttpTargetSettings>(http, org, { url, maxInFlight: 3, timeoutMs: 60_000, ...change }),
    secretNames: Object.keys(secrets).toSorted()
  },
  secrets: Object.fromEntries(Object.entries(secrets).map(([name, value]) => [name, Redacted.make(value)])),
  previousSecrets: []
})

type Calling = OpenDestination<HttpTargetSettings>

const away = Effect.fail(new StoreUnavailable({ cause: new Error("away") }))
const unreadable = Effect.die(new Error("a secret does not open"))

/** A channel that knows one target, or none, and may call loopback. */
const channelFor = (calling: Calling | null | Effect.Effect<never, StoreUnavailable>, resolve?: Resolve) =>
  senderKnowing(
    HttpTargetChannel.channel(
      { allowedNetworks: Result.getOrThrow(parseNetworks("127.0.0.0/8")), exemptions: [] },
      resolve
    ),
    () => (Effect.isEffect(calling) ? calling : Effect.succeed(calling))
  )

const aMessage = (change: Partial<OutboundMessage> = {}): OutboundMessage => ({
  messageId: MessageId.make(randomUUID()),
  orgId: org,
  destination: DestinationId.make(randomUUID()),
  to: "target",
  epoch: 1,
  attempt: 1,
  eventType: "charge",
  templateCode: null,
  correlationId: "c-17",
  body: '{"amount":12345678901234567890}',
  ...change
})

/** Sends one message to a target that answers so. */
const sendTo = (on: Parameters<typeof receiver>[0], change: Partial<HttpTargetSettings> = {}) =>
  Effect.gen(function* () {
    const far = yield* receiver(on)
    const channel = yield* channelFor(callingAt(far.url, change))
    const message = aMessage()
    return { far, message, reply: yield* channel.send(message) }
  })

/** What a reply says in one word and one code. */
const said = ({ outcome }: Reply) => [outcome.type, outcome.type === "Accepted" ? null : outcome.error.code]

describe("a request to an HTTP target", () => {
  it.live("carries the exact bytes, under the message's id as its idempotency key", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket) => answer(socket, 201, {}, '{"id":"ch_1"}') })
      const secrets = { token: "sk_$&_1", half: "b" }
      const headers = { Authorization: "Bearer {{token}}", "X-Both": "{{half}}-{{token}}", "X-Plain": "{a}" }
      const channel = yield* channelFor(callingAt(far.url, { headers, method: "PATCH" }, secrets))
      const body = '{ "n": 12345678901234567890, "d": 1.10, "s": "Åse 🐎 \\u0000" }\n'
      const message = aMessage({ body })
      const reply = yield* channel.send(message)

      expect(reply.outcome).toMatchObject({ type: "Accepted", status: 201, delivered: true })
      expect(reply.responseBody).toBe('{"id":"ch_1"}')
      const [request] = far.requests
      expect(request!.line).toBe("PATCH /hooks?a=b HTTP/1.1")
      expect(request!.body.equals(Buffer.from(body))).toBe(true)
      expect(Object.fromEntries(request!.headers)).toMatchObject({
        "content-type": "application/json",
        "idempotency-key": message.messageId,
        "x-message-id": message.messageId,
        "user-agent": expect.stringMatching(/^Posthaste\/\d/),
        authorization: "Bearer sk_$&_1",
        "x-both": "b-sk_$&_1",
        "x-plain": "{a}"
      })
    })
  )

  it.live.each(["POST", "PUT", "PATCH", "DELETE"] as const)("may be a %s with a body", (method) =>
    Effect.gen(function* () {
      const { far, message } = yield* sendTo({ request: (socket) => answer(socket, 200) }, { method })
      expect(far.requests[0]!.line).toMatch(new RegExp(`^${method} `))
      expect(far.requests[0]!.body.toString()).toBe(message.body)
    })
  )

  it.live("carries no idempotency key to a target that does not know it", () =>
    Effect.gen(function* () {
      const { far, message } = yield* sendTo({ request: (socket) => answer(socket, 200) }, { idempotency: "none" })
      expect(far.requests[0]!.headers.has("idempotency-key")).toBe(false)
      expect(far.requests[0]!.headers.get("x-message-id")).toBe(message.messageId)
    })
  )

  it.live("adds the target's fields to the body, secrets filled in, and changes nothing else of it", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket) => answer(socket, 200) })
      const keyed = callingAt(far.url, { bodyFields: { key: "Key {{token}}" } }, { token: 'sk_"1' })
      const channel = yield* channelFor(keyed)
      yield* channel.send(aMessage())
      expect(far.requests[0]!.body.toString()).toBe('{"amount":12345678901234567890,"key":"Key sk_\\"1"}')
      expect(said(yield* channel.send(aMessage({ body: "[1]" })))).toEqual(["Refused", "target_invalid"])
      expect(far.requests).toHaveLength(1)
    })
  )

  it.live("is not made when there is no target, or its settings can't be read or can't be meant", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket) => answer(socket, 200) })
      const send = (calling: Parameters<typeof channelFor>[0]) =>
        Effect.flatMap(channelFor(calling), (channel) => channel.send(aMessage()))
      expect(said(yield* send(null))).toEqual(["Refused", "target_missing"])
      expect(said(yield* send(away))).toEqual(["Deferred", "store_unavailable"])
      expect(said(yield* send(unreadable))).toEqual(["Deferred", "store_unavailable"])
      const nameless = yield* send(callingAt(far.url, { headers: { a: "{{gone}}" } }))
      expect(said(nameless)).toEqual(["Refused", "target_invalid"])
      const tooLong = callingAt(far.url, { headers: { a: "{{s}}{{s}}" } }, { s: "x".repeat(4_000) })
      const longer = yield* send(tooLong)
      expect(said(longer)).toEqual(["Refused", "target_invalid"])
      expect(JSON.stringify(longer)).not.toContain("xxxx")
      expect(far.connections()).toBe(0)
    })
  )

  it.live("goes to no address that Posthaste may not call", () =>
    Effect.gen(function* () {
      const resolve: Resolve = (_host, callback) => callback(null, [{ address: "10.0.0.1", family: 4 }])
      const channel = yield* channelFor(callingAt("http://psp.example/", { idempotency: "none" }), resolve)
      expect(said(yield* channel.send(aMessage()))).toEqual(["Refused", "forbidden_address"])
    })
  )
})

describe("an answer", () => {
  /** What it means where duplicates are dropped, and where they are not. */
  const meanings = [
    [200, "Accepted", "Accepted"],
    [202, "Accepted", "Accepted"],
    [400, "Refused", "Refused"],
    [402, "Refused", "Refused"],
    [404, "Refused", "Refused"],
    [408, "Unreachable", "Unreachable"],
    [409, "Unreachable", "Unknown"],
    [425, "Unreachable", "Unknown"],
    [429, "Unreachable", "Unreachable"],
    [503, "Unreachable", "Unknown"],
    [307, "Unreachable", "Unknown"],
    [308, "Unreachable", "Unknown"],
    [302, "Unreachable", "Unknown"],
    [303, "Unreachable", "Unknown"],
    [500, "Unreachable", "Unknown"],
    [502, "Unreachable", "Unknown"],
    [504, "Unreachable", "Unknown"],
    [999, "Unreachable", "Unknown"]
  ] as const

  it.live.each(meanings)("of %i means %s with an idempotency key and %s without, and its body is kept", (row) =>
    Effect.gen(function* () {
      const [status, withKey, without] = row
      const code = status < 300 ? null : status < 400 ? "redirect" : `http_${status}`
      for (const [idempotency, type] of [
        ["header", withKey],
        ["none", without]
      ] as const) {
        const on = { request: (socket: Parameters<typeof answer>[0]) => answer(socket, status, {}, "because") }
        const { far, reply } = yield* sendTo(on, { idempotency })
        expect(said(reply)).toEqual([type, code])
        expect(reply.outcome).toMatchObject({ status })
        expect(reply.responseBody).toBe("because")
        expect(far.requests).toHaveLength(1)
      }
    })
  )

  it.live("may ask to wait", () =>
    Effect.gen(function* () {
      const { reply } = yield* sendTo(
        { request: (socket) => answer(socket, 429, { "retry-after": "7" }) },
        { idempotency: "none" }
      )
      expect(reply.outcome).toMatchObject({ type: "Unreachable", status: 429, retryAfterMs: 7_000 })
    })
  )
})

/** Ways not to answer a request that was written, and the code each gets. */
const silences: ReadonlyArray<[string, string, Parameters<typeof receiver>[0]]> = [
  ["never", "timeout", {}],
  ["with a reset", "connection_failed", { request: (socket) => void socket.resetAndDestroy() }],
  ["with a goodbye", "connection_failed", { request: (socket) => void socket.end() }],
  ["with nonsense", "response_broken", { request: (socket) => void socket.write("NONSENSE\r\n\r\n") }]
]

/** Long enough for the request to be written; what comes is waited for. */
const patienceFor = (code: string) => (code === "timeout" ? 1_000 : 60_000)

describe("a request that was written and is answered", () => {
  it.live.each(silences)("%s leaves a target without idempotency in doubt: %s", ([, code, on]) =>
    Effect.gen(function* () {
      const timeoutMs = patienceFor(code)
      const { far, reply } = yield* sendTo(on, { idempotency: "none", timeoutMs, onDeadLetter: "skip" })
      expect(said(reply)).toEqual(["Unknown", code])
      expect(reply.outcome).toMatchObject({ reconcileAfterMs: 5_000 })
      yield* Effect.sleep("50 millis")
      expect(far.requests).toHaveLength(1)
    })
  )

  it.live.each(silences)("%s may be tried again where the key drops duplicates: %s", ([, code, on]) =>
    Effect.gen(function* () {
      const timeoutMs = patienceFor(code)
      const { reply } = yield* sendTo(on, { idempotency: "header", timeoutMs, onDeadLetter: "skip" })
      expect(said(reply)).toEqual(["Unreachable", code])
    })
  )

  it.live("on a kept connection that then breaks is in doubt too", () =>
    Effect.gen(function* () {
      const far = yield* receiver({
        request: (socket, _request, count) => {
          if (count === 1) answer(socket, 200)
          else socket.resetAndDestroy()
        }
      })
      const channel = yield* channelFor(callingAt(far.url, { idempotency: "none" }))
      yield* channel.send(aMessage())
      expect(said(yield* channel.send(aMessage()))).toEqual(["Unknown", "connection_failed"])
      expect(far.connections()).toBe(1)
    })
  )
})

describe("a request of which no byte was written", () => {
  it.live("because the connection was refused may be tried again anywhere", () =>
    Effect.gen(function* () {
      const gone = yield* Effect.scoped(receiver({}))
      const channel = yield* channelFor(callingAt(gone.url, { idempotency: "none" }))
      expect(said(yield* channel.send(aMessage()))).toEqual(["Unreachable", "connection_failed"])
    })
  )

  it.live("because the name was not found may be tried again anywhere", () =>
    Effect.gen(function* () {
      const resolve: Resolve = (_host, callback) => callback(new Error("NXDOMAIN"), [])
      const channel = yield* channelFor(callingAt("http://psp.example/", { idempotency: "none" }), resolve)
      expect(said(yield* channel.send(aMessage()))).toEqual(["Unreachable", "dns_failed"])
    })
  )

  it.live("because there was no TLS may be tried again anywhere", () =>
    Effect.gen(function* () {
      const plain = yield* receiver({ connection: (socket) => void socket.end("not TLS") })
      const channel = yield* channelFor(callingAt(`https://127.0.0.1:${plain.port}/`, { idempotency: "none" }))
      expect(said(yield* channel.send(aMessage()))).toEqual(["Unreachable", "tls_failed"])
    })
  )

  it.live("because the connection took longer than the deadline may be tried again anywhere", () =>
    Effect.gen(function* () {
      // The name is never resolved: the connection is still being made when the time is up.
      const resolve: Resolve = () => {}
      const target = { idempotency: "none", timeoutMs: 100, onDeadLetter: "skip" } as const
      const channel = yield* channelFor(callingAt("http://psp.example/", target), resolve)
      expect(said(yield* channel.send(aMessage()))).toEqual(["Unreachable", "timeout"])
    })
  )
})

describe("asking about an attempt in doubt", () => {
  const askAt = (status: number | null, change: Partial<HttpTargetSettings> = {}) =>
    Effect.gen(function* () {
      const far = yield* receiver({
        request: (socket) => (status === null ? socket.resetAndDestroy() : answer(socket, status, {}, "found"))
      })
      const reconcile = { url: `http://127.0.0.1:${far.port}/charges/{messageId}?key={messageId}` }
      const calling = callingAt("http://elsewhere.example/", {
        idempotency: "none",
        headers: { authorization: "Bearer {{token}}" },
        reconcile,
        ...change
      })
      const channel = yield* channelFor({ ...calling, ...withToken(calling) })
      const message = aMessage()
      return { far, message, reply: yield* channel.reconcile(message) }
    })

  const withToken = ({ destination }: Calling): Calling => ({
    destination: { ...destination, secretNames: ["token"] },
    secrets: { token: Redacted.make("sk_1") },
    previousSecrets: []
  })

  it.live("is a GET with the message's id and the target's headers, and no body", () =>
    Effect.gen(function* () {
      const { far, message } = yield* askAt(200)
      const [request] = far.requests
      expect(request!.line).toBe(`GET /charges/${message.messageId}?key=${message.messageId} HTTP/1.1`)
      expect(request!.headers.get("authorization")).toBe("Bearer sk_1")
      expect(request!.body).toHaveLength(0)
      expect(request!.headers.has("idempotency-key")).toBe(false)
    })
  )

  it.live.each([
    [200, "Accepted", null],
    [404, "Unreachable", "not_taken"],
    [410, "Unknown", "outcome_unknown"],
    [401, "Unknown", "outcome_unknown"],
    [302, "Unknown", "outcome_unknown"],
    [503, "Unknown", "outcome_unknown"],
    [null, "Unknown", "outcome_unknown"]
  ] as const)("answered with %s says %s", ([status, type, code]) =>
    Effect.gen(function* () {
      const { reply } = yield* askAt(status)
      expect(said(reply)).toEqual([type, code])
      if (type === "Accepted") expect(reply.outcome).toMatchObject({ delivered: true, status: 200 })
      if (type === "Unknown") expect(reply.outcome).toMatchObject({ reconcileAfterMs: 5_000 })
      expect(reply.responseBody).toBe(status === null ? null : "found")
    })
  )

  it.live("keeps to the deadline", () =>
    Effect.gen(function* () {
      const far = yield* receiver({})
      const reconcile = { url: `${far.url}&id={messageId}` }
      const channel = yield* channelFor(
        callingAt(far.url, { idempotency: "none", reconcile, timeoutMs: 1_000, onDeadLetter: "skip" })
      )
      expect(said(yield* channel.reconcile(aMessage()))).toEqual(["Unknown", "outcome_unknown"])
    })
  )

  it.live("finds nobody to ask when the target has no address for it, or is gone", () =>
    Effect.gen(function* () {
      for (const calling of [callingAt("http://psp.example/", { idempotency: "none" }), null]) {
        const channel = yield* channelFor(calling)
        expect((yield* channel.reconcile(aMessage())).outcome).toMatchObject({
          type: "Unknown",
          reconcileAfterMs: null
        })
      }
    })
  )

  it.live("is worth another try when the settings could not be read", () =>
    Effect.gen(function* () {
      for (const calling of [away, unreadable]) {
        const channel = yield* channelFor(calling)
        expect((yield* channel.reconcile(aMessage())).outcome).toMatchObject({
          type: "Unknown",
          reconcileAfterMs: 5_000
        })
      }
    })
  )
})

describe("a channel", () => {
  it.live("says how many requests a target takes at once, and whether it drops duplicates", () =>
    Effect.gen(function* () {
      const asked = (calling: Parameters<typeof channelFor>[0]) =>
        Effect.gen(function* () {
          const channel = yield* channelFor(calling)
          const id = DestinationId.make(randomUUID())
          return [yield* channel.capacity(org, id), yield* channel.dedupes(org, id)]
        })
      expect(yield* asked(callingAt("http://a.example"))).toEqual([3, true])
      expect(yield* asked(callingAt("http://a.example", { idempotency: "none" }))).toEqual([3, false])
      expect(yield* asked(null)).toEqual([128, false])
      expect(yield* asked(away)).toEqual([1, false])
      expect(yield* asked(unreadable)).toEqual([1, false])
    })
  )
})
