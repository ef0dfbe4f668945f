/** A short campaign of faults (test/chaos), always the same one. `npm run chaos` runs long ones, and judges times too. */
import { it } from "@effect/vitest"
import { Effect } from "effect"
import { describe, expect } from "vitest"
import { campaign } from "../chaos/campaign.ts"
import { type Kind, kinds, planOf } from "../chaos/plan.ts"
import { ownDirectory } from "../servers/leftovers.ts"
import { PATIENCE_MS } from "../servers/until.ts"

/** Filling a disk takes a right that not everybody has; silence has a test of its own, and takes long. */
const struck: ReadonlyArray<Kind> = ["kill", "freeze", "wrongClock", "crashDatabase"]

describe("a campaign of faults", () => {
  it.live(
    "loses no message, leaves none behind and sends none out of order",
    () =>
      Effect.gen(function* () {
        const home = yield* ownDirectory
        const report = yield* Effect.promise(() =>
          campaign({
            home,
            seed: 5,
            isOver: (rounds) => rounds === 3,
            kinds: struck,
            faultLastsMaxMs: 1_500,
            roles: ["api,worker,projector", "api,worker"],
            programs: null,
            smallDisk: false,
            leaseMs: 1_000,
            clients: 4,
            pauseMs: 100,
            patienceMs: 15_000,
            restMs: PATIENCE_MS,
            say: () => {}
          })
        )
        const { lost, outOfOrder, strange, stuck, miscounted, verified, endedByThemselves } = report
        expect({ lost, outOfOrder, strange, stuck, miscounted, endedByThemselves }).toEqual({
          lost: [],
          outOfOrder: [],
          strange: [],
          stuck: 0,
          miscounted: null,
          endedByThemselves: []
        })
        expect(verified.said).toContain("no violation")
        expect(verified.exitCode).toBe(0)
        expect(report.delivered).toBe(report.accepted)
        expect(report.lines).toBeGreaterThan(10)
      }),
    PATIENCE_MS * 5
  )

  it("is drawn from its seed, and sees every kind of fault before one comes again", () => {
    const drawn = (seed: number) => {
      const plan = planOf(seed, { processes: 3, kinds, lastsMaxMs: 1_000 })
      return Array.from({ length: 40 }, () => plan.next().value)
    }
    expect(drawn(7)).toEqual(drawn(7))
    expect(drawn(8)).not.toEqual(drawn(7))
    const first = drawn(7).flatMap(({ faults }) => faults.map(({ type }) => type))
    expect(new Set(first.slice(0, kinds.length * 2))).toEqual(new Set(kinds))
    for (const { faults } of drawn(7)) for (const { lastsMs } of faults) expect(lastsMs).toBeLessThanOrEqual(1_000)
  })
})
