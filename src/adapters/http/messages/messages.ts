/** The handlers of messages: decode the request, call the application, and write its result in the API's form. */
import { type DateTime, Effect, Result, Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { type Acceptance, acceptMessages } from "../../../application/accept/acceptMessage.ts"
import { scopeOfFact } from "../../../application/keys/scopes.ts"
import { Freshness } from "../../../application/log/Freshness.ts"
import { readStream } from "../../../application/log/readStream.ts"
import { commandMessage, eraseMessage, replayEdited } from "../../../application/messages/commandMessage.ts"
import { explainMessage } from "../../../application/messages/explainMessage.ts"
import { hurryMessage } from "../../../application/messages/hurryMessage.ts"
import { readAttempts } from "../../../application/messages/readAttempts.ts"
import { readEvents, readMessage } from "../../../application/messages/readMessage.ts"
import { readBody, resendMessage } from "../../../application/messages/resendMessage.ts"
import { type MessageFilter, MessageViews } from "../../../application/ports/MessageViews.ts"
import { ReceiptInbox } from "../../../application/ports/ReceiptInbox.ts"
import { Telemetry } from "../../../application/ports/Telemetry.ts"
import { Troubles } from "../../../application/processes/Troubles.ts"
import { Via } from "../../../application/via.ts"
import { MessageId, type OrgId } from "../../../domain/ids.ts"
import {
  answerTo,
  BATCH_MAX,
  decodeEntry,
  decodeReplay,
  decodeRequest,
  decodeResend,
  messageJson,
  requestOf
} from "../../api/messageRequests.ts"
import { rawMember } from "../../api/rawJson.ts"
import { knownChannel } from "../destinations/knownChannel.ts"
import { admitMessages, keysIn } from "../orgs/admit.ts"
import { troubleJson } from "../processes/troublesApi.ts"
import { Api } from "../server/Api.ts"
import { ActingOrg, Caller, oneOrAll } from "../server/auth.ts"
import { answerBatch } from "../server/batches.ts"
import { noteBodyRead } from "../server/bodyReads.ts"
import { pieceOfBytes } from "../server/door.ts"
import { HISTORY_LIMIT } from "../server/fields.ts"
import { type Page, type PageQuery, pageOf, partOf, projectedPageOf } from "../server/listPages.ts"
import { answer, created, idOf, lacking, toResponse } from "../server/problem.ts"
import {
  decoded,
  decoderOf,
  limits,
  readJson,
  readOptionalJson,
  readReason,
  traceparentOf
} from "../server/requestBody.ts"
import { asReader } from "../server/underWay.ts"
import { explanationJson } from "./explanationJson.ts"
import { attemptJson, eventJson, factJson } from "./messageJson.ts"
import { Attempt, Event, Message, StreamFact } from "./messagesApi.ts"

/** The entries are decoded one by one, so that each can be refused on its own. */
const decodeBatch = decoderOf(
  Schema.Struct({ messages: Schema.Array(Schema.Unknown).check(Schema.isMinLength(1), Schema.isMaxLength(BATCH_MAX)) })
)

const send = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, key: string | null) {
  const orgId = yield* ActingOrg
  const json = yield* readJson(request, limits.single)
  yield* admitMessages(orgId, json.text.length, [key])
  const decodedRequest = yield* Effect.tapError(decoded(decodeRequest, json), () => rejected(1))
  // Decoding has shown that the member is there.
  const body = rawMember(json.text, "payloadJson")!
  const [acceptance] = yield* acceptMessages(orgId, [
    { ...requestOf(decodedRequest, body, key), traceparent: traceparentOf(request) }
  ])
  return acceptedAs(acceptance!)
})

const acceptedAs = (acceptance: Acceptance) => {
  const { status, message, problem } = answerTo(acceptance)
  return message === undefined ? toResponse(problem) : created(`/outbound/messages/${message.id}`, message, status)
}

const resend = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  id: string,
  idempotencyKey: string | null
) {
  const orgId = yield* ActingOrg
  const json = yield* readOptionalJson(request, limits.single)
  yield* admitMessages(orgId, json.text.length, [idempotencyKey])
  const { to = null } = yield* decoded(decodeResend, json)
  const body = rawMember(json.text, "payloadJson")
  return acceptedAs(yield* resendMessage(orgId, yield* messageIdOf(id), { to, body, idempotencyKey }))
})

/** It may hold what nobody else may see: no cache keeps it. */
const body = Effect.fnUntraced(function* (id: string) {
  const orgId = yield* ActingOrg
  const text = yield* readBody(orgId, yield* messageIdOf(id))
  yield* noteBodyRead("message", id)
  yield* pieceOfBytes(orgId, text.length)
  return HttpServerResponse.text(text, { contentType: "application/json", headers: { "cache-control": "no-store" } })
})

/** A request that does not decode never meets `acceptMessages`, which counts what it refuses itself. */
const rejected = Effect.fnUntraced(function* (count: number) {
  const telemetry = yield* Telemetry
  const via = yield* Via
  for (let i = 0; i < count; i++) telemetry.rejected(via, "invalid")
})

const sendBatch = (request: HttpServerRequest.HttpServerRequest) =>
  answerBatch(request, {
    name: "messages",
    decodeBody: decodeBatch,
    admit: (orgId, bytes, messages) => admitMessages(orgId, bytes, keysIn(messages)),
    decode: ({ text, value }, path) =>
      Result.map(decodeEntry(value, path), ({ idempotencyKey, ...fields }) => ({
        // Decoding has shown that the member is there.
        ...requestOf(fields, rawMember(text, "payloadJson")!, idempotencyKey ?? null),
        traceparent: traceparentOf(request)
      })),
    undecoded: rejected,
    accept: acceptMessages,
    answerTo
  })

interface ListQuery extends PageQuery, Omit<MessageFilter, "metadata"> {
  /** `name=value` */
  readonly metadata?: string
}

const list = Effect.fnUntraced(function* ({ limit, cursor, metadata, ...rest }: ListQuery) {
  yield* knownChannel(rest.channel)
  const filter: MessageFilter = { ...rest, ...(metadata !== undefined && { metadata: entryOf(metadata) }) }
  const { list } = yield* MessageViews
  const read = (orgId: OrgId, page: Page) => list(oneOrAll(orgId), filter, page)
  return yield* projectedPageOf("messages", "messages", { limit, cursor }, read, { of: Message, json: messageJson })
})

const entryOf = (text: string) => {
  const end = text.indexOf("=")
  return { name: text.slice(0, end), value: text.slice(end + 1) }
}

const troublesNow = Effect.flatMap(Troubles, ({ now }) => Effect.map(now, (all) => all.map(troubleJson)))

const stats = Effect.fnUntraced(function* () {
  const orgId = oneOrAll(yield* ActingOrg)
  const freshness = yield* (yield* Freshness).of("messages")
  const counts = yield* (yield* MessageViews).stats(orgId)
  return { ...counts, receipts: yield* (yield* ReceiptInbox).count(orgId), ...freshness, troubles: yield* troublesNow }
})

const messageIdOf = idOf(MessageId)

const cancel = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, id: string) {
  const reason = yield* readReason(request)
  return messageJson(yield* commandMessage(yield* ActingOrg, yield* messageIdOf(id), "CancelMessage", reason))
})

const retryNow = Effect.fnUntraced(function* (id: string) {
  return messageJson(yield* hurryMessage(yield* ActingOrg, yield* messageIdOf(id)))
})

const dismiss = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, id: string) {
  const reason = yield* readReason(request)
  return messageJson(yield* commandMessage(yield* ActingOrg, yield* messageIdOf(id), "DismissMessage", reason))
})

const replay = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, id: string) {
  const orgId = yield* ActingOrg
  const json = yield* readOptionalJson(request, limits.single)
  const { reason = null } = yield* decoded(decodeReplay, json)
  const body = rawMember(json.text, "payloadJson")
  const messageId = yield* messageIdOf(id)
  return messageJson(
    body === null
      ? yield* commandMessage(orgId, messageId, "ReplayMessage", reason)
      : yield* replayEdited(orgId, messageId, body, reason)
  )
})

const erase = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, id: string) {
  const reason = yield* readReason(request)
  return messageJson(yield* eraseMessage(yield* ActingOrg, yield* messageIdOf(id), reason))
})

const get = Effect.fnUntraced(function* (id: string, at: DateTime.Utc | null) {
  return messageJson(yield* readMessage(yield* ActingOrg, yield* messageIdOf(id), at))
})

const explanation = Effect.fnUntraced(function* (id: string, at: DateTime.Utc | null) {
  const explained = explanationJson(yield* explainMessage(yield* ActingOrg, yield* messageIdOf(id), at))
  return { ...explained, troubles: at === null ? yield* troublesNow : [] }
})

const events = Effect.fnUntraced(function* (id: string, query: PageQuery) {
  const message = yield* messageIdOf(id)
  const read = (orgId: OrgId, page: Page) => Effect.map(readEvents(orgId, message), (all) => partOf(all, page))
  return yield* pageOf(`events of ${message}`, { limit: HISTORY_LIMIT, ...query }, read, { of: Event, json: eventJson })
})

const attempts = Effect.fnUntraced(function* (id: string, query: PageQuery) {
  const { may } = yield* Caller
  const message = yield* messageIdOf(id)
  const read = (orgId: OrgId, page: Page) => readAttempts(orgId, message, page)
  return yield* pageOf(`attempts of ${message}`, { limit: HISTORY_LIMIT, ...query }, read, {
    of: Attempt,
    json: (attempt) => attemptJson(may("bodies:read") ? attempt : { ...attempt, answer: null })
  })
})

const stream = Effect.fnUntraced(function* (name: string, query: PageQuery) {
  const { may } = yield* Caller
  const read = Effect.fnUntraced(function* (orgId: OrgId, page: Page) {
    const facts = yield* readStream(orgId, name, page)
    const guard = facts.items.map((fact) => scopeOfFact(fact.name)).find((scope) => !may(scope))
    return guard === undefined ? facts : yield* lacking(guard)
  })
  return yield* pageOf(`stream ${name}`, { limit: HISTORY_LIMIT, ...query }, read, { of: StreamFact, json: factJson })
})

export const layer = HttpApiBuilder.group(Api, "messages", (handlers) =>
  handlers
    .handleRaw("send", ({ request, headers }) => answer(send(request, headers["idempotency-key"] ?? null)))
    .handleRaw("sendBatch", ({ request }) => answer(sendBatch(request)))
    .handle("list", ({ query }) => answer(list(query)))
    .handle("get", ({ params, query }) => answer(get(params.id, query.at ?? null)))
    .handle("explanation", ({ params, query }) => answer(explanation(params.id, query.at ?? null)))
    .handle("events", ({ params, query }) => answer(events(params.id, query)))
    .handle("attempts", ({ params, query }) => answer(attempts(params.id, query)))
    .handleRaw("cancel", ({ request, params }) => answer(cancel(request, params.id)))
    .handleRaw("replay", ({ request, params }) => answer(replay(request, params.id)))
    .handle("retryNow", ({ params }) => answer(retryNow(params.id)))
    .handleRaw("dismiss", ({ request, params }) => answer(dismiss(request, params.id)))
    .handleRaw("resend", ({ request, params, headers }) =>
      answer(resend(request, params.id, headers["idempotency-key"] ?? null))
    )
    .handleRaw("body", ({ params }) => answer(body(params.id)))
    .handleRaw("erase", ({ request, params }) => answer(erase(request, params.id)))
    .handle("stats", () => answer(asReader(stats())))
    .handle("stream", ({ params, query }) => answer(stream(params.stream, query)))
)
