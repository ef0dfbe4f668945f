import { Effect, Fiber } from "effect"
import { describe, expect, it } from "vitest"
import { makeInbox } from "../../src/application/inbox.ts"
import { DestinationId } from "../../src/domain/ids.ts"

const lane = (n: number) => DestinationId.make(`00000000-0000-4000-8000-00000000000${n}`)
const [a, b, c] = [lane(1), lane(2), lane(3)]

/** What could be taken right now, without parking. */
const takeAll = (inbox: ReturnType<typeof makeInbox<string>>) => {
  const taken: Array<string> = []
  for (;;) {
    const fiber = Effect.runFork(inbox.take)
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
    const inbox = makeInbox<string>(1_000)
    inbox.offer(a, 10, ["a1", "a2", "a3"])
    inbox.offer(b, 10, ["b1"])
    inbox.offer(c, 10, ["c1", "c2"])
    expect(takeAll(inbox)).toEqual(["a1", "b1", "c1", "a2", "c2", "a3"])
  })

  it("never has more of a lane under way than its capacity", () => {
    const inbox = makeInbox<string>(1_000)
    inbox.offer(a, 2, ["a1", "a2", "a3", "a4"])
    expect(takeAll(inbox)).toEqual(["a1", "a2"])
    expect(takeAll(inbox)).toEqual([])
    inbox.ended(a)
    expect(takeAll(inbox)).toEqual(["a3"])
  })

  it("keeps to a tighter limit while a lane has one, and to its capacity again afterwards", () => {
    const inbox = makeInbox<string>(1_000)
    inbox.offer(a, 4, ["a1", "a2", "a3", "a4", "a5", "a6"], 1)
    expect(inbox.startable()).toBe(1)
    expect(takeAll(inbox)).toEqual(["a1"])
    inbox.limit(a, 2)
    expect(takeAll(inbox)).toEqual(["a2"])
    inbox.limit(a, null)
    expect(takeAll(inbox)).toEqual(["a3", "a4"])
    inbox.ended(a)
    inbox.limit(a, 1)
    expect(takeAll(inbox)).toEqual([])
    expect(inbox.startable()).toBe(0)
  })

  it("tells the feeder when a lane may have more", async () => {
    const inbox = makeInbox<string>(1_000)
    let told = false
    const waiting = Effect.runPromise(inbox.hungry).then(() => {
      told = true
    })
    expect(told).toBe(false)
    inbox.limit(a, 2)
    await waiting
  })

  it("takes back what matches, and goes on with the rest", () => {
    const inbox = makeInbox<string>(1_000)
    inbox.offer(a, 4, ["a1", "a2", "old3", "old4", "a5"])
    inbox.offer(b, 4, ["old1"])
    expect(inbox.withdraw(a, (item) => item.startsWith("old"))).toEqual(["old3", "old4"])
    expect(inbox.withdraw(c, () => true)).toEqual([])
    expect(inbox.withdraw(b, () => true)).toEqual(["old1"])
    expect(inbox.startable()).toBe(3)
    expect(takeAll(inbox)).toEqual(["a1", "a2", "a5"])
  })

  it("lets a lane that hangs hold up nobody else", () => {
    const inbox = makeInbox<string>(1_000)
    inbox.offer(a, 1, ["a1", "a2", "a3"])
    takeAll(inbox)
    inbox.offer(b, 5, ["b1", "b2"])
    expect(takeAll(inbox)).toEqual(["b1", "b2"])
    expect(inbox.startable()).toBe(0)
  })

  it("gives no lane more than it leaves idle, however many hang", () => {
    const inbox = makeInbox<string>(8)
    const many = Array.from({ length: 20 }, (_, n) => `a${n}`)
    inbox.offer(a, 100, many)
    expect(inbox.startable()).toBe(4)
    expect(takeAll(inbox)).toHaveLength(4)
    inbox.offer(b, 100, many)
    expect(inbox.startable()).toBe(2)
    expect(takeAll(inbox)).toHaveLength(2)
    // They hang, and there is still an actor for another.
    inbox.offer(c, 100, ["c1"])
    expect(takeAll(inbox)).toEqual(["c1"])
    // What becomes idle is kept for others first.
    inbox.ended(a)
    expect(takeAll(inbox)).toEqual([])
    inbox.ended(a)
    expect(takeAll(inbox)).toEqual(["a4"])
  })

  it("lets a lone lane use an only actor", () => {
    const inbox = makeInbox<string>(1)
    inbox.offer(a, 5, ["a1", "a2"])
    expect(takeAll(inbox)).toEqual(["a1"])
    inbox.ended(a)
    expect(takeAll(inbox)).toEqual(["a2"])
  })

  it("hands what arrives to an actor that waits for it", async () => {
    const inbox = makeInbox<string>(1_000)
    const waiting = Effect.runPromise(inbox.take)
    inbox.offer(a, 1, ["a1"])
    expect(await waiting).toBe("a1")
  })

  it("gives nothing to an actor that stopped waiting", async () => {
    const inbox = makeInbox<string>(1_000)
    const gone = Effect.runFork(inbox.take)
    await Effect.runPromise(Fiber.interrupt(gone))
    inbox.offer(a, 1, ["a1"])
    expect(takeAll(inbox)).toEqual(["a1"])
  })

  it("wants little in advance of a lane that does not move, and more of one that does", () => {
    const inbox = makeInbox<string>(1_000)
    inbox.offer(a, 4, ["a1", "a2", "a3", "a4"])
    inbox.offer(b, 4, ["b1", "b2", "b3", "b4"])
    takeAll(inbox)
    for (let look = 0; look < 6; look++) inbox.room()
    const stuck = inbox.room().get(a)!
    for (let n = 0; n < 100; n++) {
      inbox.ended(b)
      inbox.offer(b, 4, [`b${n}`])
      takeAll(inbox)
    }
    const room = inbox.room()
    expect(stuck).toBe(16)
    expect(room.get(a)).toBe(16)
    expect(room.get(b)).toBe(400)
  })

  it("wants nothing of a lane it already holds enough of", () => {
    const inbox = makeInbox<string>(1_000)
    inbox.offer(
      a,
      1,
      Array.from({ length: 100 }, (_, n) => `a${n}`)
    )
    for (let look = 0; look < 6; look++) inbox.room()
    expect(inbox.room().get(a)).toBe(0)
  })

  it("forgets a lane that is empty and idle", () => {
    const inbox = makeInbox<string>(1_000)
    inbox.offer(a, 1, ["a1"])
    takeAll(inbox)
    inbox.ended(a)
    expect([...inbox.room()]).toEqual([])
  })

  it("says when a lane could use more, also to who asks afterwards", async () => {
    const inbox = makeInbox<string>(1_000)
    inbox.offer(a, 2, ["a1", "a2"])
    takeAll(inbox)
    await Effect.runPromise(inbox.hungry)
    const waiting = Effect.runFork(inbox.hungry)
    expect(waiting.pollUnsafe()).toBeUndefined()
    inbox.offer(a, 3, ["a3"])
    takeAll(inbox)
    await Effect.runPromise(Fiber.join(waiting))
  })

  it("gives back everything that was not taken, and counts it no more", () => {
    const inbox = makeInbox<string>(1_000)
    inbox.offer(a, 1, ["a1", "a2"])
    inbox.offer(b, 1, ["b1"])
    takeAll(inbox)
    expect(inbox.drain()).toEqual(["a2"])
    inbox.ended(a)
    inbox.ended(b)
    expect(takeAll(inbox)).toEqual([])
    expect(inbox.startable()).toBe(0)
  })
})
