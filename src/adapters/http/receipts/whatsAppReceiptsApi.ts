/**
 * The endpoints that Meta calls: the question at the setup of its webhook, and the notices about messages. Meta sends
 * no key: a verify token proves the question, a signature the notices.
 */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { about } from "../server/endpoints.ts"
import { problemOf } from "../server/problem.ts"

const PATH = "/webhooks/whatsapp/inbound"

const verify = HttpApiEndpoint.get("verify", PATH, {
  query: {
    "hub.mode": Schema.optionalKey(Schema.String),
    "hub.verify_token": Schema.optionalKey(Schema.String),
    "hub.challenge": Schema.optionalKey(Schema.String)
  },
  success: Schema.String.pipe(HttpApiSchema.asText()),
  error: [problemOf(403), problemOf(503)]
})
  // New fields from Meta are accepted.
  .annotate(HttpApi.QueryParseOptions, { onExcessProperty: "ignore" })
  .annotateMerge(about("Meta's question when the webhook is set up: answered with hub.challenge."))

const take = HttpApiEndpoint.post("take", PATH, {
  headers: { "x-hub-signature-256": Schema.optionalKey(Schema.String), "x-org-id": Schema.optionalKey(Schema.String) },
  // Read as bytes: the signature covers these.
  payload: Schema.Struct({ entry: Schema.Array(Schema.Unknown) }).annotate({ identifier: "WhatsAppNotice" }),
  success: HttpApiSchema.Empty(200),
  error: [problemOf(400), problemOf(401), problemOf(413), problemOf(415), problemOf(503)]
})
  .annotate(HttpApi.QueryParseOptions, { onExcessProperty: "ignore" })
  .annotateMerge(
    about(
      "What Meta tells about messages. Kept at once and applied a moment later; signed with the account's app secret."
    )
  )

export const whatsAppReceiptsApi = HttpApiGroup.make("whatsAppReceipts")
  .add(verify, take)
  .annotateMerge(OpenApi.annotations({ title: "WhatsApp receipts", description: "For Meta. No API key." }))
