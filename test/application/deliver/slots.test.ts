/**
 * What a destination with a rate limit gets from several workers: hardly less than the limit, and never more, however long the
 * store takes to hand out and to commit. The time of a request is when it leaves its worker.
 */

import { describe, expect, it } from "@effect/vitest"
import { DateTime, Duration, Effect, type Scope } from "effect"
import { dispatch } from "../../../src/application/deliver/dispatch.ts"
import { Senders } from "../../../src/application/deliver/Senders.ts"
import { makeSlots } from "../../../src/application/deliver/slots.ts"
import { StoreUnavailable } from "../../../src/application/errors.ts"
import type { OutboundMessage } from "../../../src/application/ports/Channels.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import { intervalOf, latenessOf } from "../../../src/domain/delivery/rateLimit.ts"
import type { DestinationId, MessageId } from "../../../src/domain/ids.ts"
import { makeEndpoint } from "../../contracts/destinations/samples.ts"
import { delivered, inMillis, newLane, newOrg, opened, type StorePorts } from "../../contracts/sample.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"
import { simulateTime } from "../../simulatedTime.ts"
import { makeDice } from "../../simulation/dice.ts"

simulateTime()

const now = () => DateTime.toEpochMillis(inMillis(0))
const rate = (limit: number) => ({ limit, periodMs: 1_000 })

interface Far {
  /** When each request of the lane left. */
  readonly left: (lane: DestinationId) => ReadonlyArray<number>
}

interface Setting {
  /** The longest that a call takes on its way to the store, and its answer on its way back. */
  readonly claimMs: number
  readonly commitMs: number
  readonly capacity: number
  readonly answersAfterMs: (lane: DestinationId) => number
  readonly dedupes: boolean
}

const usual: Setting = { claimMs: 4, commitMs: 10, capacity: 1_000, answersAfterMs: () => 0, dedupes: true }

/** Runs `body` in a world of one store; `worker` starts one more, whose way to the store is as long as the dice say. */
const withStore = <A, E>(
  change: Partial<Setting>,
  body: (
    far: Far,
    worker: Effect.Effect<void, never, StorePorts | Scope.Scope>
  ) => Effect.Effect<A, E, StorePorts | Scope.Scope>
) => {
  const { claimMs, commitMs, capacity, answersAfterMs, dedupes } = { ...usual, ...change }
  const sent = new Map<DestinationId, Array<number>>()
  const dice = makeDice(14)
  const slow =
    (most: number) =>
    <B, E2, R>(call: Effect.Effect<B, E2, R>) =>
      Effect.suspend(() =>
        call.pipe(Effect.delay(Duration.millis(dice.next() * most)), Effect.tap(Effect.sleep(dice.next() * most)))
      )
  const channel = {
    send: ({ destination }: OutboundMessage) =>
      Effect.suspend(() => {
        sent.set(destination, [...(sent.get(destination) ?? []), now()])
        return Effect.delay(
          Effect.succeed({ outcome: delivered, responseBody: null }),
          Duration.millis(answersAfterMs(destination))
        )
      }),
    capacity: () => Effect.succeed(capacity),
    dedupes: () => Effect.succeed(dedupes)
  }
  let workers = 0
  const worker = Effect.gen(function* () {
    const [queue, store] = [yield* Queue, yield* EventStore]
    yield* dispatch({
      worker: `worker-${workers++}`,
      concurrency: 512,
      lease: Duration.seconds(30),
      grace: Duration.seconds(5)
    }).pipe(
      Effect.provideService(Queue, {
        ...queue,
        claim: (request) => slow(claimMs)(queue.claim(request)),
        nextSlot: (lane, lead) => slow(claimMs)(queue.nextSlot(lane, lead)),
        renew: (batches, lease) => slow(claimMs)(queue.renew(batches, lease))
      }),
      Effect.provideService(EventStore, { ...store, append: (entries) => slow(commitMs)(store.append(entries)) }),
      Effect.provideService(Senders, { webhook: channel })
    )
  })
  return Effect.scoped(body({ left: (lane) => sent.get(lane) ?? [] }, worker)).pipe(Effect.provide(MemoryPorts.layer))
}

const put = Effect.fnUntraced(function* (destination: DestinationId, count: number) {
  const steps = Array.from({ length: count }, () => opened({ destination }))
  yield* (yield* EventStore).append(steps.map(({ entry }) => entry))
  return steps.map(({ after }) => after.id)
})

const factsOf = Effect.fnUntraced(function* (ids: ReadonlyArray<MessageId>) {
  const streams = yield* (yield* EventStore).loadMany(ids)
  return [...streams.values()].flatMap(({ facts }) => facts.map(({ fact }) => fact))
})

const limited = (limit: number) =>
  Effect.map(makeEndpoint(newOrg(), { timeoutMs: 1_000, rateLimit: rate(limit) }), ({ id }) => id)

const until = (holds: () => boolean) =>
  Effect.repeat(Effect.sleep("10 millis"), { until: () => holds() }).pipe(Effect.timeout("5 minutes"))

const fullest = (times: ReadonlyArray<number>, width: number) => {
  let [most, first] = [0, 0]
  for (const [nth, at] of times.entries()) {
    while (times[first]! <= at - width) first++
    most = Math.max(most, nth - first + 1)
  }
  return most
}

/** Once the workers know how long things take. */
const perSecond = (all: ReadonlyArray<number>) => {
  const times = all.filter((at) => at > all[0]! + 1_500)
  return ((times.length - 1) * 1_000) / (times.at(-1)! - times[0]!)
}

describe("a destination with a rate limit", () => {
  const cases = [
    { limit: 50, workers: 1, change: {} },
    { limit: 50, workers: 2, change: {} },
    { limit: 50, workers: 4, change: {} },
    { limit: 1_000, workers: 2, change: {} },
    { limit: 50, workers: 3, change: { claimMs: 20, commitMs: 100 } },
    { limit: 50, workers: 2, change: { dedupes: false } },
    { limit: 50, workers: 2, change: { capacity: 40, answersAfterMs: () => 400 } }
  ]
  for (const { limit, workers, change } of cases) {
    const how = JSON.stringify(change)
    it.live(`of ${limit} gets 0.97 of it from ${workers} workers, and never more: ${how}`, () =>
      withStore(change, (far, worker) =>
        Effect.gen(function* () {
          const lane = yield* limited(limit)
          const count = limit * (limit > 100 ? 3 : 12)
          yield* put(lane, count)
          for (let n = 0; n < workers; n++) yield* worker
          yield* until(() => far.left(lane).length === count)
          const times = far.left(lane)
          expect(fullest(times, 1_000)).toBeLessThanOrEqual(limit)
          expect(perSecond(times) / limit).toBeGreaterThanOrEqual(0.97)
        })
      )
    )
  }

  it.live(
    "never gets more than its limit, and all in the end, from a store that takes longer than any slot lasts",
    () =>
      withStore({ claimMs: 400, commitMs: 400 }, (far, worker) =>
        Effect.gen(function* () {
          const lane = yield* limited(50)
          yield* put(lane, 200)
          yield* worker
          yield* worker
          yield* until(() => far.left(lane).length === 200)
          expect(fullest(far.left(lane), 1_000)).toBeLessThanOrEqual(50)
        })
      )
  )

  it.live("loses no attempt to a slot that its worker missed", () =>
    withStore({ commitMs: 400 }, (far, worker) =>
      Effect.gen(function* () {
        const lane = yield* limited(50)
        const ids = yield* put(lane, 30)
        const queue = yield* Queue
        let isBusy = true
        const nextSlot = (...asked: Parameters<typeof queue.nextSlot>) =>
          Effect.suspend(() =>
            isBusy ? Effect.fail(new StoreUnavailable({ cause: "busy" })) : queue.nextSlot(...asked)
          )
        yield* Effect.provideService(worker, Queue, { ...queue, nextSlot })
        yield* Effect.sleep("2 seconds")
        isBusy = false
        yield* until(() => far.left(lane).length === 30)
        yield* Effect.sleep("5 seconds")
        const facts = yield* factsOf(ids)
        const putOff = facts.flatMap((fact) => (fact.type === "AttemptDeferred" ? [fact.error.code] : []))
        expect(new Set(putOff)).toEqual(new Set(["slot_missed"]))
        const attempts = facts.flatMap((fact) => (fact.type === "AttemptStarted" ? [fact.attempt] : []))
        expect(new Set(attempts)).toEqual(new Set([1]))
        expect(far.left(lane)).toHaveLength(30)
        expect(facts.filter(({ type }) => type === "MessageDelivered")).toHaveLength(30)
      })
    )
  )

  it.live("gets all of its limit from one worker, while another one has no place to spare", () => {
    const hanging = Array.from({ length: 40 }, newLane)
    const isHanging = (lane: DestinationId) => hanging.includes(lane)
    return withStore({ answersAfterMs: (lane) => (isHanging(lane) ? 60_000 : 0) }, (far, worker) =>
      Effect.gen(function* () {
        for (const lane of hanging) yield* put(lane, 60)
        yield* worker
        yield* Effect.sleep("3 seconds")
        const lane = yield* limited(50)
        yield* worker
        yield* Effect.sleep("1 second")
        yield* put(lane, 500)
        yield* until(() => far.left(lane).length === 500)
        const times = far.left(lane)
        expect(fullest(times, 1_000)).toBeLessThanOrEqual(50)
        expect(perSecond(times) / 50).toBeGreaterThanOrEqual(0.97)
      })
    )
  })

  it.live("delivers one message at once when nothing else has gone there lately", () =>
    withStore({}, (far, worker) =>
      Effect.gen(function* () {
        const lane = yield* limited(50)
        yield* worker
        yield* Effect.sleep("3 seconds")
        const began = now()
        yield* put(lane, 1)
        yield* until(() => far.left(lane).length === 1)
        expect(far.left(lane)[0]! - began).toBeLessThan(60)
      })
    )
  )
})

describe("the slots of a process", () => {
  const slot = { at: 10_000, rate: rate(50) }

  it("are told by the quickest answer of the store", () => {
    let clock = 100
    const slots = makeSlots(() => clock)
    slots.claimed({ said: 9_000, messages: [] }, 0, 100)
    slots.claimed({ said: 9_101, messages: [] }, 100, 102)
    slots.claimed({ said: 9_102, messages: [] }, 102, 302)
    // It was 9,101 there at 101.
    clock = 1_000 + latenessOf(slot.rate) - 0.1
    expect(slots.isMissed(slot)).toBe(false)
    clock += 0.2
    expect(slots.isMissed(slot)).toBe(true)
  })

  it("follow a store whose clock was set", () => {
    const slots = makeSlots(() => 0)
    slots.claimed({ said: 9_000, messages: [] }, 0, 2)
    expect(slots.isMissed(slot)).toBe(false)
    slots.claimed({ said: 90_000, messages: [] }, 2, 6)
    expect(slots.isMissed(slot)).toBe(true)
  })

  it("begin early enough for a start to be stored, and never so early that many wait", () => {
    const slots = makeSlots(() => 0)
    const [lane, fast] = [newLane(), newLane()]
    slots.leave(lane, slot)
    slots.leave(fast, { at: 10_000, rate: rate(1_000) })
    expect(slots.beginsAt(lane)).toBe(9_900)
    slots.stored(60)
    slots.stored(10)
    expect(slots.beginsAt(lane)).toBeCloseTo(10_000 - 2 * 57)
    expect(slots.beginsAt(fast)).toBeCloseTo(10_000 - 32 * intervalOf(rate(1_000)))
    for (let n = 0; n < 100; n++) slots.stored(10)
    expect(slots.beginsAt(lane)).toBe(9_970)
  })

  it("are taken in their order, each once, and not when they are over", () => {
    let clock = 0
    const slots = makeSlots(() => clock)
    const lane = newLane()
    for (const at of [300, 100, 200, 400]) slots.leave(lane, { at, rate: rate(50) })
    clock = 150
    expect([slots.take(lane), slots.take(lane)].map((taken) => taken?.at)).toEqual([200, 300])
    slots.leave(lane, { at: 200, rate: rate(50) })
    clock = 350
    expect([slots.take(lane), slots.take(lane)].map((taken) => taken?.at)).toEqual([400, undefined])
  })

  it("go back to the store from the last one on, as many as messages are gone", async () => {
    const slots = makeSlots(() => 0)
    const lane = newLane()
    for (const at of [300, 100, 200, 400]) slots.leave(lane, { at, rate: rate(50) })
    const returned: Array<ReadonlyArray<number>> = []
    const giveBack = (count: number) =>
      Effect.gen(function* () {
        const returnSlots = (_: DestinationId, back: ReadonlyArray<number>) =>
          Effect.sync(() => void returned.push(back))
        yield* Effect.provideService(slots.giveBack(lane, count), Queue, { ...(yield* Queue), returnSlots })
      }).pipe(Effect.provide(MemoryPorts.layer), Effect.runPromise)
    await giveBack(2)
    expect(slots.take(lane)?.at).toBe(100)
    await giveBack(5)
    await giveBack(1)
    expect(returned).toEqual([[300, 400], [200]])
    expect(slots.take(lane)).toBeNull()
  })
})
