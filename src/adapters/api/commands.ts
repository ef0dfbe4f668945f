/**
 * Commands without a connection to answer on: from a broker's queue, or from a caller's transaction. Each is decoded by
 * the shapes of the HTTP API and decided on its own, in its place; the messages of an org, and the commands to one
 * message, keep their order.
 *
 * A command may come again, after a crash or a lost acknowledgement, and is obeyed once: a message is accepted once
 * under its key or id, a cancellation or replay leaves its key with its fact.
 *
 * A store that does not answer refuses no command: it fails for all, to be brought again.
 */
import { Effect, Result, Schema } from "effect"
import { type MessageRequest as AcceptedRequest, acceptMessages } from "../../application/accept/acceptMessage.ts"
import { storePauses } from "../../application/command.ts"
import { CommandedBy } from "../../application/commandedBy.ts"
import { type EventRequest as PublishedRequest, publishEvents } from "../../application/events/publishEvents.ts"
import {
  commandMessage,
  type MessageBusy,
  obeyedBefore,
  type PlainCommand,
  replayEdited
} from "../../application/messages/commandMessage.ts"
import { MessageNotFound } from "../../application/messages/readMessage.ts"
import type { Fault } from "../../application/ports/errors.ts"
import { Telemetry } from "../../application/ports/Telemetry.ts"
import { Via } from "../../application/via.ts"
import { EventId, isUuid, MessageId, type OrgId } from "../../domain/ids.ts"
import { type Decode, decoderOf } from "./decoding.ts"
import { answerToEvent, decodeEvent, eventRequestOf } from "./eventRequests.ts"
import type { JsonText } from "./jsonText.ts"
import { answerTo, CommandRequest, decodeRequest, messageJson, ReplayCommand, requestOf } from "./messageRequests.ts"
import { internal, invalidFields, type Problem, problemFor } from "./problem.ts"
import { rawMember } from "./rawJson.ts"

export const commandTypes = ["SendMessage", "CancelMessage", "ReplayMessage", "PublishEvent"] as const
type CommandType = (typeof commandTypes)[number]

export const isCommandType = (type: string): type is CommandType => commandTypes.some((known) => known === type)

export interface Command {
  readonly type: CommandType
  readonly orgId: OrgId
  /** Names the command within its org; null only where an id does. */
  readonly key: string | null
  /** The id promised to its message or event. */
  readonly id?: string
  readonly json: JsonText
  /** The caller's trace (W3C). */
  readonly traceparent?: string
}

export type Answer =
  /** `body`: the HTTP API's answer. */
  | { readonly type: "Done"; readonly id: string; readonly body: object }
  | { readonly type: "Refused"; readonly problem: Problem }

const decodeCancel = decoderOf(Schema.Struct({ id: Schema.String, ...CommandRequest.fields }))
const decodeReplay = decoderOf(Schema.Struct({ id: Schema.String, ...ReplayCommand.fields }))

/** A decoded command; neighbours of one kind are decided together. */
type Task = { readonly index: number; readonly orgId: OrgId } & (
  | { readonly kind: "send"; readonly request: AcceptedRequest }
  | { readonly kind: "publish"; readonly request: PublishedRequest }
  | {
      readonly kind: "command"
      readonly key: string | null
      readonly id: string
      readonly type: PlainCommand
      readonly reason: string | null
      /** The edited body. */
      readonly body: string | null
    }
)

type TaskOf<Kind> = Extract<Task, { readonly kind: Kind }>

/** Answers in the order of the commands. `way` stands in their facts' actor. */
export const obeyCommands = Effect.fnUntraced(function* (way: string, commands: ReadonlyArray<Command>) {
  const answers = new Array<Answer>(commands.length)
  const answerWith = ([index, answer]: readonly [number, Answer]) => {
    answers[index] = answer
  }
  const stretches: Array<Array<Task>> = []
  for (const [index, command] of commands.entries()) {
    const task = taskOf(command, index)
    if (Result.isFailure(task)) {
      answers[index] = { type: "Refused", problem: invalidFields(task.failure) }
      if (command.type === "SendMessage") (yield* Telemetry).rejected(way, "invalid")
      continue
    }
    const last = stretches.at(-1)
    if (last !== undefined && last[0]!.kind === task.success.kind) last.push(task.success)
    else stretches.push([task.success])
  }
  for (const stretch of stretches) {
    const found = yield* decide(way, stretch)
    found.forEach(answerWith)
  }
  return answers as ReadonlyArray<Answer>
})

/** A stretch is of one kind. */
const decide = (way: string, stretch: ReadonlyArray<Task>) => {
  switch (stretch[0]!.kind) {
    case "send":
      return send(way, stretch as ReadonlyArray<TaskOf<"send">>)
    case "publish":
      return publish(way, stretch as ReadonlyArray<TaskOf<"publish">>)
    case "command":
      return command(way, stretch as ReadonlyArray<TaskOf<"command">>)
  }
}

/**
 * As `obeyCommands`; after a bug each command is tried alone, and the one that shows it is refused. A message that
 * other writers are changing is tried again.
 */
export const obeyAll = (way: string, commands: ReadonlyArray<Command>) => {
  const together = patiently(obeyCommands(way, commands))
  const alone = Effect.forEach(commands, (command) =>
    patiently(obeyCommands(way, [command])).pipe(
      Effect.map(([answer]) => answer!),
      Effect.catchDefect((defect) =>
        Effect.logError(`a command of ${command.orgId} shows a defect`, defect).pipe(
          Effect.as<Answer>({ type: "Refused", problem: internal(command.key ?? command.id ?? "") })
        )
      )
    )
  )
  return commands.length === 0 ? Effect.succeed([]) : Effect.catchDefect(together, () => alone)
}

const patiently = <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E | MessageBusy, R>) =>
  effect.pipe(
    Effect.retry({ schedule: storePauses, while: ({ _tag }) => _tag === "MessageBusy" }),
    Effect.catchIf((error): error is MessageBusy => error._tag === "MessageBusy", Effect.die)
  )

const taskOf = (
  { type, orgId, key, id, json, traceparent }: Command,
  index: number
): Result.Result<Task, ReadonlyArray<Fault>> => {
  const decoded = <A>(decode: Decode<A>) => decode(json.value)
  switch (type) {
    case "SendMessage":
      return Result.map(decoded(decodeRequest), (request) => {
        // Decoding has shown that the member is there.
        const body = rawMember(json.text, "payloadJson")!
        return {
          index,
          orgId,
          kind: "send",
          request: {
            ...requestOf(request, body, key),
            ...(id && { id: MessageId.make(id) }),
            ...(traceparent && { traceparent })
          }
        }
      })
    case "PublishEvent":
      return Result.map(decoded(decodeEvent), (event) => {
        const data = rawMember(json.text, "data")!
        const request = {
          ...eventRequestOf(event, data, key),
          ...(id && { id: EventId.make(id) }),
          ...(traceparent && { traceparent })
        }
        return { index, orgId, kind: "publish", request }
      })
    case "CancelMessage":
      return Result.map(decoded(decodeCancel), ({ id, reason = null }) => {
        return { index, orgId, kind: "command", key, id, type, reason, body: null }
      })
    case "ReplayMessage":
      return Result.map(decoded(decodeReplay), ({ id, reason = null }) => {
        return { index, orgId, kind: "command", key, id, type, reason, body: rawMember(json.text, "payloadJson") }
      })
  }
}

/** Sends the messages of each org together, in their order: one append, as far as it can hold them. */
const send = Effect.fnUntraced(function* (way: string, tasks: ReadonlyArray<TaskOf<"send">>) {
  const acceptances = yield* ofEachOrg(way, tasks, acceptMessages)
  return acceptances.map(([index, acceptance]): readonly [number, Answer] => {
    const { message, problem } = answerTo(acceptance)
    return [
      index,
      problem === undefined ? { type: "Done", id: message.id, body: message } : { type: "Refused", problem }
    ]
  })
})

const publish = Effect.fnUntraced(function* (way: string, tasks: ReadonlyArray<TaskOf<"publish">>) {
  const publications = yield* ofEachOrg(way, tasks, publishEvents)
  return publications.map(([index, publication]): readonly [number, Answer] => {
    const { event, problem } = answerToEvent(publication)
    return [index, problem === undefined ? { type: "Done", id: event.id, body: event } : { type: "Refused", problem }]
  })
})

/** `accept` gets all requests of an org, and answers in their order. */
const ofEachOrg = Effect.fnUntraced(function* <Request, Accepted, E, R>(
  way: string,
  tasks: ReadonlyArray<{ readonly index: number; readonly orgId: OrgId; readonly request: Request }>,
  accept: (orgId: OrgId, requests: ReadonlyArray<Request>) => Effect.Effect<ReadonlyArray<Accepted>, E, R>
) {
  const found = yield* Effect.forEach(
    Map.groupBy(tasks, ({ orgId }) => orgId),
    ([orgId, ofOrg]) =>
      Effect.map(
        accept(
          orgId,
          ofOrg.map(({ request }) => request)
        ),
        (accepted) => accepted.map((one, n) => [ofOrg[n]!.index, one] as const)
      ),
    { concurrency: "unbounded" }
  ).pipe(Effect.provideService(CommandedBy, way), Effect.provideService(Via, way))
  return found.flat()
})

/** Commands to different messages run at once; those to one message wait for each other. */
const COMMANDS_AT_ONCE = 16

const command = Effect.fnUntraced(function* (way: string, tasks: ReadonlyArray<TaskOf<"command">>) {
  const found = yield* Effect.forEach(
    Map.groupBy(tasks, ({ id }) => id),
    ([, toOne]) => Effect.forEach(toOne, (task) => commandOne(way, task)),
    { concurrency: COMMANDS_AT_ONCE }
  )
  return found.flat()
})

const commandOne = Effect.fnUntraced(function* (way: string, task: TaskOf<"command">) {
  const { index, orgId, key, id, type, reason, body } = task
  const obeyed = Effect.gen(function* () {
    // A text that is no id is answered like an absent id.
    if (!isUuid(id)) return yield* new MessageNotFound({ id })
    const messageId = MessageId.make(id)
    return (
      (yield* obeyedBefore(orgId, messageId, type)) ??
      (body === null
        ? yield* commandMessage(orgId, messageId, type, reason)
        : yield* replayEdited(orgId, messageId, body, reason))
    )
  })
  const answer = yield* obeyed.pipe(
    Effect.provideService(CommandedBy, key === null ? way : `${way}:${key}`),
    Effect.map((view): Answer => ({ type: "Done", id: view.id, body: messageJson(view) })),
    Effect.catchTags({
      MessageNotFound: (failure) => Effect.succeed<Answer>({ type: "Refused", problem: problemFor(failure) }),
      MessageParked: (failure) => Effect.succeed<Answer>({ type: "Refused", problem: problemFor(failure) }),
      CommandRefused: (failure) => Effect.succeed<Answer>({ type: "Refused", problem: problemFor(failure) })
    })
  )
  return [index, answer] as const
})
