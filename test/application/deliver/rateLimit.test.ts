/** A rate limit: the law over any visits, and what a destination gets from several workers in simulated time. */
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Duration, Effect } from "effect"
import fc from "fast-check"
import { dispatch } from "../../../src/application/deliver/dispatch.ts"
import { Senders } from "../../../src/application/deliver/Senders.ts"
import type { OutboundMessage } from "../../../src/application/ports/Channels.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import type { RateLimit } from "../../../src/domain/delivery/rateLimit.ts"
import { makeEndpoint } from "../../contracts/destinations/samples.ts"
import { delivered, inMillis, newOrg, opened } from "../../contracts/sample.ts"
import { rateAllowance } from "../../model/deliver/lanes.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"
import { simulateTime } from "../../simulatedTime.ts"

simulateTime()

/** The most that came within any `width` milliseconds. */
const fullest = (times: ReadonlyArray<number>, width: number) => {
  let [most, first] = [0, 0]
  for (const [nth, at] of times.entries()) {
    while (times[first]! <= at - width) first++
    most = Math.max(most, nth - first + 1)
  }
  return most
}

/** When a lane that always has more hands out each request, visited at these times if its time has come. */
const handedOut = (rate: RateLimit, visits: ReadonlyArray<number>): ReadonlyArray<number> => {
  let nextAt: number | null = null
  return visits.flatMap((now) => {
    if (nextAt !== null && now < nextAt) return []
    const { allowed, from, stepMs } = rateAllowance(rate, nextAt, now)
    nextAt = from + allowed * stepMs
    return Array.from({ length: allowed }, () => now)
  })
}

describe("the law of a rate limit", () => {
  it("is never exceeded in any period, a second at least, however a lane is visited", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 400 }),
        fc.constantFrom(100, 700, 1_000, 2_000, 60_000),
        fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 20, maxLength: 100 }),
        (limit, periodMs, gaps) => {
          let now = 1_000_000
          const times = handedOut(
            { limit, periodMs },
            gaps.map((gap) => (now += gap))
          )
          const periods = Math.ceil(1_000 / periodMs)
          expect(fullest(times, periods * periodMs)).toBeLessThanOrEqual(periods * limit)
        }
      ),
      { numRuns: 200 }
    )
  })

  it.each([3, 50, 1_000, 9_000])("lets 0.95 of %i a second through, also when each visit is 15 ms late", (limit) => {
    const rate = { limit, periodMs: 1_000 }
    const visits = Array.from({ length: 2_000 }, (_, nth) => 1_000_000 + nth * 15)
    expect(handedOut(rate, visits).length).toBeGreaterThanOrEqual(Math.floor(0.95 * 30 * limit))
  })
})

describe("a destination with a rate limit", () => {
  for (const { limit, workers, answersAfterMs } of [
    { limit: 50, workers: 1, answersAfterMs: 0 },
    { limit: 50, workers: 4, answersAfterMs: 400 },
    { limit: 1_000, workers: 2, answersAfterMs: 5 }
  ]) {
    it.live(`of ${limit} gets 0.9 of it from ${workers} workers, and never more`, () =>
      Effect.gen(function* () {
        const left: Array<number> = []
        const channel = {
          send: (_: OutboundMessage) =>
            Effect.suspend(() => {
              left.push(DateTime.toEpochMillis(inMillis(0)))
              return Effect.delay(Effect.succeed({ outcome: delivered, responseBody: null }), answersAfterMs)
            }),
          capacity: () => Effect.succeed(1_000),
          dedupes: () => Effect.succeed(true)
        }
        const [queue, store] = [yield* Queue, yield* EventStore]
        const { id } = yield* makeEndpoint(newOrg(), { timeoutMs: 1_000, rateLimit: { limit, periodMs: 1_000 } })
        const count = limit > 100 ? limit * 2 : limit * 6
        yield* store.append(Array.from({ length: count }, () => opened({ destination: id }).entry))
        for (let nth = 0; nth < workers; nth++) {
          yield* dispatch({
            ...{ worker: `worker-${nth}`, concurrency: 512 },
            ...{ lease: Duration.seconds(30), grace: Duration.seconds(5) }
          }).pipe(
            Effect.provideService(Queue, {
              ...queue,
              claim: (request) => Effect.tap(queue.claim(request), Effect.sleep("3 millis"))
            }),
            Effect.provideService(EventStore, {
              ...store,
              append: (entries) => Effect.tap(store.append(entries), Effect.sleep("5 millis"))
            }),
            Effect.provideService(Senders, { webhook: channel })
          )
        }
        yield* Effect.repeat(Effect.sleep("10 millis"), { until: () => left.length === count }).pipe(
          Effect.timeout("1 minute")
        )
        expect(fullest(left, 1_000)).toBeLessThanOrEqual(limit)
        const steady = left.filter((at) => at > left[0]! + 500)
        expect(((steady.length - 1) * 1_000) / (steady.at(-1)! - steady[0]!) / limit).toBeGreaterThanOrEqual(0.9)
      }).pipe(Effect.scoped, Effect.provide(MemoryPorts.layer))
    )
  }
})
