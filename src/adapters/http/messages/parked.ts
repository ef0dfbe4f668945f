/** Parked streams, for the operator. */
import { Effect, Schema } from "effect"
import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Parked, parkedReasons } from "../../../application/ports/Parked.ts"
import { retryParked } from "../../../application/truth/repair.ts"
import { OperatorAccess } from "../server/auth.ts"
import { base, titled, words } from "../server/endpoints.ts"
import { listOf, Moment, maybe, paging } from "../server/fields.ts"
import { type PageQuery, pageOfAll } from "../server/listPages.ts"
import { answer } from "../server/problem.ts"

const ParkedStream = Schema.Struct({
  stream: Schema.String.annotate({ description: "message-<id> of a message, which is not sent meanwhile." }),
  reason: Schema.Literals(parkedReasons).annotate({
    description:
      "unreadable: a stored fact is none that this release can read. failed: Posthaste failed while it worked on the stream; its log says how. lost: the message is open, and the queue has lost it."
  }),
  at: Moment
}).annotate({ identifier: "ParkedStream" })

const Retried = Schema.Struct({
  streams: Schema.Int.annotate({ description: "How many are parked no longer." })
}).annotate({ identifier: "Retried" })

export const parkedApi = HttpApiGroup.make("parked")
  .add(
    HttpApiEndpoint.get("list", "/parked", { query: paging, success: listOf(ParkedStream) }).annotateMerge(
      words("The streams of all orgs that can't be processed: messages, and what else has facts.")
    ),
    HttpApiEndpoint.post("retry", "/parked/retry", {
      query: { stream: maybe(Schema.String, "Only this stream, such as message-<id>.") },
      success: Retried
    }).annotateMerge(words("Try all of them again now, or one. What can't be read stays parked."))
  )
  .middleware(OperatorAccess)
  .prefix("/api/v1")
  .annotateMerge(titled("Parked streams", "For the operator's key only."))

const list = (query: PageQuery) =>
  Effect.flatMap(Parked, (parked) =>
    pageOfAll("parked", query, parked.list, { of: ParkedStream, json: (stream) => stream })
  )

export const layer = HttpApiBuilder.group(base.add(parkedApi), "parked", (handlers) =>
  handlers
    .handle("list", ({ query }) => answer(list(query)))
    .handle("retry", ({ query }) =>
      answer(
        Effect.map(
          retryParked(({ stream }) => query.stream === undefined || query.stream === stream),
          (streams) => ({ streams })
        )
      )
    )
)
