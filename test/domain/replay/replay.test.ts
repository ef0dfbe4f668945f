import { DateTime, Result } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { OrgId } from "../../../src/domain/ids.ts"
import {
  decide,
  evolve,
  initial,
  progressOf,
  type Replay,
  type ReplayCommand,
  replay,
  statusOf
} from "../../../src/domain/replay/decider.ts"
import type { ReplayFact, ReplayRequested } from "../../../src/domain/replay/facts.ts"
import { replayMachine, replayStatuses } from "../../../src/domain/replay/machine.ts"

const requested = (matched: number): ReplayRequested => ({
  type: "ReplayRequested",
  orgId: OrgId.make("acme"),
  selection: { filter: {} },
  reason: null,
  matched,
  requestedAt: DateTime.makeUnsafe("2026-01-03T12:00:00.000Z")
})
const advanced = (from: number, replayed: number, skipped: number): ReplayFact => ({
  type: "ReplayAdvanced",
  from,
  to: from + replayed + skipped,
  replayed,
  skipped
})
const completed: ReplayFact = { type: "ReplayCompleted" }
const cancelled: ReplayFact = { type: "ReplayCancelled", reason: null }

const advance = (from: number, replayed: number, skipped: number): ReplayCommand => ({
  type: "AdvanceReplay",
  from,
  replayed,
  skipped
})
const cancel: ReplayCommand = { type: "CancelReplay", reason: null }

const given = (...history: ReadonlyArray<ReplayFact>) => ({
  when: (command: ReplayCommand) => {
    const decision = decide(replay(history), command)
    return {
      // biome-ignore lint/suspicious/noThenProperty: a rule is read aloud, never awaited.
      then: (...facts: ReadonlyArray<ReplayFact>) => {
        expect(decision).toEqual(Result.succeed(facts))
        const after = replay([...history, ...facts])
        return { in: (status: ReturnType<typeof statusOf>) => expect(statusOf(after)).toBe(status) }
      },
      thenRejectedIn: (status: ReturnType<typeof statusOf>) =>
        expect(Result.isFailure(decision) && decision.failure).toMatchObject({ command: command.type, status })
    }
  }
})

describe("a replay", () => {
  it("runs once it is requested", () => {
    given()
      .when({ type: "RequestReplay", request: requested(3) })
      .then(requested(3))
      .in("RUNNING")
  })

  it("of nothing is completed at once", () => {
    given()
      .when({ type: "RequestReplay", request: requested(0) })
      .then(requested(0), completed)
      .in("COMPLETED")
  })

  it("is requested once", () => {
    given(requested(3))
      .when({ type: "RequestReplay", request: requested(3) })
      .thenRejectedIn("RUNNING")
  })

  it("goes on where it was, and completes with its last message", () => {
    given(requested(5))
      .when(advance(0, 2, 1))
      .then(advanced(0, 2, 1))
      .in("RUNNING")
    given(requested(5), advanced(0, 2, 1))
      .when(advance(3, 2, 0))
      .then(advanced(3, 2, 0), completed)
      .in("COMPLETED")
  })

  it.each([
    ["again over what is accounted for", advance(0, 3, 0)],
    ["past what is not", advance(4, 1, 0)],
    ["beyond its last message", advance(3, 3, 0)],
    ["by nothing", advance(3, 0, 0)]
  ])("does not go %s", (_, command) => {
    given(requested(5), advanced(0, 2, 1))
      .when(command)
      .thenRejectedIn("RUNNING")
  })

  it("can't be told that a stretch holds more or fewer messages than it has", () => {
    const wrong: ReplayFact = { type: "ReplayAdvanced", from: 0, to: 3, replayed: 1, skipped: 1 }
    expect(replay([requested(5)]).can(wrong)).toBe(false)
  })

  it("is not completed before it is through", () => {
    expect(replay([requested(5), advanced(0, 4, 0)]).can(completed)).toBe(false)
  })

  it("is cancelled once; saying it again adds nothing", () => {
    given(requested(5), advanced(0, 2, 0))
      .when(cancel)
      .then(cancelled)
      .in("CANCELLED")
    given(requested(5), cancelled).when(cancel).then().in("CANCELLED")
  })

  it("that was cancelled accounts for what was under way, and never completes", () => {
    given(requested(2), cancelled)
      .when(advance(0, 2, 0))
      .then(advanced(0, 2, 0))
      .in("CANCELLED")
    expect(replay([requested(2), cancelled, advanced(0, 2, 0)]).can(completed)).toBe(false)
  })

  it("that is completed can't be cancelled or go on", () => {
    given(requested(1), advanced(0, 1, 0), completed)
      .when(cancel)
      .thenRejectedIn("COMPLETED")
    given(requested(1), advanced(0, 1, 0), completed)
      .when(advance(1, 1, 0))
      .thenRejectedIn("COMPLETED")
  })

  it("stops us when its history is impossible", () => {
    expect(() => replay([requested(5), advanced(1, 1, 0)])).toThrow("ReplayAdvanced cannot follow RUNNING")
    expect(() => replay([completed])).toThrow()
  })

  it("counts every message of its set once, whoever reports in whatever order", () => {
    const report = fc.record({ from: fc.nat(12), replayed: fc.nat(4), skipped: fc.nat(4), cancel: fc.boolean() })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.array(report, { maxLength: 60 }), (matched, reports) => {
        let current: Replay = evolve(initial, requested(matched))
        const seen = new Set<number>()
        for (const { from, replayed, skipped, cancel: isCancel } of reports) {
          const command = isCancel && from === 0 ? cancel : advance(from, replayed, skipped)
          const decided = decide(current, command)
          for (const fact of Result.isSuccess(decided) ? decided.success : []) {
            current = evolve(current, fact)
            if (fact.type !== "ReplayAdvanced") continue
            for (let number = fact.from + 1; number <= fact.to; number++) {
              expect(seen.has(number)).toBe(false)
              seen.add(number)
            }
          }
        }
        const progress = progressOf(current)
        expect(progress.replayed + progress.skipped).toBe(seen.size)
        expect(progress.cursor).toBe(seen.size)
        expect(statusOf(current) === "COMPLETED").toBe(seen.size === matched && statusOf(current) !== "CANCELLED")
      })
    )
  })
})

describe("the machine", () => {
  it("has the statuses people see, and the place before the first fact", () => {
    expect(Object.keys(replayMachine.states).toSorted()).toEqual(["NEW", ...replayStatuses].toSorted())
  })
})
