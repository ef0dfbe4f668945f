/**
 * Connects a socket, plain or TLS, to an address the guard allows. The guard judges an IP literal before
 * connecting, every answer of the resolver (one forbidden answer refuses them all, so a name can't mix
 * good and bad), and the address the socket ended up with before a byte is sent. The judged addresses are
 * the ones connected to: a later, different answer has no say.
 *
 * Through an egress proxy the same holds: the name is resolved and judged here, and the proxy is asked for the judged
 * address (CONNECT), never for the name. TLS goes from end to end.
 *
 * It knows no deadline: whoever waits destroys what it was given.
 */
import net from "node:net"
import tls from "node:tls"
import type { FailureCode } from "../../../domain/delivery/classify.ts"
import { type AddressGuard, type AddressRules, literalAddress, portOf } from "./addressGuard.ts"
import { areUsedUp } from "./descriptors.ts"
import { type EgressProxy, tunnel } from "./egressProxy.ts"
import { type Address, makeResolver, type Resolve } from "./resolver.ts"
import { boundSessions } from "./tlsTerms.ts"

/** One for all channels: what one has asked, another need not ask again. */
const systemResolve = makeResolver()

/** The reason why there is no connection. It is made where the phase is known, so no code has to read error texts. */
export class NotConnected extends Error {
  readonly code: FailureCode
  constructor(code: FailureCode, cause?: unknown) {
    super(code, { cause })
    this.code = code
  }
}

/** Resolves a name for a socket, to addresses that the guard allows or to none. It is not asked about an IP literal. */
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

/** Which addresses may be called, and by which way. */
export interface EgressRules extends AddressRules {
  readonly proxy?: EgressProxy | null
}

type Connected = (...result: [null, net.Socket] | [NotConnected, null]) => void

/** How long each step of making a connection took, in milliseconds, and where it led; what was not reached is absent. */
export interface Steps {
  /** With the port. Through a proxy it is the one that the proxy was asked for. */
  address?: string
  dnsMs?: number
  connectMs?: number
  tlsMs?: number
}

/** Gives it up. */
interface Begun {
  readonly destroy: () => void
}

/**
 * Gives up a connection that is being made. Null when none was started: the callback got the reason. The steps are noted
 * as they are done.
 */
export type Connect = (callback: Connected, steps: Steps) => Begun | null

/** One way to addresses that were judged. What comes after its end is nobody's. */
type Way = (addresses: ReadonlyArray<Address>, to: Destination) => Begun

interface Destination {
  readonly steps: Steps
  readonly completed: (step: Exclude<keyof Steps, "address">) => void
  readonly end: Connected
  readonly isOver: () => boolean
}

const withPort = (address: string, port: number): string => `${net.isIPv6(address) ? `[${address}]` : address}:${port}`

/** Notes steps that follow each other. */
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
  /** Who is trusted, and who we are; absent: those that Node trusts, and nobody. */
  readonly secureContext?: tls.SecureContext | undefined
}

/** TLS sessions are resumed among the connections of one call. */
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
      // There is one try: most proxies have a way to IPv4, not all to IPv6.
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

    // The first listener, so that not even a TLS hello goes to an address that was not judged.
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
      // Nothing is made for a name that nobody knows: what TLS needs was half of what such an attempt cost.
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
