import { describe, expect, it } from "vitest"
import type { CircuitFact } from "../../../src/domain/circuit/facts.ts"
import { closed as calm, situationOf } from "../../../src/domain/circuit/situation.ts"
import { closed, expiredToken, held, noon, noonPlus, openedUntil, probe, probedUntil, reopenedUntil } from "./given.ts"

const opened = openedUntil(30_000)
const probed = probedUntil(50_000)

/** Each fact a second after the one before it. */
const situation = (...facts: ReadonlyArray<CircuitFact>) =>
  situationOf(facts.map((fact, index) => ({ at: noonPlus(index * 1_000), actor: "operator", fact })))

describe("the situation of a circuit", () => {
  it("is calm without facts, and after it closed", () => {
    expect(situation()).toEqual(calm)
    expect(situation(opened, probed, closed)).toEqual(calm)
  })

  it("says since when it is open, until when, and why", () => {
    expect(situation(opened)).toMatchObject({
      status: "OPEN",
      since: noon,
      until: noonPlus(30_000),
      cause: "5 attempts in a row failed"
    })
    expect(situation(openedUntil(30_000, 1, expiredToken)).cause).toBe("190: access token has expired")
  })

  it("counts from the first opening of this trouble, and names the failed probes", () => {
    expect(situation(opened, probed, closed, opened, probed, reopenedUntil(90_000, 2))).toMatchObject({
      status: "OPEN",
      since: noonPlus(3_000),
      until: noonPlus(90_000),
      cause: "5 attempts in a row failed, and 1 probe failed since"
    })
    expect(situation(opened, probed)).toMatchObject({ status: "HALF_OPEN", probe, until: noonPlus(50_000) })
  })

  it("says who holds it and why", () => {
    expect(situation(opened, held)).toEqual({
      ...calm,
      status: "HELD",
      since: noonPlus(1_000),
      by: "operator",
      reason: "maintenance",
      cause: "held by hand: maintenance"
    })
  })
})
