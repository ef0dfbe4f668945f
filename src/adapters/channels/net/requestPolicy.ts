/**
 * Rules for requests to an org's server, judged when settings are written: null, or a reason for the owner. Host names
 * are judged at each connection.
 */
import manifest from "../../../../package.json" with { type: "json" }
import type { Fault } from "../../../application/ports/errors.ts"
import { text } from "../../../application/ports/fields.ts"
import { MASKED, maskedUrl } from "../../../domain/delivery/exchange.ts"
import { type AddressGuard, literalAddress, portOf } from "./addressGuard.ts"

export const agent = { "user-agent": `Posthaste/${manifest.version}`, "accept-encoding": "identity" }

export const agentHeaders: ReadonlyArray<string> = Object.entries(agent).flat()

const URL_LENGTH_MAX = 2048
const HEADERS_MAX = 32
const VALUE_LENGTH_MAX = 4096

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/
/** A value must mean the same bytes to everyone: printable ASCII and tabs, so no CR, LF or NUL either. */
const value = /^[\t\x20-\x7e]*$/
export const isHeaderValue = (text: string): boolean => value.test(text) && text.length <= VALUE_LENGTH_MAX

/** Headers that frame the request, or that Posthaste itself always sets. */
const framing: ReadonlySet<string> = new Set([
  "accept-encoding",
  "connection",
  "expect",
  "host",
  "http2-settings",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "user-agent"
])
const framingPrefixes = ["content-", "proxy-"]
const isFraming = (name: string) => framing.has(name) || framingPrefixes.some((prefix) => name.startsWith(prefix))

export type Headers = Readonly<Record<string, string>>

/** `isOurs` knows, in lower case, the headers that the channel sets as well. */
export const makeCheckHeaders =
  (isOurs: (name: string) => boolean) =>
  (headers: Headers): string | null => {
    const entries = Object.entries(headers)
    if (entries.length > HEADERS_MAX) return `at most ${HEADERS_MAX} headers`
    const seen = new Set<string>()
    for (const [name, text] of entries) {
      const lower = name.toLowerCase()
      if (!token.test(name)) return `${JSON.stringify(name)} is not a header name`
      if (isFraming(lower) || isOurs(lower)) return `the header ${name} is set by Posthaste`
      if (seen.has(lower)) return `the header ${name} is given twice`
      if (!value.test(text)) return `the value of ${name} may hold printable ASCII only`
      if (text.length > VALUE_LENGTH_MAX) return `the value of ${name} is longer than ${VALUE_LENGTH_MAX} characters`
      seen.add(lower)
    }
    return null
  }

/** As they may be shown: any value may be a credential. */
export const maskedHeaders = (headers: Headers): Headers =>
  Object.fromEntries(Object.keys(headers).map((name) => [name, MASKED]))

export const urlSetting = {
  schema: text(2048).annotate({
    description:
      "Parameters are stored encrypted, and shown by their names, with *** for their values. A change that gives it back as it was shown leaves it as it is."
  }),
  hides: maskedUrl
}

export const faultsAmong = (reasons: Readonly<Record<string, string | null>>): ReadonlyArray<Fault> =>
  Object.entries(reasons).flatMap(([field, reason]) => (reason === null ? [] : [{ field, reason }]))

export const checkUrl = (text: string): string | null => {
  if (text.length > URL_LENGTH_MAX) return `a URL has at most ${URL_LENGTH_MAX} characters`
  const url = URL.parse(text)
  if (url === null) return "not a URL"
  if (url.protocol !== "https:" && url.protocol !== "http:") return "only http and https URLs can be called"
  if (url.username !== "" || url.password !== "") return "a URL may not carry a user name or password; use a header"
  return null
}

export const makeCheckTarget =
  (guard: AddressGuard) =>
  (text: string): string | null => {
    const problem = checkUrl(text)
    if (problem !== null) return problem
    const url = new URL(text)
    return checkAddress(guard, url.hostname, portOf(url))
  }

/** Judges literals and localhost; other names are judged when resolved. */
export const checkAddress = (guard: AddressGuard, hostname: string, port: number): string | null => {
  const local = /(?:^|\.)localhost\.?$/.test(hostname)
  const address = local ? "127.0.0.1" : literalAddress(hostname)
  return address === null || guard.allows(address, port)
    ? null
    : "the address is private or reserved; the operator can open networks with POSTHASTE_ALLOWED_NETWORKS"
}
