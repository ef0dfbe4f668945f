/**
 * The way out through the operator's HTTP proxy, which gets a judged address. A proxy that can't be reached or refuses
 * is Posthaste's fault; one that can't reach the address is the destination's.
 */
import http from "node:http"
import { isIPv6, type Socket } from "node:net"
import { Redacted, Result } from "effect"
import type { FailureCode } from "../../../domain/delivery/classify.ts"

export interface EgressProxy {
  readonly host: string
  readonly port: number
  readonly authorization: Redacted.Redacted | null
}

/** Reads `http://user:password@proxy.internal:3128`. Errors don't repeat it: it may hold a password. */
export const parseEgressProxy = (given: string): Result.Result<EgressProxy, string> => {
  const url = URL.parse(given)
  const isProxy = url !== null && url.protocol === "http:" && url.hostname !== "" && /^\/?$/.test(url.pathname)
  if (!isProxy || url.search !== "" || url.hash !== "") {
    return Result.fail("must look like http://proxy.internal:3128 or http://user:password@proxy.internal:3128")
  }
  const { username, password } = url
  let login: string
  try {
    login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  } catch {
    return Result.fail("has a user or password that is not percent-encoded as in a URL")
  }
  return Result.succeed({
    host: url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname,
    port: url.port === "" ? 80 : Number(url.port),
    authorization: login === ":" ? null : Redacted.make(`Basic ${Buffer.from(login).toString("base64")}`)
  })
}

/** 502, 503 and 504 concern the address, all else concerns Posthaste. */
const codeOf = (status: number): FailureCode =>
  status === 502 || status === 503 || status === 504 ? "connection_failed" : "proxy_failed"

/** Connects to the address through the proxy. The callback is called once. */
export const tunnel = (
  { host, port: proxyPort, authorization }: EgressProxy,
  address: string,
  port: number,
  callback: (...result: [FailureCode, null] | [null, Socket]) => void
): { readonly destroy: () => void } => {
  const authority = `${isIPv6(address) ? `[${address}]` : address}:${port}`
  const request = http.request({
    host,
    port: proxyPort,
    method: "CONNECT",
    path: authority,
    headers: {
      host: authority,
      ...(authorization !== null && { "proxy-authorization": Redacted.value(authorization) })
    },
    agent: false
  })
  let done = false
  const end = (...result: Parameters<typeof callback>) => {
    if (done) return
    done = true
    callback(...result)
  }
  request.once("connect", ({ statusCode }, socket, head) => {
    // The request's listeners are gone, and undici attaches its own later.
    socket.on("error", () => {})
    if (statusCode === undefined || statusCode < 200 || statusCode >= 300) {
      socket.destroy()
      return end(codeOf(statusCode ?? 0), null)
    }
    if (head.length > 0) socket.unshift(head)
    ;(socket as Socket).setNoDelay(true).setKeepAlive(true, 60_000)
    end(null, socket as Socket)
  })
  // A proxy without CONNECT answers like a server.
  request.once("response", (response) => {
    response.destroy()
    end(codeOf(response.statusCode ?? 0), null)
  })
  request.on("error", () => end("proxy_failed", null))
  request.end()
  return {
    destroy: () => {
      done = true
      request.destroy()
    }
  }
}
