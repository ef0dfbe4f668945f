/**
 * What an attempt proves, over real sockets: the headers that are told afterwards are those that arrived, without the
 * secrets; the address and the steps are those of the connection; and an answer's headers are few, short and no secret.
 */
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Effect, Redacted } from "effect"
import { keptHeaders } from "../../../src/adapters/channels/net/keptAnswer.ts"
import type { Sender } from "../../../src/application/deliver/Senders.ts"
import type { AnyChannel, OutboundMessage, Reply } from "../../../src/application/ports/Channels.ts"
import type { Destination } from "../../../src/application/ports/Destinations.ts"
import { type Called, headersOf } from "../../../src/domain/delivery/exchange.ts"
import { OrgId } from "../../../src/domain/ids.ts"
import { destinationOf, http, senderKnowing, webhook } from "../../contracts/destinations/samples.ts"
import { answer, type Received, receiver } from "./net/receiver.ts"
import { destinationAt, posting, postTo } from "./net/trying.ts"
import { messageTo, secret } from "./webhook/endpoint.ts"

const canary = "s3cr3t-nobody-may-see"

/** As the API would tell it of the reply. */
const toldOf = (channel: AnyChannel, destination: Destination, message: OutboundMessage, { exchange }: Reply) => {
  const call = channel.callOf(destination.settings)!
  const called: Called = {
    ...{ messageId: message.messageId, orgId: message.orgId, epoch: message.epoch, attempt: message.attempt },
    ...{ eventType: message.eventType, correlationId: message.correlationId },
    ...{ routingKey: null, traceparent: message.traceparent ?? null, sentAt: exchange!.sentAt },
    test: message.test === true
  }
  return { call, headers: headersOf(call, called) }
}

/** Headers that every HTTP request has, whoever sends it. */
const framing = new Set(["host", "connection", "content-length"])

const masked = (request: Received, secrets: ReadonlyArray<string>) =>
  Object.fromEntries(
    [...request.headers].flatMap(([name, value]) =>
      framing.has(name) ? [] : [[name, secrets.includes(name) ? "***" : value]]
    )
  )

const org = OrgId.make("acme")

const sendOver = Effect.fnUntraced(function* (
  channel: AnyChannel,
  destination: Destination,
  secrets: Record<string, Redacted.Redacted>,
  message: OutboundMessage
) {
  const sender: Sender = yield* senderKnowing(channel, () =>
    Effect.succeed({ destination, secrets, previousSecrets: [] })
  )
  return yield* sender.send(message)
})

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

describe("the headers that an attempt is said to have sent", () => {
  for (const signature of ["standard", "legacy"] as const) {
    for (const about of [
      { eventType: "påske", correlationId: "c-1", traceparent, test: true as const },
      { eventType: null, correlationId: null }
    ]) {
      it.live(
        `are those of a webhook in the style ${signature}, ${about.eventType ?? "without what it does not have"}`,
        () =>
          Effect.gen(function* () {
            const far = yield* receiver({ request: (socket) => answer(socket, 200) })
            const url = `${far.url}&token=${canary}`
            const endpoint = destinationOf(webhook, org, { url, signature, headers: { "X-Own": canary } })
            const message = messageTo(endpoint, about)
            const reply = yield* sendOver(webhook, endpoint, { secret }, message)
            const { call, headers } = toldOf(webhook, endpoint, message, reply)
            const secrets = ["x-own", signature === "legacy" ? "x-signature" : "webhook-signature"]
            const lower = Object.fromEntries(
              Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])
            )
            expect(lower).toEqual(masked(far.requests[0]!, secrets))
            expect(call.url).toBe(`http://127.0.0.1:${far.port}/hooks?…`)
            expect(JSON.stringify([call, headers])).not.toContain(canary)
          })
      )
    }
  }

  for (const idempotency of ["header", "none"] as const) {
    it.live(`are those of a request to an HTTP target whose idempotency is ${idempotency}`, () =>
      Effect.gen(function* () {
        const far = yield* receiver({ request: (socket) => answer(socket, 200) })
        const headers = { authorization: "Bearer {{token}}", "x-shop": canary }
        const made = destinationOf(http, org, { url: far.url, headers, idempotency, method: "PUT" })
        const target = { ...made, secretNames: ["token"] }
        const message = messageTo(target as never, { traceparent })
        const reply = yield* sendOver(http, target, { token: Redacted.make(canary) }, message)
        const told = toldOf(http, target, message, reply)
        expect(told.call.method).toBe("PUT")
        expect(told.headers).toEqual(masked(far.requests[0]!, ["authorization", "x-shop"]))
        expect(JSON.stringify(told)).not.toContain(canary)
      })
    )
  }
})

describe("the exchange of an attempt", () => {
  it.live("has the steps of the connection that was made for it, and none over one that was there", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket) => void setTimeout(() => answer(socket, 200), 30) })
      const resolve = (_: string, callback: (...found: [null, Array<{ address: string; family: number }>]) => void) =>
        void setTimeout(() => callback(null, [{ address: "127.0.0.1", family: 4 }]), 20)
      const post = yield* posting({ resolve })
      const destination = destinationAt(`http://shop.example:${far.port}/in`)
      const before = Date.now()
      const first = (yield* post(destination)).exchange
      expect(first).toMatchObject({ settings: 1, address: `127.0.0.1:${far.port}` })
      expect(Math.abs(DateTime.toEpochMillis(first.sentAt) - before)).toBeLessThan(60_000)
      // Timers may be a little early.
      expect(first.dnsMs).toBeGreaterThanOrEqual(18)
      expect(first.connectMs).toBeGreaterThanOrEqual(0)
      expect(first.firstByteMs).toBeGreaterThanOrEqual(28)
      expect(first).not.toHaveProperty("tlsMs")
      const second = (yield* post(destination)).exchange
      expect(second.address).toBe(first.address)
      expect(second.firstByteMs).toBeGreaterThanOrEqual(28)
      for (const step of ["dnsMs", "connectMs", "tlsMs"]) expect(second).not.toHaveProperty(step)
    })
  )

  it.live("has the steps that were reached when there is no answer", () =>
    Effect.gen(function* () {
      const silent = yield* postTo({ request: () => {} }, 1_000)
      expect(silent.reply.exchange).toMatchObject({ address: `127.0.0.1:${silent.far.port}` })
      expect(silent.reply.exchange).toHaveProperty("connectMs")
      expect(silent.reply.exchange).not.toHaveProperty("firstByteMs")
      const post = yield* posting({ resolve: (_, callback) => callback(new Error("no such name"), []) })
      const unknown = (yield* post(destinationAt("http://nowhere.example/"))).exchange
      for (const step of ["address", "dnsMs", "connectMs", "firstByteMs"]) expect(unknown).not.toHaveProperty(step)
    })
  )
})

describe("the headers of an answer", () => {
  it("are left out where they say what every empty answer says", () => {
    expect(
      keptHeaders({ date: "x", "content-length": "0", "content-type": "text/plain", connection: "close" }, false)
    ).toBeNull()
    expect(keptHeaders({}, true)).toBeNull()
    expect(keptHeaders({ date: "x", connection: "close" }, true)).toEqual({ date: "x" })
    expect(keptHeaders({ date: "x", "x-request-id": "7" }, false)).toEqual({ date: "x", "x-request-id": "7" })
  })

  it("hold no cookie, token or signature", () => {
    const names = ["set-cookie", "authorization", "www-authenticate", "x-api-key", "x-csrf-token", "x-signature"]
    const kept = keptHeaders(Object.fromEntries(names.map((name) => [name, canary])), false)
    expect(Object.keys(kept!)).toEqual(names)
    expect(JSON.stringify(kept)).not.toContain(canary)
  })

  it("are at most 32, each at most 256 long, and text that a database can hold", () => {
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`x-${n}`, "y".repeat(1_000)]))
    const kept = keptHeaders({ ...many, "x-0": ["a\0", "b"] }, false)!
    expect(Object.keys(kept)).toHaveLength(32)
    expect(Math.max(...Object.values(kept).map(({ length }) => length))).toBe(256)
    expect(kept["x-0"]).toBe("a\ufffd, b")
  })
})
