import { it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { follow } from "../../../src/application/log/follow.ts"
import { LogReader } from "../../../src/application/log/LogReader.ts"
import { keepProjections } from "../../../src/application/log/projections/keepProjections.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { Followers } from "../../../src/application/ports/Followers.ts"
import { Projections } from "../../../src/application/ports/Projections.ts"
import { makeListeners } from "../../../src/application/ports/Pulse.ts"
import { opened } from "../../contracts/sample.ts"
import { write } from "../../contracts/written.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

describe("while the log does not grow", () => {
  it.effect("the store is asked seldom: also by a follower at a place to which this process has not come", () =>
    Effect.gen(function* () {
      const [store, runs, followers] = [yield* EventStore, yield* Projections, yield* Followers]
      yield* write(opened({}))
      const head = (yield* store.extent).head
      const asked = { tail: 0, runs: 0, position: 0, hold: 0 }
      const count = (what: keyof typeof asked) => Effect.sync(() => void asked[what]++)
      // The tail begins before the fact, and does not see it: another process came further.
      const early = { ...store, extent: Effect.succeed({ head: null, facts: 0 }) }
      const ports = Layer.mergeAll(
        Layer.succeed(EventStore, {
          ...early,
          readAll: () => Effect.as(count("tail"), [])
        }),
        Layer.succeed(Projections, { ...runs, runs: Effect.andThen(count("runs"), runs.runs) }),
        Layer.succeed(Followers, {
          ...followers,
          hold: (...given) => Effect.andThen(count("hold"), followers.hold(...given)),
          position: () => Effect.as(count("position"), head)
        })
      )
      const idle = Effect.gen(function* () {
        const step = yield* follow("alerts", 100, () => Effect.void)
        yield* Effect.forkChild(Effect.forever(step))
        yield* Effect.forkChild(keepProjections)
        yield* TestClock.adjust("25 seconds")
        Object.assign(asked, { tail: 0, runs: 0, position: 0, hold: 0 })
        yield* TestClock.adjust("1 minute")
      })
      yield* Effect.provide(idle, Layer.provideMerge(Layer.fresh(LogReader.layer), ports))
      expect(asked.position).toBe(0)
      expect(asked.hold).toBeLessThanOrEqual(12)
      expect(asked.runs).toBeLessThanOrEqual(4)
      // Every two seconds, and after thirty at the other place.
      expect(asked.tail).toBeLessThanOrEqual(34)
    }).pipe(Effect.provide(MemoryPorts.layer))
  )

  it.live("a wait that ended by itself is told from a ring, however exact the timer is", () =>
    Effect.gen(function* () {
      const { ring, listener } = makeListeners()
      const { wait } = listener("log")
      expect(yield* wait("1 millis")).toBe(false)
      ring("log")
      expect(yield* wait("1 minute")).toBe(true)
      expect(yield* wait("1 millis")).toBe(false)
    })
  )
})
