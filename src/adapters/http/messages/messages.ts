/** The resource of messages: endpoints and handlers. */
import { type DateTime, Effect, Result, Schema, SchemaTransformation } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { type Acceptance, acceptMessages } from "../../../application/accept/acceptMessage.ts"
import { Freshness } from "../../../application/log/Freshness.ts"
import { commandMessage, eraseMessage, replayEdited } from "../../../application/messages/commandMessage.ts"
import { explainMessage } from "../../../application/messages/explainMessage.ts"
import { hurryMessage } from "../../../application/messages/hurryMessage.ts"
import { listMessages } from "../../../application/messages/listMessages.ts"
import { readAttempts } from "../../../application/messages/readAttempts.ts"
import { readEvents, readMessage } from "../../../application/messages/readMessage.ts"
import { readStream } from "../../../application/messages/readStream.ts"
import { readBody, resendMessage } from "../../../application/messages/resendMessage.ts"
import { text } from "../../../application/ports/fields.ts"
import { type MessageFilter, MessageViews } from "../../../application/ports/MessageViews.ts"
import { ReceiptInbox } from "../../../application/ports/ReceiptInbox.ts"
import { scopeOfFact } from "../../../application/ports/scopes.ts"
import { Telemetry } from "../../../application/ports/Telemetry.ts"
import { Troubles } from "../../../application/processes/Troubles.ts"
import { Via } from "../../../application/via.ts"
import { MessageId, type OrgId } from "../../../domain/ids.ts"
import {
  answerTo,
  BATCH_MAX,
  BatchEntry,
  batchExamples,
  CommandRequest,
  decodeEntry,
  decodeReplay,
  decodeRequest,
  decodeResend,
  FoundKey,
  IdempotencyKey,
  MessageRequest,
  messageJson,
  ofKey,
  ReplayCommand,
  ResendCommand,
  requestOf
} from "../../api/messageRequests.ts"
import { rawMember } from "../../api/rawJson.ts"
import { admitMessages, keysIn } from "../orgs/admit.ts"
import { troubleJson } from "../processes/troublesApi.ts"
import { ActingOrg, Caller, OrgAccess, oneOrAll } from "../server/auth.ts"
import { answerBatch } from "../server/batches.ts"
import { noteBodyRead } from "../server/bodyReads.ts"
import { about, base, bodyErrors, byId, ofAllOrgs, titled } from "../server/endpoints.ts"
import {
  createdBetween,
  filters,
  HISTORY_LIMIT,
  historyPaging,
  idParam,
  listOf,
  maybe,
  maybeTime,
  paging,
  projectedListOf
} from "../server/fields.ts"
import { knownChannel } from "../server/knownChannel.ts"
import { asReader, type Page, type PageQuery, pageOf, partOf, projectedPageOf } from "../server/listPages.ts"
import { answer, created, idOf, lacking, problemOf, toResponse } from "../server/problem.ts"
import {
  decoded,
  decoderOf,
  limits,
  readJson,
  readOptionalJson,
  readReason,
  traceparentOf
} from "../server/requestBody.ts"
import {
  Attempt,
  attemptJson,
  BatchAnswer,
  Event,
  Explanation,
  eventJson,
  explanationJson,
  factJson,
  Message,
  Stats,
  Status,
  StreamFact
} from "./messageJson.ts"

const asOf = { at: maybeTime("As it was known at this time; now when left out.") }

/** `name=value`. */
const MetadataEntry = text(1_101).check(
  Schema.isPattern(/^[^=]+=/u, { message: "must be one entry, as in metadata=order%3D4711" })
)

const Attempts = Schema.String.check(
  Schema.isPattern(/^[1-9]\d{0,3}$/, {
    message: "must be a whole number from 1 to 9999",
    toJsonSchema: () => ({ minimum: 1, maximum: 9999 })
  })
)
  .annotate({ description: "Only those with at least so many attempts in their present epoch." })
  .pipe(Schema.decodeTo(Schema.Number, SchemaTransformation.numberFromString))

const commanded = {
  params: idParam,
  payload: CommandRequest,
  success: Message,
  error: [problemOf(404), problemOf(409), ...bodyErrors]
}

export const messagesApi = HttpApiGroup.make("messages")
  .add(
    HttpApiEndpoint.post("send", "/outbound/messages", {
      headers: Schema.Struct({ "idempotency-key": maybe(IdempotencyKey, ofKey) }),
      payload: MessageRequest,
      success: [Message.pipe(HttpApiSchema.status(201)), Message.pipe(HttpApiSchema.status(200))],
      error: [problemOf(409), ...bodyErrors]
    }).annotateMerge(
      about(
        "messages:send",
        "Send a message. 201 when it is stored; 200 with the same message when the key was used for it before."
      )
    ),
    HttpApiEndpoint.post("sendBatch", "/outbound/messages/batch", {
      payload: Schema.Struct({
        messages: Schema.Array(BatchEntry)
          .check(Schema.isMinLength(1), Schema.isMaxLength(BATCH_MAX))
          .annotate({ description: "Each is accepted or refused on its own." })
      }).annotate({ identifier: "MessageBatch", examples: [{ messages: batchExamples }] }),
      success: Schema.Struct({ items: Schema.Array(BatchAnswer) }).annotate({ identifier: "MessageBatchAnswer" }),
      error: bodyErrors
    }).annotateMerge(about("messages:send", "Send up to 1,000 messages, each answered on its own and in its place.")),
    HttpApiEndpoint.get("list", "/outbound/messages", {
      query: {
        ...paging,
        ...filters,
        ...createdBetween,
        status: maybe(Status, "Only those in this status."),
        updatedAfter: maybeTime("Only those that changed at this time or later."),
        idempotencyKey: maybe(FoundKey, "The one that was sent with this idempotency key."),
        metadata: maybe(MetadataEntry, "Only those with this entry of metadata, such as order=4711."),
        errorCode: maybe(text(256), "Of dead letters: the code of the last error, such as http_410."),
        attempts: Schema.optionalKey(Attempts)
      },
      success: projectedListOf(Message)
    })
      .annotateMerge(
        about("messages:read", "List messages, newest first. Read from a projection: asOf says how far it is.")
      )
      .annotateMerge(ofAllOrgs),
    HttpApiEndpoint.get("get", "/outbound/messages/:id", { ...byId, query: asOf, success: Message }).annotateMerge(
      about("messages:read", "One message, folded from its facts: always current, or as it was at a time.")
    ),
    HttpApiEndpoint.get("explanation", "/outbound/messages/:id/explanation", {
      ...byId,
      query: asOf,
      success: Explanation
    }).annotateMerge(
      about("messages:read", "Where a message is, why, and what comes next: now, or as it was known at a time.")
    ),
    HttpApiEndpoint.get("events", "/outbound/messages/:id/events", {
      ...byId,
      query: historyPaging,
      success: listOf(Event)
    }).annotateMerge(about("messages:read", "Every fact of a message, with the status it had after each.")),
    HttpApiEndpoint.get("attempts", "/outbound/messages/:id/attempts", {
      ...byId,
      query: historyPaging,
      success: listOf(Attempt)
    }).annotateMerge(about("messages:read", "Every try to deliver a message, with what the far side answered.")),
    HttpApiEndpoint.post("cancel", "/outbound/messages/:id/cancel", commanded).annotateMerge(
      about("messages:send", "Cancel a message that has not been sent.")
    ),
    HttpApiEndpoint.post("retryNow", "/outbound/messages/:id/retry-now", {
      params: idParam,
      success: Message,
      error: [problemOf(404), problemOf(409)]
    }).annotateMerge(
      about(
        "replays:write",
        "Make a message due now that waits for a retry or for its time. A pause, a circuit and a rate limit stay."
      )
    ),
    HttpApiEndpoint.post("replay", "/outbound/messages/:id/replay", {
      ...commanded,
      payload: ReplayCommand
    }).annotateMerge(
      about(
        "replays:write",
        "Send a message again that ended in FAILED or DEAD_LETTER, as it was or with another body."
      )
    ),
    HttpApiEndpoint.post("dismiss", "/outbound/messages/:id/dismiss", commanded).annotateMerge(
      about(
        "replays:write",
        "Take a dead letter from the list of those that want somebody. It stays, and can still be replayed."
      )
    ),
    HttpApiEndpoint.post("resend", "/outbound/messages/:id/resend", {
      params: idParam,
      headers: { "idempotency-key": maybe(IdempotencyKey, ofKey) },
      payload: ResendCommand,
      success: [Message.pipe(HttpApiSchema.status(201)), Message.pipe(HttpApiSchema.status(200))],
      error: [problemOf(404), problemOf(409), problemOf(410), ...bodyErrors]
    }).annotateMerge(
      about(
        "replays:write",
        "Send any message again as a new one that names it, whatever became of it, perhaps to another destination."
      )
    ),
    HttpApiEndpoint.post("erase", "/outbound/messages/:id/erase", commanded).annotateMerge(
      about(
        "erasures:write",
        "Erase a message's body and the answers to it at once. Its facts stay; what was not sent is never sent."
      )
    ),
    HttpApiEndpoint.get("body", "/outbound/messages/:id/body", {
      ...byId,
      success: Schema.Unknown,
      error: [problemOf(404), problemOf(410)]
    }).annotateMerge(
      about("bodies:read", "The body of a message, byte for byte as it is delivered. 410 when it was erased.")
    ),
    HttpApiEndpoint.get("stats", "/outbound/stats", { success: Stats })
      .annotateMerge(
        about(
          "messages:read",
          "How many messages are in each status, per channel too, and since when the longest overdue one waits."
        )
      )
      .annotateMerge(ofAllOrgs),
    HttpApiEndpoint.get("stream", "/streams/:stream", {
      params: { stream: Schema.String.annotateKey({ description: "Such as message-<id>." }) },
      query: historyPaging,
      success: listOf(StreamFact),
      error: problemOf(404)
    }).annotateMerge(
      about(
        "messages:read",
        "The stored facts of a stream, such as message-<id>, circuit-<destination> or replay-<id>, as they were written. What is not about messages needs the scope that guards it too, such as endpoints:read for a circuit."
      )
    )
  )
  .middleware(OrgAccess)
  .prefix("/api/v1")
  .annotateMerge(titled("Messages", "One message to one destination: send it, follow it, cancel it, replay it."))

/** Entries are decoded one by one, so that each can be refused on its own. */
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

/** A key without `messages:send` may send neither new text nor to another destination. */
export const maySend = Effect.gen(function* () {
  const { may } = yield* Caller
  if (!may("messages:send")) yield* lacking("messages:send")
})

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
  if (to !== null || body !== null) yield* maySend
  return acceptedAs(yield* resendMessage(orgId, yield* messageIdOf(id), { to, body, idempotencyKey }))
})

/** No cache keeps a body. */
const body = Effect.fnUntraced(function* (id: string) {
  const orgId = yield* ActingOrg
  const text = yield* readBody(orgId, yield* messageIdOf(id))
  yield* noteBodyRead("message", id)
  return HttpServerResponse.text(text, { contentType: "application/json", headers: { "cache-control": "no-store" } })
})

/** Counts requests that never reach `acceptMessages`, which counts its own refusals. */
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
  const read = (orgId: OrgId, page: Page) => listMessages(oneOrAll(orgId), filter, page)
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

const command = (type: "CancelMessage" | "DismissMessage") =>
  Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, id: string) {
    const reason = yield* readReason(request)
    return messageJson(yield* commandMessage(yield* ActingOrg, yield* messageIdOf(id), type, reason))
  })

const cancel = command("CancelMessage")
const dismiss = command("DismissMessage")

const retryNow = Effect.fnUntraced(function* (id: string) {
  return messageJson(yield* hurryMessage(yield* ActingOrg, yield* messageIdOf(id)))
})

const replay = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, id: string) {
  const orgId = yield* ActingOrg
  const json = yield* readOptionalJson(request, limits.single)
  const { reason = null } = yield* decoded(decodeReplay, json)
  const body = rawMember(json.text, "payloadJson")
  if (body !== null) yield* maySend
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

export const layer = HttpApiBuilder.group(base.add(messagesApi), "messages", (handlers) =>
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
