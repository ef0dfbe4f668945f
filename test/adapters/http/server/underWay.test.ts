/** Of each kind one org has so many requests under way: others wait with their bodies unread, and those of another org go on. */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { ActingOrg } from "../../../../src/adapters/http/server/auth.ts"
import { asReader, layer, limits, UnderWay } from "../../../../src/adapters/http/server/underWay.ts"
import { AskedFor } from "../../../../src/application/askedFor.ts"
import type { OrgId } from "../../../../src/domain/ids.ts"

const { atOnce, waiting } = limits.batch

describe("large batches", () => {
  it.effect("of one org begin to be read when there is a place, and those of another at once", () =>
    Effect.gen(function* () {
      const { asOne } = yield* UnderWay
      const arrived = yield* Deferred.make<void>()
      const reading: Array<string> = []
      const send = (org: string) =>
        Effect.forkChild(
          asOne(
            "batch",
            org,
            Effect.suspend(() => {
              reading.push(org)
              return Deferred.await(arrived)
            })
          ),
          { startImmediately: true }
        )
      const fibers: Array<Fiber.Fiber<void, unknown>> = []
      for (let n = 0; n < atOnce + waiting; n++) fibers.push(yield* send("a"))
      expect(reading.length).toBe(atOnce)
      const refused = yield* Effect.flip(asOne("batch", "a", Effect.void))
      expect(refused).toMatchObject({
        body: { status: 429, type: "urn:posthaste:problem:too-many-batches" },
        headers: { "ratelimit-limit": "64", "ratelimit-remaining": "0", "ratelimit-reset": "2", "retry-after": "2" }
      })
      expect(yield* asOne("batch", "b", Effect.succeed("read"))).toBe("read")
      // One that goes away makes room for the next, and for one more that waits.
      yield* Fiber.interrupt(fibers.shift()!)
      yield* Effect.yieldNow
      expect(reading.length).toBe(atOnce + 1)
      fibers.push(yield* send("a"))
      yield* Deferred.succeed(arrived, undefined)
      yield* Fiber.joinAll(fibers)
      expect(reading.length).toBe(atOnce + waiting + 1)
    }).pipe(Effect.provide(layer))
  )
})

describe("lists in no org's name", () => {
  it.effect("count for the org that asks: however many one has under way, another's are answered", () =>
    Effect.gen(function* () {
      const held = yield* Deferred.make<void>()
      const list = (org: string, effect: Effect.Effect<void>) =>
        asReader(effect).pipe(
          Effect.provideService(ActingOrg, "" as OrgId),
          Effect.provideService(AskedFor, org as OrgId)
        )
      const { atOnce, waiting } = limits.list
      for (let n = 0; n < atOnce + waiting; n++)
        yield* Effect.forkChild(list("a", Deferred.await(held)), { startImmediately: true })
      expect(yield* Effect.flip(list("a", Effect.void))).toMatchObject({ body: { status: 429 } })
      yield* list("b", Effect.void)
      yield* Deferred.succeed(held, undefined)
    }).pipe(Effect.provide(layer))
  )
})
