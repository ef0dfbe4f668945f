import { Effect, Fiber } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { makeWaitingRoom, type WaitingRoom } from "../../../src/application/deliver/waitingRoom.ts"
import { DestinationId, OrgId } from "../../../src/domain/ids.ts"

const lane = (n: number) => DestinationId.make(`00000000-0000-4000-8000-${String(n).padStart(12, "0")}`)
const [a, b, c] = [lane(1), lane(2), lane(3)]

const org = OrgId.make("one")
let now = 0

/** What could be taken right now, without parking. */
const takeAll = (waitingRoom: ReturnType<typeof makeWaitingRoom<string>>) => {
  const taken: Array<string> = []
  for (;;) {
    const fiber = Effect.runFork(waitingRoom.take)
    const exit = fiber.pollUnsafe()
    if (exit === undefined) {
      Effect.runFork(Fiber.interrupt(fiber))
      return taken
    }
    if (exit._tag === "Success") taken.push(exit.value)
  }
}

/** What a look finds that slow lanes should give back. */
const surplusOf = (waitingRoom: WaitingRoom<string>): ReadonlyArray<string> => {
  const fiber = Effect.runFork(waitingRoom.surplus)
  waitingRoom.room()
  const exit = fiber.pollUnsafe()
  if (exit?._tag === "Success") return exit.value
  Effect.runFork(Fiber.interrupt(fiber))
  return []
}

describe("the inbox", () => {
  it("gives from lanes in turn, each in its own order", () => {
    const waitingRoom = makeWaitingRoom<string>(1_000, () => now)
    waitingRoom.offer(a, org, 10, ["a1", "a2", "a3"])
    waitingRoom.offer(b, org, 10, ["b1"])
    waitingRoom.offer(c, org, 10, ["c1", "c2"])
    expect(takeAll(waitingRoom)).toEqual(["a1", "b1", "c1", "a2", "c2", "a3"])
  })

  it("never has more of a lane under way than its capacity", () => {
    const waitingRoom = makeWaitingRoom<string>(1_000, () => now)
    waitingRoom.offer(a, org, 2, ["a1", "a2", "a3", "a4"])
    expect(takeAll(waitingRoom)).toEqual(["a1", "a2"])
    expect(takeAll(waitingRoom)).toEqual([])
    waitingRoom.ended(a, 1)
    expect(takeAll(waitingRoom)).toEqual(["a3"])
  })

  it("goes on with a lane whose failures held all its places, once they are reported", () => {
    const waitingRoom = makeWaitingRoom<string>(1_000, () => now)
    waitingRoom.offer(a, org, 2, ["a1", "a2", "a3", "a4"])
    takeAll(waitingRoom)
    for (let nth = 0; nth < 2; nth++) waitingRoom.ended(a, 1, true)
    expect(takeAll(waitingRoom)).toEqual([])
    waitingRoom.reported(a, 1)
    expect(takeAll(waitingRoom)).toEqual(["a3"])
  })

  it("keeps to a tighter limit while a lane has one, and to its capacity again afterwards", () => {
    const waitingRoom = makeWaitingRoom<string>(1_000, () => now)
    waitingRoom.offer(a, org, 4, ["a1", "a2", "a3", "a4", "a5", "a6"], 1)
    expect(waitingRoom.startable()).toBe(1)
    expect(takeAll(waitingRoom)).toEqual(["a1"])
    waitingRoom.limit(a, 2)
    expect(takeAll(waitingRoom)).toEqual(["a2"])
    waitingRoom.limit(a, null)
    expect(takeAll(waitingRoom)).toEqual(["a3", "a4"])
    waitingRoom.ended(a, 1)
    waitingRoom.limit(a, 1)
    expect(takeAll(waitingRoom)).toEqual([])
    expect(waitingRoom.startable()).toBe(0)
  })

  it("tells the feeder when a lane may have more", async () => {
    const waitingRoom = makeWaitingRoom<string>(1_000, () => now)
    let told = false
    const waiting = Effect.runPromise(waitingRoom.wantsMore).then(() => {
      told = true
    })
    expect(told).toBe(false)
    waitingRoom.limit(a, 2)
    await waiting
  })

  it("takes back what matches, and goes on with the rest", () => {
    const waitingRoom = makeWaitingRoom<string>(1_000, () => now)
    waitingRoom.offer(a, org, 4, ["a1", "a2", "old3", "old4", "a5"])
    waitingRoom.offer(b, org, 4, ["old1"])
    expect(waitingRoom.withdraw(a, (item) => item.startsWith("old"))).toEqual(["old3", "old4"])
    expect(waitingRoom.withdraw(c, () => true)).toEqual([])
    expect(waitingRoom.withdraw(b, () => true)).toEqual(["old1"])
    expect(waitingRoom.startable()).toBe(3)
    expect(takeAll(waitingRoom)).toEqual(["a1", "a2", "a5"])
  })

  it("lets a lane that hangs hold up nobody else", () => {
    const waitingRoom = makeWaitingRoom<string>(1_000, () => now)
    waitingRoom.offer(a, org, 1, ["a1", "a2", "a3"])
    takeAll(waitingRoom)
    waitingRoom.offer(b, org, 5, ["b1", "b2"])
    expect(takeAll(waitingRoom)).toEqual(["b1", "b2"])
    expect(waitingRoom.startable()).toBe(0)
  })

  it("gives a new lane no more than it leaves idle for others, however many hang", () => {
    const waitingRoom = makeWaitingRoom<string>(8, () => now)
    const many = Array.from({ length: 20 }, (_, n) => `a${n}`)
    waitingRoom.offer(a, org, 100, many)
    expect(waitingRoom.startable()).toBe(3)
    expect(takeAll(waitingRoom)).toHaveLength(3)
    waitingRoom.offer(b, org, 100, many)
    expect(takeAll(waitingRoom)).toHaveLength(2)
    // They hang, and there is still an actor for another: it may try one.
    waitingRoom.offer(c, org, 100, ["c1", "c2"])
    expect(takeAll(waitingRoom)).toEqual(["c1"])
    // What becomes idle is kept for others first.
    now += 5_000
    waitingRoom.ended(a, 5_000)
    expect(takeAll(waitingRoom)).toEqual([])
  })

  it("leaves an org more than a trial when the new lanes of another one hang", () => {
    const waitingRoom = makeWaitingRoom<string>(64, () => now)
    for (let n = 10; n < 60; n++) waitingRoom.offer(lane(n), org, 100, Array(20).fill(String(n)))
    expect(takeAll(waitingRoom).length).toBeLessThan(48)
    waitingRoom.offer(a, OrgId.make("other"), 100, Array(20).fill("a"))
    expect(takeAll(waitingRoom).length).toBeGreaterThan(1)
  })

  it("lets a quick lane have all places but the last of the idle ones", () => {
    const waitingRoom = makeWaitingRoom<string>(8, () => now)
    waitingRoom.offer(a, org, 100, ["first"])
    takeAll(waitingRoom)
    waitingRoom.ended(a, 10)
    waitingRoom.offer(
      a,
      org,
      100,
      Array.from({ length: 20 }, (_, n) => `a${n}`)
    )
    expect(takeAll(waitingRoom)).toHaveLength(4)
  })

  it("has all its places again when all has ended, whatever happened before", () => {
    const lanes = Array.from({ length: 6 }, (_, n) => lane(n + 1))
    const steps = fc.array(
      fc.tuple(
        fc.constantFrom(
          ...["offer", "offer", "take", "take", "take", "take", "end", "end", "fail", "report"],
          ...["limit", "withdraw", "room", "surplus", "wait"]
        ),
        fc.nat({ max: 5 }),
        fc.nat({ max: 3_000 })
      ),
      { minLength: 50, maxLength: 200, size: "max" }
    )
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 20 }), (drawn, slots) => {
        let at = 0
        const waitingRoom = makeWaitingRoom<string>(slots, () => at)
        const underWay: Array<DestinationId> = []
        const unreported: Array<DestinationId> = []
        let waiting = 0
        const take = () => {
          const fiber = Effect.runFork(waitingRoom.take)
          const exit = fiber.pollUnsafe()
          if (exit?._tag !== "Success") return Effect.runFork(Fiber.interrupt(fiber))
          underWay.push(lane(Number(exit.value)))
          waiting -= 1
        }
        const one = (from: Array<DestinationId>, n: number) => from.splice(n % Math.max(from.length, 1), 1)[0]
        for (const [step, n, size] of drawn) {
          const id = lanes[n]!
          if (step === "offer") {
            const items = Array.from({ length: size % 7 }, () => String(n + 1))
            waitingRoom.offer(id, OrgId.make(`org-${n % 3}`), 4, items)
            waiting += items.length
          } else if (step === "take") take()
          else if (step === "end" || step === "fail") {
            const ended = one(underWay, n)
            if (ended === undefined) continue
            waitingRoom.ended(ended, size, step === "fail")
            if (step === "fail") unreported.push(ended)
          } else if (step === "report") {
            const reported = one(unreported, n)
            if (reported !== undefined) waitingRoom.reported(reported, 1)
          } else if (step === "limit") waitingRoom.limit(id, size % 2 === 0 ? null : 1)
          else if (step === "withdraw") waiting -= waitingRoom.withdraw(id, () => true).length
          else if (step === "surplus") waiting -= surplusOf(waitingRoom).length
          else if (step === "room") waitingRoom.room()
          else at += size
          expect(underWay.length).toBeLessThanOrEqual(slots)
        }
        for (const id of underWay) waitingRoom.ended(id, 1)
        for (const id of unreported) waitingRoom.reported(id, 1)
        for (const id of lanes) waitingRoom.limit(id, null)
        waiting -= waitingRoom.drain().length
        expect(waiting).toBe(0)
        // No place, share or trial was lost: as many can start as in a room where nothing ever happened.
        const startsIn = (room: WaitingRoom<string>) => {
          for (const n of [10, 12, 14, 16, 18, 20, 22, 24, 11, 13, 15, 17])
            room.offer(lane(n), OrgId.make(`org-${n % 2}`), 10, Array(10).fill(String(n)))
          return takeAll(room)
        }
        expect(startsIn(waitingRoom)).toEqual(startsIn(makeWaitingRoom<string>(slots, () => at)))
      }),
      { numRuns: 500 }
    )
  })

  it("hands back what a slow lane can't start soon, and asks for no more of it", () => {
    const waitingRoom = makeWaitingRoom<string>(8, () => now)
    waitingRoom.offer(
      a,
      org,
      2,
      Array.from({ length: 10 }, (_, n) => `a${n}`)
    )
    expect(takeAll(waitingRoom)).toEqual(["a0", "a1"])
    expect(surplusOf(waitingRoom)).toEqual([])
    now += 4_000
    // Two are under way for four seconds: one more will start within the next two.
    expect(surplusOf(waitingRoom)).toEqual(["a3", "a4", "a5", "a6", "a7", "a8", "a9"])
    expect(waitingRoom.room().lanes.get(a)).toBe(0)
    waitingRoom.ended(a, 4_000)
    waitingRoom.ended(a, 4_000)
    expect(takeAll(waitingRoom)).toEqual(["a2"])
    waitingRoom.ended(a, 4_000)
    // It is remembered as slow also while it has nothing.
    expect(waitingRoom.room().lanes.get(a)).toBe(2)
    now += 3_600_000
    expect(waitingRoom.room().lanes.has(a)).toBe(false)
  })

  it("takes more of an org that holds its part only from its quick lanes that have run out", () => {
    const waitingRoom = makeWaitingRoom<string>(1, () => now)
    waitingRoom.offer(b, org, 10, ["b1"])
    takeAll(waitingRoom)
    waitingRoom.ended(b, 5)
    expect(waitingRoom.room()).toMatchObject({ fullOrgs: new Set(), isFull: false })
    waitingRoom.offer(
      a,
      org,
      10,
      Array.from({ length: 400 }, (_, n) => `a${n}`)
    )
    const { lanes, fullOrgs, isFull } = waitingRoom.room()
    expect([fullOrgs.has(org), isFull, lanes.get(a), lanes.get(b)]).toEqual([true, false, 0, 64])
    waitingRoom.offer(
      a,
      org,
      10,
      Array.from({ length: 600 }, (_, n) => `a${n}`)
    )
    const over = waitingRoom.room()
    expect([over.isFull, over.lanes.get(b)]).toEqual([true, 0])
  })

  it("counts no more what it gave back", () => {
    const waitingRoom = makeWaitingRoom<string>(1, () => now)
    for (let round = 0; round < 5; round++) {
      waitingRoom.offer(a, org, 10, Array(400).fill("a"))
      expect(waitingRoom.withdraw(a, () => true)).toHaveLength(400)
    }
    expect(waitingRoom.room()).toMatchObject({ fullOrgs: new Set(), isFull: false })
  })

  it("takes a quick lane for quick although one of its messages took very long, and for slow after another one", () => {
    const waitingRoom = makeWaitingRoom<string>(8, () => now)
    const isSlowAfter = (tookMs: number) => {
      waitingRoom.offer(a, org, 1, ["a"])
      takeAll(waitingRoom)
      waitingRoom.ended(a, tookMs)
      // Of a lane that holds nothing only a slow one is remembered.
      return waitingRoom.room().lanes.has(a)
    }
    expect([10, 60_000, 60_000].map(isSlowAfter)).toEqual([false, false, true])
  })

  it("keeps places for quick lanes also when lanes hang that were quick before, and new ones of many orgs", () => {
    const waitingRoom = makeWaitingRoom<string>(16, () => now)
    const other = OrgId.make("other")
    waitingRoom.offer(a, org, 100, ["a"])
    waitingRoom.offer(b, other, 100, ["b"])
    takeAll(waitingRoom)
    for (const quick of [a, b]) waitingRoom.ended(quick, 10)
    waitingRoom.offer(a, org, 100, Array(20).fill("a"))
    expect(takeAll(waitingRoom)).toHaveLength(8)
    now += 5_000
    waitingRoom.room()
    // However many orgs have new lanes, which may hang as well.
    for (let n = 10; n < 30; n++) waitingRoom.offer(lane(n), OrgId.make(`org-${n}`), 100, Array(20).fill("new"))
    expect(new Set(takeAll(waitingRoom))).toEqual(new Set(["new"]))
    waitingRoom.offer(b, other, 100, ["b"])
    expect(takeAll(waitingRoom)).toEqual(["b"])
  })

  it("lets a lone lane use an only actor", () => {
    const waitingRoom = makeWaitingRoom<string>(1, () => now)
    waitingRoom.offer(a, org, 5, ["a1", "a2"])
    expect(takeAll(waitingRoom)).toEqual(["a1"])
    waitingRoom.ended(a, 1)
    expect(takeAll(waitingRoom)).toEqual(["a2"])
  })

  it("hands what arrives to an actor that waits for it", async () => {
    const waitingRoom = makeWaitingRoom<string>(1_000, () => now)
    const waiting = Effect.runPromise(waitingRoom.take)
    waitingRoom.offer(a, org, 1, ["a1"])
    expect(await waiting).toBe("a1")
  })

  it("gives nothing to an actor that stopped waiting", async () => {
    const waitingRoom = makeWaitingRoom<string>(1_000, () => now)
    const gone = Effect.runFork(waitingRoom.take)
    await Effect.runPromise(Fiber.interrupt(gone))
    waitingRoom.offer(a, org, 1, ["a1"])
    expect(takeAll(waitingRoom)).toEqual(["a1"])
  })

  it("wants little in advance of a lane that does not move, and more of one that does", () => {
    const waitingRoom = makeWaitingRoom<string>(1_000, () => now)
    waitingRoom.offer(a, org, 4, ["a1", "a2", "a3", "a4"])
    waitingRoom.offer(b, org, 4, ["b1", "b2", "b3", "b4"])
    takeAll(waitingRoom)
    for (let look = 0; look < 6; look++) waitingRoom.room().lanes
    const stuck = waitingRoom.room().lanes.get(a)!
    for (let n = 0; n < 100; n++) {
      waitingRoom.ended(b, 1)
      waitingRoom.offer(b, org, 4, [`b${n}`])
      takeAll(waitingRoom)
    }
    const room = waitingRoom.room().lanes
    expect(stuck).toBe(16)
    expect(room.get(a)).toBe(16)
    expect(room.get(b)).toBe(400)
  })

  it("wants nothing of a lane it already holds enough of", () => {
    const waitingRoom = makeWaitingRoom<string>(1_000, () => now)
    waitingRoom.offer(
      a,
      org,
      1,
      Array.from({ length: 100 }, (_, n) => `a${n}`)
    )
    for (let look = 0; look < 6; look++) waitingRoom.room().lanes
    expect(waitingRoom.room().lanes.get(a)).toBe(0)
  })

  it("forgets a lane that is empty and idle", () => {
    const waitingRoom = makeWaitingRoom<string>(1_000, () => now)
    waitingRoom.offer(a, org, 1, ["a1"])
    takeAll(waitingRoom)
    waitingRoom.ended(a, 1)
    expect([...waitingRoom.room().lanes]).toEqual([])
  })

  it("forgets no lane with failures that are not reported yet, however long that takes", () => {
    const waitingRoom = makeWaitingRoom<string>(1_000, () => now)
    waitingRoom.offer(a, org, 2, ["a1", "a2"])
    takeAll(waitingRoom)
    for (let nth = 0; nth < 2; nth++) waitingRoom.ended(a, 1, true)
    now += 3_600_000
    waitingRoom.room()
    waitingRoom.offer(a, org, 2, ["a3"])
    expect(takeAll(waitingRoom)).toEqual([])
    waitingRoom.reported(a, 2)
    expect(takeAll(waitingRoom)).toEqual(["a3"])
  })

  it("says when a lane could use more, also to who asks afterwards", async () => {
    const waitingRoom = makeWaitingRoom<string>(1_000, () => now)
    waitingRoom.offer(a, org, 2, ["a1", "a2"])
    takeAll(waitingRoom)
    await Effect.runPromise(waitingRoom.wantsMore)
    const waiting = Effect.runFork(waitingRoom.wantsMore)
    expect(waiting.pollUnsafe()).toBeUndefined()
    waitingRoom.offer(a, org, 3, ["a3"])
    takeAll(waitingRoom)
    await Effect.runPromise(Fiber.join(waiting))
  })

  it("gives back everything that was not taken, and counts it no more", () => {
    const waitingRoom = makeWaitingRoom<string>(1_000, () => now)
    waitingRoom.offer(a, org, 1, ["a1", "a2"])
    waitingRoom.offer(b, org, 1, ["b1"])
    takeAll(waitingRoom)
    expect(waitingRoom.drain()).toEqual(["a2"])
    waitingRoom.ended(a, 1)
    waitingRoom.ended(b, 1)
    expect(takeAll(waitingRoom)).toEqual([])
    expect(waitingRoom.startable()).toBe(0)
  })
})
