/** What answers at an AMQP target may be anything. It costs its own messages an attempt, and this process nothing. */
import { randomUUID } from "node:crypto"
import type { AddressInfo } from "node:net"
import { createServer, type Socket } from "node:net"
import tls from "node:tls"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import { vi } from "vitest"
import type { OutboundMessage } from "../../../../src/application/ports/Channels.ts"
import { DestinationId, MessageId, OrgId } from "../../../../src/domain/ids.ts"
import { amqp, destinationOf, senderKnowing } from "../../../contracts/destinations/samples.ts"
import { ciphersOffered, usual, withGroupsOfTheFarSide } from "../net/hello.ts"

const org = OrgId.make("acme")

const message: OutboundMessage = {
  messageId: MessageId.make(randomUUID()),
  orgId: org,
  destination: DestinationId.make(randomUUID()),
  ...{ to: "target", epoch: 1, attempt: 1, eventType: null, templateCode: null, correlationId: null, body: "{}" }
}

/** A server that does this with each connection, and what came of one message to it. */
const sentTo = (answer: (socket: Socket) => void) =>
  Effect.scoped(
    Effect.gen(function* () {
      const server = yield* Effect.acquireRelease(
        Effect.promise(async () => {
          const sockets = new Set<Socket>()
          const server = createServer((socket) => {
            sockets.add(socket)
            socket.on("error", () => {})
            answer(socket)
          })
          await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
          return { server, sockets }
        }),
        ({ server, sockets }) =>
          Effect.sync(() => {
            for (const socket of sockets) socket.destroy()
            server.close()
          })
      )
      const url = `amqp://shop@127.0.0.1:${(server.server.address() as AddressInfo).port}/`
      const destination = destinationOf(amqp, org, { url, exchange: "e", timeoutMs: 2_000 })
      const sender = yield* senderKnowing(amqp, () => Effect.succeed({ destination, secrets: {}, previousSecrets: [] }))
      return (yield* sender.send(message)).outcome
    })
  )

/** What comes of one message to a target over TLS. */
const sentSecurely = (port: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const url = `amqps://shop@127.0.0.1:${port}/`
      const destination = destinationOf(amqp, org, { url, exchange: "e", timeoutMs: 2_000 })
      const open = Effect.succeed({ destination, secrets: {}, previousSecrets: [] })
      return (yield* (yield* senderKnowing(amqp, () => open)).send(message)).outcome
    })
  )

describe("a target over TLS", () => {
  it.live("is offered no key exchange in which the far side names the group", () =>
    Effect.gen(function* () {
      const offered = yield* ciphersOffered(sentSecurely)
      expect(offered).toContain(usual)
      expect(offered.filter((cipher) => withGroupsOfTheFarSide.includes(cipher))).toEqual([])
    })
  )

  it.live("is given up where it sends sessions without end", () =>
    Effect.gen(function* () {
      const server = createServer((socket) => void socket.on("error", () => {}).resume())
      yield* Effect.acquireRelease(
        Effect.promise(() => new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))),
        () => Effect.sync(() => server.close())
      )
      const connect = tls.connect as (...given: ReadonlyArray<unknown>) => tls.TLSSocket
      const spy = yield* Effect.acquireRelease(
        Effect.sync(() => vi.spyOn(tls, "connect")),
        (spy) => Effect.sync(() => spy.mockRestore())
      )
      spy.mockImplementation((...options) => {
        const socket = connect(...options)
        return socket.once("connect", () => {
          for (let n = 0; n < 20; n++) socket.emit("session", Buffer.from("a session"))
        })
      })
      const outcome = yield* sentSecurely((server.address() as AddressInfo).port)
      expect(spy).toHaveBeenCalledTimes(1)
      expect(outcome).toMatchObject({ type: "Unreachable", error: { code: "tls_failed" } })
    })
  )
})

const frame = (type: number, channel: number, payload: Buffer): Buffer => {
  const head = Buffer.alloc(7)
  head.writeUInt8(type)
  head.writeUInt16BE(channel, 1)
  head.writeUInt32BE(payload.length, 3)
  return Buffer.concat([head, payload, Buffer.from([206])])
}
const method = (channel: number, of: number, name: number, hex = "") =>
  frame(
    1,
    channel,
    Buffer.from(`${of.toString(16).padStart(4, "0")}${name.toString(16).padStart(4, "0")}${hex}`, "hex")
  )
const long = (text: string) => Buffer.concat([Buffer.from([0, 0, 0, text.length]), Buffer.from(text)]).toString("hex")

/** What a broker says to what it is told, by the class and method that it is told. */
const greeting = [
  ["414d5150", method(0, 10, 10, `000900000000${long("PLAIN")}${long("en_US")}`)],
  ["000a000b", method(0, 10, 30, "07ff000200000000")],
  ["000a0028", method(0, 10, 41, "00")],
  ["0014000a", method(1, 20, 11, "00000000")],
  ["0055000a", method(1, 85, 11)]
] as const
const PUBLISH = "003c0028"

/** A broker that greets, and then does this: with the nth step of the greeting, or with the message. */
const greetedUpTo = (step: number, then: (socket: Socket) => void) => (socket: Socket) => {
  const awaited = [...greeting.map(([told]) => told), PUBLISH]
  let at = 0
  socket.on("data", (chunk) => {
    const hex = chunk.toString("hex")
    while (at < awaited.length && hex.includes(awaited[at]!)) {
      if (at === step) then(socket)
      else if (at < step) socket.write(greeting[at]![1])
      at += 1
    }
  })
}

describe("an AMQP target at which no broker is", () => {
  it.live.each([
    ["a web server", Buffer.from("HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")],
    ["a frame of four gigabytes", Buffer.from([1, 0, 0, 255, 255, 255, 255, 0])],
    ["a frame of half a gigabyte", Buffer.from([1, 0, 0, 31, 255, 255, 255, 0])],
    ["another version", Buffer.from("AMQP\x00\x01\x00\x00")],
    ["a frame that does not end", Buffer.concat([greeting[0]![1].subarray(0, -1), Buffer.from([0])])],
    ["a goodbye", method(0, 10, 50, "0140000000000000")]
  ] as const)("is a failed attempt: %s", ([, bytes]) =>
    Effect.gen(function* () {
      const outcome = yield* sentTo((socket) => socket.write(bytes))
      expect(outcome.type).toBe("Unreachable")
    })
  )

  it.live("is a failed attempt, whatever bytes come at whatever time", () =>
    Effect.gen(function* () {
      const samples = fc.sample(
        fc.record({ step: fc.nat(greeting.length), bytes: fc.uint8Array({ minLength: 8, maxLength: 200 }) }),
        24
      )
      const outcomes = yield* Effect.forEach(
        samples,
        ({ step, bytes }) =>
          sentTo(
            greetedUpTo(step, (socket) => {
              socket.write(bytes)
              socket.end()
            })
          ),
        { concurrency: 10 }
      )
      expect(outcomes.filter(({ type }) => type === "Accepted")).toEqual([])
    })
  )

  it.live("is cut off when it talks without end", () =>
    Effect.gen(function* () {
      let said = 0
      const header = Buffer.alloc(14)
      header.writeUInt16BE(60)
      header.writeBigUInt64BE(2n ** 34n, 4)
      const returned = method(1, 60, 50, "0138000000")
      const body = frame(3, 1, Buffer.alloc(100_000))
      const outcome = yield* sentTo(
        greetedUpTo(greeting.length, (socket) => {
          socket.write(Buffer.concat([returned, frame(2, 1, header)]))
          const more = () => {
            while (said < 2 ** 27 && !socket.destroyed) {
              said += body.length
              if (!socket.write(body)) return
            }
          }
          socket.on("drain", more)
          more()
        })
      )
      expect(outcome).toMatchObject({ type: "Unreachable", error: { code: "unconfirmed" } })
      // Of the 128 MiB that it would have sent. What is on the way lies in the kernel's buffers.
      expect(said).toBeLessThan(2 ** 25)
    })
  )
})
