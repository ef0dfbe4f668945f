import { describe, expect, it } from "vitest"
import { causeOf, commandOf, type Event, tellOf } from "../../src/cli/why.ts"

const now = Date.parse("2026-01-01T12:00:00.000Z")
const inSeconds = (seconds: number) => new Date(now + seconds * 1000).toISOString()

describe("a cause is told", () => {
  it("with its times, as distances from now", () => {
    const says = "the circuit is OPEN"
    expect(causeOf({ says, since: inSeconds(-600), until: inSeconds(30) }, now)).toBe(
      "the circuit is OPEN (since 10 min, until in 30 s)"
    )
    expect(causeOf({ says, since: null, until: null }, now)).toBe(says)
  })
})

describe("an action is told", () => {
  const id = "0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01"
  const path = (action: string) => `/api/v1/outbound/messages/${id}/${action}`

  it("as a command where there is one, and as a request elsewhere", () => {
    expect(commandOf({ action: "replay", says: "", path: path("replay") })).toBe(
      `posthaste dead-letters replay --id ${id}`
    )
    expect(commandOf({ action: "hold", says: "", path: path("hold") })).toBe(`POST ${path("hold")}`)
  })
})

describe("a fact is told", () => {
  it("in words, with what follows from it", () => {
    const tell = (type: string, data: Event["data"]) => tellOf({ version: 1, type, at: "", status: "", data }, now)
    expect(
      tell("AttemptFailed", {
        attempt: 2,
        error: { code: "timeout", message: "no answer" },
        durationMs: 15,
        retryAt: inSeconds(5)
      })
    ).toBe("attempt 2 failed after 15 ms (timeout: no answer), next attempt in 5.0 s")
    expect(tell("AttemptSucceeded", { attempt: 1, status: 200, durationMs: 3 })).toBe(
      "attempt 1 succeeded with status 200 after 3 ms"
    )
    expect(tell("MessageReplayed", { epoch: 2, edited: true, reason: "fixed" })).toBe(
      "replayed: epoch 2 with another body: fixed"
    )
    expect(tell("SomethingNew", {})).toBe("SomethingNew")
  })
})
