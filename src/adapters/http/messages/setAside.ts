/** The handlers of the messages that can't be processed, for the operator. */
import { Effect, Schema } from "effect"
import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { SetAside, type SetAsideStream, setAsideReasons } from "../../../application/ports/SetAside.ts"
import { MessageId } from "../../../domain/ids.ts"
import { OperatorAccess } from "../server/auth.ts"
import { base, byId, words } from "../server/endpoints.ts"
import { listOf, Moment, paging, Text } from "../server/fields.ts"
import { type PageQuery, pageOfAll } from "../server/listPages.ts"
import { answer, idOf, notFound } from "../server/problem.ts"

export const SetAsideMessage = Schema.Struct({
  id: Text.annotate({ description: "The message's; null where the stream is no message's." }),
  stream: Schema.String,
  parts: Schema.Array(Schema.String).annotate({
    description:
      "Who sets it aside. queue: it is not delivered. messages, audit, activity, health: the projection of that name lacks its facts. outlet: its facts do not go out to RabbitMQ. alerts: its facts raise no alert."
  }),
  orgId: Text.annotate({ description: "Null where it is not known." }),
  destination: Text,
  reason: Schema.Literals(setAsideReasons).annotate({
    description:
      "unreadable: a stored fact is none that this release can read, or its sealed body does not open. unlawful: its facts are no history that the law allows. failed: Posthaste failed while it worked on the message."
  }),
  detail: Schema.String,
  since: Moment,
  tries: Schema.Int.annotate({ description: "How often it was set aside in a row." }),
  nextTryAt: Moment
}).annotate({ identifier: "SetAsideMessage" })

const Retried = Schema.Struct({
  messages: Schema.Int.annotate({ description: "How many are tried again now." })
}).annotate({ identifier: "Retried" })

export const setAsideApi = HttpApiGroup.make("setAside")
  .add(
    HttpApiEndpoint.get("list", "/set-aside", { query: paging, success: listOf(SetAsideMessage) }).annotateMerge(
      words(
        "The streams of all orgs that can't be processed and wait to be tried again: messages, and what else has facts."
      )
    ),
    HttpApiEndpoint.post("retryAll", "/set-aside/retry", { success: Retried }).annotateMerge(
      words("Try all of them again now.")
    ),
    HttpApiEndpoint.post("retry", "/set-aside/:id/retry", { ...byId, success: Retried }).annotateMerge(
      words("Try one of them again now.")
    )
  )
  .middleware(OperatorAccess)
  .prefix("/api/v1")
  .annotateMerge(
    OpenApi.annotations({ title: "Messages that are set aside", description: "For the operator's key only." })
  )

const setAsideJson = ({ stream, messageId, parts, lane, againAt, ...aside }: SetAsideStream) => ({
  ...{ id: messageId, stream, parts, destination: lane, nextTryAt: againAt },
  ...aside
})

const list = (query: PageQuery) =>
  Effect.flatMap(SetAside, (setAside) =>
    pageOfAll("set-aside", query, setAside.list, { of: SetAsideMessage, json: setAsideJson })
  )

const retryAll = Effect.gen(function* () {
  return { messages: yield* (yield* SetAside).tryAgain(null) }
})

const retry = Effect.fnUntraced(function* (id: string) {
  const messages = yield* (yield* SetAside).tryAgain([yield* idOf(MessageId)(id)])
  return messages === 0 ? yield* Effect.fail(notFound()) : { messages }
})

export const layer = HttpApiBuilder.group(base.add(setAsideApi), "setAside", (handlers) =>
  handlers
    .handle("list", ({ query }) => answer(list(query)))
    .handle("retryAll", () => answer(retryAll))
    .handle("retry", ({ params }) => answer(retry(params.id)))
)
