/**
 * Reads the queue of commands in batches: decode, execute in order, publish refused ones to the rejected queue, reply,
 * ack. After a crash commands come again and their keys make them the same; the rejected queue may hold one twice.
 */
import { Duration, Effect, Result, Schema } from "effect"
import type { Envelope } from "rabbitmq-client"
import { untilAnswered as untilStoreAnswers } from "../../application/background.ts"
import { CommandInbox, type RefusedCommand } from "../../application/ports/CommandInbox.ts"
import type { Fault, StoreUnavailable } from "../../application/ports/errors.ts"
import { OrgId } from "../../domain/ids.ts"
import { type Answer, type Command, commandTypes, isCommandType, obeyAll } from "../api/commands.ts"
import { isJson, jsonOf, SIZE_MAX, textOf } from "../api/jsonText.ts"
import { IdempotencyKey, keyRule } from "../api/messageRequests.ts"
import { invalidFields, type Problem, type ProblemBody, tooLarge, unsupportedMediaType } from "../api/problem.ts"
import type { Link } from "./client/connect.ts"
import { type Publisher, publisher } from "./client/publisher.ts"
import { type Deliveries, type Delivery, deliveriesOf } from "./deliveries.ts"
import { COMMANDS, REJECTED } from "./topology.ts"

/** Bounds memory: the broker allows messages of many megabytes. */
const WINDOW = { count: 512, bytes: 64 * 1024 * 1024 }
const AT_ONCE = 256
const WAY = "amqp"

class NotRejected extends Schema.TaggedError<NotRejected>()("NotRejected", { reason: Schema.String }) {
  override get message(): string {
    return `the queue ${REJECTED} has not taken a command (${this.reason})`
  }
}

export const consumeCommands = Effect.fnUntraced(function* (links: {
  readonly receiving: Link
  readonly publishing: Link
}) {
  const outlet = yield* publisher(links.publishing)
  // Waits for the store before commands are delivered: the broker moves away commands returned too often.
  yield* untilAnswered((yield* CommandInbox).unpublished(1))
  const deliveries = yield* deliveriesOf(links.receiving, COMMANDS, WINDOW)
  return yield* Effect.raceFirst(readQueue(deliveries, outlet), publishRefused(outlet))
})

const readQueue = Effect.fnUntraced(function* (deliveries: Deliveries, outlet: Publisher) {
  for (;;) {
    const arrived = yield* deliveries.take(AT_ONCE)
    const answers = yield* answersTo(arrived)
    yield* Effect.forEach(
      answers.entries(),
      ([n, answer]) => (answer.type === "Refused" ? reject(outlet, arrived[n]!, answer.problem) : Effect.void),
      { concurrency: "unbounded", discard: true }
    )
    yield* Effect.forEach(answers.entries(), ([n, answer]) => reply(outlet, arrived[n]!, answer), {
      concurrency: "unbounded",
      discard: true
    })
    yield* deliveries.acknowledge(arrived.at(-1)!)
  }
})

const LOOK_EVERY = Duration.seconds(1)
const REFUSED_AT_ONCE = 100

/** Refused SQL commands go to the rejected queue too. */
const publishRefused = Effect.fnUntraced(function* (outlet: Publisher) {
  const { unpublished, markPublished } = yield* CommandInbox
  for (;;) {
    const refused = yield* untilAnswered(unpublished(REFUSED_AT_ONCE))
    const published = yield* outlet.publishAll(refused.map(asRejected))
    const failed = published.find(({ type }) => type !== "Confirmed")
    if (failed !== undefined) return yield* new NotRejected({ reason: failed.type })
    if (refused.length > 0) yield* untilAnswered(markPublished(refused.map(({ id }) => id)))
    if (refused.length < REFUSED_AT_ONCE) yield* Effect.sleep(LOOK_EVERY)
  }
})

const asRejected = ({ id, orgId, type, key, request, problem }: RefusedCommand) =>
  [
    {
      routingKey: REJECTED,
      mandatory: true,
      messageId: key ?? id,
      type,
      contentType: "application/json",
      headers: { [ORG_HEADER]: orgId, "x-problem": documentOf(JSON.parse(problem)) }
    },
    Buffer.from(request)
  ] as const

const answersTo = Effect.fnUntraced(function* (arrived: ReadonlyArray<Delivery>) {
  const read = arrived.map(commandOf)
  const commands = read.flatMap((one) => (Result.isSuccess(one) ? [one.success] : []))
  const obeyed = yield* untilAnswered(obeyAll(WAY, commands))
  let next = 0
  return read.map(
    (one): Answer => (Result.isSuccess(one) ? obeyed[next++]! : { type: "Refused", problem: one.failure })
  )
})

/** The commands are safe in their queue. */
const untilAnswered = <A, R>(call: Effect.Effect<A, StoreUnavailable, R>) =>
  untilStoreAnswers("obeying commands from RabbitMQ", call)

/** Body and properties stay as they were. */
const reject = Effect.fnUntraced(function* (outlet: Publisher, delivery: Delivery, problem: Problem) {
  const { type, contentType, contentEncoding, messageId, correlationId, replyTo, timestamp, appId, priority } = delivery
  const published = yield* outlet.publish(
    {
      ...given({ type, contentType, contentEncoding, correlationId, replyTo, timestamp, appId, priority }),
      messageId: messageId ?? "",
      routingKey: REJECTED,
      mandatory: true,
      headers: { ...plain(delivery.headers ?? {}), "x-problem": documentOf(problem.body) }
    },
    delivery.body
  )
  // It stays in the queue and is read again over new connections.
  if (published.type !== "Confirmed") return yield* new NotRejected({ reason: published.type })
})

const given = (properties: { readonly [Name in keyof Envelope]?: Envelope[Name] | undefined }): Partial<Envelope> =>
  Object.fromEntries(Object.entries(properties).filter(([, value]) => value !== undefined))

const HEADERS_MAX = 64 * 1024

/** Header types that the client can write, within a frame. */
const plain = (headers: Readonly<Record<string, unknown>>) => {
  const kept = Object.entries(headers).filter(([, value]) => ["string", "number", "boolean"].includes(typeof value))
  return JSON.stringify(kept).length > HEADERS_MAX ? {} : Object.fromEntries(kept)
}

const PROBLEM_MAX = 16 * 1024
const ERRORS_MAX = 20

const documentOf = (body: ProblemBody): string => {
  const text = JSON.stringify(body)
  if (text.length <= PROBLEM_MAX) return text
  return JSON.stringify({ ...body, detail: body.detail.slice(0, 2_000), errors: body.errors.slice(0, ERRORS_MAX) })
}

const REPLY_WITHIN = Duration.seconds(2)

const reply = (outlet: Publisher, { replyTo, correlationId }: Delivery, answer: Answer) =>
  replyTo === undefined || replyTo === ""
    ? Effect.void
    : outlet
        .publish(
          {
            routingKey: replyTo,
            messageId: answer.type === "Done" ? answer.id : "",
            ...given({ correlationId }),
            contentType: answer.type === "Done" ? "application/json" : "application/problem+json"
          },
          Buffer.from(JSON.stringify(answer.type === "Done" ? answer.body : answer.problem.body))
        )
        .pipe(Effect.timeoutOption(REPLY_WITHIN))

export const ORG_HEADER = "x-org-id"

const isOrgId = Schema.is(OrgId)
const isKey = Schema.is(IdempotencyKey)
/** Some clients put the charset here. */
const isPlain = (encoding: string | undefined) => encoding === undefined || /^(identity|utf-?8)?$/i.test(encoding)

export const commandOf = (delivery: Delivery): Result.Result<Command, Problem> => {
  const { type = "", contentType, contentEncoding, messageId = "", headers, body } = delivery
  if (body.length > SIZE_MAX) return Result.fail(tooLarge(SIZE_MAX))
  if (contentType !== undefined && contentType !== "" && !isJson(contentType)) {
    return Result.fail(unsupportedMediaType("Send the body with the content type application/json."))
  }
  if (!isPlain(contentEncoding)) return Result.fail(unsupportedMediaType("Send the body without content-encoding."))
  const orgId: unknown = headers?.[ORG_HEADER]
  const faults: Array<Fault> = []
  if (!isCommandType(type)) faults.push({ field: "type", reason: `must be one of ${commandTypes.join(", ")}` })
  if (!isOrgId(orgId)) {
    const rule = "must be 1 to 64 letters, digits, dots, dashes or underscores"
    faults.push({ field: ORG_HEADER, reason: orgId == null ? "is required" : rule })
  }
  // Without a key a redelivery could not be told from another command.
  if (!isKey(messageId)) {
    const reason = messageId === "" ? "is required: it is the idempotency key" : keyRule
    faults.push({ field: "messageId", reason })
  }
  if (faults.length > 0 || !isCommandType(type) || !isOrgId(orgId)) return Result.fail(invalidFields(faults))
  return Result.flatMap(textOf(body), jsonOf).pipe(
    Result.map((json): Command => {
      const traceparent: unknown = headers?.["traceparent"]
      return { type, orgId, key: messageId, json, ...(typeof traceparent === "string" && { traceparent }) }
    })
  )
}
