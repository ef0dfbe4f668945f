/** The database's time between two questions: near, never backwards, whatever the answers need and whatever clocks do. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { makeTime } from "../../../src/adapters/postgres/time.ts"
import "../../propertySeed.ts"

/** The database was asked `asked` and answered `tripMs` later; it read its clock after `share` of that. */
const answerOf = (asked: number, tripMs: number, share: number, offset: number) => ({
  asked,
  answered: asked + tripMs,
  said: asked + tripMs * share + offset
})

const trips = fc.array(
  fc.record({
    afterMs: fc.integer({ min: 1, max: 60_000 }),
    tripMs: fc.oneof(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 0, max: 5_000 })),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
    /** Now and then the database's clock is set, or another database answers. */
    jumpMs: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: -600_000, max: 600_000 }))
  }),
  { minLength: 1, maxLength: 60 }
)

describe("the database's time", () => {
  it("is wrong by half a question's trip at most, as long as nobody sets the clock", () => {
    fc.assert(
      fc.property(trips, fc.integer({ min: 0, max: 2e12 }), (asked, offset) => {
        let now = 1_000
        const time = makeTime(answerOf(now, 4, 0.5, offset))
        now += 4
        let worst = 2
        for (const { afterMs, tripMs, share } of asked) {
          now += afterMs
          time.learn(answerOf(now, tripMs, share, offset))
          now += tripMs
          worst = Math.max(worst, tripMs / 2)
          expect(Math.abs(time.at(now) - now - offset)).toBeLessThan(worst + 1)
        }
      })
    )
  })

  it("never goes back, also where the clock is set back", () => {
    fc.assert(
      fc.property(trips, (asked) => {
        let now = 1_000
        let offset = 1_700_000_000_000
        const time = makeTime(answerOf(now, 4, 0.5, offset))
        now += 4
        let last = time.at(now)
        const look = (at: number) => {
          expect(time.at(at)).toBeGreaterThanOrEqual(last)
          last = time.at(at)
        }
        for (const { afterMs, tripMs, share, jumpMs } of asked) {
          for (const part of [0.1, 0.3, 1]) look(now + afterMs * part)
          now += afterMs
          offset += jumpMs
          time.learn(answerOf(now, tripMs, share, offset))
          now += tripMs
          look(now)
        }
      })
    )
  })

  it("is right again after the clock was set: at once where it was behind, at half speed where it was ahead", () => {
    const offset = 1_700_000_000_000
    const later = makeTime(answerOf(0, 2, 0.5, offset))
    later.learn(answerOf(10_000, 2, 0.5, offset + 60_000))
    expect(later.at(10_002) - 10_002 - offset).toBeCloseTo(60_000, 0)
    const earlier = makeTime(answerOf(0, 2, 0.5, offset))
    earlier.learn(answerOf(10_000, 2, 0.5, offset - 60_000))
    expect(earlier.at(10_002 + 60_000) - offset - 70_002).toBeCloseTo(-30_000, 0)
    expect(earlier.at(10_002 + 130_000) - offset - 140_002).toBeCloseTo(-60_000, 0)
  })

  it("goes by the quickest of the last answers, and not by a slow one that came later", () => {
    const time = makeTime(answerOf(0, 2, 0.5, 0))
    time.learn(answerOf(20_000, 4_000, 1, 0))
    expect(Math.abs(time.at(40_000) - 40_000)).toBeLessThan(10)
  })

  it("forgets what another clock said, however quick it was", () => {
    const time = makeTime(answerOf(0, 1, 0.5, 0))
    for (const [nth, offset] of [0, 0, 60_000, 60_000].entries()) {
      time.learn(answerOf(10_000 * (nth + 1), offset === 0 ? 1 : 40, 0.5, offset))
    }
    expect(Math.abs(time.at(41_000) - 101_000)).toBeLessThan(30)
  })

  it("is not believed when it is an hour off", () => {
    const time = makeTime(answerOf(0, 2, 0.5, 0))
    expect(time.learn(answerOf(10, 2, 0.5, 3_700_000))).toBe(false)
    expect(time.learn(answerOf(20, 2, 0.5, -3_700_000))).toBe(false)
    expect(time.at(100)).toBeCloseTo(100, 0)
  })
})
