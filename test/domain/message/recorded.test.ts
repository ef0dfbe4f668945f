/** Some facts of a message are written by hand; what every stored fact promises is in ../facts.test.ts. */
import { DateTime, Result, Schema } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type MessageFact, recorded } from "../../../src/domain/message/facts.ts"
import { fromRecorded, toRecorded } from "../../../src/domain/message/recorded.ts"
import { anyFact } from "../arbitraries.ts"
import { deadLettered, failed, started, succeeded } from "./samples.ts"

describe("writing", () => {
  it("puts down exactly what the schema would, whichever way it takes", () => {
    fc.assert(
      fc.property(anyFact, (fact) => {
        const { name, data } = toRecorded(fact)
        const shape = recorded[name as keyof typeof recorded] as Schema.Codec<MessageFact, { type: string }>
        const { type, ...encoded } = Schema.encodeSync(shape)(fact)
        expect(type).toBe(fact.type)
        expect(name.split("@")[0]).toBe(type)
        expect(data).toBe(JSON.stringify(encoded))
      }),
      { numRuns: 500 }
    )
  })

  it.each([
    "2026-03-01T00:00:00.000Z",
    "2026-03-01T00:00:00.007Z",
    "2026-03-01T00:00:00.999Z",
    "2026-03-01T00:00:01.000Z",
    "2026-03-01T00:00:00.070Z",
    "1969-12-31T23:59:59.001Z",
    "+010000-01-01T00:00:00.010Z"
  ])("tells the time %s of an attempt, whichever was told before", (text) => {
    const exchange = { settings: 1, sentAt: DateTime.makeUnsafe(text) }
    expect(JSON.parse(toRecorded(succeeded(1, { exchange })).data).exchange.sentAt).toBe(text)
  })

  it("and reading again give the same fact", () => {
    fc.assert(
      fc.property(anyFact, (fact) => {
        expect(fromRecorded(toRecorded(fact))).toEqual(Result.succeed(fact))
      }),
      { numRuns: 500 }
    )
  })

  it("repeats no type inside the data", () => {
    fc.assert(
      fc.property(anyFact, (fact) => {
        expect(JSON.parse(toRecorded(fact).data)).not.toHaveProperty("type")
      })
    )
  })
})

describe("writing refuses what could never be read again", () => {
  it.each<[string, MessageFact]>([
    ["half a millisecond", succeeded(1, { durationMs: 12.5 })],
    ["an attempt that is no number", started(Number.NaN)],
    ["an error without a code", deadLettered("attempts used up", { code: "", message: "", retryable: true })],
    ["a failure without a code", failed(1, null, { error: { code: "", message: "", retryable: true } })]
  ])("%s", (_, fact) => {
    expect(() => toRecorded(fact)).toThrow()
  })
})
