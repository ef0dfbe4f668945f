/** Answers the refusals of Node's parser and clocks with a problem. */
import { STATUS_CODES } from "node:http"
import type { Socket } from "node:net"
import { pageHeaders } from "./securityHeaders.ts"

const statusOf = (code: string | undefined): number => {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return 431
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return 408
    default:
      return 400
  }
}

/** Ends the connection; `hears`: its caller may be told why. */
export const refuseNotHttp = (error: NodeJS.ErrnoException, socket: Socket, hears: boolean): void => {
  if (!hears || !/^(?:HPE|ERR_HTTP)_/.test(error.code ?? "") || !socket.writable) {
    socket.destroy()
    return
  }
  const status = statusOf(error.code)
  const title = STATUS_CODES[status]!
  const body = JSON.stringify({
    type: "urn:posthaste:problem:not-http",
    title,
    status,
    detail: "The request could not be read as HTTP/1.1.",
    errors: []
  })
  const headers = {
    ...pageHeaders,
    "content-type": "application/problem+json",
    "content-length": Buffer.byteLength(body),
    connection: "close"
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  socket.end([`HTTP/1.1 ${status} ${title}`, ...lines, "", body].join("\r\n"))
}
