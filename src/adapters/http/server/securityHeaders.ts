/**
 * The security headers of every answer: no sniffing, frames, scripts, loads, referrer or cache. A page that needs more
 * says so itself.
 */
import { type IncomingMessage, type OutgoingHttpHeaders, ServerResponse, STATUS_CODES } from "node:http"

const nothing = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

export const pageHeaders = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=()",
  "content-security-policy": nothing,
  "cache-control": "no-store"
} as const

/**
 * An answer with these headers, of which a handler may give other values. They are written with all others: a
 * `setHeader` for each took 3 µs of every answer.
 */
export class SafeResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  override writeHead(status: number, ...given: ReadonlyArray<unknown>): this {
    const [first, second] = given
    const headers = typeof first === "string" || first === undefined ? second : first
    const reason = typeof first === "string" ? first : STATUS_CODES[status]
    return super.writeHead(status, reason, { ...pageHeaders, ...(headers as OutgoingHttpHeaders | undefined) })
  }
}

/** Allows a page's own scripts, by their hashes, and calls to this service. */
export const policyOf = (scriptHashes: ReadonlyArray<string>): string =>
  [
    nothing,
    `script-src ${scriptHashes.map((hash) => `'sha256-${hash}'`).join(" ")}`,
    // Its scripts write styles as they run.
    "style-src 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "worker-src blob:"
  ].join("; ")
