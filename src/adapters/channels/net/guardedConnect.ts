/**
 * Connects a socket to an address the guard allows: it judges literals, every answer of the resolver (one forbidden
 * answer refuses all) and the connected address before a byte is sent. Through a proxy CONNECT names the judged
 * address, and TLS is end to end.
 */
import net from "node:net"
import tls from "node:tls"
import type { FailureCode } from "../../../domain/delivery/classify.ts"
import { type AddressGuard, type AddressRules, literalAddress, portOf } from "./addressGuard.ts"
import { type EgressProxy, tunnel } from "./egressProxy.ts"
import { type Address, makeResolver, type Resolve } from "./resolver.ts"
import { areUsedUp, boundSessions } from "./sockets.ts"

const systemResolve = makeResolver()

/** Failure with the code of its phase, so that error texts are never parsed. */
export class NotConnected extends Error {
  readonly code: FailureCode
  constructor(code: FailureCode, cause?: unknown) {
    super(code, { cause })
    this.code = code
  }
}

/** Resolves a name to addresses that are all allowed. Not called for literals. */
export const guardedLookup =
  (guard: AddressGuard, port: number, resolve: Resolve = systemResolve): net.LookupFunction =>
  (hostname, options, callback) =>
    resolve(hostname, (error, found) => {
      const addresses = [...found]
      const [first] = addresses
      if (error !== null || first === undefined) {
        return callback(new NotConnected(areUsedUp(error) ? "no_descriptors" : "dns_failed", error), [])
      }
      if (!addresses.every(({ address }) => guard.allows(address, port))) {
        return callback(new NotConnected("forbidden_address"), [])
      }
      return options.all === true ? callback(null, addresses) : callback(null, first.address, first.family)
    })

export interface EgressRules extends AddressRules {
  readonly proxy?: EgressProxy | null
}

type Connected = (...result: [null, net.Socket] | [NotConnected, null]) => void

/** Durations of the phases in milliseconds; unreached phases are absent. */
export interface Steps {
  /** With port; through a proxy, the address asked of it. */
  address?: string
  dnsMs?: number
  connectMs?: number
  tlsMs?: number
}

interface Begun {
  readonly destroy: () => void
}

/** Answers a handle to give up; null when the callback was called at once. Steps are noted as they are done. */
export type Connect = (callback: Connected, steps: Steps) => Begun | null

type Way = (addresses: ReadonlyArray<Address>, progress: Progress) => Begun

interface Progress {
  readonly steps: Steps
  readonly completed: (step: Exclude<keyof Steps, "address">) => void
  readonly end: Connected
  readonly isOver: () => boolean
}

const withPort = (address: string, port: number): string => `${net.isIPv6(address) ? `[${address}]` : address}:${port}`

const stopwatch = (steps: Steps) => {
  let last = performance.now()
  return (step: Exclude<keyof Steps, "address">) => {
    const now = performance.now()
    steps[step] = Math.round(now - last)
    last = now
  }
}

export interface ConnectOptions {
  readonly guard: AddressGuard
  readonly resolve?: Resolve | undefined
  readonly proxy?: EgressProxy | null | undefined
  /** Absent: Node's trust, no client certificate. */
  readonly secureContext?: tls.SecureContext | undefined
}

/** Connections of one call resume each other's TLS sessions. */
export const guardedConnect = (
  url: URL,
  { guard, resolve = systemResolve, proxy = null, secureContext }: ConnectOptions
): Connect => {
  const secure = url.protocol === "https:"
  const port = portOf(url)
  const literal = literalAddress(url.hostname)
  const servername = literal === null ? url.hostname.replace(/\.$/, "") : ""
  let session: Buffer | undefined

  const lookup = guardedLookup(guard, port, resolve)

  const secured = () => ({
    servername,
    ALPNProtocols: ["http/1.1"],
    ...(secureContext === undefined ? {} : { secureContext }),
    ...(session === undefined ? {} : { session })
  })
  const keepSession = (socket: net.Socket) => {
    boundSessions(socket)
    socket.on("session", (latest: Buffer) => {
      session = latest
    })
  }

  const throughProxy =
    (proxy: EgressProxy): Way =>
    (addresses, { steps, completed, end, isOver }) => {
      let socket: net.Socket | null = null
      // One try, so IPv4: not all proxies reach IPv6.
      const { address } = addresses.find(({ family }) => family === 4) ?? addresses[0]!
      steps.address = withPort(address, port)
      const tunnelling = tunnel(proxy, address, port, (code, plain) => {
        if (plain === null) return end(new NotConnected(code), null)
        if (isOver()) return plain.destroy()
        completed("connectMs")
        socket = plain
        if (!secure) return end(null, plain)
        const secureSocket = tls.connect({ ...secured(), socket: plain })
        socket = secureSocket
        keepSession(secureSocket)
        secureSocket.once("secureConnect", () => {
          completed("tlsMs")
          end(null, secureSocket)
        })
        secureSocket.on("error", (error) => end(new NotConnected("tls_failed", error), null))
        secureSocket.once("close", () => end(new NotConnected("tls_failed"), null))
      })
      const destroy = () => {
        tunnelling.destroy()
        socket?.destroy()
      }
      return { destroy }
    }

  const direct: Way = (addresses, { steps, completed, end }) => {
    const target = {
      host: literal ?? url.hostname,
      port,
      lookup: ((_hostname, { all }, found) =>
        all === true
          ? found(null, [...addresses])
          : found(null, addresses[0]!.address, addresses[0]!.family)) satisfies net.LookupFunction,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: 60_000
    }
    const socket = secure ? tls.connect({ ...target, ...secured() }) : net.connect(target)
    let reached = false

    // Listens first, so that not even a TLS hello goes to an unjudged address.
    socket.prependOnceListener("connect", () => {
      reached = true
      completed("connectMs")
      steps.address = withPort(socket.remoteAddress ?? "", port)
      if (!guard.allows(socket.remoteAddress ?? "", port)) socket.destroy(new NotConnected("forbidden_address"))
    })
    keepSession(socket)
    socket.once(secure ? "secureConnect" : "connect", () => {
      if (socket.destroyed) return
      if (secure) completed("tlsMs")
      end(null, socket)
    })
    socket.on("error", (error) => {
      const code = areUsedUp(error) ? "no_descriptors" : secure && reached ? "tls_failed" : "connection_failed"
      end(error instanceof NotConnected ? error : new NotConnected(code, error), null)
    })
    return socket
  }

  const way = proxy === null ? direct : throughProxy(proxy)

  return (callback, steps) => {
    if (literal !== null && !guard.allows(literal, port)) {
      callback(new NotConnected("forbidden_address"), null)
      return null
    }
    const completed = stopwatch(steps)
    let isOver = false
    let begun: Begun | null = null
    const end: Connected = (...result) => {
      if (isOver) return
      isOver = true
      callback(...result)
    }
    const begin = (addresses: ReadonlyArray<Address>) => {
      begun = way(addresses, { steps, completed, end, isOver: () => isOver })
    }
    if (literal !== null) begin([{ address: literal, family: net.isIP(literal) }])
    else {
      // Sockets are made after resolving: for an unknown name they were half of the cost.
      lookup(url.hostname, { all: true }, (error, found) => {
        if (isOver) return
        if (error !== null) return end(error as NotConnected, null)
        completed("dnsMs")
        begin(found as ReadonlyArray<Address>)
      })
    }
    const destroy = () => {
      isOver = true
      begun?.destroy()
    }
    return { destroy }
  }
}
