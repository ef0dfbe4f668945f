/**
 * Cancels, dismisses or replays a message, or erases its body. On `StoreUnavailable` the message shows whether the
 * command took effect.
 */
import { DateTime, Effect, Result, Schema } from "effect"
import type { MessageId, OrgId } from "../../domain/ids.ts"
import { decide, type MessageCommand, mayBeReopened, replay } from "../../domain/message/decider.ts"
import type { MessageQueued } from "../../domain/message/facts.ts"
import type { Message } from "../../domain/message/transitions.ts"
import { viewOf } from "../../domain/message/view.ts"
import { appendFreely, command } from "../command.ts"
import { CommandedBy } from "../commandedBy.ts"
import { entryOf } from "../entry.ts"
import { Bodies } from "../ports/Bodies.ts"
import { Telemetry } from "../ports/Telemetry.ts"
import { loadStream } from "./readMessage.ts"

const callerCommands = ["HurryMessage", "CancelMessage", "ReplayMessage", "DismissMessage"] as const
export type CallerCommand = (typeof callerCommands)[number]

type CommandAt = (now: DateTime.Utc) => MessageCommand

export class CommandRefused extends Schema.TaggedError<CommandRefused>()("CommandRefused", {
  status: Schema.String,
  allowed: Schema.Array(Schema.Literals(callerCommands)),
  wasReplayedOften: Schema.Boolean
}) {}

/** Other writers changed the message at every try. Nothing was done; asking again will help. */
export class MessageBusy extends Schema.TaggedError<MessageBusy>()("MessageBusy", { id: Schema.String }) {}

/** The commands whose fact changes the queue by itself; hurryMessage.ts has the other one. */
export type PlainCommand = Exclude<CallerCommand, "HurryMessage">

export const commandMessage = (orgId: OrgId, id: MessageId, type: PlainCommand, reason: string | null) =>
  decideFor(orgId, id, (now) => ({ type, now, reason }), null)

/**
 * The fact of each command. A repeated command with its own name as actor (`amqp:<key>`) is found by it and does
 * nothing.
 */
const leaves = {
  CancelMessage: "MessageCancelled",
  ReplayMessage: "MessageReplayed",
  DismissMessage: "MessageDismissed"
} as const

export const obeyedBefore = Effect.fnUntraced(function* (orgId: OrgId, id: MessageId, type: PlainCommand) {
  const actor = yield* CommandedBy
  const { facts } = yield* loadStream(orgId, id)
  const isThere = facts.some((stored) => stored.actor === actor && stored.fact.type === leaves[type])
  return isThere ? viewOf(id, facts)! : null
})

/** Like `ReplayMessage`, with another body. The old body is not kept; a fact tells of the edit. */
export const replayEdited = (orgId: OrgId, id: MessageId, body: string, reason: string | null) =>
  decideFor(orgId, id, (now) => ({ type: "ReplayMessage", now, reason, edited: true }), body)

/**
 * Removes body and answers; a fact says so. A waiting message is refused at its next attempt. The texts go first: after
 * a crash more is gone than the history says. They go again after the fact, because an answer may have been written
 * before it; later, none is (deliver.ts).
 */
export const eraseMessage = Effect.fnUntraced(function* (orgId: OrgId, id: MessageId, reason: string | null) {
  const bodies = yield* Bodies
  yield* loadStream(orgId, id)
  yield* bodies.erase(id)
  const view = yield* decideFor(orgId, id, () => ({ type: "EraseBody", reason }), null)
  yield* bodies.erase(id)
  return view
})

const TRIES = 6

const decideFor = (orgId: OrgId, id: MessageId, commandAt: CommandAt, body: string | null) =>
  command(
    {
      load: loadStream(orgId, id),
      decide: Effect.fnUntraced(function* ({ version, facts: history }) {
        const message = replay(history.map(({ fact }) => fact))
        const now = yield* DateTime.now
        const decided = decide(message, commandAt(now))
        if (Result.isFailure(decided)) {
          return yield* refusalIn(message, now)
        }
        const facts = decided.success
        const opening = body === null ? null : { body, idempotency: null }
        const { entry } = entryOf(id, message, version, facts, now, { opening, actor: yield* CommandedBy })
        const added = facts.map((fact, index) => ({ version: version + 1 + index, at: now, fact }))
        const view = viewOf(id, [...history, ...added])!
        const queued = history[0]!.fact as MessageQueued
        const subject = { messageId: id, queued, epoch: message.progress.epoch, dueAt: null, by: entry.actor }
        return { entry: facts.length === 0 ? null : entry, answer: { view, subject, facts, at: now } }
      }),
      append: appendFreely
    },
    { tries: TRIES }
  ).pipe(
    Effect.catchTag("Overtaken", () => Effect.fail(new MessageBusy({ id }))),
    Effect.flatMap(({ view, subject, facts, at }) =>
      Effect.map(Telemetry, ({ stored }) => {
        stored(subject, facts, at)
        return view
      })
    )
  )

export const refusalIn = (message: Message, now: DateTime.Utc): CommandRefused =>
  new CommandRefused({
    status: message.status,
    allowed: allowedIn(message, now),
    wasReplayedOften: !mayBeReopened(message)
  })

const allowedIn = (message: Message, now: DateTime.Utc): ReadonlyArray<CallerCommand> =>
  callerCommands.filter((type) => {
    const decided = decide(message, { type, now, reason: null })
    return Result.isSuccess(decided) && decided.success.length > 0
  })
