/** `given(facts).when(command).then(facts)`: one rule of the circuit's law, read aloud. */
import { DateTime, Result } from "effect"
import { expect } from "vitest"
import { type CircuitCommand, decide, replay } from "../../../src/domain/circuit/decider.ts"
import type { CircuitError, CircuitFact } from "../../../src/domain/circuit/facts.ts"
import type { CircuitStatus } from "../../../src/domain/circuit/machine.ts"
import { circuitDefaults } from "../../../src/domain/circuit/policy.ts"
import { MessageId } from "../../../src/domain/ids.ts"

export const noon = DateTime.makeUnsafe("2026-01-01T12:00:00.000Z")
export const noonPlus = (milliseconds: number) => DateTime.add(noon, { milliseconds })
export const probe = MessageId.make("0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a02")

const policy = circuitDefaults

export const expiredToken: CircuitError = { code: "190", message: "access token has expired" }

export const openedUntil = (until: number, failures = 5, error: CircuitError | null = null): CircuitFact => ({
  type: "CircuitOpened",
  failures,
  until: noonPlus(until),
  openings: 1,
  error
})
export const probedUntil = (expiresAt: number): CircuitFact => ({
  type: "CircuitProbed",
  probe,
  expiresAt: noonPlus(expiresAt)
})
export const reopenedUntil = (until: number, openings: number, error: CircuitError | null = null): CircuitFact => ({
  type: "CircuitReopened",
  until: noonPlus(until),
  openings,
  error
})
export const closed: CircuitFact = { type: "CircuitClosed" }
export const held: CircuitFact = { type: "CircuitHeld", reason: "maintenance" }
export const reset: CircuitFact = { type: "CircuitReset", reason: "all well" }

export const countFailures = (
  failures: number,
  now = 0,
  error: CircuitError | null = null,
  die = 0
): CircuitCommand => ({
  type: "CountFailures",
  failures,
  error,
  now: noonPlus(now),
  die,
  policy
})
export const startProbe = (now: number): CircuitCommand => ({
  type: "StartProbe",
  probe,
  now: noonPlus(now),
  permitMs: 3_000
})
export const settleProbe = (
  succeeded: boolean,
  now: number,
  error: CircuitError | null = null,
  die = 0
): CircuitCommand => ({
  type: "SettleProbe",
  succeeded,
  error,
  now: noonPlus(now),
  die,
  policy
})
export const holdCircuit: CircuitCommand = { type: "HoldCircuit", reason: "maintenance" }
export const resetCircuit: CircuitCommand = { type: "ResetCircuit", reason: "all well" }

/** `then` also replays what was decided on top of what was given: a decision that the law forbids fails here. */
export const given = (...history: ReadonlyArray<CircuitFact>) => ({
  when: (command: CircuitCommand) => {
    const decision = decide(replay(history), command)
    return {
      // biome-ignore lint/suspicious/noThenProperty: a rule is read aloud, never awaited.
      then: (...facts: ReadonlyArray<CircuitFact>) => {
        expect(decision).toEqual(Result.succeed(facts))
        const { status } = replay([...history, ...facts])
        return { in: (expected: CircuitStatus) => expect(status).toBe(expected) }
      },
      thenTooEarly: () => expect(Result.isFailure(decision) && decision.failure._tag).toBe("TooEarly")
    }
  }
})
