/** Large batches of one org leave memory and the one thread to the others. */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { BATCHES_OF_ORG_MAX, LargeBodies, layer } from "../../../../src/adapters/http/server/largeBodies.ts"
import { start } from "../served.ts"

const { call, endpoint } = await start()

const test = (rule: string, body: Effect.Effect<void, unknown, LargeBodies>) =>
  it.live(rule, () => Effect.provide(body, layer))

describe("large batches", () => {
  test(
    "of one org are so many in memory and no more, and those of another are received meanwhile",
    Effect.gen(function* () {
      const { inTurn } = yield* LargeBodies
      const arrived = yield* Deferred.make<void>()
      const send = (org: string) => inTurn(org, Deferred.await(arrived), () => Effect.succeed("read"))
      const fibers = []
      for (let n = 0; n < BATCHES_OF_ORG_MAX; n++)
        fibers.push(yield* Effect.forkChild(send("a"), { startImmediately: true }))
      const refused = yield* Effect.flip(send("a"))
      expect(refused.body).toMatchObject({ status: 429, type: "urn:posthaste:problem:too-many-batches" })
      expect(refused.headers).toEqual({ "retry-after": "2" })
      expect(yield* inTurn("b", Effect.void, () => Effect.succeed("read"))).toBe("read")
      // One that goes away makes room.
      yield* Fiber.interrupt(fibers.pop()!)
      fibers.push(yield* Effect.forkChild(send("a"), { startImmediately: true }))
      yield* Deferred.succeed(arrived, undefined)
      expect(yield* Fiber.joinAll(fibers)).toEqual(fibers.map(() => "read"))
    })
  )

  test(
    "are read one after the other, and what another org sent is read between two that take long",
    Effect.gen(function* () {
      const { inTurn } = yield* LargeBodies
      const order: Array<string> = []
      const busy = (org: string, ms: number) =>
        Effect.forkChild(
          inTurn(org, Effect.void, () =>
            Effect.sync(() => {
              const until = performance.now() + ms
              while (performance.now() < until);
              order.push(org)
            })
          ),
          { startImmediately: true }
        )
      const slow = [yield* busy("a", 100), yield* busy("a", 100), yield* busy("a", 100)]
      yield* Fiber.join(yield* busy("b", 0))
      expect(order).toEqual(["a", "b"])
      yield* Fiber.joinAll(slow)
      expect(order).toEqual(["a", "b", "a", "a"])
    })
  )
})

describe("a batch of many bytes", () => {
  it("is answered like any other", async () => {
    const to = await endpoint()
    const messages = Array.from({ length: 3 }, (_, n) => ({
      channel: "webhook",
      to,
      payloadJson: "x".repeat(200_000 + n)
    }))
    const sent = await call("POST", "/api/v1/outbound/messages/batch", { body: { messages } })
    expect(sent.json["items"].map(({ status }: { status: number }) => status)).toEqual([201, 201, 201])
    const events = messages.map(({ payloadJson }) => ({ eventType: "a.b", data: payloadJson }))
    const published = await call("POST", "/api/v1/events/batch", { body: { events } })
    expect(published.json["items"].map(({ status }: { status: number }) => status)).toEqual([201, 201, 201])
  })
})
