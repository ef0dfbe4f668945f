/**
 * `initial · decide · evolve · replay` of a circuit. Time and dice arrive inside the command. A command that comes too
 * late for its state (a probe's result after a reset) decides no facts.
 */
import { DateTime, Result, Schema } from "effect"
import { initialTransition, transition } from "xstate"
import { foldOf } from "../fold.ts"
import type { MessageId } from "../ids.ts"
import type { CircuitError, CircuitFact } from "./facts.ts"
import { type CircuitMemory, type CircuitStatus, circuitMachine } from "./machine.ts"
import { type CircuitPolicy, openWaitMs } from "./policy.ts"

export interface Circuit {
  readonly status: CircuitStatus
  readonly memory: CircuitMemory
}

interface Dated {
  /** By the store's clock, which all workers share. */
  readonly now: DateTime.Utc
}

interface Opening extends Dated {
  readonly policy: CircuitPolicy
  readonly die: number
}

export type CircuitCommand =
  /** Failures in a row. One failure with an error is enough. */
  | ({ readonly type: "CountFailures"; readonly failures: number; readonly error: CircuitError | null } & Opening)
  | ({ readonly type: "StartProbe"; readonly probe: MessageId; readonly permitMs: number } & Dated)
  | ({ readonly type: "SettleProbe"; readonly succeeded: boolean; readonly error: CircuitError | null } & Opening)
  | { readonly type: "HoldCircuit"; readonly reason: string | null }
  | { readonly type: "ResetCircuit"; readonly reason: string | null }

export class TooEarly extends Schema.TaggedError<TooEarly>()("TooEarly", { status: Schema.String }) {}

const snapshotOf = ({ status, memory }: Circuit) => circuitMachine.resolveState({ value: status, context: memory })

const start = initialTransition(circuitMachine)[0]
export const initial: Circuit = { status: start.value, memory: start.context }

export const step = (circuit: Circuit, fact: CircuitFact): Circuit | null => {
  const before = snapshotOf(circuit)
  if (!before.can(fact)) return null
  const [after] = transition(circuitMachine, before, fact)
  return { status: after.value, memory: after.context }
}

export const { can, evolve, replay } = foldOf(initial, step, ({ status }) => status)

/**
 * The circuit right after a fact that determines it whatever came before; null for any other fact. `failures` is the
 * one thing that a reopening does not repeat.
 */
export const restingOn = (fact: CircuitFact, failures: number): Circuit | null => {
  switch (fact.type) {
    case "CircuitClosed":
    case "CircuitReset":
      return initial
    case "CircuitOpened":
      return { status: "OPEN", memory: { failures: fact.failures, openings: 1, until: fact.until, probe: null } }
    case "CircuitReopened":
      return { status: "OPEN", memory: { failures, openings: fact.openings, until: fact.until, probe: null } }
    default:
      return null
  }
}

export const resting = ["CircuitClosed", "CircuitReset", "CircuitOpened", "CircuitReopened"] as const

export const decide = (
  circuit: Circuit,
  command: CircuitCommand
): Result.Result<ReadonlyArray<CircuitFact>, TooEarly> => {
  const { status, memory } = circuit
  switch (command.type) {
    case "CountFailures": {
      const { failures, error, policy } = command
      const isEnough = failures >= policy.failuresMax || (failures > 0 && error !== null)
      return Result.succeed(
        status === "CLOSED" && isEnough
          ? [{ type: "CircuitOpened", failures, until: openUntil(command, 1), openings: 1, error }]
          : []
      )
    }
    case "StartProbe": {
      const waits = status === "OPEN" || status === "HALF_OPEN"
      if (!waits || memory.until === null || DateTime.isLessThan(command.now, memory.until)) {
        return Result.fail(new TooEarly({ status }))
      }
      const expiresAt = DateTime.add(command.now, { milliseconds: command.permitMs })
      return Result.succeed([{ type: "CircuitProbed", probe: command.probe, expiresAt }])
    }
    case "SettleProbe": {
      if (status !== "HALF_OPEN") return Result.succeed([])
      if (command.succeeded) return Result.succeed([{ type: "CircuitClosed" }])
      const openings = memory.openings + 1
      const { error } = command
      return Result.succeed([{ type: "CircuitReopened", until: openUntil(command, openings), openings, error }])
    }
    case "HoldCircuit":
      return Result.succeed(status === "HELD" ? [] : [{ type: "CircuitHeld", reason: command.reason }])
    case "ResetCircuit":
      return Result.succeed(status === "CLOSED" ? [] : [{ type: "CircuitReset", reason: command.reason }])
  }
}

const openUntil = ({ now, policy, die }: Opening, openings: number): DateTime.Utc =>
  DateTime.add(now, { milliseconds: openWaitMs(policy, openings, die) })
