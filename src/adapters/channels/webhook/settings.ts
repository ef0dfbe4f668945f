/** Settings of a webhook endpoint, judged when they are written and when they are used. */
import { Schema } from "effect"
import type { DestinationSettings } from "../../../application/ports/Destinations.ts"
import { between, commonSettings, headerText, type Setting, text } from "../../../application/ports/fields.ts"
import { MASKED } from "../../../domain/delivery/exchange.ts"
import { isWish } from "../../../domain/event/eventTypes.ts"
import { checkUrl, type Headers, makeCheckHeaders, urlSetting } from "../net/requestPolicy.ts"
import type { Certificates } from "./certificates.ts"
import { type Style, styles } from "./signature.ts"

export interface EndpointSettings extends DestinationSettings, Certificates {
  readonly url: string
  readonly eventTypes: ReadonlyArray<string> | null
  readonly description: string | null
  readonly signature: Style
  readonly headers: Headers
  /** Time during which every attempt may fail before the endpoint is disabled; 0: unlimited. */
  readonly disableAfterMs: number
}

const Wish = headerText(256).check(
  Schema.makeFilter(
    (text) => isWish(text) || "must be a type of events, such as order.paid, or the beginning of types, such as order.*"
  )
)

/** Line breaks included. certificates.ts judges the content. */
const pem = Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(32_768))

const DAY_MS = 86_400_000

export const settings = {
  url: urlSetting,
  eventTypes: {
    schema: Schema.Array(Wish)
      .check(Schema.isMinLength(1), Schema.isMaxLength(100))
      .annotate({ description: "The types of events it wants, such as order.paid or order.*; null: all." }),
    default: null
  },
  description: { schema: text(500).annotate({ description: "For people." }), default: null },
  signature: {
    schema: Schema.Literals(styles).annotate({ description: "How requests are signed." }),
    default: "standard"
  },
  headers: {
    schema: Schema.Record(Schema.String, Schema.String).annotate({
      description:
        "Stored encrypted, and shown as ***. A change that gives *** leaves the value of that header as it is."
    }),
    default: {},
    hides: () => MASKED
  },
  disableAfterMs: {
    schema: between(0, 365 * DAY_MS).annotate({
      description: "For so long every attempt may fail until the endpoint is disabled; 0: for ever."
    }),
    default: 5 * DAY_MS
  },
  caCertificate: {
    schema: pem.annotate({
      description: "PEM. The endpoint's certificate must be signed by one of these; null: by one that Node trusts."
    }),
    default: null
  },
  clientCertificate: {
    schema: pem.annotate({
      description:
        "PEM: the certificate that Posthaste shows, and its private key, which is stored encrypted and never shown."
    }),
    default: null
  },
  ...commonSettings
} as const satisfies { readonly [Name in keyof EndpointSettings]: Setting }

/** Beside `webhook-…`. */
const ours = new Set(["x-correlation-id", "x-event-type", "x-signature", "x-timestamp"])

export const checkHeaders = makeCheckHeaders((name) => ours.has(name) || name.startsWith("webhook-"))

/** Reason why the settings can make no request; null when they can. */
export const checkSettings = ({ url, headers }: Pick<EndpointSettings, "url" | "headers">): string | null =>
  checkUrl(url) ?? checkHeaders(headers)
