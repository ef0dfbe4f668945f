import { Result, Schema } from "effect"
import { initialTransition, type SnapshotFrom, transition } from "xstate"
import { foldOf } from "../fold.ts"
import type { ReplayFact, ReplayRequested } from "./facts.ts"
import { type Progress, type ReplayStatus, replayMachine } from "./machine.ts"

export type ReplayCommand =
  | { readonly type: "RequestReplay"; readonly request: ReplayRequested }
  | { readonly type: "AdvanceReplay"; readonly from: number; readonly replayed: number; readonly skipped: number }
  | { readonly type: "CancelReplay"; readonly reason: string | null }

export class ReplayRejected extends Schema.TaggedError<ReplayRejected>()("ReplayRejected", {
  command: Schema.String,
  status: Schema.String
}) {}

export type Replay = SnapshotFrom<typeof replayMachine>

export const initial: Replay = initialTransition(replayMachine)[0]

export const statusOf = (replay: Replay): ReplayStatus | "NEW" => replay.value
export const progressOf = (replay: Replay): Progress => replay.context

export const step = (replay: Replay, fact: ReplayFact): Replay | null =>
  replay.can(fact) ? transition(replayMachine, replay, fact)[0] : null

export const { allows, evolve, replay } = foldOf(initial, step, statusOf)

export const decide = (
  replay: Replay,
  command: ReplayCommand
): Result.Result<ReadonlyArray<ReplayFact>, ReplayRejected> => {
  const facts = proposed(replay, command)
  return allows(replay, facts)
    ? Result.succeed(facts)
    : Result.fail(new ReplayRejected({ command: command.type, status: statusOf(replay) }))
}

const proposed = (replay: Replay, command: ReplayCommand): ReadonlyArray<ReplayFact> => {
  switch (command.type) {
    case "RequestReplay":
      return command.request.matched === 0 ? [command.request, { type: "ReplayCompleted" }] : [command.request]
    case "AdvanceReplay": {
      const { from, replayed, skipped } = command
      const to = from + replayed + skipped
      const advanced: ReplayFact = { type: "ReplayAdvanced", from, to, replayed, skipped }
      const isLast = statusOf(replay) === "RUNNING" && to === progressOf(replay).matched
      return isLast ? [advanced, { type: "ReplayCompleted" }] : [advanced]
    }
    case "CancelReplay":
      return statusOf(replay) === "CANCELLED" ? [] : [{ type: "ReplayCancelled", reason: command.reason }]
  }
}
