/** Some facts of a message are written by hand; what every stored fact promises is in ../facts.test.ts. */
import { DateTime, Result } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type DestinationId, EventId, MessageId, type OrgId, ReplayId } from "../../../src/domain/ids.ts"
import { type MessageFact, recorded } from "../../../src/domain/message/facts.ts"
import { fromRecorded, toRecorded } from "../../../src/domain/message/recorded.ts"
import { codecOf } from "../../../src/domain/recorded.ts"
import { anyFact, someQueued } from "../arbitraries.ts"
import { deadLettered, failed, queued, started, succeeded } from "./samples.ts"

const uuid = fc.uuid()
/** With what few messages have. */
const rarelyQueued: fc.Arbitrary<MessageFact> = fc
  .tuple(
    someQueued,
    fc.record({ routingKey: fc.string(), eventId: uuid.map((id) => EventId.make(id)) }, { requiredKeys: [] }),
    fc.oneof(
      { arbitrary: fc.constant({}), weight: 4 },
      fc.record({ replayId: uuid.map((id) => ReplayId.make(id)) }),
      fc.record({ resendOf: uuid.map((id) => MessageId.make(id)) }),
      fc.constant({ test: true as const }),
      fc.record({ metadata: fc.dictionary(fc.string(), fc.string(), { noNullPrototype: true }) })
    ),
    fc.record({ traceparent: fc.string(), orderingKey: fc.string(), line: uuid }, { requiredKeys: [] })
  )
  .map(([fact, ...more]) => Object.assign({}, fact, ...more))

const bySchema = codecOf<MessageFact>(recorded)

describe("writing", () => {
  it("puts down exactly what the schema would, whichever way it takes", () => {
    fc.assert(
      fc.property(fc.oneof(anyFact, rarelyQueued), (fact) => {
        expect(toRecorded(fact)).toEqual(bySchema.toRecorded(fact))
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
    ["a queued message of no org", queued({ orgId: "" as OrgId })],
    ["one for no destination", queued({ destination: "lane" as DestinationId })],
    ["one over no channel", queued({ channel: "Web Hook" })],
    ["one to nobody", queued({ to: null as unknown as string })],
    ["one of an event without an id", queued({ eventId: "event" as EventId })],
    ["one with a key that is no text", queued({ orderingKey: 7 as unknown as string })],
    ["one in a line that is no text", queued({ line: 7 as unknown as string })],
    ["one with a policy that never waits", queued({ retry: { strategy: "schedule", waitsMs: [] } })],
    ["half a millisecond", succeeded(1, { durationMs: 12.5 })],
    ["an attempt that is no number", started(Number.NaN)],
    ["an error without a code", deadLettered("attempts used up", { code: "", message: "", retryable: true })],
    ["a failure without a code", failed(1, null, { error: { code: "", message: "", retryable: true } })]
  ])("%s", (_, fact) => {
    expect(() => toRecorded(fact)).toThrow()
  })
})
