import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { Processes } from "../../../src/application/ports/Processes.ts"
import { heartbeat } from "../../../src/application/processes/heartbeat.ts"
import { Leadership, maintain } from "../../../src/application/processes/leader.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const selfOf = (id: string) => ({ id, host: "shop", pid: 1, roles: ["worker"], version: "1.0.0", broker: false })
const silent = { broker: false, brokerAway: null, clockOffsetMs: null }
const alive = Effect.flatMap(Processes, ({ list }) =>
  Effect.map(list, (all) => all.map((process) => [process.id, process.alive]))
)

/** A process with one job that counts its steps. */
const start = Effect.fnUntraced(function* (id: string) {
  const process = { steps: 0 }
  const count = { name: "counting", every: "1 second", step: Effect.sync(() => ++process.steps) } as const
  const settings = { self: selfOf(id), brokerAway: () => null, fetched: () => {} }
  const fiber = yield* Effect.forkChild(
    Effect.all([heartbeat(settings), maintain(count)], { concurrency: 2 }).pipe(Effect.provide(Leadership.layer))
  )
  return { process, fiber }
})

describe("a process", () => {
  it.effect("stays listed as long as it runs, is missed when it is silent, and forgotten after an hour", () =>
    Effect.gen(function* () {
      const { fiber } = yield* start("a")
      yield* TestClock.adjust("10 minutes")
      expect(yield* alive).toEqual([["a", true]])
      const { beat } = yield* Processes
      yield* Fiber.interrupt(fiber)
      expect(yield* alive).toEqual([])
      // This one is killed.
      yield* beat({ ...selfOf("b"), ...silent })
      yield* TestClock.adjust("21 seconds")
      expect(yield* alive).toEqual([["b", false]])
      yield* TestClock.adjust("1 hour")
      yield* beat({ ...selfOf("c"), ...silent })
      expect(yield* alive).toEqual([["c", true]])
    }).pipe(Effect.provide(MemoryPorts.layer))
  )
})

describe("the jobs of maintenance", () => {
  it.effect("are carried out by one process, and by another when that one is gone", () =>
    Effect.gen(function* () {
      const first = yield* start("a")
      yield* TestClock.adjust("1 second")
      const second = yield* start("b")
      yield* TestClock.adjust("1 minute")
      expect(first.process.steps).toBeGreaterThan(50)
      expect(second.process.steps).toBe(0)
      yield* Fiber.interrupt(first.fiber)
      yield* TestClock.adjust("1 minute")
      expect(second.process.steps).toBeGreaterThan(50)
    }).pipe(Effect.provide(MemoryPorts.layer))
  )

  it.effect("rest while the store does not answer the leader's heartbeats", () =>
    Effect.gen(function* () {
      const processes = yield* Processes
      let isAway = false
      const away = Effect.fail(new StoreUnavailable({ cause: new Error("away") }))
      const beat: typeof processes.beat = (registration) => (isAway ? away : processes.beat(registration))
      const { process } = yield* Effect.provideService(start("a"), Processes, { ...processes, beat })
      yield* TestClock.adjust("10 seconds")
      isAway = true
      yield* TestClock.adjust("10 seconds")
      const before = process.steps
      yield* TestClock.adjust("1 minute")
      expect(process.steps).toBe(before)
    }).pipe(Effect.provide(MemoryPorts.layer))
  )
})
