import { Effect, Logger } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, it } from "vitest"
import { background } from "../../src/application/background.ts"
import { StoreUnavailable } from "../../src/application/ports/errors.ts"
import { makeStoreHealth, StoreHealth } from "../../src/application/storeHealth.ts"

const gone = new StoreUnavailable({ cause: new Error("connection refused"), says: "the server at db:1 is not there" })

describe("an outage of the store", () => {
  it("is two lines in the log, however many parts meet it however often", async () => {
    const lines: Array<string> = []
    const logger = Logger.make(({ message }) => void lines.push(String(Array.isArray(message) ? message[0] : message)))
    const health = makeStoreHealth()
    let isAway = true
    const step = Effect.suspend(() => (isAway ? Effect.fail(gone) : Effect.sleep("1 second")))
    await Effect.gen(function* () {
      for (let part = 0; part < 20; part++) yield* Effect.forkScoped(background(`part ${part}`, step))
      yield* TestClock.adjust("19 seconds")
      expect(health.outage()?.parts.size).toBe(20)
      expect(health.outage()?.reason).toBe("the server at db:1 is not there")
      isAway = false
      yield* TestClock.adjust("10 seconds")
      expect(health.outage()).toBeNull()
    }).pipe(
      Effect.provideService(StoreHealth, health),
      Effect.provide(Logger.layer([logger])),
      Effect.scoped,
      Effect.provide(TestClock.layer()),
      Effect.runPromise
    )
    expect(lines).toHaveLength(2)
    expect(lines[0]).toBe("the store does not answer (part 0)")
    expect(lines[1]).toMatch(/^the store answers again, 2\d s$/)
  })
})
