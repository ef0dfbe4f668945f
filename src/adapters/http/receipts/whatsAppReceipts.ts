/** The handlers of Meta's calls. They pass on bytes and headers; the application reads them. */
import { Effect, Redacted, Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Destinations } from "../../../application/ports/Destinations.ts"
import { receiveReceipts, WHATSAPP } from "../../../application/receipts/receiveReceipts.ts"
import { Door, pieceOf } from "../server/door.ts"
import { base, words } from "../server/endpoints.ts"
import { answer, invalidRequest, problemOf, unproven, wrongVerifyToken } from "../server/problem.ts"
import { limits, type Memory, readStrangersBytes } from "../server/requestBody.ts"
import { PIECE } from "../server/turns.ts"

const PATH = "/webhooks/whatsapp/inbound"

export const whatsAppReceiptsApi = HttpApiGroup.make("whatsAppReceipts")
  .add(
    HttpApiEndpoint.get("verify", PATH, {
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
      .annotateMerge(words("Meta's question when the webhook is set up: answered with hub.challenge.")),
    HttpApiEndpoint.post("take", PATH, {
      headers: {
        "x-hub-signature-256": Schema.optionalKey(Schema.String),
        "x-org-id": Schema.optionalKey(Schema.String)
      },
      // Read as bytes: the signature covers these.
      payload: Schema.Struct({ entry: Schema.Array(Schema.Unknown) }).annotate({ identifier: "WhatsAppNotice" }),
      success: HttpApiSchema.Empty(200),
      error: [problemOf(400), problemOf(401), problemOf(413), problemOf(415), problemOf(503)]
    })
      .annotate(HttpApi.QueryParseOptions, { onExcessProperty: "ignore" })
      .annotateMerge(
        words(
          "What Meta tells about messages. Kept at once and applied a moment later; signed with the account's app secret."
        )
      )
  )
  .annotateMerge(OpenApi.annotations({ title: "WhatsApp receipts", description: "For Meta. No API key." }))

interface Question {
  readonly "hub.mode"?: string
  readonly "hub.verify_token"?: string
  readonly "hub.challenge"?: string
}

const verify = Effect.fnUntraced(function* (question: Question) {
  const { "hub.mode": mode, "hub.verify_token": token, "hub.challenge": challenge } = question
  const isKnown =
    mode === "subscribe" &&
    token !== undefined &&
    (yield* (yield* Destinations).knowsLookup(WHATSAPP, Redacted.make(token)))
  if (!isKnown) return yield* wrongVerifyToken()
  // The caller with the token decides the text of the answer: a browser must not take it for a page.
  return HttpServerResponse.text(challenge ?? "", { headers: { "x-content-type-options": "nosniff" } })
})

/** Anybody can send a body here. Meta sends a notice that was not taken again. */
const memory: Memory = { held: 0, max: 64 * 1024 * 1024 }

const take = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const door = yield* Door
  const answered = yield* receiveReceipts({
    turnOf: (org) => Effect.provideService(pieceOf(org, PIECE), Door, door),
    body: yield* readStrangersBytes(request, limits.notice, memory),
    signature: request.headers["x-hub-signature-256"] ?? null,
    org: request.headers["x-org-id"] ?? null
  })
  switch (answered.type) {
    case "Taken":
      return HttpServerResponse.empty({ status: 200 })
    case "Unproven":
      return yield* unproven(
        "X-Hub-Signature-256 must be made with the app secret of a WhatsApp account whose phone number the body names."
      )
    case "Unreadable":
      return yield* invalidRequest(`The body can't be read: ${answered.reason}.`)
  }
})

export const layer = HttpApiBuilder.group(base.add(whatsAppReceiptsApi), "whatsAppReceipts", (handlers) =>
  handlers
    .handle("verify", ({ query }) => answer(verify(query)))
    .handleRaw("take", ({ request }) => answer(Effect.scoped(take(request))))
)
