import { Result, Schema } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  attemptsMaxOf,
  DEFER_MAX_MS,
  deferWaitMs,
  laneWaitMs,
  presets,
  RETRY_AFTER_MAX_MS,
  RetryPolicy,
  type RetryPolicy as RetryPolicyType,
  retryWaitMs
} from "../../../src/domain/delivery/retry.ts"

/** The waits after every failure that leaves an attempt, with the die in the middle. */
const waitsOf = (policy: RetryPolicyType, die = 0.5) =>
  Array.from({ length: attemptsMaxOf(policy) - 1 }, (_, index) => retryWaitMs(policy, index + 1, die))

describe("the presets", () => {
  it("make six attempts, the patient one eleven over a day", () => {
    const { patient, ...others } = presets
    expect(Object.values(others).map(attemptsMaxOf)).toEqual([6, 6, 6, 6])
    expect(waitsOf(patient)).toEqual(
      [1, 5, 15, 60, 300, 1_800, 7_200, 18_000, 36_000, 36_000].map((seconds) => seconds * 1_000)
    )
  })

  it("webhook waits 1 s, 5 s, 15 s, 60 s and 300 s", () => {
    expect(waitsOf(presets.webhook)).toEqual([1_000, 5_000, 15_000, 60_000, 300_000])
  })

  it("whatsapp waits 1, 5, 15, 60 and 360 minutes", () => {
    expect(waitsOf(presets.whatsapp)).toEqual([60_000, 300_000, 900_000, 3_600_000, 21_600_000])
  })

  it("exponential doubles from a second and stops at 30 s", () => {
    expect(waitsOf(presets.exponential)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000])
    expect(waitsOf({ ...presets.exponential, attemptsMax: 8 }).slice(4)).toEqual([16_000, 30_000, 30_000])
  })

  it("payments does the same, each wait about as long", () => {
    const payments = { ...presets.payments, attemptsMax: 8 }
    expect(waitsOf(payments)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
    expect([0, 1].map((die) => retryWaitMs(payments, 1, die))).toEqual([500, 1_500])
  })

  it("are themselves policies that anybody could send", () => {
    for (const preset of Object.values(presets)) {
      expect(Schema.decodeUnknownSync(RetryPolicy)(preset, { onExcessProperty: "error" })).toEqual(preset)
    }
  })
})

describe("a strategy", () => {
  it("linear waits one base longer each time", () => {
    expect(waitsOf({ strategy: "linear", baseMs: 200, attemptsMax: 5 })).toEqual([200, 400, 600, 800])
  })

  it("fixed waits the same each time", () => {
    expect(waitsOf({ strategy: "fixed", baseMs: 200, attemptsMax: 4 })).toEqual([200, 200, 200])
  })

  it("exponential multiplies by its factor", () => {
    expect(waitsOf({ strategy: "exponential", baseMs: 100, factor: 3, attemptsMax: 5 })).toEqual([100, 300, 900, 2_700])
  })

  it.each(["exponential", "linear", "fixed"] as const)("%s never grows beyond its cap", (strategy) => {
    const waits = waitsOf({ strategy, baseMs: 400, capMs: 500, attemptsMax: 100 })
    expect(waits.at(-1)).toBe(strategy === "fixed" ? 400 : 500)
    expect(Math.max(...waits)).toBeLessThanOrEqual(500)
  })

  it.each(["exponential", "linear", "fixed"] as const)("%s is capped at a day when it names no cap", (strategy) => {
    expect(retryWaitMs({ strategy, baseMs: 7 * 24 * 3_600_000, attemptsMax: 100 }, 99, 0.5)).toBe(24 * 3_600_000)
  })

  it("schedule repeats its last wait when more attempts are allowed than it lists", () => {
    const policy: RetryPolicyType = { strategy: "schedule", waitsMs: [10, 20], attemptsMax: 5 }
    expect(waitsOf(policy)).toEqual([10, 20, 20, 20])
  })

  it("schedule allows one attempt more than it lists waits, unless told otherwise", () => {
    expect(attemptsMaxOf({ strategy: "schedule", waitsMs: [10, 20] })).toBe(3)
    expect(attemptsMaxOf({ strategy: "schedule", waitsMs: [10, 20], attemptsMax: 2 })).toBe(2)
    expect(attemptsMaxOf({ strategy: "fixed", baseMs: 1 })).toBe(6)
  })
})

describe("jitter", () => {
  const die = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
  const failure = fc.integer({ min: 1, max: 99 })

  it("is absent from a written schedule: it is kept to the millisecond", () => {
    fc.assert(
      fc.property(failure, die, (failure, die) => {
        expect(retryWaitMs(presets.webhook, failure, die)).toBe(retryWaitMs(presets.webhook, failure, 0))
      })
    )
  })

  it("spreads a schedule that asks for it", () => {
    const policy: RetryPolicyType = { strategy: "schedule", waitsMs: [1_000], jitter: [0.9, 1.1] }
    expect([0, 0.5, 1].map((die) => retryWaitMs(policy, 1, die))).toEqual([900, 1_000, 1_100])
  })

  it.each(["exponential", "linear", "fixed"] as const)("spreads %s between a half and one and a half", (strategy) => {
    const policy: RetryPolicyType = { strategy, baseMs: 1_000, capMs: 60_000 }
    expect([0, 0.5, 1].map((die) => retryWaitMs(policy, 1, die))).toEqual([500, 1_000, 1_500])
    fc.assert(
      fc.property(failure, die, (failure, die) => {
        const plain = retryWaitMs({ ...policy, jitter: [1, 1] }, failure, die)
        const wait = retryWaitMs(policy, failure, die)
        expect(wait).toBeGreaterThanOrEqual(plain / 2)
        expect(wait).toBeLessThanOrEqual(plain * 1.5)
        expect(Number.isInteger(wait)).toBe(true)
      })
    )
  })

  it("follows the range it was given", () => {
    const policy: RetryPolicyType = { strategy: "fixed", baseMs: 1_000, jitter: [1, 3] }
    expect([0, 0.5, 1].map((die) => retryWaitMs(policy, 1, die))).toEqual([1_000, 2_000, 3_000])
  })
})

describe("a Retry-After", () => {
  it("lengthens the wait and never shortens it", () => {
    expect(retryWaitMs(presets.webhook, 1, 0.5, 1_001)).toBe(1_001)
    expect(retryWaitMs(presets.webhook, 1, 0.5, 999)).toBe(1_000)
    expect(retryWaitMs(presets.webhook, 1, 0.5, null)).toBe(1_000)
  })

  it("counts for an hour at most", () => {
    expect(RETRY_AFTER_MAX_MS).toBe(3_600_000)
    expect(retryWaitMs(presets.webhook, 1, 0.5, 3_600_001)).toBe(3_600_000)
    expect(retryWaitMs(presets.whatsapp, 5, 0.5, 86_400_000)).toBe(21_600_000)
  })
})

describe("a deferral", () => {
  it("is as long as it was asked for, within a week", () => {
    expect(DEFER_MAX_MS).toBe(7 * 24 * 3_600_000)
    expect([-1, 0.6, 1_000, DEFER_MAX_MS + 1].map(deferWaitMs)).toEqual([0, 1, 1_000, DEFER_MAX_MS])
  })

  it("holds a whole lane for an hour at most", () => {
    expect([-1, 1_000, 3_600_001].map(laneWaitMs)).toEqual([0, 1_000, 3_600_000])
  })
})

describe("a policy at its bounds", () => {
  const year = 366 * 24 * 3_600_000

  it.each<[string, RetryPolicyType]>([
    ["the least schedule", { strategy: "schedule", waitsMs: [0], attemptsMax: 1, ageMaxMs: 0, jitter: [0, 0] }],
    [
      "the most of a schedule",
      { strategy: "schedule", waitsMs: Array(99).fill(year), ageMaxMs: year, jitter: [10, 10] }
    ],
    ["the least factor", { strategy: "exponential", baseMs: 0, capMs: 0, factor: 1 }],
    ["the greatest factor", { strategy: "exponential", baseMs: year, capMs: year, factor: 100, attemptsMax: 100 }]
  ])("is accepted: %s", (_, policy) => {
    expect(Schema.decodeUnknownSync(RetryPolicy)(policy)).toEqual(policy)
    const longest = retryWaitMs(policy, attemptsMaxOf(policy), 0.999)
    expect(longest).toBeLessThanOrEqual(10 * year)
  })
})

describe("a policy that makes no sense is refused, naming the field", () => {
  const schedule = { strategy: "schedule", waitsMs: [1_000] }
  const fixed = { strategy: "fixed", baseMs: 1_000 }
  const year = 366 * 24 * 3_600_000

  it.each<[string, unknown, string]>([
    ["no strategy", {}, `["strategy"]`],
    ["an unknown strategy", { strategy: "hourly", baseMs: 1 }, `["strategy"]`],
    ["a schedule without waits", { strategy: "schedule" }, `["waitsMs"]`],
    ["a schedule with an empty list", { strategy: "schedule", waitsMs: [] }, `["waitsMs"]`],
    ["a schedule of a hundred waits", { strategy: "schedule", waitsMs: Array(100).fill(1) }, `["waitsMs"]`],
    ["a negative wait", { strategy: "schedule", waitsMs: [1, -1] }, `["waitsMs"][1]`],
    ["a wait beyond a year", { strategy: "schedule", waitsMs: [year + 1] }, `["waitsMs"][0]`],
    ["a wait that is text", { strategy: "schedule", waitsMs: ["1s"] }, `["waitsMs"][0]`],
    ["no base", { strategy: "linear" }, `["baseMs"]`],
    ["half a millisecond", { ...fixed, baseMs: 0.5 }, `["baseMs"]`],
    ["a base that is not a number", { ...fixed, baseMs: Number.NaN }, `["baseMs"]`],
    ["a negative cap", { ...fixed, capMs: -1 }, `["capMs"]`],
    ["a factor that shrinks", { ...fixed, factor: 0.5 }, `["factor"]`],
    ["a factor beyond a hundred", { ...fixed, factor: 101 }, `["factor"]`],
    ["no attempt at all", { ...fixed, attemptsMax: 0 }, `["attemptsMax"]`],
    ["attempts without end", { ...schedule, attemptsMax: 101 }, `["attemptsMax"]`],
    ["a negative age", { ...schedule, ageMaxMs: -1 }, `["ageMaxMs"]`],
    ["jitter with one factor", { ...fixed, jitter: [1] }, `["jitter"]`],
    ["jitter from high to low", { ...fixed, jitter: [2, 1] }, `["jitter"]`],
    ["jitter into the past", { ...fixed, jitter: [-1, 1] }, `["jitter"][0]`],
    ["jitter beyond ten times", { ...fixed, jitter: [1, 11] }, `["jitter"][1]`],
    ["an age beyond a year", { ...schedule, ageMaxMs: year + 1 }, `["ageMaxMs"]`]
  ])("%s", (_, policy, field) => {
    const decoded = Schema.decodeUnknownResult(RetryPolicy)(policy)
    expect(Result.isFailure(decoded)).toBe(true)
    // Each line of the refusal that names a place names this one.
    const refusal = String(Result.isFailure(decoded) && decoded.failure)
    const places = [...refusal.matchAll(/ at (\[.*\])/g)].map(([, place]) => place!)
    expect(places.length > 0 ? places.filter((place) => !place.includes(field)) : refusal).toEqual(
      places.length > 0 ? [] : expect.stringContaining(field.slice(1, -1))
    )
  })
})
