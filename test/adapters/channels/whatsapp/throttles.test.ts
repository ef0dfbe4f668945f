import { describe, expect, it } from "vitest"
import { makeThrottles } from "../../../../src/adapters/channels/whatsapp/WhatsAppChannel.ts"

describe("a wait", () => {
  it("grows fourfold from refusal to refusal, up to an hour, and is over after a success", () => {
    const throttles = makeThrottles()
    let now = 0
    const waits = Array.from({ length: 8 }, () => {
      const wait = throttles.refused("a", now, 0)
      now += wait
      return wait
    })
    expect(waits).toEqual([1_000, 4_000, 16_000, 64_000, 256_000, 1_024_000, 3_600_000, 3_600_000])
    throttles.passed("a", now)
    expect(throttles.refused("a", now, 0)).toBe(1_000)
  })

  it("is not made longer by what was refused during it, nor ended by what was taken before it", () => {
    const throttles = makeThrottles()
    expect(throttles.refused("a", 0, 6_000)).toBe(6_000)
    expect(throttles.refused("a", 2_000, 6_000)).toBe(4_000)
    throttles.passed("a", 2_000)
    expect([throttles.waitMs("a", 2_000), throttles.waitMs("a", 6_000), throttles.waitMs("b", 0)]).toEqual([
      4_000, 0, 0
    ])
    expect(throttles.refused("a", 6_000, 6_000)).toBe(6_000)
    expect(throttles.refused("a", 12_000, 6_000)).toBe(16_000)
  })

  it("is forgotten, the oldest first, when there are too many", () => {
    const throttles = makeThrottles()
    for (let n = 0; n <= 10_000; n++) throttles.refused(String(n), 0, 0)
    expect([throttles.waitMs("0", 0), throttles.waitMs("1", 0)]).toEqual([0, 1_000])
  })
})
