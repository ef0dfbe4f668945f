import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  horizonOf,
  intervalOf,
  latenessOf,
  nextSlot,
  type RateLimit,
  type SlotsOfLane,
  slotsAfter,
  slotsFree,
  visitAt
} from "../../../src/domain/delivery/rateLimit.ts"

const fifty: RateLimit = { limit: 50, periodMs: 1_000 }
const untouched: SlotsOfLane = { nextSlotAt: null, returned: [] }

/** Visits a lane that always has more at the times given, when it is worth it, and answers the slots it hands out. */
const handedOut = (rate: RateLimit, visits: ReadonlyArray<number>): ReadonlyArray<number> => {
  let lane = untouched
  return visits.flatMap((now) => {
    if (lane.nextSlotAt !== null && now < visitAt(rate, lane.nextSlotAt)) return []
    const slots = slotsFree(rate, lane, now, 500)
    if (slots.length > 0) lane = slotsAfter(rate, lane, slots.at(-1)!)
    return slots
  })
}

/** The most that came within any `width` milliseconds. */
const fullest = (times: ReadonlyArray<number>, width: number) => {
  const sorted = times.toSorted((a, b) => a - b)
  let [most, first] = [0, 0]
  for (const [nth, at] of sorted.entries()) {
    while (sorted[first]! <= at - width) first++
    most = Math.max(most, nth - first + 1)
  }
  return most
}

const every = (ms: number, until: number) => Array.from({ length: Math.floor(until / ms) }, (_, n) => n * ms)

describe("a rate limit", () => {
  it("hands out slots of the next moments, evenly spaced", () => {
    const slots = slotsFree(fifty, untouched, 1_000, 500)
    expect(slots).toHaveLength(50)
    expect(slots.slice(0, 3)).toEqual([1_000, 1_020.4, 1_040.8])
    expect(slots.at(-1)!).toBeLessThanOrEqual(1_000 + horizonOf(fifty))
  })

  it.each([fifty, { limit: 1_000, periodMs: 1_000 }, { limit: 3, periodMs: 1_000 }, { limit: 5, periodMs: 100 }])(
    "hands out 0.98 of the limit, also when it is visited late: $limit in $periodMs ms",
    (rate) => {
      for (const pause of [5, 50, 120]) {
        const slots = handedOut(rate, every(pause, 21_000)).filter((at) => at < 20_000)
        expect(slots.length).toBeGreaterThanOrEqual(Math.floor((0.98 * 20_000 * rate.limit) / rate.periodMs))
      }
    }
  )

  it("loses the slots of a visit that comes much too late", () => {
    expect(handedOut(fifty, every(2_000, 20_000)).length).toBeLessThan(510)
  })

  it("saves nothing up while nobody asks", () => {
    expect(handedOut(fifty, [0, 60_000, 60_001])).toHaveLength(100)
  })

  it("hands out slots that came back first, and each once", () => {
    const slots = slotsFree(fifty, untouched, 0, 5)
    const lane = { ...slotsAfter(fifty, untouched, slots.at(-1)!), returned: slots.slice(2, 4) }
    const again = slotsFree(fifty, lane, 10, 3)
    expect(again).toEqual([...slots.slice(2, 4), lane.nextSlotAt])
    expect(slotsAfter(fifty, lane, again[0]!)).toEqual({ ...lane, returned: [slots[3]] })
    expect(slotsFree(fifty, lane, slots[3]! + 1, 1)).toEqual([lane.nextSlotAt])
  })

  it("has a slot for a request that missed its own, unless the next one is far away", () => {
    const lane = { nextSlotAt: 500, returned: [90, 120] }
    expect(nextSlot(lane, 50, 100)).toBe(120)
    expect(nextSlot(lane, 50, 130)).toBe(500)
    expect(nextSlot({ ...lane, nextSlotAt: 5_000 }, 50, 130)).toBeNull()
    expect(nextSlot(untouched, 50, 60)).toBe(60)
  })

  it("is never exceeded in any period, a second at least, however it is visited and however late in their slots requests leave", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 400 }),
        fc.constantFrom(100, 700, 1_000, 2_000, 60_000),
        fc.array(fc.tuple(fc.integer({ min: 0, max: 300 }), fc.double({ min: 0, max: 1, noNaN: true })), {
          minLength: 20,
          maxLength: 100
        }),
        (limit, periodMs, draws) => {
          const rate = { limit, periodMs }
          let now = 0
          const slots = handedOut(
            rate,
            draws.map(([gap]) => (now += gap))
          )
          const left = slots.map((at, nth) => at + latenessOf(rate) * draws[nth % draws.length]![1])
          const periods = Math.ceil(1_000 / periodMs)
          expect(fullest(left, periods * periodMs)).toBeLessThanOrEqual(periods * limit)
        }
      ),
      { numRuns: 40 }
    )
  })

  it("is further apart than the limit says by a fiftieth at most", () => {
    expect(intervalOf(fifty)).toBeCloseTo(20.4)
    expect(intervalOf({ limit: 1, periodMs: 86_400_000 })).toBe(86_402_000)
  })
})
