import { describe, expect, it } from "vitest"
import { type Event, type Message, type Surroundings, tellOf, whyOf } from "../../src/cli/why.ts"
import { detailsOf } from "../../src/domain/message/facts.ts"

const now = Date.parse("2026-01-01T12:00:00.000Z")
const inSeconds = (seconds: number) => new Date(now + seconds * 1000).toISOString()

const message = (change: Partial<Message> = {}): Message => ({
  id: "m-1",
  channel: "webhook",
  to: "e-1",
  status: "QUEUED",
  epoch: 1,
  attempts: 0,
  attemptsMax: 6,
  nextAttemptAt: inSeconds(-1),
  lastError: null,
  ...detailsOf({}),
  createdAt: inSeconds(-60),
  ...change
})
const nothing: Surroundings = { destination: null, circuit: null, before: null }
const destination = { paused: false, rateLimit: null }
const why = (change: Partial<Message>, around: Partial<Surroundings> = {}, events: ReadonlyArray<Event> = []) =>
  whyOf(message(change), events, { ...nothing, ...around }, now)

describe("a message that waits says why", () => {
  it("because it is not due yet", () => {
    expect(why({ nextAttemptAt: inSeconds(90) })).toBe("the message is not due yet: it goes in 90 s")
  })

  it("because an attempt failed", () => {
    const lastError = { code: "http_503", message: "answered 503" }
    expect(why({ attempts: 2, nextAttemptAt: inSeconds(5), lastError })).toBe(
      "attempt 2 failed (http_503: answered 503): the next one starts in 5.0 s"
    )
  })

  it("because its destination is paused, also when it is not due", () => {
    const paused = { destination: { ...destination, paused: true } }
    expect(why({}, paused)).toMatch(/paused/)
    expect(why({ nextAttemptAt: inSeconds(90) }, paused)).toMatch(/paused/)
  })

  it("because the circuit of its destination is open or held", () => {
    expect(why({}, { circuit: { status: "OPEN", openUntil: inSeconds(30) } })).toBe(
      "the circuit of the destination is OPEN: only probes are sent; the next one goes in 30 s"
    )
    expect(why({}, { circuit: { status: "HELD", openUntil: null } })).toMatch(/held by hand/)
    expect(why({}, { circuit: { status: "CLOSED", openUntil: null } })).toMatch(/as soon as a worker/)
  })

  it("because of the rate limit of its destination", () => {
    expect(why({}, { destination: { paused: false, rateLimit: { limit: 50, periodMs: 1_000 } } })).toMatch(
      /rate limit of its destination: 50 messages every 1000 ms/
    )
  })

  it("because another message of its ordering key goes first, whatever else there is", () => {
    const before = { id: "m-0", status: "SENDING" }
    expect(why({}, { before, destination: { ...destination, paused: true } })).toMatch(
      /m-0 \(SENDING\) has the same ordering key/
    )
  })

  it("or that nothing holds it up", () => {
    expect(why({})).toBe("the message is due and goes as soon as a worker is free")
  })
})

describe("a message that does not wait says what is missing or how it ended", () => {
  const event = (type: string, data: Event["data"]): Event => ({
    version: 9,
    type,
    at: inSeconds(-2),
    status: "",
    data
  })

  it.each([
    ["SENDING", [event("AttemptStarted", { attempt: 1 })], "began 2.0 s ago and is under way"],
    [
      "SENDING",
      [event("AttemptStarted", {}), event("AttemptUnresolved", { reconcileAt: inSeconds(5) })],
      "Posthaste asks it in 5.0 s"
    ],
    ["SENT", [], "a proof of delivery has not arrived"],
    ["DELIVERED", [event("MessageDelivered", { proof: "receipt" })], "a receipt from the provider proves"],
    ["DELIVERED", [event("MessageDelivered", { proof: "response" })], "answered that it received the message"],
    ["FAILED", [], "posthaste dead-letters replay --id m-1"],
    ["DEAD_LETTER", [], "no attempt is left"],
    ["CANCELLED", [], "cancelled"],
    ["EXPIRED", [], "the message expired"]
  ])("%s: %#", (status, events, words) => {
    expect(why({ status, attempts: 1 }, {}, events)).toContain(words)
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
