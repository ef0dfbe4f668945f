/** What holds for every circuit, whatever is asked of it in whatever order. */
import { DateTime, Result } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  type CircuitCommand,
  decide,
  evolve,
  initial,
  replay,
  resting,
  restingOn
} from "../../../src/domain/circuit/decider.ts"
import type { CircuitFact } from "../../../src/domain/circuit/facts.ts"
import { openWaitMs } from "../../../src/domain/circuit/policy.ts"
import { expiredToken, noon, probe } from "./given.ts"

const policy = fc.record({
  failuresMax: fc.integer({ min: 1, max: 6 }),
  openMs: fc.integer({ min: 100, max: 60_000 }),
  openMaxMs: fc.integer({ min: 60_000, max: 900_000 })
})
const reason = fc.option(fc.string())

/** A command and how long after the one before it comes. */
const steps = fc.tuple(
  policy,
  fc.array(
    fc.record({
      afterMs: fc.integer({ min: 0, max: 120_000 }),
      kind: fc.constantFrom("CountFailures", "StartProbe", "StartProbe", "SettleProbe", "HoldCircuit", "ResetCircuit"),
      failures: fc.integer({ min: 0, max: 9 }),
      succeeded: fc.boolean(),
      error: fc.constantFrom(null, null, expiredToken),
      die: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      permitMs: fc.integer({ min: 1, max: 40_000 }),
      reason
    }),
    { maxLength: 25 }
  )
)

interface Decided {
  readonly now: DateTime.Utc
  readonly command: CircuitCommand
  readonly before: CircuitFact["type"] | null
  readonly facts: ReadonlyArray<CircuitFact>
}

const live = ([policy, asked]: typeof steps extends fc.Arbitrary<infer A> ? A : never) => {
  let circuit = initial
  let now = noon
  const decided: Array<Decided> = []
  const history: Array<CircuitFact> = []
  for (const { afterMs, kind, failures, succeeded, error, die, permitMs, reason } of asked) {
    now = DateTime.add(now, { milliseconds: afterMs })
    const command = {
      type: kind,
      failures,
      succeeded,
      error,
      die,
      permitMs,
      reason,
      now,
      policy,
      probe
    } as CircuitCommand
    const facts = Result.getOrElse(decide(circuit, command), () => [])
    decided.push({ now, command, before: history.at(-1)?.type ?? null, facts })
    history.push(...facts)
    circuit = facts.reduce(evolve, circuit)
  }
  return { policy, circuit, history, decided }
}

describe("every circuit", () => {
  it("is the same folded from its last fact that says all, whatever came before", () => {
    fc.assert(
      fc.property(steps, (drawn) => {
        const { circuit, history } = live(drawn)
        const base = history.findLastIndex(({ type }) => (resting as ReadonlyArray<string>).includes(type))
        fc.pre(base !== -1)
        const known = restingOn(history[base]!, circuit.memory.failures)!
        expect(history.slice(base + 1).reduce(evolve, known)).toEqual(circuit)
      })
    )
  })

  it("is what its facts say: what was decided can be replayed, to the same state", () => {
    fc.assert(
      fc.property(steps, (drawn) => {
        const { circuit, history } = live(drawn)
        expect(replay(history)).toEqual(circuit)
      })
    )
  })

  it("opens only at its threshold, or by a failure that is decisive", () => {
    fc.assert(
      fc.property(steps, (drawn) => {
        const { policy, history } = live(drawn)
        for (const fact of history) {
          if (fact.type !== "CircuitOpened") continue
          expect(fact.failures).toBeGreaterThanOrEqual(fact.error === null ? policy.failuresMax : 1)
        }
      })
    )
  })

  it("gives no permit before the silence, or the permit before, is over", () => {
    fc.assert(
      fc.property(steps, (drawn) => {
        let until = noon
        for (const { now, facts } of live(drawn).decided) {
          for (const fact of facts) {
            if (fact.type === "CircuitProbed") {
              expect(DateTime.isGreaterThanOrEqualTo(now, until)).toBe(true)
              until = fact.expiresAt
            } else if (fact.type === "CircuitOpened" || fact.type === "CircuitReopened") until = fact.until
          }
        }
      })
    )
  })

  it("is silent at least as long as planned, and at most a fifth longer", () => {
    fc.assert(
      fc.property(steps, (drawn) => {
        const { policy, decided } = live(drawn)
        for (const { now, facts } of decided) {
          for (const fact of facts) {
            if (fact.type !== "CircuitOpened" && fact.type !== "CircuitReopened") continue
            const silence = DateTime.toEpochMillis(fact.until) - DateTime.toEpochMillis(now)
            const planned = openWaitMs(policy, fact.openings, 0)
            expect(silence).toBeGreaterThanOrEqual(planned)
            expect(silence).toBeLessThanOrEqual(Math.ceil(planned * 1.2))
          }
        }
      })
    )
  })

  it("leaves half-open only by the probe's result or by hand", () => {
    const ways: Partial<Record<CircuitFact["type"], ReadonlyArray<CircuitCommand["type"]>>> = {
      CircuitProbed: ["StartProbe"],
      CircuitClosed: ["SettleProbe"],
      CircuitReopened: ["SettleProbe"],
      CircuitHeld: ["HoldCircuit"],
      CircuitReset: ["ResetCircuit"]
    }
    fc.assert(
      fc.property(steps, (drawn) => {
        for (const { command, before, facts } of live(drawn).decided) {
          if (before !== "CircuitProbed") continue
          for (const { type } of facts) expect(ways[type]).toContain(command.type)
        }
      })
    )
  })
})
