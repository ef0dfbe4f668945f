/** The way out through a real HTTP proxy that speaks CONNECT, to real receivers. */
import { createServer, type IncomingHttpHeaders } from "node:http"
import { createServer as createSecureServer } from "node:https"
import net, { type AddressInfo } from "node:net"
import tls from "node:tls"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { type EgressProxy, parseEgressProxy, tunnel } from "../../../../src/adapters/channels/net/egressProxy.ts"
import type { Resolve } from "../../../../src/adapters/channels/net/resolver.ts"
import { selfSigned } from "./certificate.ts"
import { receiver, until } from "./receiver.ts"
import { destinationAt, posting } from "./trying.ts"

const resolve: Resolve = (_host, callback) => callback(null, [{ address: "127.0.0.1", family: 4 }])

interface Proxy {
  readonly at: EgressProxy
  /** What it was asked to connect to. */
  readonly asked: Array<string>
  readonly headers: Array<IncomingHttpHeaders>
  readonly open: Set<net.Socket>
  readonly stop: () => void
}

/** `status` is its answer; 200 connects, and null never answers. */
const proxy = (status: number | null = 200, login = "") =>
  Effect.acquireRelease(
    Effect.callback<Proxy>((resume) => {
      const asked: Array<string> = []
      const headers: Array<IncomingHttpHeaders> = []
      const open = new Set<net.Socket>()
      const server = createServer((_, response) => response.writeHead(405).end())
      server.on("connection", (socket) => {
        open.add(socket)
        socket.on("close", () => open.delete(socket)).on("error", () => {})
        // An HTTP server leaves it half open.
        socket.on("end", () => socket.destroy())
      })
      server.on("connect", (request, socket) => {
        asked.push(request.url!)
        headers.push(request.headers)
        if (status === null) return socket.resume()
        if (status !== 200) return socket.end(`HTTP/1.1 ${status} No\r\n\r\n`)
        const { hostname, port } = new URL(`http://${request.url}`)
        const far = net.connect(Number(port), hostname, () => {
          socket.write("HTTP/1.1 200 Connection Established\r\n\r\n")
          far.pipe(socket).pipe(far)
        })
        far.on("error", () => socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n"))
        socket.on("error", () => far.destroy()).on("close", () => far.destroy())
      })
      server.listen(0, "127.0.0.1", () => {
        const { port } = server.address() as AddressInfo
        const at = Result.getOrThrow(parseEgressProxy(`http://${login}127.0.0.1:${port}`))
        const stop = () => {
          server.close()
          for (const socket of open) socket.destroy()
        }
        resume(Effect.succeed({ at, asked, headers, open, stop }))
      })
    }),
    ({ stop }) => Effect.sync(stop)
  )

const deferred = { type: "Deferred", scope: "lane", error: { code: "proxy_failed" } }

describe("the way out through a proxy", () => {
  it.live("asks the proxy for the address that was judged, and keeps the name for the receiver", () =>
    Effect.gen(function* () {
      const far = yield* receiver({
        request: (socket) => void socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
      })
      const way = yield* proxy(200, "us%40er:pa%3Ass@")
      const post = yield* posting({ resolve, proxy: way.at })
      const { port } = new URL(far.url)
      const destination = destinationAt(`http://hooks.example:${port}/in`)
      for (let i = 0; i < 3; i++) expect((yield* post(destination)).outcome).toMatchObject({ type: "Accepted" })
      expect(way.asked).toEqual([`127.0.0.1:${port}`])
      const login = Buffer.from("us@er:pa:ss").toString("base64")
      expect(way.headers[0]).toMatchObject({ "proxy-authorization": `Basic ${login}`, host: `127.0.0.1:${port}` })
      expect(far.requests.map(({ headers }) => headers.get("host"))).toEqual(
        Array.from({ length: 3 }, () => `hooks.example:${port}`)
      )
      expect(far.requests.some(({ headers }) => headers.has("proxy-authorization"))).toBe(false)
    })
  )

  it.live("speaks TLS with the receiver itself, by its name", () =>
    Effect.gen(function* () {
      const certificate = selfSigned("hooks.example")
      const names: Array<string> = []
      const server = createSecureServer(certificate, (request, response) => {
        names.push((request.socket as tls.TLSSocket & { servername: string }).servername)
        request.resume().on("end", () => response.end("ok"))
      })
      yield* Effect.acquireRelease(
        Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
        () => Effect.sync(() => server.close().closeAllConnections())
      )
      const { port } = server.address() as AddressInfo
      const way = yield* proxy()
      const post = yield* posting({ resolve, proxy: way.at })
      const url = `https://hooks.example:${port}/`
      const own = tls.createSecureContext({ ca: certificate.cert })
      const trusted = { ...destinationAt(url, { pool: "a/1" }), secureContext: own }
      expect((yield* post(trusted)).outcome).toMatchObject({ type: "Accepted" })
      expect(names).toEqual(["hooks.example"])
      const stranger = (yield* post(destinationAt(url, { pool: "b/1" }))).outcome
      expect(stranger).toMatchObject({ type: "Unreachable", error: { code: "tls_failed" } })
      const misnamed = { ...destinationAt(`https://other.example:${port}/`), secureContext: own }
      expect((yield* post(misnamed)).outcome).toMatchObject({ error: { code: "tls_failed" } })
    })
  )

  it.live("leaves the guard in force: nobody is asked for a forbidden address, named or resolved", () =>
    Effect.gen(function* () {
      const way = yield* proxy()
      const mixed: Resolve = (_host, callback) =>
        callback(null, [
          { address: "93.184.216.34", family: 4 },
          { address: "10.0.0.1", family: 4 }
        ])
      const post = yield* posting({ networks: "", resolve: mixed, proxy: way.at })
      for (const host of ["127.0.0.1", "hooks.example", "[::1]", "169.254.169.254"]) {
        const { outcome } = yield* post(destinationAt(`http://${host}:9/`))
        expect(outcome).toMatchObject({ type: "Refused", error: { code: "forbidden_address" } })
      }
      expect(way.asked).toEqual([])
    })
  )

  it.live("asks for an IPv4 address where there is one: not every proxy has a way to IPv6", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket) => void socket.write("HTTP/1.1 204 No Content\r\n\r\n") })
      const way = yield* proxy()
      const both: Resolve = (_host, callback) =>
        callback(null, [
          { address: "::1", family: 6 },
          { address: "127.0.0.1", family: 4 }
        ])
      const post = yield* posting({ networks: "127.0.0.0/8,::1/128", resolve: both, proxy: way.at })
      const { port } = new URL(far.url)
      expect((yield* post(destinationAt(`http://hooks.example:${port}/`))).outcome).toMatchObject({ type: "Accepted" })
      expect(way.asked).toEqual([`127.0.0.1:${port}`])
    })
  )

  it.live("uses up no attempt where the proxy is to blame, and says so where the receiver is", () =>
    Effect.gen(function* () {
      const outcomeBy = (at: EgressProxy) =>
        Effect.gen(function* () {
          const post = yield* posting({ resolve, proxy: at })
          return (yield* post(destinationAt("http://hooks.example:9/"))).outcome
        })
      for (const status of [403, 407, 500]) expect(yield* outcomeBy((yield* proxy(status)).at)).toMatchObject(deferred)
      const gone = yield* proxy()
      gone.stop()
      expect(yield* outcomeBy(gone.at)).toMatchObject(deferred)
      const bad = yield* outcomeBy((yield* proxy(502)).at)
      expect(bad).toMatchObject({ type: "Unreachable", error: { code: "connection_failed" } })
    })
  )

  it.live("loses nothing that came together with the proxy's answer", () =>
    Effect.gen(function* () {
      const server = net.createServer((socket) => {
        socket.once("data", () => socket.write("HTTP/1.1 200 Connection Established\r\n\r\nfirst words"))
        socket.on("error", () => {})
      })
      yield* Effect.acquireRelease(
        Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
        () => Effect.sync(() => server.close())
      )
      const { port } = server.address() as AddressInfo
      const at = { host: "127.0.0.1", port, authorization: null }
      const said = yield* Effect.callback<string>((resume) => {
        tunnel(at, "127.0.0.1", 9, (code, socket) => {
          if (socket === null) return resume(Effect.die(code))
          socket.once("data", (chunk) => {
            socket.destroy()
            resume(Effect.succeed(String(chunk)))
          })
        })
      })
      expect(said).toBe("first words")
    })
  )

  it.live("waits for a silent proxy no longer than the deadline, and leaves no socket behind", () =>
    Effect.gen(function* () {
      const way = yield* proxy(null)
      const post = yield* posting({ resolve, proxy: way.at })
      const { outcome } = yield* post(destinationAt("http://hooks.example:9/", { timeoutMs: 200 }))
      expect(outcome).toMatchObject({ error: { code: "timeout" } })
      yield* until(() => way.open.size === 0)
    })
  )
})

describe("the URL of a proxy", () => {
  it.each([
    "proxy:3128",
    "https://proxy:3128",
    "http://proxy/path",
    "http://proxy?x",
    "socks5://p:1",
    "http://%zz:x@p"
  ])("is refused when it is none: %s", (given) => expect(Result.isFailure(parseEgressProxy(given))).toBe(true))
})
