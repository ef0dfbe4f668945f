/** Whose connections a request uses, over real sockets. */
import { createSecureContext, type SecureContext } from "node:tls"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { makeAddressGuard, parseNetworks } from "../../../../src/adapters/channels/net/addressGuard.ts"
import { CONNECTIONS_PER_DESTINATION_MAX, makeConnections } from "../../../../src/adapters/channels/net/connections.ts"
import { destinationOf } from "../../../../src/adapters/channels/net/tries.ts"
import { receiver, until } from "./receiver.ts"
import { destinationAt, posting } from "./trying.ts"

const ok = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

/** Makes requests in pools by name, and answers their failures. */
const calling = (url: string, connectionsMax?: number) =>
  Effect.gen(function* () {
    const guard = makeAddressGuard({
      allowedNetworks: Result.getOrThrow(parseNetworks("127.0.0.0/8")),
      exemptions: []
    })
    const connections = yield* Effect.acquireRelease(
      Effect.sync(() => makeConnections({ guard }, connectionsMax)),
      ({ close }) => Effect.sync(close)
    )
    const call = (pool: string, secureContext?: SecureContext) =>
      Effect.callback<unknown>((resume) =>
        connections.start({
          url: new URL(url),
          pool,
          secureContext,
          request: { method: "POST", path: "/", body: "{}" },
          connecting: () => {},
          begins: () => {},
          answered: () => {},
          received: () => true,
          ended: (failure) => resume(Effect.succeed(failure))
        })
      )
    return { call }
  })

/** What nobody refers to any more is gone after this. */
const collectGarbage: () => void = (() => {
  setFlagsFromString("--expose-gc")
  return runInNewContext("gc")
})()

describe("the connections of a destination", () => {
  it.live("are its own: one that hangs at the same server delays nobody else", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket, { line }) => void (line.includes("/b") && socket.write(ok)) })
      const post = yield* posting()
      const hanging = destinationAt(`${far.url}/a`, { pool: "a/1" })
      yield* Effect.forEach(Array.from({ length: CONNECTIONS_PER_DESTINATION_MAX + 20 }), () =>
        Effect.forkChild(post(hanging))
      )
      yield* until(() => far.connections() === CONNECTIONS_PER_DESTINATION_MAX)
      const { outcome } = yield* post(destinationAt(`${far.url}/b`, { pool: "b/1", timeoutMs: 5_000 }))
      expect(outcome).toMatchObject({ type: "Accepted" })
    })
  )

  it.live("are kept for its next request, and not lent to a changed destination", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket) => void socket.write(ok) })
      const post = yield* posting()
      for (const pool of ["a/1", "a/1", "a/1", "a/2", "b/1"]) yield* post(destinationAt(far.url, { pool }))
      expect([far.connections(), far.requests.length]).toEqual([3, 5])
    })
  )

  it.live("belong to one version of it, and to one of its servers", () =>
    Effect.gen(function* () {
      const answering = () => receiver({ request: (socket) => void socket.write(ok) })
      const [far, other] = [yield* answering(), yield* answering()]
      const post = yield* posting()
      const call = (version: number, url: string) => post(destinationOf({ id: "a", version }, new URL(url), 60_000))
      for (const version of [1, 1, 2, 2]) {
        expect((yield* call(version, far.url)).outcome).toMatchObject({ type: "Accepted" })
      }
      expect([far.connections(), far.requests.length]).toEqual([2, 4])
      yield* call(2, other.url)
      expect([far.requests.length, other.requests.length]).toEqual([4, 1])
    })
  )

  it.live("make room for others' when too many are idle, the one that was idle longest first", () =>
    Effect.gen(function* () {
      // Told so, nobody closes one because it was idle for some seconds.
      const kept = ok.replace("\r\n\r\n", "\r\nkeep-alive: timeout=600\r\n\r\n")
      const far = yield* receiver({ request: (socket) => void socket.write(kept) })
      const { call } = yield* calling(far.url, 3)
      for (const pool of ["a", "b", "c", "a", "d"]) expect(yield* call(pool)).toBeNull()
      expect(far.connections()).toBe(4)
      yield* until(() => far.open.size === 3)
      // The one of b had been idle longest; a, c and d still have theirs.
      for (const pool of ["a", "c", "d"]) expect(yield* call(pool)).toBeNull()
      expect(far.connections()).toBe(4)
    })
  )

  it.live("are forgotten with all that was known of it when the last one is closed", () =>
    Effect.gen(function* () {
      const far = yield* receiver({
        request: (socket) => void socket.end(ok.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n"))
      })
      const { call } = yield* calling(far.url)
      const known = yield* Effect.gen(function* () {
        const secureContext = createSecureContext()
        expect(yield* call("a", secureContext)).toBeNull()
        return new WeakRef(secureContext)
      })
      yield* until(() => {
        collectGarbage()
        return known.deref() === undefined
      })
    })
  )
})
