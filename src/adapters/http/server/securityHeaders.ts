/**
 * What every answer tells a browser: to take it for nothing but what it says it is, to show it in no frame, to load and run
 * nothing for it, to tell nobody where it was read, and to keep no copy. A page that needs more says so itself.
 */
import type { ServerResponse } from "node:http"

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

/** Whoever answers may set another value of each. */
export const setHeaders = (response: ServerResponse): void => {
  for (const [name, value] of Object.entries(pageHeaders)) response.setHeader(name, value)
}

/** For a page that holds its own scripts, each known by its hash, and calls nobody but this service. */
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
