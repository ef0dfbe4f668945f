/** The attempts of a message as lines for people: what was called, what answered, and how long each step took. */
import type { Attempt } from "../../sdk/src/api.ts"
import type { Paints } from "./terminal.ts"

/** `withHeaders`: also those of request and answer. */
export const attemptLines = (
  paint: Paints,
  attempts: ReadonlyArray<Attempt>,
  withHeaders: boolean
): ReadonlyArray<string> =>
  attempts.flatMap((attempt) => [lineOf(attempt), ...(withHeaders ? headers(paint, attempt) : [])])

const lineOf = ({ number, epoch, request, response, timing, outcome, startedAt }: Attempt): string => {
  const name = `attempt ${number}${epoch > 1 ? ` of epoch ${epoch}` : ""}`
  if (request === null) return `${name}  ${startedAt}  ${outcome ?? "under way"}; nothing is known of a request`
  const where = request.url === null ? "" : `${request.method} ${request.url}  `
  const to = request.address === null ? "no connection" : `to ${request.address}`
  return `${name}  ${request.sentAt}  ${where}${to}  ${response.status ?? "no answer"}${timing === null ? "" : took(timing)}`
}

const took = ({ totalMs, ...steps }: NonNullable<Attempt["timing"]>): string => {
  const names = { dnsMs: "DNS", connectMs: "connect", tlsMs: "TLS", firstByteMs: "first byte" }
  const reached = Object.entries(names).flatMap(([field, name]) => {
    const ms = steps[field as keyof typeof names]
    return ms === null ? [] : [`${name} ${ms}`]
  })
  return ` after ${totalMs} ms${reached.length === 0 ? "" : ` (${reached.join(", ")})`}`
}

const headers = (paint: Paints, { request, response }: Attempt): ReadonlyArray<string> => [
  ...Object.entries(request?.headers ?? {}).map(([name, value]) => paint.dim(`  > ${name}: ${value}`)),
  ...Object.entries(response.headers ?? {}).map(([name, value]) => paint.dim(`  < ${name}: ${value}`))
]
