import { DateTime } from "effect"
import { describe, expect, it } from "vitest"
import {
  alertingFacts,
  circuitNews,
  deadLetterErrorOf,
  isRecent,
  mayAlert,
  mayAlertAgain,
  quietSince
} from "../../../src/domain/alert/triggers.ts"
import { type CircuitFact, recorded as circuitFacts } from "../../../src/domain/circuit/facts.ts"
import { recorded as commandFacts } from "../../../src/domain/command/facts.ts"
import { recorded as conditionFacts } from "../../../src/domain/condition/facts.ts"
import { recorded as destinationFacts } from "../../../src/domain/destination/facts.ts"
import { MessageId } from "../../../src/domain/ids.ts"
import { recorded as messageFacts } from "../../../src/domain/message/facts.ts"
import { deadLettered, failed, started } from "../message/samples.ts"

const at = DateTime.makeUnsafe("2026-03-01T10:00:00Z")
const later = (milliseconds: number) => DateTime.add(at, { milliseconds })

const opened: CircuitFact = { type: "CircuitOpened", failures: 5, until: at, openings: 1, error: null }
const probed: CircuitFact = {
  type: "CircuitProbed",
  probe: MessageId.make("0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01"),
  expiresAt: later(1)
}
const reopened: CircuitFact = { type: "CircuitReopened", until: at, openings: 2, error: null }
const closed: CircuitFact = { type: "CircuitClosed" }
const held: CircuitFact = { type: "CircuitHeld", reason: null }
const reset: CircuitFact = { type: "CircuitReset", reason: null }

describe("a circuit", () => {
  it.each<[string, ReadonlyArray<CircuitFact>, "opened" | "closed" | null]>([
    ["opens", [opened], "opened"],
    ["opens again after it was closed", [opened, probed, closed, opened], "opened"],
    ["closes", [opened, probed, closed], "closed"],
    ["is reset while it is open", [opened, reset], "closed"],
    ["is reset after a probe failed", [opened, probed, reopened, reset], "closed"],
    ["is held while it is open, and reset", [opened, held, reset], "closed"]
  ])("is news when it %s", (_, history, turn) => {
    expect(circuitNews(history)).toBe(turn)
  })

  it.each<[string, ReadonlyArray<CircuitFact>]>([
    ["is probed", [opened, probed]],
    ["re-opens", [opened, probed, reopened]],
    ["is held", [held]],
    ["is held while it is open", [opened, held]],
    ["is reset from a hold alone", [held, reset]],
    ["is reset from a hold long after it was closed", [opened, probed, closed, held, reset]],
    ["is reset from a hold after a reset", [opened, reset, held, reset]],
    ["has no history", []]
  ])("is no news when it %s", (_, history) => {
    expect(circuitNews(history)).toBeNull()
  })
})

describe("a dead letter", () => {
  it("is what ended in FAILED or DEAD_LETTER, with its error", () => {
    const dead = deadLettered()
    expect(deadLetterErrorOf(dead)).toEqual("error" in dead ? dead.error : null)
    expect([started(1), failed(1, null)].map(deadLetterErrorOf)).toEqual([null, null])
  })

  it("is told when none was, and then not again within the hour of the one that was told", () => {
    expect(mayAlertAgain(null, at)).toBe(true)
    expect(mayAlertAgain(at, at)).toBe(false)
    expect(mayAlertAgain(at, later(3_599_999))).toBe(false)
    expect(mayAlertAgain(at, later(3_600_000))).toBe(true)
    // Clocks of two processes: one that died before the one that was told.
    expect(mayAlertAgain(at, later(-7_200_000))).toBe(false)
  })

  it("keeps others silent for as long as its notice is kept", () => {
    expect(mayAlertAgain(quietSince(at), at)).toBe(true)
    expect(mayAlertAgain(DateTime.add(quietSince(at), { milliseconds: 1 }), at)).toBe(false)
  })
})

describe("what happened a day ago", () => {
  it("is no news any more", () => {
    expect(isRecent(at, later(86_399_999))).toBe(true)
    expect(isRecent(at, later(86_400_000))).toBe(false)
    expect(isRecent(later(1_000), at)).toBe(true)
  })
})

describe("the facts that can deserve an alert", () => {
  const known = [circuitFacts, messageFacts, conditionFacts, commandFacts, destinationFacts].flatMap((recorded) =>
    Object.keys(recorded)
  )

  it("are known facts, in every version", () => {
    const types = new Set(known.map((name) => name.slice(0, name.indexOf("@"))))
    expect(alertingFacts.filter((type) => !types.has(type))).toEqual([])
    expect(known.filter(mayAlert)).toContain("CircuitOpened@1")
  })

  it("are few: what every message passes is not looked at", () => {
    expect(["MessageQueued@1", "AttemptStarted@1", "AttemptFailed@1", "MessageDelivered@1"].some(mayAlert)).toBe(false)
  })
})
