import { createServer } from "node:https"
import type { AddressInfo } from "node:net"
import tls from "node:tls"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import type { Resolve } from "../../../../src/adapters/channels/net/resolver.ts"
import { selfSigned } from "./certificate.ts"
import { ciphersOffered, usual, withGroupsOfTheFarSide } from "./hello.ts"
import { receiver, until } from "./receiver.ts"
import { destinationAt, posting } from "./trying.ts"

const resolve: Resolve = (_host, callback) => callback(null, [{ address: "127.0.0.1", family: 4 }])
const certificate = selfSigned("hooks.example")

/** An HTTPS receiver with that certificate; says what server names and how many full handshakes it saw. */
const secureReceiver = Effect.acquireRelease(
  Effect.callback<{
    port: number
    names: Array<string>
    resumed: Array<boolean>
    requests: () => number
    stop: () => void
  }>((resume) => {
    let requests = 0
    const names: Array<string> = []
    const resumed: Array<boolean> = []
    const server = createServer(certificate, (request, response) => {
      requests += 1
      request.resume().on("end", () => response.setHeader("connection", "close").end("ok"))
    })
    server.on("secureConnection", (socket: tls.TLSSocket & { servername?: string }) => {
      names.push(String(socket.servername))
      resumed.push(socket.isSessionReused())
    })
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo
      const stop = () => server.close().closeAllConnections()
      resume(Effect.succeed({ port, names, resumed, requests: () => requests, stop }))
    })
  }),
  ({ stop }) => Effect.sync(stop)
)

const trusting = <A, E, R>(body: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const before = tls.getCACertificates("default")
      tls.setDefaultCACertificates([...before, certificate.cert])
      return before
    }),
    () => body,
    (before) => Effect.sync(() => tls.setDefaultCACertificates(before))
  )

const postTo = (url: string, timeoutMs = 60_000) =>
  Effect.gen(function* () {
    const post = yield* posting({ resolve })
    return (yield* post(destinationAt(url, { timeoutMs }))).outcome
  })

describe("a request over TLS", () => {
  it.live("arrives when the certificate is trusted and names the host; sessions are resumed", () =>
    trusting(
      Effect.gen(function* () {
        const far = yield* secureReceiver
        const destination = destinationAt(`https://hooks.example:${far.port}/`)
        const post = yield* posting({ resolve })
        for (let i = 0; i < 3; i++) {
          const { outcome, exchange } = yield* post(destination)
          expect(outcome).toMatchObject({ type: "Accepted", status: 200 })
          expect(Object.keys(exchange)).toEqual([
            "settings",
            "sentAt",
            "address",
            "dnsMs",
            "connectMs",
            "tlsMs",
            "firstByteMs"
          ])
        }
        expect(far.names).toEqual(["hooks.example", "hooks.example", "hooks.example"])
        expect(far.resumed).toEqual([false, true, true])
      })
    )
  )

  it.live(
    "reads whom to trust once for all destinations that say nothing of it, and resumes no session of another's",
    () =>
      trusting(
        Effect.gen(function* () {
          const far = yield* secureReceiver
          const post = yield* posting({ resolve })
          const made = yield* Effect.acquireRelease(
            Effect.sync(() => vi.spyOn(tls, "createSecureContext")),
            (spy) => Effect.sync(() => spy.mockRestore())
          )
          for (const pool of ["one", "one", "other"])
            yield* post(destinationAt(`https://hooks.example:${far.port}/`, { pool }))
          expect(far.resumed).toEqual([false, true, false])
          expect(made).toHaveBeenCalledTimes(1)
        })
      )
  )

  it.live("offers no key exchange in which the far side names the group", () =>
    Effect.gen(function* () {
      const offered = yield* ciphersOffered((port) => Effect.scoped(postTo(`https://hooks.example:${port}/`)))
      expect(offered).toContain(usual)
      expect(offered.filter((cipher) => withGroupsOfTheFarSide.includes(cipher))).toEqual([])
    })
  )

  it.live("is given up where the far side sends sessions without end", () =>
    trusting(
      Effect.gen(function* () {
        const far = yield* secureReceiver
        const connect = yield* Effect.acquireRelease(
          Effect.sync(() => vi.spyOn(tls, "connect")),
          (spy) => Effect.sync(() => spy.mockRestore())
        )
        const post = yield* posting({ resolve })
        // A server of Node's sends two, so the others are sent by hand.
        connect.mockImplementationOnce((...options) => {
          connect.mockRestore()
          const socket = (tls.connect as (...given: ReadonlyArray<unknown>) => tls.TLSSocket)(...options)
          return socket.once("secureConnect", () => {
            for (let n = 0; n < 20; n++) socket.emit("session", Buffer.from("a session"))
          })
        })
        const { outcome } = yield* post(destinationAt(`https://hooks.example:${far.port}/`))
        expect(outcome).toMatchObject({ type: "Unreachable", error: { code: "tls_failed" } })
      })
    )
  )

  it.live("does not begin the handshake anew when the far side asks", () =>
    trusting(
      Effect.gen(function* () {
        const server = tls.createServer({ ...certificate, maxVersion: "TLSv1.2" })
        const begunAnew = Effect.callback<boolean>((resume) => {
          server.on("secureConnection", (socket) => {
            socket.on("error", () => resume(Effect.succeed(false)))
            socket.renegotiate({}, (error) => resume(Effect.succeed(error === null)))
          })
        })
        yield* Effect.acquireRelease(
          Effect.promise(() => new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))),
          () => Effect.sync(() => server.close())
        )
        const { port } = server.address() as AddressInfo
        yield* Effect.forkScoped(Effect.scoped(postTo(`https://hooks.example:${port}/`)))
        expect(yield* begunAnew).toBe(false)
      })
    )
  )

  it.live("is not sent when nobody trusts the certificate", () =>
    Effect.gen(function* () {
      const far = yield* secureReceiver
      const outcome = yield* postTo(`https://hooks.example:${far.port}/`)
      expect(outcome).toMatchObject({ type: "Unreachable", error: { code: "tls_failed", retryable: true } })
      expect(far.requests()).toBe(0)
    })
  )

  it.live("is not sent when the certificate names another host", () =>
    trusting(
      Effect.gen(function* () {
        const far = yield* secureReceiver
        for (const host of ["other.example", "127.0.0.1"]) {
          const outcome = yield* postTo(`https://${host}:${far.port}/`)
          expect(outcome).toMatchObject({ type: "Unreachable", error: { code: "tls_failed" } })
        }
        expect(far.requests()).toBe(0)
      })
    )
  )

  it.live("is not sent to who speaks no TLS", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ connection: (socket) => void socket.write("HTTP/1.1 400 Bad Request\r\n\r\n") })
      expect(yield* postTo(`https://hooks.example:${far.port}/`)).toMatchObject({ error: { code: "tls_failed" } })
    })
  )

  it.live("fails as a handshake when that is where the far side hangs up", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ connection: (socket) => void socket.once("data", () => socket.resetAndDestroy()) })
      expect(yield* postTo(`https://hooks.example:${far.port}/`)).toMatchObject({ error: { code: "tls_failed" } })
    })
  )

  it.live("waits for a handshake that stalls no longer than its deadline, and leaves no socket behind", () =>
    Effect.gen(function* () {
      const far = yield* receiver({})
      expect(yield* postTo(`https://hooks.example:${far.port}/`, 200)).toMatchObject({ error: { code: "timeout" } })
      yield* until(() => far.open.size === 0)
      expect(far.connections()).toBe(1)
    })
  )
})
