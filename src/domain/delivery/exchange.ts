/**
 * The proof of an attempt: settings, time, address and durations. It is part of the attempt's fact, so it is small: URL
 * and headers follow from the settings (`Call`), the message and the attempt.
 */
import { DateTime, Schema } from "effect"

const Ms = Schema.optionalKey(Schema.Int)

export const Exchange = Schema.Struct({
  settings: Schema.Int,
  /** When the request was made; its timestamp header says the same. */
  sentAt: Schema.DateTimeUtcFromString,
  address: Schema.optionalKey(Schema.String),
  /** Of a new connection; absent for a reused one and for a step that was not reached. */
  dnsMs: Ms,
  connectMs: Ms,
  tlsMs: Ms,
  firstByteMs: Ms
})
export type Exchange = typeof Exchange.Type

/**
 * The request that certain settings make, without secrets. A value may hold placeholders, such as `{messageId}`; a
 * header whose placeholder has no value is not sent.
 */
export const Call = Schema.Struct({
  method: Schema.NonEmptyString,
  /** Without user, password and parameters, which may be secrets. */
  url: Schema.NonEmptyString,
  headers: Schema.Record(Schema.String, Schema.String)
})
export type Call = typeof Call.Type

export const MASKED = "***"

export const shownUrl = (url: URL): string =>
  `${url.protocol}//${url.host}${url.pathname}${url.search === "" ? "" : "?…"}`

const hidden = (text: string): string =>
  text
    // Placeholders, such as {messageId}, are the odd parts.
    .split(/(\{[A-Za-z]+\})/)
    .map((part, at) => (part === "" || at % 2 === 1 ? part : MASKED))
    .join("")

/** A URL as its owner may see it: of parameters, which may be credentials, only names and placeholders. */
export const maskedUrl = (url: string): string => {
  const [, address = "", query, fragment] = /^([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/su.exec(url)!
  const pairs = query?.split("&").map((pair) => {
    const equals = pair.indexOf("=")
    return equals === -1 ? hidden(pair) : `${pair.slice(0, equals + 1)}${hidden(pair.slice(equals + 1))}`
  })
  return `${address}${pairs === undefined ? "" : `?${pairs.join("&")}`}${fragment === undefined ? "" : `#${hidden(fragment)}`}`
}

/** Callers choose these texts; a header holds printable ASCII, so anything else is percent-encoded. */
export const headerText = (text: string): string =>
  /^[\x20-\x7e]*$/.test(text) ? text : encodeURIComponent(text.toWellFormed())

export interface Called {
  readonly messageId: string
  readonly orgId: string
  readonly epoch: number
  readonly attempt: number
  readonly eventType: string | null
  readonly correlationId: string | null
  readonly routingKey: string | null
  readonly traceparent: string | null
  readonly test: boolean
  readonly sentAt: DateTime.Utc
}

const placeholder = /\{([a-zA-Z]+)\}/g

export const headersOf = ({ headers }: Call, called: Called): Readonly<Record<string, string>> => {
  const values: Readonly<Record<string, string | null>> = {
    messageId: called.messageId,
    orgId: called.orgId,
    try: `${called.epoch}.${called.attempt}`,
    eventType: called.eventType,
    correlationId: called.correlationId,
    traceparent: called.traceparent,
    test: called.test ? "true" : null,
    seconds: String(Math.floor(DateTime.toEpochMillis(called.sentAt) / 1000))
  }
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, text]) => {
      const names = [...text.matchAll(placeholder)].map(([, named]) => named!)
      if (names.some((named) => values[named] === null)) return []
      // The message's own key replaces its target's.
      if (name === "routing-key" && called.routingKey !== null) return [[name, called.routingKey]]
      return [[name, text.replace(placeholder, (whole, named: string) => headerText(values[named] ?? whole))]]
    })
  )
}
