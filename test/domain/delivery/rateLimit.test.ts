import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type RateLimit, slotsFree, taken } from "../../../src/domain/delivery/rateLimit.ts"

const fifty: RateLimit = { limit: 50, periodMs: 1_000 }

/** Visits a lane that always has more at the times given, and answers when each message was handed out. */
const handedOut = (rate: RateLimit, visits: ReadonlyArray<number>): ReadonlyArray<number> => {
  let nextClaimAt: number | null = null
  return visits.flatMap((now) => {
    if (nextClaimAt !== null && now < nextClaimAt) return []
    const count = slotsFree(rate, nextClaimAt, now)
    if (count > 0) nextClaimAt = taken(rate, nextClaimAt, now, count)
    return Array.from({ length: count }, () => now)
  })
}

/** The most that came within any `width` milliseconds. */
const fullest = (times: ReadonlyArray<number>, width: number) =>
  Math.max(0, ...times.map((from) => times.filter((at) => at >= from && at < from + width).length))

const every = (ms: number, until: number) => Array.from({ length: Math.floor(until / ms) }, (_, n) => n * ms)

describe("a rate limit", () => {
  it("hands out a small burst first, then one by one", () => {
    expect(slotsFree(fifty, null, 0)).toBe(2)
    const nextClaimAt = taken(fifty, null, 0, 2)
    expect(nextClaimAt).toBe(20)
    expect(slotsFree(fifty, nextClaimAt, 20)).toBe(1)
  })

  it("hands out what it promises, to whoever asks often enough", () => {
    expect(handedOut(fifty, every(5, 10_000)).length).toBeGreaterThan(495)
    expect(handedOut({ limit: 1_000, periodMs: 1_000 }, every(5, 2_000)).length).toBeGreaterThan(1_950)
  })

  it("hands out one by one where a burst would be too many", () => {
    const slow = { limit: 3, periodMs: 1_000 }
    expect(handedOut(slow, every(1, 2_000))).toEqual([0, 314, 647, 980, 1_314, 1_647, 1_980])
  })

  it("makes up for a visit that comes a little late, and not for one that comes much too late", () => {
    const slow = { limit: 10, periodMs: 1_000 }
    expect(handedOut(slow, every(20, 10_000)).length).toBeGreaterThanOrEqual(100)
    expect(handedOut(slow, every(150, 10_000))).toHaveLength(66)
  })

  it("saves nothing up while nobody asks", () => {
    expect(handedOut(fifty, [0, 60_000, 60_001])).toHaveLength(4)
  })

  it("counts only what was taken", () => {
    const nextClaimAt = taken(fifty, null, 0, 1)
    expect(slotsFree(fifty, nextClaimAt, 0)).toBe(1)
  })

  it("is never exceeded by more than 45 ms worth and one, in any period, however it is visited", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 400 }),
        fc.constantFrom(1_000, 2_000, 60_000),
        fc.array(fc.integer({ min: 0, max: 300 }), { maxLength: 300 }),
        (limit, periodMs, gaps) => {
          let now = 0
          const visits = gaps.map((gap) => (now += gap))
          const most = fullest(handedOut({ limit, periodMs }, visits), periodMs)
          expect(most).toBeLessThanOrEqual(limit + (limit * 45) / periodMs + 1)
        }
      )
    )
  })
})
