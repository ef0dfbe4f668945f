import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Processes } from "../../../src/application/ports/Processes.ts"
import { keepRegistered } from "../../../src/application/processes/keepRegistered.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const self = { id: "a", host: "shop", pid: 1, roles: ["worker"], version: "1.0.0", broker: false }
const alive = Effect.flatMap(Processes, ({ list }) =>
  Effect.map(list, (all) => all.map((process) => [process.id, process.alive]))
)

describe("a process", () => {
  it.effect("stays listed as long as it runs, is missed when it is silent, and forgotten after an hour", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(keepRegistered(self))
      yield* TestClock.adjust("10 minutes")
      expect(yield* alive).toEqual([["a", true]])
      const { register } = yield* Processes
      yield* Fiber.interrupt(fiber)
      expect(yield* alive).toEqual([])
      // This one is killed.
      yield* register({ ...self, id: "b", clockOffsetMs: null })
      yield* TestClock.adjust("21 seconds")
      expect(yield* alive).toEqual([["b", false]])
      yield* TestClock.adjust("1 hour")
      yield* register({ ...self, id: "c", clockOffsetMs: null })
      expect(yield* alive).toEqual([["c", true]])
    }).pipe(Effect.provide(MemoryPorts.layer))
  )
})
