/** The handlers of the messages that can't be processed, for the operator. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { SetAside, type SetAsideStream } from "../../../application/ports/SetAside.ts"
import { MessageId } from "../../../domain/ids.ts"
import { Api } from "../server/Api.ts"
import { type PageQuery, pageOfAll } from "../server/listPages.ts"
import { answer, idOf, notFound } from "../server/problem.ts"
import { SetAsideMessage } from "./setAsideApi.ts"

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

export const layer = HttpApiBuilder.group(Api, "setAside", (handlers) =>
  handlers
    .handle("list", ({ query }) => answer(list(query)))
    .handle("retryAll", () => answer(retryAll))
    .handle("retry", ({ params }) => answer(retry(params.id)))
)
