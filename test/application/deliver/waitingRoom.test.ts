import { Effect, Fiber } from "effect"
import { describe, expect, it } from "vitest"
import { makeWaitingRoom } from "../../../src/application/deliver/waitingRoom.ts"
import { DestinationId } from "../../../src/domain/ids.ts"

const lane = (n: number) => DestinationId.make(`00000000-0000-4000-8000-00000000000${n}`)
const [a, b, c] = [lane(1), lane(2), lane(3)]

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

describe("the inbox", () => {
  it("gives from lanes in turn, each in its own order", () => {
    const waitingRoom = makeWaitingRoom<string>(1_000)
    waitingRoom.offer(a, 10, ["a1", "a2", "a3"])
    waitingRoom.offer(b, 10, ["b1"])
    waitingRoom.offer(c, 10, ["c1", "c2"])
    expect(takeAll(waitingRoom)).toEqual(["a1", "b1", "c1", "a2", "c2", "a3"])
  })

  it("never has more of a lane under way than its capacity", () => {
    const waitingRoom = makeWaitingRoom<string>(1_000)
    waitingRoom.offer(a, 2, ["a1", "a2", "a3", "a4"])
    expect(takeAll(waitingRoom)).toEqual(["a1", "a2"])
    expect(takeAll(waitingRoom)).toEqual([])
    waitingRoom.ended(a)
    expect(takeAll(waitingRoom)).toEqual(["a3"])
  })

  it("keeps to a tighter limit while a lane has one, and to its capacity again afterwards", () => {
    const waitingRoom = makeWaitingRoom<string>(1_000)
    waitingRoom.offer(a, 4, ["a1", "a2", "a3", "a4", "a5", "a6"], 1)
    expect(waitingRoom.startable()).toBe(1)
    expect(takeAll(waitingRoom)).toEqual(["a1"])
    waitingRoom.limit(a, 2)
    expect(takeAll(waitingRoom)).toEqual(["a2"])
    waitingRoom.limit(a, null)
    expect(takeAll(waitingRoom)).toEqual(["a3", "a4"])
    waitingRoom.ended(a)
    waitingRoom.limit(a, 1)
    expect(takeAll(waitingRoom)).toEqual([])
    expect(waitingRoom.startable()).toBe(0)
  })

  it("tells the feeder when a lane may have more", async () => {
    const waitingRoom = makeWaitingRoom<string>(1_000)
    let told = false
    const waiting = Effect.runPromise(waitingRoom.wantsMore).then(() => {
      told = true
    })
    expect(told).toBe(false)
    waitingRoom.limit(a, 2)
    await waiting
  })

  it("takes back what matches, and goes on with the rest", () => {
    const waitingRoom = makeWaitingRoom<string>(1_000)
    waitingRoom.offer(a, 4, ["a1", "a2", "old3", "old4", "a5"])
    waitingRoom.offer(b, 4, ["old1"])
    expect(waitingRoom.withdraw(a, (item) => item.startsWith("old"))).toEqual(["old3", "old4"])
    expect(waitingRoom.withdraw(c, () => true)).toEqual([])
    expect(waitingRoom.withdraw(b, () => true)).toEqual(["old1"])
    expect(waitingRoom.startable()).toBe(3)
    expect(takeAll(waitingRoom)).toEqual(["a1", "a2", "a5"])
  })

  it("lets a lane that hangs hold up nobody else", () => {
    const waitingRoom = makeWaitingRoom<string>(1_000)
    waitingRoom.offer(a, 1, ["a1", "a2", "a3"])
    takeAll(waitingRoom)
    waitingRoom.offer(b, 5, ["b1", "b2"])
    expect(takeAll(waitingRoom)).toEqual(["b1", "b2"])
    expect(waitingRoom.startable()).toBe(0)
  })

  it("gives no lane more than it leaves idle, however many hang", () => {
    const waitingRoom = makeWaitingRoom<string>(8)
    const many = Array.from({ length: 20 }, (_, n) => `a${n}`)
    waitingRoom.offer(a, 100, many)
    expect(waitingRoom.startable()).toBe(4)
    expect(takeAll(waitingRoom)).toHaveLength(4)
    waitingRoom.offer(b, 100, many)
    expect(waitingRoom.startable()).toBe(2)
    expect(takeAll(waitingRoom)).toHaveLength(2)
    // They hang, and there is still an actor for another.
    waitingRoom.offer(c, 100, ["c1"])
    expect(takeAll(waitingRoom)).toEqual(["c1"])
    // What becomes idle is kept for others first.
    waitingRoom.ended(a)
    expect(takeAll(waitingRoom)).toEqual([])
    waitingRoom.ended(a)
    expect(takeAll(waitingRoom)).toEqual(["a4"])
  })

  it("lets a lone lane use an only actor", () => {
    const waitingRoom = makeWaitingRoom<string>(1)
    waitingRoom.offer(a, 5, ["a1", "a2"])
    expect(takeAll(waitingRoom)).toEqual(["a1"])
    waitingRoom.ended(a)
    expect(takeAll(waitingRoom)).toEqual(["a2"])
  })

  it("hands what arrives to an actor that waits for it", async () => {
    const waitingRoom = makeWaitingRoom<string>(1_000)
    const waiting = Effect.runPromise(waitingRoom.take)
    waitingRoom.offer(a, 1, ["a1"])
    expect(await waiting).toBe("a1")
  })

  it("gives nothing to an actor that stopped waiting", async () => {
    const waitingRoom = makeWaitingRoom<string>(1_000)
    const gone = Effect.runFork(waitingRoom.take)
    await Effect.runPromise(Fiber.interrupt(gone))
    waitingRoom.offer(a, 1, ["a1"])
    expect(takeAll(waitingRoom)).toEqual(["a1"])
  })

  it("wants little in advance of a lane that does not move, and more of one that does", () => {
    const waitingRoom = makeWaitingRoom<string>(1_000)
    waitingRoom.offer(a, 4, ["a1", "a2", "a3", "a4"])
    waitingRoom.offer(b, 4, ["b1", "b2", "b3", "b4"])
    takeAll(waitingRoom)
    for (let look = 0; look < 6; look++) waitingRoom.room()
    const stuck = waitingRoom.room().get(a)!
    for (let n = 0; n < 100; n++) {
      waitingRoom.ended(b)
      waitingRoom.offer(b, 4, [`b${n}`])
      takeAll(waitingRoom)
    }
    const room = waitingRoom.room()
    expect(stuck).toBe(16)
    expect(room.get(a)).toBe(16)
    expect(room.get(b)).toBe(400)
  })

  it("wants nothing of a lane it already holds enough of", () => {
    const waitingRoom = makeWaitingRoom<string>(1_000)
    waitingRoom.offer(
      a,
      1,
      Array.from({ length: 100 }, (_, n) => `a${n}`)
    )
    for (let look = 0; look < 6; look++) waitingRoom.room()
    expect(waitingRoom.room().get(a)).toBe(0)
  })

  it("forgets a lane that is empty and idle", () => {
    const waitingRoom = makeWaitingRoom<string>(1_000)
    waitingRoom.offer(a, 1, ["a1"])
    takeAll(waitingRoom)
    waitingRoom.ended(a)
    expect([...waitingRoom.room()]).toEqual([])
  })

  it("says when a lane could use more, also to who asks afterwards", async () => {
    const waitingRoom = makeWaitingRoom<string>(1_000)
    waitingRoom.offer(a, 2, ["a1", "a2"])
    takeAll(waitingRoom)
    await Effect.runPromise(waitingRoom.wantsMore)
    const waiting = Effect.runFork(waitingRoom.wantsMore)
    expect(waiting.pollUnsafe()).toBeUndefined()
    waitingRoom.offer(a, 3, ["a3"])
    takeAll(waitingRoom)
    await Effect.runPromise(Fiber.join(waiting))
  })

  it("gives back everything that was not taken, and counts it no more", () => {
    const waitingRoom = makeWaitingRoom<string>(1_000)
    waitingRoom.offer(a, 1, ["a1", "a2"])
    waitingRoom.offer(b, 1, ["b1"])
    takeAll(waitingRoom)
    expect(waitingRoom.drain()).toEqual(["a2"])
    waitingRoom.ended(a)
    waitingRoom.ended(b)
    expect(takeAll(waitingRoom)).toEqual([])
    expect(waitingRoom.startable()).toBe(0)
  })
})
