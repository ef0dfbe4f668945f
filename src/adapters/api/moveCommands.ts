/**
 * Moves the commands of callers' own transactions, by the rules of the HTTP API:
 *
 * take      the committed ones, in the callers' order
 * obey      all, in their order
 * tell      each refusal, as a fact
 * settle    forget them, and keep the refused with their reasons
 *
 * A crash repeats the earlier steps: a command has its message's id from the beginning, so it becomes one message, and
 * one fact when it is refused.
 */
import { Clock, DateTime, Duration, Effect, Result, Schema } from "effect"
import { background } from "../../application/background.ts"
import { newHolder } from "../../application/newHolder.ts"
import {
  COMMANDS_BYTES,
  CommandInbox,
  type GivenCommand,
  type Settlement
} from "../../application/ports/CommandInbox.ts"
import { Journals } from "../../application/ports/Journals.ts"
import { Pulse } from "../../application/ports/Pulse.ts"
import { type CommandFact, journalOfCommand, toRecorded } from "../../domain/command/facts.ts"
import { OrgId } from "../../domain/ids.ts"
import { type Answer, type Command, isCommandType, obeyAll } from "./commands.ts"
import { jsonOf, SIZE_MAX } from "./jsonText.ts"
import { IdempotencyKey, keyRule } from "./messageRequests.ts"
import { invalidFields, type Problem, tooLarge } from "./problem.ts"

const AT_ONCE = 500
const LEASE = Duration.seconds(5)
const PAUSE_MIN = Duration.millis(5)
const PAUSE_MAX = Duration.millis(200)
/** Polls for so long after the last command; later the heartbeat rings. */
const QUIET = Duration.seconds(10)
/** For a heartbeat that fails. */
const LOOK_EVERY = Duration.seconds(30)
const WAY = "sql"

/** Runs until interrupted, in one process at a time. */
export const moveCommands = Effect.gen(function* () {
  const inbox = yield* CommandInbox
  const holder = yield* newHolder
  let seen: string | null = null
  let pause = PAUSE_MIN
  let busyAt = yield* Clock.monotonicTimeNanos
  const { wait } = (yield* Pulse).listener("commands")
  const step = Effect.gen(function* () {
    const before: string | null = seen
    // After a failure all commands are looked at again.
    seen = null
    const taken = yield* inbox.take(holder, LEASE, before, AT_ONCE)
    if (taken.seen === null) return yield* wait(LOOK_EVERY)
    const now = yield* Clock.monotonicTimeNanos
    if (taken.commands.length > 0) {
      yield* inbox.settle(yield* settlementsOf(taken.commands))
      pause = PAUSE_MIN
      busyAt = now
    }
    if (mayBeMore(taken.commands)) {
      seen = before
      return
    }
    seen = taken.seen
    if (now - busyAt > Duration.toNanosUnsafe(QUIET)) return yield* wait(LOOK_EVERY)
    yield* Effect.sleep(pause)
    pause = Duration.min(Duration.times(pause, 1.5), PAUSE_MAX)
  })
  return yield* background("moving commands", step)
})

/** The inbox answers a full number of commands, or ends with the one that has too many bytes. */
const mayBeMore = (commands: ReadonlyArray<GivenCommand>): boolean =>
  commands.length === AT_ONCE ||
  commands.reduce((sum, { request }) => sum + Buffer.byteLength(request), 0) >= COMMANDS_BYTES

const settlementsOf = Effect.fnUntraced(function* (given: ReadonlyArray<GivenCommand>) {
  const read = given.map(commandOf)
  const obeyed = yield* obeyAll(
    WAY,
    read.flatMap((one) => (Result.isSuccess(one) ? [one.success] : []))
  )
  let next = 0
  const settlements: Array<Settlement> = []
  for (const [index, one] of read.entries()) {
    const command = given[index]!
    const answer: Answer = Result.isSuccess(one) ? obeyed[next++]! : { type: "Refused", problem: one.failure }
    if (answer.type === "Refused") yield* tell(command, answer.problem)
    settlements.push({
      command,
      problem: answer.type === "Refused" ? JSON.stringify(answer.problem.body) : null,
      became: answer.type === "Done" && answer.id !== command.id ? answer.id : null
    })
  }
  return settlements
})

const isOrgId = Schema.is(OrgId)
const isKey = Schema.is(IdempotencyKey)

const commandOf = ({ id, orgId, type, key, request, traceparent }: GivenCommand): Result.Result<Command, Problem> => {
  const faults = [
    ...(isOrgId(orgId)
      ? []
      : [{ field: "org", reason: "must be 1 to 64 letters, digits, dots, dashes or underscores" }]),
    ...(key === null || isKey(key) ? [] : [{ field: "idempotency_key", reason: keyRule }])
  ]
  if (!isOrgId(orgId) || !isCommandType(type) || faults.length > 0) return Result.fail(invalidFields(faults))
  // A character is a byte at least.
  if (request.length > SIZE_MAX) return Result.fail(tooLarge(SIZE_MAX))
  return Result.map(
    jsonOf(request),
    (json): Command => ({ ...{ type, orgId, key, id, json }, ...(traceparent !== null && { traceparent }) })
  )
}

/** A fact that exists was told before a crash. An impossible org has no facts. */
const tell = Effect.fnUntraced(function* ({ id, orgId, type, key }: GivenCommand, { body }: Problem) {
  if (!isOrgId(orgId)) return
  const { type: problem, status, detail } = body
  const fact: CommandFact = { type: "CommandRefused", orgId, command: type, key, problem, status, detail }
  yield* (yield* Journals).append(journalOfCommand(id), 0, [toRecorded(fact)], yield* DateTime.now, WAY)
})
