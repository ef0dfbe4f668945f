import { DateTime } from "effect"
import { describe, expect, it } from "vitest"
import { closed } from "../../../src/domain/circuit/situation.ts"
import { MessageId } from "../../../src/domain/ids.ts"
import { replay } from "../../../src/domain/message/decider.ts"
import { type Reason, reasons } from "../../../src/domain/message/explanation/cause.ts"
import { type Explanation, explain } from "../../../src/domain/message/explanation/explain.ts"
import type { Surroundings } from "../../../src/domain/message/explanation/surroundings.ts"
import type { FactOf, MessageFact } from "../../../src/domain/message/facts.ts"
import * as the from "./samples.ts"

const id = MessageId.make("0198f0a2-3c52-7c43-8b1a-6d2f6f1f0b01")
const other = MessageId.make("0198f0a2-3c52-7c43-8b1a-6d2f6f1f0b02")
const calm: Surroundings = {
  suspension: null,
  pause: null,
  disabling: null,
  circuit: closed,
  rateLimit: null,
  before: null,
  ahead: 0,
  workers: 1,
  restorations: [],
  unknown: []
}
const now = the.noonPlus(10_000)

/** Each fact a second after the one before it, the first at noon. */
const told = (facts: ReadonlyArray<MessageFact>, around: Partial<Surroundings> = {}, at = now): Explanation => {
  replay(facts)
  const history = facts.map((fact, index) => ({ version: index + 1, at: the.noonPlus(index * 1_000), fact }))
  return explain(id, history, { ...calm, ...around }, at)!
}
const reasonsOf = ({ reason, also }: Explanation) => [reason, ...also.map((cause) => cause.reason)]
const actionsOf = ({ actions }: Explanation) => actions.map(({ action }) => action)

const open = {
  ...closed,
  status: "OPEN",
  since: the.noon,
  until: the.noonPlus(30_000),
  cause: "5 attempts in a row failed"
} as const
const paused = { since: the.noonPlus(5_000), by: "operator", reason: "they move house" }
const later = the.queued({ dueAt: the.noonPlus(90_000) })
const retried = [the.queued(), the.started(1), the.failed(1, the.noonPlus(15_000))]

const disabled = { since: the.noonPlus(4_000), reason: "it answered 410" } as const
const attempted = [the.queued(), the.started(1)]
const dead = (reason: "attempts used up" | "too old to retry" | "too old" | "outcome unknown"): MessageFact => ({
  type: "MessageDeadLettered",
  reason,
  error: the.down
})

interface Said {
  readonly facts: ReadonlyArray<MessageFact>
  readonly around?: Partial<Surroundings>
  /** In this order, what a person can do. */
  readonly can: ReadonlyArray<string>
  readonly is: Partial<Pick<Explanation, "says" | "since" | "until" | "waitsFor" | "next">>
}

/** All that is said of a message whose chief reason it is. */
const everyReason: Readonly<Record<Reason, Said>> = {
  PARKED: {
    facts: [the.queued()],
    around: { parked: { at: the.noonPlus(1_000) }, pause: paused },
    can: ["resume", "cancel"],
    is: { since: the.noonPlus(1_000), until: null, waitsFor: "operator" }
  },
  ORG_SUSPENDED: {
    facts: [the.queued()],
    around: { suspension: { since: the.noonPlus(3_000), reason: "unpaid" }, pause: paused },
    can: ["resume", "cancel"],
    is: {
      says: "the operator has suspended the org (unpaid): its messages wait until it may go on",
      since: the.noonPlus(3_000),
      until: null,
      waitsFor: "operator"
    }
  },
  BEHIND_ANOTHER: {
    facts: [the.queued({ orderingKey: "a", line: "a" })],
    around: { before: { id: other, status: "QUEUED" } },
    can: ["cancel"],
    is: { since: null, until: null, waitsFor: "message" }
  },
  NO_WORKER: {
    facts: [the.queued()],
    around: { workers: 0 },
    can: ["cancel"],
    is: { since: null, waitsFor: "worker" }
  },
  DISABLED: {
    facts: [the.queued()],
    around: { disabling: disabled },
    can: ["enable", "cancel"],
    is: {
      says: "the destination is disabled: it answered 410. Its messages wait until it is enabled",
      since: disabled.since,
      until: null,
      waitsFor: "destination"
    }
  },
  PAUSED: {
    facts: [the.queued()],
    around: { pause: { since: paused.since, by: null, reason: null } },
    can: ["resume", "cancel"],
    is: { says: "the destination is paused: its messages wait until it is resumed", since: paused.since, until: null }
  },
  CIRCUIT_HELD: {
    facts: [the.queued()],
    around: { circuit: { ...closed, status: "HELD", since: the.noon } },
    can: ["reset", "cancel"],
    is: { since: the.noon, until: null, waitsFor: "circuit" }
  },
  CIRCUIT_OPEN: {
    facts: [the.queued()],
    around: { circuit: open },
    can: ["reset", "cancel"],
    is: { since: the.noon, until: the.noonPlus(30_000), waitsFor: "circuit" }
  },
  NOT_DUE: { facts: [later], can: ["retry-now", "cancel"], is: { until: the.noonPlus(90_000), waitsFor: "time" } },
  RETRY: {
    facts: [...attempted, the.failed(1, the.noonPlus(15_000))],
    can: ["retry-now", "cancel"],
    is: { since: the.noonPlus(2_000), until: the.noonPlus(15_000), waitsFor: "time", next: "attempt 2 of 3" }
  },
  RATE_LIMITED: {
    facts: [the.queued()],
    around: { rateLimit: { limit: 1, periodMs: 1_000 } },
    can: ["cancel"],
    is: { since: the.noon, until: null, waitsFor: "rateLimit" }
  },
  DUE: { facts: [the.queued()], can: ["cancel"], is: { since: the.noon, until: null, waitsFor: "worker" } },
  UNDER_WAY: { facts: attempted, can: [], is: { since: the.noonPlus(1_000), until: null, waitsFor: "answer" } },
  IN_DOUBT: {
    facts: [...attempted, the.unresolved(1)],
    can: [],
    is: { since: the.noonPlus(2_000), until: the.noonPlus(60_000), waitsFor: "answer" }
  },
  AWAITING_RECEIPT: {
    facts: [...attempted, the.succeeded(1)],
    can: ["resend"],
    is: { since: the.noonPlus(2_000), until: null, waitsFor: "receipt" }
  },
  DELIVERED: {
    facts: [...attempted, the.succeeded(1), the.delivered("receipt")],
    can: ["resend"],
    is: { says: "a receipt from the provider proves the delivery", since: the.noonPlus(3_000), waitsFor: null }
  },
  REFUSED: {
    facts: [...attempted, the.succeeded(1), the.refusedForGood("receipt")],
    can: ["replay", "dismiss"],
    is: {
      says: "the message was refused for good by a receipt of the provider (http_410: 410 Gone)",
      since: the.noonPlus(3_000),
      waitsFor: null,
      next: "nothing, until somebody replays it"
    }
  },
  ATTEMPTS_USED_UP: {
    facts: [...attempted, the.failed(1, null), dead("attempts used up")],
    can: ["replay", "dismiss"],
    is: { says: "no attempt is left (http_503: 503 Service Unavailable)", since: the.noonPlus(3_000) }
  },
  TOO_OLD: {
    facts: [the.queued(), dead("too old")],
    can: ["replay", "dismiss"],
    is: { says: "it grew too old while it waited (http_503: 503 Service Unavailable)", since: the.noonPlus(1_000) }
  },
  OUTCOME_UNKNOWN: {
    facts: [...attempted, the.unresolved(1), the.failed(1, null), dead("outcome unknown")],
    can: ["replay", "dismiss"],
    is: { since: the.noonPlus(4_000), waitsFor: null, next: "nothing, until somebody replays it" }
  },
  CANCELLED: {
    facts: [the.queued(), the.cancelled],
    can: [],
    is: { says: "the message was cancelled before it was sent", since: the.noonPlus(1_000), waitsFor: null }
  },
  EXPIRED: {
    facts: [the.queued({ expiresAt: the.noon }), the.expired(the.noon)],
    can: [],
    is: { since: the.noonPlus(1_000), until: null, waitsFor: null, next: "nothing: it has ended" }
  }
}

describe("each reason", () => {
  it.each(reasons)("%s says since when, until when, what it waits for, and what a person can do", (reason) => {
    const { facts, around, can, is } = everyReason[reason]
    const said = told(facts, around)
    expect(said).toMatchObject({ reason, ...is })
    expect(actionsOf(said)).toEqual(can)
    expect(said.says).not.toBe("")
    expect(said.next).not.toBe("")
    // What has ended, and is its own answer, waits for nothing; whatever waits says for what.
    expect(said.waitsFor === null).toBe(!["QUEUED", "SENDING", "SENT"].includes(said.status))
  })
})

describe("a message that waits says why", () => {
  it("because it is not due yet", () => {
    expect(told([later])).toMatchObject({
      status: "QUEUED",
      reason: "NOT_DUE",
      since: the.noon,
      until: the.noonPlus(90_000),
      waitsFor: "time",
      next: "attempt 1 of 3"
    })
  })

  it("because an attempt failed", () => {
    expect(told(retried)).toMatchObject({
      reason: "RETRY",
      says: "attempt 1 failed (http_503: 503 Service Unavailable): the next one waits for its time",
      since: the.noonPlus(2_000),
      until: the.noonPlus(15_000),
      next: "attempt 2 of 3"
    })
  })

  it("because an attempt was put off or given up, which are no failures", () => {
    const put = [...attempted, the.deferred(1, the.noonPlus(15_000))]
    expect(told(put)).toMatchObject({
      reason: "RETRY",
      says: expect.stringMatching(/^the last attempt was deferred and does not count \(/),
      next: "attempt 1 of 3"
    })
    const given = [...attempted, the.abandoned(1, the.noonPlus(15_000))]
    expect(told(given).says).toBe("attempt 1 was abandoned (the worker went away): the next one waits for its time")
    const tooLate = [...attempted, the.failed(1, null), dead("too old to retry")]
    expect(told(tooLate)).toMatchObject({
      reason: "TOO_OLD",
      says: expect.stringContaining("would have come too late")
    })
  })

  it("and of a replay nothing that was before it", () => {
    const again: MessageFact = { ...(the.replayed(2) as FactOf<"MessageReplayed">), replayedAt: the.noonPlus(90_000) }
    const said = told([...attempted, the.failed(1, null), dead("attempts used up"), again])
    expect(said).toMatchObject({ reason: "NOT_DUE", says: "the message is not due yet", since: the.noonPlus(4_000) })
  })

  it("because its destination is paused, since when and by whom, also when it is not due", () => {
    const said = told([the.queued()], { pause: paused })
    expect(said).toMatchObject({
      reason: "PAUSED",
      since: paused.since,
      until: null,
      waitsFor: "destination",
      also: []
    })
    expect(said.says).toMatch(/paused by operator \(they move house\)/)
    expect(actionsOf(said)).toEqual(["resume", "cancel"])
    expect(reasonsOf(told([later], { pause: paused }))).toEqual(["PAUSED", "NOT_DUE"])
  })

  it("because the circuit of its destination is open, with the cause, or held", () => {
    const said = told([the.queued()], { circuit: open })
    expect(said).toMatchObject({ reason: "CIRCUIT_OPEN", since: the.noon, until: the.noonPlus(30_000) })
    expect(said.says).toContain("5 attempts in a row failed")
    expect(actionsOf(said)).toEqual(["reset", "cancel"])
    // The next probe goes at once.
    expect(told([the.queued()], { circuit: { ...open, until: now } }).until).toBeNull()
    const held = { ...closed, status: "HELD", since: the.noon, cause: "held by hand: maintenance" } as const
    expect(told([the.queued()], { circuit: held })).toMatchObject({ reason: "CIRCUIT_HELD", until: null })
  })

  it("and does not wait for a circuit that can be tried before it is due", () => {
    expect(reasonsOf(told([later], { circuit: open }))).toEqual(["NOT_DUE"])
    expect(reasonsOf(told([the.queued({ dueAt: the.noonPlus(20_000) })], { circuit: open }))).toEqual([
      "CIRCUIT_OPEN",
      "NOT_DUE"
    ])
  })

  it("because no process sends messages, and says when nobody knows of any", () => {
    expect(told([the.queued()], { workers: 0 })).toMatchObject({ reason: "NO_WORKER", waitsFor: "worker" })
    expect(told([the.queued()], { workers: null, unknown: ["workers"] })).toMatchObject({
      reason: "DUE",
      unknown: ["workers"]
    })
  })

  it("because of the rate limit of its destination, and how many go before it", () => {
    const said = told([the.queued()], { rateLimit: { limit: 50, periodMs: 1_000 }, ahead: 7 })
    expect(said).toMatchObject({ reason: "RATE_LIMITED", since: the.noon, ahead: 7 })
    expect(said.says).toContain("50 messages every 1000 ms")
  })

  it("because another message of its ordering key goes first, whatever else there is", () => {
    const before = { id: other, status: "SENDING" } as const
    const said = told([the.queued({ orderingKey: "a", line: "a" })], { before, pause: paused })
    expect(reasonsOf(said)).toEqual(["BEHIND_ANOTHER", "PAUSED"])
    expect(said.before).toEqual(before)
    expect(said.says).toBe(`message ${other} (SENDING) has the same ordering key and goes first`)
  })

  it("or that nothing holds it up", () => {
    expect(told([the.queued()])).toMatchObject({
      reason: "DUE",
      says: "the message is due and goes as soon as a worker is free",
      also: []
    })
  })
})

describe("a message under way says", () => {
  it("since when, and that its worker is gone when it takes too long or no worker lives", () => {
    const facts = [the.queued(), the.started(1)]
    expect(told(facts)).toMatchObject({
      reason: "UNDER_WAY",
      says: "attempt 1 is under way",
      since: the.noonPlus(1_000)
    })
    expect(told(facts, {}, the.noonPlus(300_000)).says).toContain("its worker is gone")
    expect(told(facts, { workers: 0 }).says).toContain("no process that sends messages is alive")
  })

  it("when it is in doubt, what is asked and when, and what else holds it", () => {
    const said = told([the.queued(), the.started(1), the.unresolved(1)], { pause: paused })
    expect(reasonsOf(said)).toEqual(["IN_DOUBT", "PAUSED"])
    expect(said).toMatchObject({ until: the.noonPlus(60_000), waitsFor: "answer" })
    expect(actionsOf(said)).toEqual(["resume"])
  })
})

describe("a message that does not wait says how it ended, and what can be done", () => {
  const refused = the.refusedForGood("response")
  const dead: MessageFact = { type: "MessageDeadLettered", reason: "attempts used up", error: the.down }
  const begun = [the.queued(), the.started(1)]

  it.each([
    [[...begun, the.succeeded(1)], "AWAITING_RECEIPT", "a proof of delivery has not arrived", ["resend"]],
    [
      [...begun, the.succeeded(1), the.delivered("response")],
      "DELIVERED",
      "answered that it received the message",
      ["resend"]
    ],
    [
      [...begun, the.failed(1, null), refused],
      "REFUSED",
      "refused for good (http_410: 410 Gone)",
      ["replay", "dismiss"]
    ],
    [[...begun, the.failed(1, null), dead], "ATTEMPTS_USED_UP", "no attempt is left (http_503", ["replay", "dismiss"]],
    [[the.queued(), { type: "MessageCancelled", reason: "wrong order" } as const], "CANCELLED", "wrong order", []]
  ])("%#: %j", (facts, reason, words, actions) => {
    const said = told(facts, { pause: paused, circuit: open })
    expect(said).toMatchObject({ reason, also: [], before: null, ahead: null })
    expect(said.says).toContain(words)
    expect(actionsOf(said)).toEqual(actions)
  })

  it("that a replay needs another body once its body is erased", () => {
    const said = told([...begun, the.failed(1, null), refused, the.erased])
    expect(said.actions).toMatchObject([
      { action: "replay", says: expect.stringContaining("another payloadJson") },
      { action: "dismiss" }
    ])
  })
})

describe("a dead letter that was dismissed", () => {
  it("can still be replayed, and is not dismissed again", () => {
    const facts = [...attempted, the.failed(1, null), dead("attempts used up")]
    expect(actionsOf(told([...facts, { type: "MessageDismissed", reason: "nobody wants it" }]))).toEqual(["replay"])
  })
})

describe("the moment", () => {
  it("is the one that was asked about", () => {
    expect(DateTime.formatIso(told([the.queued()], {}, the.noonPlus(1)).at)).toBe("2026-01-01T12:00:00.001Z")
  })
})

describe("a restore of the database to an earlier moment", () => {
  const savedAt = the.noonPlus(500)
  const noticedAt = the.noonPlus(5_000)
  const around = { restorations: [{ savedAt, noticedAt }] }
  const at = (seconds: number, fact: MessageFact, version: number) => ({
    version,
    at: the.noonPlus(seconds * 1_000),
    fact
  })
  const restoredOf = (history: Parameters<typeof explain>[1], moment = now) =>
    explain(id, history, { ...calm, ...around }, moment)!.restored

  it("is named of a message that had not ended, and also once it was sent again", () => {
    expect(restoredOf([at(0, the.queued(), 1)])).toMatchObject({ savedAt, noticedAt })
    expect(restoredOf([at(0, the.queued(), 1), at(6, the.started(1), 2)])?.says).toContain("may have been sent")
    const underWay = [at(0, the.queued(), 1), at(0.1, the.started(1), 2)]
    expect(restoredOf(underWay)).not.toBeNull()
  })

  it("is not named of a message that had ended, that came later, or whose facts of the time in between are there", () => {
    const cancelled: MessageFact = { type: "MessageCancelled", reason: null }
    expect(restoredOf([at(0, the.queued(), 1), at(0.1, cancelled, 2)])).toBeNull()
    expect(restoredOf([at(6, the.queued(), 1)])).toBeNull()
    expect(restoredOf([at(0, the.queued(), 1), at(2, the.started(1), 2)])).toBeNull()
    expect(restoredOf([at(0, the.queued(), 1)], the.noonPlus(4_000))).toBeNull()
  })
})
