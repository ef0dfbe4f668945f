/**
 * The few short headers of an answer that are kept with an attempt, without cookies and tokens, and erased with it. An
 * answer without a body is kept only for unusual headers: a row for each attempt costs more than the rest of it.
 */
import type { Headers } from "../../../application/ports/Channels.ts"
import { MASKED } from "../../../domain/delivery/exchange.ts"

const HEADERS_MAX = 32
const LENGTH_MAX = 256

/** They concern one connection. */
const ofConnection: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
  "trailer"
])

const ofEveryAnswer: ReadonlySet<string> = new Set(["date", "content-length", "content-type"])

const mayBeSecret = /cookie|authoriz|authentic|token|secret|signature|password|api-?key/

type Answered = Readonly<Record<string, string | string[] | undefined>>

const saysMore = (headers: Answered): boolean => {
  for (const name in headers) if (!ofEveryAnswer.has(name) && !ofConnection.has(name)) return true
  return false
}

export const keptHeaders = (headers: Answered, hasBody: boolean): Headers | null => {
  if (!hasBody && !saysMore(headers)) return null
  const kept: Record<string, string> = {}
  let count = 0
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined || ofConnection.has(name) || count === HEADERS_MAX || name.length > LENGTH_MAX) continue
    const text = typeof value === "string" ? value : value.join(", ")
    kept[name] = mayBeSecret.test(name) ? MASKED : text.slice(0, LENGTH_MAX).replaceAll("\0", "\ufffd")
    count += 1
  }
  return count > 0 ? kept : null
}
