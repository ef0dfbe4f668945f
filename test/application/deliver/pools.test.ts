import { Effect } from "effect"
import fc from "fast-check"
import { beforeEach, describe, expect, it } from "vitest"
import { type Attempt, makePools, type Pools } from "../../../src/application/deliver/pools.ts"
import { DestinationId, OrgId } from "../../../src/domain/ids.ts"

const lane = (n: number) => DestinationId.make(`00000000-0000-4000-8000-${String(n).padStart(12, "0")}`)
const [a, b, c] = [lane(1), lane(2), lane(3)]
const org = OrgId.make("one")
const other = OrgId.make("other")

let now = 0
/** Those that started and have not ended. */
let underWay: Array<Attempt<string>> = []
let pools: Pools<string>

const open = (size: number) => {
  underWay = []
  pools = makePools<string>(
    size,
    () => now,
    (attempt) => void underWay.push(attempt)
  )
}

beforeEach(() => open(64))

const offer = (
  id: DestinationId,
  items: ReadonlyArray<string>,
  wishes: Partial<Parameters<typeof pools.offer>[0]> = {}
) => pools.offer({ lane: id, org, capacity: 100, limit: null, isRateLimited: false, items, ...wishes })

const many = (count: number) => Array.from({ length: count }, (_, nth) => String(nth))

/** The messages that started since the last call, in their order. */
let seen = 0
beforeEach(() => {
  seen = 0
})
const started = () => {
  const items = underWay.slice(seen).map(({ item }) => item)
  seen = underWay.length
  return items
}

const end = (id: DestinationId, { count = 1, hasAnswered = true, isUnreported = false } = {}) => {
  for (const attempt of underWay.filter((one) => one.lane.id === id).slice(0, count)) {
    const at = underWay.indexOf(attempt)
    underWay.splice(at, 1)
    if (at < seen) seen -= 1
    pools.ended(attempt, { hasAnswered, isUnreported })
  }
}

/** Makes it a lane whose destination has answered, quickly. */
const know = (id: DestinationId, wishes: Parameters<typeof offer>[2] = {}) => {
  offer(id, ["first"], wishes)
  end(id)
  started()
}

const roomOf = (id: DestinationId) => pools.room().lanes.get(id)

describe("which message starts next", () => {
  it("is of the lanes in turn, each in its own order", () => {
    open(1)
    for (const id of [a, b, c]) know(id)
    offer(lane(9), ["x"])
    started()
    offer(a, ["a1", "a2", "a3"])
    offer(b, ["b1"])
    offer(c, ["c1", "c2"])
    const order: Array<string> = []
    for (let id = lane(9); underWay.length > 0; id = underWay[0]?.lane.id ?? id) {
      end(id)
      order.push(...started())
    }
    expect(order).toEqual(["a1", "b1", "c1", "a2", "c2", "a3"])
  })

  it("is none of a lane that has as many under way as its destination allows", () => {
    know(a, { capacity: 2 })
    offer(a, ["a1", "a2", "a3", "a4"], { capacity: 2 })
    expect(started()).toEqual(["a1", "a2"])
    end(a)
    expect(started()).toEqual(["a3"])
  })

  it("is none of a lane while its failures are not reported", () => {
    know(a, { capacity: 2 })
    offer(a, ["a1", "a2", "a3"], { capacity: 2 })
    started()
    end(a, { count: 2, isUnreported: true })
    expect(started()).toEqual([])
    now += 3_600_000
    pools.room()
    pools.reported(a, 1)
    expect(started()).toEqual(["a3"])
  })

  it("follows the limit of a lane while it has one", () => {
    know(a)
    offer(a, ["a1", "a2", "a3", "a4"], { limit: 1 })
    expect(started()).toEqual(["a1"])
    pools.limit(a, 2)
    expect(started()).toEqual(["a2"])
    pools.limit(a, null)
    expect(started()).toEqual(["a3", "a4"])
  })

  it("is none that was withdrawn, and the rest go on", () => {
    know(a)
    offer(a, ["old1", "a1", "old2"], { capacity: 0 })
    expect(pools.withdraw(a, (item) => item.startsWith("old"))).toEqual(["old1", "old2"])
    offer(a, ["a2"])
    expect(started()).toEqual(["a1", "a2"])
    offer(a, ["a3"], { capacity: 0 })
    expect(pools.drain()).toEqual(["a3"])
    offer(a, [])
    expect(started()).toEqual([])
  })
})

describe("a destination that has never answered", () => {
  it("has two under way, and all that it allows once it has answered", () => {
    offer(a, many(8))
    expect(started()).toHaveLength(2)
    now += 15_000
    end(a, { hasAnswered: false })
    expect(started()).toHaveLength(1)
    now += 15_000
    end(a)
    expect(started().length).toBeGreaterThan(2)
  })

  it("starts nothing where its org has half of the slow pool", () => {
    for (let n = 0; n < 400; n++) {
      offer(lane(100 + n), many(8))
      now += 1_100
      pools.sweep()
    }
    expect(started()).toHaveLength(256)
    expect(pools.room().fullOrgs).toEqual(new Set([org]))
    offer(a, ["a"], { org: other })
    expect(started()).toEqual(["a"])
  })
})

describe("an attempt that takes longer than a second", () => {
  it("leaves its place to others, and its lane takes no other one", () => {
    open(8)
    know(a)
    know(b)
    offer(a, many(7))
    offer(b, many(3))
    expect(started()).toHaveLength(7)
    now += 1_100
    pools.sweep()
    expect(started()).toHaveLength(3)
    offer(a, many(20))
    // The slow pool has 64 places, and an org half of it.
    expect(started()).toHaveLength(20)
    offer(c, ["c"])
    expect(started()).toEqual(["c"])
  })

  it("moves after a quarter of a second while others wait for its place", () => {
    open(8)
    know(a)
    know(b)
    offer(a, many(20))
    offer(b, ["b"])
    expect(started()).not.toContain("b")
    now += 300
    pools.sweep()
    expect(started()).toContain("b")
  })

  it("is the last one of its lane for a while: the next starts in the slow pool, and a quick one ends that", () => {
    open(1)
    know(a)
    offer(a, ["slow"])
    now += 1_100
    pools.sweep()
    end(a)
    offer(a, ["next"])
    offer(b, ["b"])
    expect(started()).toEqual(["next", "b"])
    end(b)
    end(a)
    offer(a, ["quick"])
    offer(b, ["b"])
    expect(started()).toEqual(["quick"])
  })

  it("gives back what its lane holds and can't start, and nothing more is asked for", () => {
    know(a)
    offer(a, many(20), { capacity: 2 })
    now += 1_100
    expect(pools.sweep()).toEqual(many(20).slice(2))
    expect(roomOf(a)).toBe(0)
    end(a)
    expect(roomOf(a)).toBe(1)
  })
})

describe("an org", () => {
  it("leaves an eighth of the quick pool, and a quarter while its destinations have never answered", () => {
    offer(a, ["a"])
    for (let n = 0; n < 100; n++) offer(lane(100 + n), ["new"])
    expect(started()).toHaveLength(48)
    end(a)
    offer(a, many(60))
    expect(started()).toHaveLength(9)
    for (let n = 0; n < 50; n++) offer(lane(300 + n), ["new"], { org: other })
    expect(started().length).toBeGreaterThan(4)
  })

  it("that holds what may be held gives only from its quick lanes that ran out", () => {
    open(1)
    know(b)
    know(a)
    offer(c, ["c"], { org: other })
    offer(a, many(600), { capacity: 0 })
    const { lanes, fullOrgs, left } = pools.room()
    expect([fullOrgs.has(org), lanes.get(a), lanes.get(b), left]).toEqual([true, 0, 16, 400])
  })
})

describe("what is claimed in advance", () => {
  it("is as much as a quick lane has sent lately, and little of one that does not move", () => {
    know(a, { capacity: 4 })
    know(b, { capacity: 4 })
    offer(a, many(4), { capacity: 4 })
    for (let n = 0; n < 100; n++) {
      offer(b, ["b"], { capacity: 4 })
      end(b)
    }
    expect(roomOf(a)).toBe(16)
    offer(b, ["b"], { capacity: 4 })
    for (let n = 0; n < 100; n++) {
      end(b)
      offer(b, ["b"], { capacity: 4 })
    }
    expect(roomOf(b)).toBe(500 + 3)
  })

  it("is nothing of a lane with a rate limit, beyond what can start", () => {
    know(a)
    offer(a, ["a"], { capacity: 3, isRateLimited: true })
    expect(roomOf(a)).toBe(2)
  })

  it("is asked for when a lane runs out, also if that was before", async () => {
    know(a)
    offer(a, many(3))
    await Effect.runPromise(pools.wantsMore)
    const waiting = Effect.runFork(pools.wantsMore)
    expect(waiting.pollUnsafe()).toBeUndefined()
    offer(a, many(3))
    await Effect.runPromise(
      Effect.timeout(
        Effect.callback<void>((resume) => {
          waiting.addObserver(() => resume(Effect.void))
        }),
        "1 second"
      )
    )
  })
})

it("the pools have all their places again when all has ended, whatever happened before", () => {
  const steps = fc.array(
    fc.tuple(
      fc.constantFrom(
        ...[
          "offer",
          "offer",
          "offer",
          "end",
          "end",
          "end",
          "fail",
          "report",
          "limit",
          "withdraw",
          "room",
          "sweep",
          "wait"
        ]
      ),
      fc.nat({ max: 5 }),
      fc.nat({ max: 3_000 })
    ),
    { minLength: 50, maxLength: 200, size: "max" }
  )
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 20 }), (drawn, size) => {
      open(size)
      const unreported: Array<DestinationId> = []
      let waiting = 0
      for (const [step, n, amount] of drawn) {
        const id = lane(n)
        const before = underWay.length
        if (step === "offer") {
          waiting += amount % 7
          offer(id, many(amount % 7), { org: OrgId.make(`org-${n % 3}`), capacity: 4 })
        } else if (step === "end" || step === "fail") {
          const attempt = underWay.splice(amount % Math.max(1, underWay.length), 1)[0]
          if (attempt === undefined) continue
          if (step === "fail") unreported.push(attempt.lane.id)
          const left = underWay.length
          pools.ended(attempt, { hasAnswered: amount % 2 === 0, isUnreported: step === "fail" })
          waiting -= underWay.length - left
          continue
        } else if (step === "report") {
          const failed = unreported.shift()
          if (failed !== undefined) pools.reported(failed, 1)
        } else if (step === "limit") pools.limit(id, amount % 2 === 0 ? null : 1)
        else if (step === "withdraw") waiting -= pools.withdraw(id, () => true).length
        else if (step === "sweep") waiting -= pools.sweep().length
        else if (step === "room") pools.room()
        else now += amount
        waiting -= underWay.length - before
        expect(underWay.filter(({ inQuick }) => inQuick).length).toBeLessThanOrEqual(size)
        expect(underWay.filter(({ inSlow }) => inSlow).length).toBeLessThanOrEqual(8 * size)
      }
      waiting -= pools.drain().length
      expect(waiting).toBe(0)
      for (const attempt of underWay) pools.ended(attempt, { hasAnswered: true, isUnreported: false })
      // As many start as in pools where nothing ever happened.
      const startsIn = () => {
        underWay = []
        for (let n = 10; n < 40; n++) offer(lane(n), many(5), { org: OrgId.make(`org-${n % 2}`) })
        return underWay.length
      }
      const used = startsIn()
      open(size)
      expect(used).toBe(startsIn())
    }),
    { numRuns: 300 }
  )
})
