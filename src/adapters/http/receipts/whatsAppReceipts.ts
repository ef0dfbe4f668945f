/** Meta's calls. The handlers pass on bytes and headers; the application reads them. */
import { Effect, Layer, Redacted, Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Destinations } from "../../../application/ports/Destinations.ts"
import { receiveReceipts, WHATSAPP } from "../../../application/receipts/receiveReceipts.ts"
import { base, titled, words } from "../server/endpoints.ts"
import { maybe } from "../server/fields.ts"
import { answer, invalidRequest, problemOf, unproven, wrongVerifyToken } from "../server/problem.ts"
import { limits, readBytes } from "../server/requestBody.ts"

const PATH = "/webhooks/whatsapp/inbound"

export const whatsAppReceiptsApi = HttpApiGroup.make("whatsAppReceipts")
  .add(
    HttpApiEndpoint.get("verify", PATH, {
      query: {
        "hub.mode": maybe(Schema.String, "Always subscribe."),
        "hub.verify_token": maybe(Schema.String, "The verify token of the account."),
        "hub.challenge": maybe(Schema.String, "The text to answer.")
      },
      success: Schema.String.pipe(HttpApiSchema.asText()),
      error: [problemOf(400), problemOf(403), problemOf(503)]
    })
      // New fields from Meta are accepted.
      .annotate(HttpApi.QueryParseOptions, { onExcessProperty: "ignore" })
      .annotateMerge(words("Meta's question when the webhook is set up: answered with hub.challenge.")),
    HttpApiEndpoint.post("take", PATH, {
      headers: {
        "x-hub-signature-256": maybe(Schema.String, "Meta's signature over the body."),
        "x-org-id": maybe(Schema.String, "The org, where a URL of each org's own is used.")
      },
      // The signature covers the bytes.
      payload: Schema.Struct({
        entry: Schema.Array(Schema.Unknown).annotate({ description: "As Meta writes it." })
      }).annotate({ identifier: "WhatsAppNotice", examples: [{ entry: [{ id: "102290129340398", changes: [] }] }] }),
      success: HttpApiSchema.Empty(200),
      error: [problemOf(400), problemOf(401), problemOf(413), problemOf(415), problemOf(429), problemOf(503)]
    })
      .annotate(HttpApi.QueryParseOptions, { onExcessProperty: "ignore" })
      .annotateMerge(
        words(
          "What Meta tells about messages. Kept at once and applied a moment later; signed with the account's app secret."
        )
      )
  )
  .prefix("/api/v1")
  .annotateMerge(titled("WhatsApp receipts", "For Meta. No API key."))

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
  // The caller decides the text of the answer: no browser may take it for a page.
  return HttpServerResponse.text(challenge ?? "", { headers: { "x-content-type-options": "nosniff" } })
})

/** Counts unproven notices and logs the number once a minute: anybody can send them. */
const makeRefusals = Effect.gen(function* () {
  let count = 0
  let last = ""
  const tell = Effect.suspend(() => {
    if (count === 0) return Effect.void
    const line = `${count} notices from WhatsApp were refused, the last one because ${last}`
    count = 0
    return Effect.logWarning(line)
  })
  yield* tell.pipe(Effect.delay("1 minute"), Effect.forever, Effect.forkScoped)
  yield* Effect.addFinalizer(() => tell)
  return (why: string) => {
    count += 1
    last = why
  }
})

const take = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  refused: Effect.Success<typeof makeRefusals>
) {
  const signature = request.headers["x-hub-signature-256"]
  if (signature === undefined) {
    refused("it is not signed")
    return yield* unproven("Meta signs its notices: the header X-Hub-Signature-256 is missing.")
  }
  const answered = yield* receiveReceipts({
    body: yield* readBytes(request, limits.notice),
    signature,
    org: request.headers["x-org-id"] ?? null
  })
  switch (answered.type) {
    case "Taken":
      return HttpServerResponse.empty({ status: 200 })
    case "Unproven":
      refused(answered.why)
      return yield* unproven(
        "X-Hub-Signature-256 must be made with the app secret of a WhatsApp account whose phone number the body names."
      )
    case "Unreadable":
      return yield* invalidRequest(`The body can't be read: ${answered.reason}.`)
  }
})

export const layer = Layer.unwrap(
  Effect.map(makeRefusals, (refused) =>
    HttpApiBuilder.group(base.add(whatsAppReceiptsApi), "whatsAppReceipts", (handlers) =>
      handlers
        .handle("verify", ({ query }) => answer(verify(query)))
        .handleRaw("take", ({ request }) => answer(take(request, refused)))
    )
  )
)
