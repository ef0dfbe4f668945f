/**
 * Settings of an HTTP target, judged together because headers and body fields name secrets. Addresses are judged again
 * at each connection.
 */
import { Schema } from "effect"
import type { DestinationDraft } from "../../../application/ports/Channels.ts"
import type { DestinationSettings } from "../../../application/ports/Destinations.ts"
import type { Fault } from "../../../application/ports/errors.ts"
import { commonSettings, type Setting, text } from "../../../application/ports/fields.ts"
import { maskedUrl } from "../../../domain/delivery/exchange.ts"
import { checkUrl, faultsAmong, makeCheckHeaders, urlSetting } from "../net/requestPolicy.ts"
import { checkFields, checkReferences, withoutLiterals } from "./fields.ts"

const httpMethods = ["POST", "PUT", "PATCH", "DELETE"] as const

export interface HttpTargetSettings extends DestinationSettings {
  readonly url: string
  readonly method: (typeof httpMethods)[number]
  /** `{{name}}` stands for the target's secret of that name. */
  readonly headers: Readonly<Record<string, string>>
  /** Fields added to the message's JSON object as it is sent, for targets that want their key in the body. */
  readonly bodyFields: Readonly<Record<string, string>>
  /** "none": a second request does the work twice. */
  readonly idempotency: "header" | "none"
  readonly reconcile: { readonly url: string } | null
}

const texts = Schema.Record(Schema.String, Schema.String)

export const settings = {
  url: urlSetting,
  method: {
    schema: Schema.Literals(httpMethods).annotate({ description: "The method of requests." }),
    default: "POST"
  },
  headers: {
    schema: texts.annotate({
      description:
        "{{name}} within a value stands for the target's secret of that name, as in Bearer {{token}}. What else a value holds is stored encrypted and shown as ***; a change that gives a value back as it was shown leaves it as it is."
    }),
    default: {},
    hides: withoutLiterals
  },
  bodyFields: {
    schema: texts.annotate({
      description:
        "Added to the message's JSON object as it is sent, with {{name}} as in headers; the stored message is without them."
    }),
    default: {}
  },
  idempotency: {
    schema: Schema.Literals(["header", "none"]).annotate({
      description:
        "header: every try carries the message's id as Idempotency-Key, and the target drops what it has seen. none: it would do the work twice, so a try that may have been taken is never repeated blindly. Either way the id is sent as X-Message-Id."
    }),
    default: "header"
  },
  reconcile: {
    schema: Schema.Struct({ url: text(2048) }).annotate({
      description:
        "Where to ask, with GET, whether a request was taken; {messageId} in the URL stands for the message's id. 2xx: it was. 404: it was not and never will be. Anything else: not known yet. Parameters are stored and shown as those of url."
    }),
    default: null,
    hides: maskedUrl
  },
  ...commonSettings
} as const satisfies { readonly [Name in keyof HttpTargetSettings]: Setting }

export const PLACEHOLDER = "{messageId}"
const SAMPLE_ID = "00000000-0000-7000-8000-000000000000"

/** Reserved also with idempotency "none": the key must be the message's. */
export const checkHeaders = makeCheckHeaders((name) => name === "idempotency-key" || name === "x-message-id")

type Check = (url: string) => string | null

const checkReconcile = (url: string, check: Check): string | null => {
  if (!url.includes(PLACEHOLDER)) return `must hold ${PLACEHOLDER} where the message's id belongs`
  const sample = url.replaceAll(PLACEHOLDER, SAMPLE_ID)
  const parsed = URL.parse(sample)
  // Without the id in path or query the target would answer alike for all messages.
  if (parsed !== null && !`${parsed.pathname}${parsed.search}`.includes(SAMPLE_ID)) {
    return `must hold ${PLACEHOLDER} in its path or query`
  }
  if (parsed?.host.includes(SAMPLE_ID)) return `may hold ${PLACEHOLDER} in its path and query only`
  return check(sample)
}

type Draft = Pick<DestinationDraft<HttpTargetSettings>, "settings" | "secretNames">

export const faultsOf = ({ settings, secretNames }: Draft, check: Check): ReadonlyArray<Fault> => {
  const { url, headers, bodyFields, reconcile } = settings
  return faultsAmong({
    url: check(url),
    headers: checkHeaders(headers) ?? checkReferences(headers, secretNames),
    bodyFields: checkFields(bodyFields) ?? checkReferences(bodyFields, secretNames),
    "reconcile.url": reconcile === null ? null : checkReconcile(reconcile.url, check)
  })
}

export const checkSettings = (draft: Draft): string | null => {
  const [fault] = faultsOf(draft, checkUrl)
  return fault === undefined ? null : `${fault.field}: ${fault.reason}`
}
