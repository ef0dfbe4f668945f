import { DateTime, Result } from "effect"
import { describe, expect, it } from "vitest"
import type { RetryPolicy } from "../../../src/domain/delivery/retry.ts"
import { DEFER_MAX_MS, RETRY_AFTER_MAX_MS } from "../../../src/domain/delivery/retry.ts"
import { can, decide, endsAt, evolve, initial, replay } from "../../../src/domain/message/decider.ts"
import type { MessageFact } from "../../../src/domain/message/facts.ts"
import { given } from "./given.ts"
import * as the from "./samples.ts"

const { queued, started, succeeded, failed, abandoned, unresolved, delivered, deadLettered, noon, noonPlus } = the
const whatsapp = queued({ channel: "whatsapp", to: "+4915112345678" })
const lastAttempt = queued({ retry: { strategy: "fixed", baseMs: 1_000, attemptsMax: 1 } })

describe("a message that is handed over", () => {
  it("is queued with everything it was handed over with", () => {
    given().when({ type: "QueueMessage", request: queued() }).then(queued()).in("QUEUED")
  })

  it("is queued only once", () => {
    given(queued()).when({ type: "QueueMessage", request: queued() }).thenRejectedIn("QUEUED")
  })
})

describe("a queued message", () => {
  it("starts its first attempt before anything is sent", () => {
    given(queued()).when(the.startAttempt()).then(started(1)).in("SENDING")
  })

  it("starts its next attempt after one that failed", () => {
    given(queued(), started(1), failed(1, noonPlus(1_000)))
      .when(the.startAttempt())
      .then(started(2))
      .in("SENDING")
  })

  it("can be cancelled", () => {
    given(queued())
      .when({ type: "CancelMessage", reason: "order withdrawn" })
      .then({ type: "MessageCancelled", reason: "order withdrawn" })
      .in("CANCELLED")
  })

  it("can be cancelled while it waits for a retry", () => {
    given(queued(), started(1), failed(1, noonPlus(1_000)))
      .when(the.cancel)
      .then(the.cancelled)
      .in("CANCELLED")
  })

  it("is hurried by a person while its time is still to come", () => {
    const hurry = { type: "HurryMessage", now: noonPlus(500) } as const
    const hurried: MessageFact = { type: "MessageHurried", dueAt: noonPlus(500) }
    given(queued(), started(1), failed(1, noonPlus(60_000)))
      .when(hurry)
      .then(hurried)
      .in("QUEUED")
    given(queued({ dueAt: noonPlus(60_000) }))
      .when(hurry)
      .then(hurried)
      .in("QUEUED")
    expect(replay([queued({ dueAt: noonPlus(60_000) }), hurried]).progress).toMatchObject({
      attempt: 0,
      dueAt: noonPlus(500),
      // It grows old from when it may be sent.
      openedAt: noonPlus(500)
    })
    const retried = [queued(), started(1), failed(1, noonPlus(60_000)), hurried]
    expect(replay(retried).progress).toMatchObject({ attempt: 1, dueAt: noonPlus(500), openedAt: noon })
  })

  it("is not hurried when it is due, and no other message is", () => {
    const hurry = { type: "HurryMessage", now: noonPlus(500) } as const
    given(queued()).when(hurry).then().in("QUEUED")
    given(queued(), started(1)).when(hurry).thenRejectedIn("SENDING")
    given(queued(), the.cancelled).when(hurry).thenRejectedIn("CANCELLED")
    expect(can(replay([queued({ dueAt: noonPlus(500) })]), { type: "MessageHurried", dueAt: noonPlus(500) })).toBe(
      false
    )
  })

  it("expires instead of starting an attempt at the very moment of its expiry", () => {
    given(queued({ expiresAt: noonPlus(500) }))
      .when(the.startAttempt(noonPlus(500)))
      .then(the.expired(noonPlus(500)))
      .in("EXPIRED")
  })

  it("is still sent a millisecond before its expiry", () => {
    given(queued({ expiresAt: noonPlus(500) }))
      .when(the.startAttempt(noonPlus(499)))
      .then(started(1))
      .in("SENDING")
  })

  it("expires when it would be due only after its expiry, whatever the clock says", () => {
    given(queued({ dueAt: noonPlus(1_000), expiresAt: noonPlus(500) }))
      .when(the.startAttempt(noonPlus(499)))
      .then(the.expired(noonPlus(500)))
      .in("EXPIRED")
  })

  it("expires between attempts too", () => {
    given(queued({ expiresAt: noonPlus(500) }), started(1), failed(1, noonPlus(1_000)))
      .when(the.startAttempt(noonPlus(1_000)))
      .then(the.expired(noonPlus(500)))
      .in("EXPIRED")
  })
})

describe("an attempt that is accepted", () => {
  it("proves delivery in the same append when the answer itself is the proof", () => {
    given(queued(), started(1))
      .when(the.settle(1, the.outcomes.accepted()))
      .then(succeeded(1), delivered("response"))
      .in("DELIVERED")
  })

  it("leaves the message sent when only a receipt can prove delivery", () => {
    given(whatsapp, started(1))
      .when(the.settle(1, the.outcomes.accepted({ delivered: false, providerMessageId: "wamid.1" })))
      .then(succeeded(1, { providerMessageId: "wamid.1" }))
      .in("SENT")
  })

  it("is followed by delivery when the receipt says so", () => {
    given(whatsapp, started(1), succeeded(1))
      .when(the.recordReceipt("delivered"))
      .then(the.received("delivered"), delivered("receipt"))
      .in("DELIVERED")
  })

  it("is followed by failure when the receipt says so, with the provider's reason", () => {
    given(whatsapp, started(1), succeeded(1))
      .when(the.recordReceipt("failed"))
      .then(the.received("failed"), the.refusedForGood("receipt", the.unreachablePhone))
      .in("FAILED")
  })

  it("fails with a reason of our own when the provider gives none", () => {
    const command = { ...the.recordReceipt("failed"), error: null } as Parameters<typeof decide>[1]
    given(whatsapp, started(1), succeeded(1))
      .when(command)
      .then(
        the.received("failed", { error: null }),
        the.refusedForGood("receipt", {
          code: "receipt_failed",
          message: "the provider reported that the message could not be delivered",
          retryable: false
        })
      )
      .in("FAILED")
  })
})

describe("an attempt that fails", () => {
  it("waits exactly as long as the policy says", () => {
    given(queued(), started(1))
      .when(the.settle(1, the.outcomes.unreachable(), noonPlus(250)))
      .then(failed(1, noonPlus(1_250)))
      .in("QUEUED")
    given(queued(), started(1), failed(1, noonPlus(1_250)), started(2))
      .when(the.settle(2, the.outcomes.unreachable(), noonPlus(2_000)))
      .then(failed(2, noonPlus(7_000)))
      .in("QUEUED")
  })

  it("waits half the computed backoff when the die falls on its lowest side", () => {
    given(queued({ retry: { strategy: "exponential", baseMs: 1_000 } }), started(1))
      .when(the.settle(1, the.outcomes.unreachable(), noon, 0))
      .then(failed(1, noonPlus(500)))
      .in("QUEUED")
  })

  it("puts the message among the dead letters when it was the last one allowed, in one decision", () => {
    given(queued(), started(1), failed(1, noon), started(2), failed(2, noon), started(3))
      .when(the.settle(3, the.outcomes.unreachable()))
      .then(failed(3, null), deadLettered("attempts used up"))
      .in("DEAD_LETTER")
  })

  it("honours a Retry-After that is longer than the policy's wait", () => {
    given(queued(), started(1))
      .when(the.settle(1, the.outcomes.unreachable(20_000)))
      .then(failed(1, noonPlus(20_000)))
      .in("QUEUED")
  })

  it("does not hurry because of a shorter Retry-After", () => {
    given(queued(), started(1))
      .when(the.settle(1, the.outcomes.unreachable(10)))
      .then(failed(1, noonPlus(1_000)))
      .in("QUEUED")
  })

  it("does not wait for ever because of an endless Retry-After", () => {
    given(queued(), started(1))
      .when(the.settle(1, the.outcomes.unreachable(365 * 24 * 3_600_000)))
      .then(failed(1, noonPlus(RETRY_AFTER_MAX_MS)))
      .in("QUEUED")
  })

  it("gets no further attempt from a Retry-After when it was the last one allowed", () => {
    given(lastAttempt, started(1))
      .when(the.settle(1, the.outcomes.unreachable(20_000)))
      .then(failed(1, null), deadLettered("attempts used up"))
      .in("DEAD_LETTER")
  })
})

describe("an attempt the far side did not try", () => {
  it("does not count: the next one has its number", () => {
    given(queued(), started(1))
      .when(the.settle(1, the.outcomes.deferred(30_000), noonPlus(250)))
      .then(the.deferred(1, noonPlus(30_250)))
      .in("QUEUED")
    given(queued(), started(1), the.deferred(1, noonPlus(30_250)))
      .when(the.startAttempt(noonPlus(30_250)))
      .then(started(1))
      .in("SENDING")
  })

  it("leaves the last attempt to the message, however often it is turned away", () => {
    const turnedAway = Array.from({ length: 20 }, () => [started(1), the.deferred(1, noon)]).flat()
    given(lastAttempt, ...turnedAway)
      .when(the.startAttempt())
      .then(started(1))
      .in("SENDING")
    given(lastAttempt, ...turnedAway, started(1))
      .when(the.settle(1, the.outcomes.unreachable()))
      .then(failed(1, null), deadLettered("attempts used up"))
      .in("DEAD_LETTER")
  })

  it.each([
    ["30 days", undefined, 0],
    ["30 days", undefined, 12 * 3_600_000],
    ["a year", 365 * 24 * 3_600_000, 0],
    ["two seconds", 2_000, 0]
  ])("ends when it is %s old, and after 740 deferrals at most, however short it is put off", (_, ageMaxMs, afterMs) => {
    const retry = { strategy: "schedule", waitsMs: [1_000], ...(ageMaxMs && { ageMaxMs }) } as const
    let message = replay([queued({ retry })])
    let now = noon
    let deferrals = 0
    const waits: Array<number> = []
    while (message.status !== "DEAD_LETTER" && deferrals < 2_000) {
      const [start] = Result.getOrThrow(decide(message, the.startAttempt(now)))
      message = evolve(message, start!)
      if (start!.type !== "AttemptStarted") continue
      const facts = Result.getOrThrow(decide(message, the.settle(1, the.outcomes.deferred(afterMs), now)))
      message = facts.reduce(evolve, message)
      if (facts[0]!.type !== "AttemptDeferred") break
      deferrals++
      waits.push(DateTime.toEpochMillis(facts[0]!.dueAt) - DateTime.toEpochMillis(now))
      now = facts[0]!.dueAt
    }
    expect(message.status).toBe("DEAD_LETTER")
    expect(deferrals).toBeLessThanOrEqual(740)
    // At first as short as it was asked for.
    expect(waits.slice(0, 5)).toEqual(Array.from({ length: 5 }, () => afterMs))
    const lived = DateTime.toEpochMillis(now) - DateTime.toEpochMillis(noon)
    const age = ageMaxMs ?? 30 * 24 * 3_600_000
    expect(lived).toBeGreaterThan(age - Math.max(afterMs, age / 700))
    expect(lived).toBeLessThanOrEqual(age)
  })

  it("keeps what was burnt before", () => {
    given(queued(), started(1), failed(1, noon), started(2), the.deferred(2, noon))
      .when(the.startAttempt())
      .then(started(2))
      .in("SENDING")
  })

  it("waits a week at most, and never into the past", () => {
    given(queued(), started(1))
      .when(the.settle(1, the.outcomes.deferred(Number.POSITIVE_INFINITY)))
      .then(the.deferred(1, noonPlus(DEFER_MAX_MS)))
      .in("QUEUED")
    given(queued(), started(1))
      .when(the.settle(1, the.outcomes.deferred(-5)))
      .then(the.deferred(1, noon))
      .in("QUEUED")
  })

  it("expires in time when it would be due only after its expiry", () => {
    const waiting = [queued({ expiresAt: noonPlus(500) }), started(1), the.deferred(1, noonPlus(30_000))] as const
    given(...waiting)
      .when(the.startAttempt(noonPlus(500)))
      .then(the.expired(noonPlus(500)))
      .in("EXPIRED")
  })

  it("may be cancelled while it waits", () => {
    given(queued(), started(1), the.deferred(1, noon)).when(the.cancel).then(the.cancelled).in("CANCELLED")
  })

  it("ends the message when the wait would make it too old, also on its last attempt", () => {
    const aged = (change: object) => queued({ retry: { strategy: "fixed", baseMs: 0, ageMaxMs: 10_000, ...change } })
    for (const attemptsMax of [1, 6]) {
      given(aged({ attemptsMax }), started(1))
        .when(the.settle(1, the.outcomes.deferred(10_000)))
        .then(the.deferred(1, noonPlus(10_000)))
        .in("QUEUED")
      given(aged({ attemptsMax }), started(1))
        .when(the.settle(1, the.outcomes.deferred(10_001)))
        .then(failed(1, null, { error: the.throttled, status: 400 }), deadLettered("too old to retry", the.throttled))
        .in("DEAD_LETTER")
    }
  })

  it("stays in doubt when it was, for a turned-away question answers nothing", () => {
    given(whatsapp, started(1), unresolved(1))
      .when(the.settle(1, the.outcomes.deferred(5_000)))
      .then({
        type: "AttemptUnresolved",
        attempt: 1,
        error: the.throttled,
        durationMs: 12,
        reconcileAt: noonPlus(5_000 * 4)
      })
      .in("SENDING")
    expect(can(replay([whatsapp, started(1), unresolved(1)]), the.deferred(1, noon))).toBe(false)
  })

  it("is closed once, and only while it is open", () => {
    expect(can(replay([queued(), started(1)]), the.deferred(2, noon))).toBe(false)
    for (const history of [the.histories.QUEUED, ...Object.values(the.endings)]) {
      expect(can(replay(history), the.deferred(1, noon))).toBe(false)
    }
  })
})

describe("a message with an age limit", () => {
  const young = queued({ retry: { strategy: "fixed", baseMs: 1_000, jitter: [1, 1], ageMaxMs: 10_000 } })

  it("is retried when the retry falls on the limit", () => {
    given(young, started(1))
      .when(the.settle(1, the.outcomes.unreachable(), noonPlus(9_000)))
      .then(failed(1, noonPlus(10_000)))
      .in("QUEUED")
  })

  it("becomes a dead letter when the retry would fall behind it, attempts left or not", () => {
    given(young, started(1))
      .when(the.settle(1, the.outcomes.unreachable(), noonPlus(9_001)))
      .then(failed(1, null), deadLettered("too old to retry"))
      .in("DEAD_LETTER")
    given(young, started(1))
      .when(the.abandon(1, noonPlus(9_001)))
      .then(
        abandoned(1, null),
        deadLettered("too old to retry", { code: "abandoned", message: "the worker went away", retryable: true })
      )
      .in("DEAD_LETTER")
  })

  const tooOld = (failed: string) =>
    deadLettered("too old", {
      code: "too_old",
      message: `the message grew too old while it waited; ${failed}`,
      retryable: true
    })
  const end = (ms: number) => ({ type: "EndMessage", now: noonPlus(ms) }) as const

  it("becomes a dead letter when it grows too old while it waits, tried or not", () => {
    given(young).when(end(10_001)).then(tooOld("it was never sent")).in("DEAD_LETTER")
    const waiting = given(young, started(1), failed(1, noonPlus(10_000)))
    waiting.when(end(10_001)).then(tooOld("1 attempt had failed")).in("DEAD_LETTER")
    waiting
      .when(the.startAttempt(noonPlus(10_001)))
      .then(tooOld("1 attempt had failed"))
      .in("DEAD_LETTER")
    waiting
      .when(the.startAttempt(noonPlus(10_000)))
      .then(started(2))
      .in("SENDING")
  })

  it("ends for no other reason while it waits", () => {
    expect(can(replay([young]), deadLettered("too old"))).toBe(true)
    for (const reason of ["attempts used up", "too old to retry", "outcome unknown"] as const) {
      expect(can(replay([young]), deadLettered(reason))).toBe(false)
    }
  })

  it("is not ended before its time, nor while an attempt is under way or in doubt, nor after its end", () => {
    for (const history of [
      [young],
      [young, started(1), failed(1, noonPlus(10_000))],
      [queued({ expiresAt: noonPlus(10_001) })]
    ]) {
      given(...history)
        .when(end(10_000))
        .thenRejectedIn("QUEUED")
    }
    given(young, started(1)).when(end(99_000)).thenRejectedIn("SENDING")
    given(whatsapp, started(1), unresolved(1))
      .when(end(99 * 24 * 3_600_000))
      .thenRejectedIn("SENDING")
    for (const [status, history] of Object.entries(the.endings)) {
      given(...history)
        .when(end(99 * 24 * 3_600_000))
        .thenRejectedIn(status as keyof typeof the.endings)
    }
  })

  it("ends by its expiry where that comes first", () => {
    given({ ...young, expiresAt: noonPlus(10_000) })
      .when(end(20_000))
      .then(the.expired(noonPlus(10_000)))
      .in("EXPIRED")
  })

  it("is 30 days old at the most, unless its policy says otherwise", () => {
    const days = (count: number) => count * 24 * 3_600_000
    given(queued())
      .when(end(days(30)))
      .thenRejectedIn("QUEUED")
    given(queued())
      .when(end(days(30) + 1))
      .then(tooOld("it was never sent"))
      .in("DEAD_LETTER")
    given(queued({ retry: { strategy: "fixed", baseMs: 1, ageMaxMs: days(90) } }))
      .when(end(days(90)))
      .thenRejectedIn("QUEUED")
  })

  it("says when it ends while it waits: at its expiry or by its age, whichever comes first", () => {
    const ends = (...history: ReadonlyArray<MessageFact>) => endsAt(replay(history))
    expect(ends(young)).toEqual(noonPlus(10_000))
    expect(ends({ ...young, expiresAt: noonPlus(9_999) })).toEqual(noonPlus(9_999))
    expect(ends({ ...young, expiresAt: noonPlus(10_001) })).toEqual(noonPlus(10_000))
    expect(ends(young, started(1))).toBeNull()
    expect(ends(young, the.cancelled)).toBeNull()
    // A year that everybody can write down.
    const last = DateTime.makeUnsafe("9999-12-31T23:59:59.999Z")
    expect(ends({ ...young, dueAt: DateTime.subtract(last, { seconds: 1 }) })).toEqual(last)
  })

  it("is not ended when it waits although it was taken, as it could while receipts ended no message that waits", () => {
    const taken = given(
      young,
      started(1),
      the.received("sent", { providerMessageId: "p1" }),
      failed(1, noonPlus(10_000))
    )
    taken.when(end(99_000)).thenRejectedIn("QUEUED")
    taken
      .when(the.startAttempt(noonPlus(99_000)))
      .then({ type: "AttemptSucceeded", attempt: 1, status: null, providerMessageId: "p1", durationMs: 0 })
      .in("SENT")
  })

  it("counts from the time a scheduled message is first due", () => {
    const scheduled = given({ ...young, dueAt: noonPlus(60_000) })
    scheduled.when(end(70_000)).thenRejectedIn("QUEUED")
    scheduled
      .when(the.startAttempt(noonPlus(60_000)))
      .then(started(1))
      .in("SENDING")
    scheduled.when(end(70_001)).then(tooOld("it was never sent")).in("DEAD_LETTER")
  })

  it("counts a replayed message's age from its replay", () => {
    given(young, started(1), failed(1, null), deadLettered("too old to retry"), the.replayed(2, noonPlus(50_000)), {
      type: "AttemptStarted",
      epoch: 2,
      attempt: 1
    })
      .when(the.settle(1, the.outcomes.unreachable(), noonPlus(59_000)))
      .then(failed(1, noonPlus(60_000)))
      .in("QUEUED")
  })
})

describe("an attempt that is refused for good", () => {
  it("ends the message whatever attempts are left", () => {
    given(queued(), started(1))
      .when(the.settle(1, the.outcomes.refused()))
      .then(failed(1, null, { error: the.gone, status: 410 }), the.refusedForGood("response"))
      .in("FAILED")
  })
})

describe("an attempt whose outcome is unknown", () => {
  const doubted = [whatsapp, started(1), unresolved(1)] as const

  it("stays open until the time to find out, and nothing is sent again", () => {
    given(whatsapp, started(1))
      .when(the.settle(1, the.outcomes.unknown()))
      .then(unresolved(1, noonPlus(60_000)))
      .in("SENDING")
    given(...doubted)
      .when(the.startAttempt())
      .thenRejectedIn("SENDING")
  })

  it("counts as an attempt", () => {
    expect(replay(doubted).progress.attempt).toBe(1)
  })

  it.each(["delivered", "read"] as const)("is settled by a receipt that says %s", (receipt) => {
    given(...doubted)
      .when(the.recordReceipt(receipt))
      .then(
        the.received(receipt),
        succeeded(1, { status: null, providerMessageId: "wamid.1", durationMs: 0 }),
        delivered("receipt")
      )
      .in("DELIVERED")
  })

  it("is settled as sent by a receipt that says sent", () => {
    given(...doubted)
      .when(the.recordReceipt("sent"))
      .then(the.received("sent"), succeeded(1, { status: null, providerMessageId: "wamid.1", durationMs: 0 }))
      .in("SENT")
  })

  it("is settled as failed by a receipt that says failed", () => {
    given(...doubted)
      .when(the.recordReceipt("failed"))
      .then(
        the.received("failed"),
        succeeded(1, { status: null, providerMessageId: "wamid.1", durationMs: 0 }),
        the.refusedForGood("receipt", the.unreachablePhone)
      )
      .in("FAILED")
  })

  const givenUp = [
    failed(1, null, { error: the.doubtful, status: null, durationMs: 30_000 }),
    deadLettered("outcome unknown", the.doubtful)
  ] as const

  it("becomes a dead letter when there is nobody to ask", () => {
    for (const history of [[whatsapp, started(1)], doubted]) {
      given(...history)
        .when(the.settle(1, the.outcomes.unknown(null)))
        .then(...givenUp)
        .in("DEAD_LETTER")
    }
  })

  it("is asked about again and again, ever more rarely, and then becomes a dead letter", () => {
    const minute = 60_000
    const waits = [1, 4, 16, 64, 256].map((minutes) => unresolved(1, noonPlus(minutes * minute)))
    waits.forEach((next, asked) => {
      given(whatsapp, started(1), ...waits.slice(0, asked))
        .when(the.settle(1, the.outcomes.unknown()))
        .then(next)
        .in("SENDING")
    })
    given(whatsapp, started(1), ...waits)
      .when(the.settle(1, the.outcomes.unknown()))
      .then(...givenUp)
      .in("DEAD_LETTER")
  })

  it("is asked about from the start when it is another attempt", () => {
    const doubtedOnce = [...doubted, unresolved(1), failed(1, noon), started(2)]
    given(...doubtedOnce)
      .when(the.settle(2, the.outcomes.unknown()))
      .then(unresolved(2, noonPlus(60_000)))
      .in("SENDING")
  })

  it("is retried once we know that it was not taken", () => {
    given(...doubted)
      .when(the.settle(1, the.outcomes.unreachable(), noonPlus(60_000)))
      .then(failed(1, noonPlus(61_000)))
      .in("QUEUED")
  })

  it("ends well once we know that it was taken", () => {
    given(...doubted)
      .when(the.settle(1, the.outcomes.accepted({ delivered: false, providerMessageId: "wamid.1" })))
      .then(succeeded(1, { providerMessageId: "wamid.1" }))
      .in("SENT")
  })

  it("ends badly once we know that it was refused", () => {
    given(...doubted)
      .when(the.settle(1, the.outcomes.refused()))
      .then(failed(1, null, { error: the.gone, status: 410 }), the.refusedForGood("response"))
      .in("FAILED")
  })

  it("is not sent again blindly because the worker that should find out went away", () => {
    given(...doubted)
      .when(the.abandon(1))
      .thenRejectedIn("SENDING")
  })
})

describe("an attempt whose worker went away", () => {
  it("burns the attempt and is retried after the policy's wait", () => {
    given(queued(), started(1))
      .when(the.abandon(1))
      .then(abandoned(1, noonPlus(1_000)))
      .in("QUEUED")
  })

  it("puts the message among the dead letters when it was the last one allowed", () => {
    given(lastAttempt, started(1))
      .when(the.abandon(1))
      .then(
        abandoned(1, null),
        deadLettered("attempts used up", { code: "abandoned", message: "the worker went away", retryable: true })
      )
      .in("DEAD_LETTER")
  })

  it("is taken as sent when a receipt already knows of it", () => {
    given(whatsapp, started(1), the.received("sent"))
      .when(the.abandon(1))
      .then(succeeded(1, { status: null, providerMessageId: "wamid.1", durationMs: 0 }))
      .in("SENT")
  })
})

describe("a replay", () => {
  /** Each run of the message ended at its first attempt. */
  const afterRuns = (runs: number, retry: RetryPolicy): ReadonlyArray<MessageFact> =>
    Array.from({ length: runs }, (_, n): ReadonlyArray<MessageFact> => {
      const [, ...ending] = the.endings.FAILED
      const begun = n === 0 ? queued({ retry }) : the.replayed(n + 1)
      return [begun, ...ending.map((fact) => (fact.type === "AttemptStarted" ? { ...fact, epoch: n + 1 } : fact))]
    }).flat()

  it("opens no hundred-and-first run: the history is read whole by whoever asks", () => {
    const once: RetryPolicy = { strategy: "fixed", baseMs: 0, attemptsMax: 1 }
    given(...afterRuns(99, once))
      .when(the.replayMessage())
      .then(the.replayed(100))
    given(...afterRuns(100, once))
      .when(the.replayMessage())
      .thenRejectedIn("FAILED")
  })

  it("opens none where a thousand attempts may have been made", () => {
    const often: RetryPolicy = { strategy: "fixed", baseMs: 0, attemptsMax: 100 }
    given(...afterRuns(9, often))
      .when(the.replayMessage())
      .then(the.replayed(10))
    given(...afterRuns(10, often))
      .when(the.replayMessage())
      .thenRejectedIn("FAILED")
  })

  it.each(["FAILED", "DEAD_LETTER"] as const)(
    "opens the next epoch of a %s message with all its attempts",
    (status) => {
      given(...the.endings[status])
        .when(the.replayMessage())
        .then(the.replayed(2))
        .in("QUEUED")
      const message = replay([...the.endings[status], the.replayed(2)])
      expect(message.progress).toMatchObject({
        epoch: 2,
        attempt: 0,
        phase: "none",
        receiptOutcome: null,
        receipts: []
      })
    }
  )

  it("numbers the attempts of the new epoch from one", () => {
    given(...the.endings.FAILED, the.replayed(2))
      .when(the.startAttempt())
      .then(started(1, 2))
      .in("SENDING")
  })

  it("forgets the expiry of the run that ended: whoever replays wants it sent", () => {
    const ended = [
      queued({ expiresAt: noonPlus(10) }),
      started(1),
      failed(1, null, { error: the.gone, status: 410 }),
      the.refusedForGood("response")
    ]
    given(...ended, the.replayed(2))
      .when(the.startAttempt(noonPlus(3_600_000)))
      .then(started(1, 2))
      .in("SENDING")
  })

  it.each(["QUEUED", "SENDING", "SENT", "DELIVERED", "CANCELLED", "EXPIRED"] as const)(
    "is refused for a %s message",
    (status) => {
      given(...the.histories[status])
        .when(the.replayMessage())
        .thenRejectedIn(status)
    }
  )

  it("is refused for a message that does not exist", () => {
    given().when(the.replayMessage()).thenRejectedIn("NEW")
  })
})

describe("a refusal names the command and the status", () => {
  const except = (...allowed: ReadonlyArray<string>) =>
    (Object.keys(the.histories) as Array<keyof typeof the.histories>).filter((status) => !allowed.includes(status))

  it.each(except("QUEUED"))("cancelling a %s message", (status) => {
    given(...the.histories[status])
      .when(the.cancel)
      .thenRejectedIn(status)
  })

  it.each(except("QUEUED"))("starting an attempt of a %s message", (status) => {
    given(...the.histories[status])
      .when(the.startAttempt())
      .thenRejectedIn(status)
  })

  it.each(except("SENDING"))("settling an attempt of a %s message", (status) => {
    for (const outcome of Object.values(the.outcomes)) {
      given(...the.histories[status])
        .when(the.settle(1, outcome()))
        .thenRejectedIn(status)
    }
  })

  it.each(except("SENDING"))("abandoning an attempt of a %s message", (status) => {
    given(...the.histories[status])
      .when(the.abandon(1))
      .thenRejectedIn(status)
  })

  it.each(except())("queueing a %s message again", (status) => {
    given(...the.histories[status])
      .when({ type: "QueueMessage", request: queued() })
      .thenRejectedIn(status)
  })

  it("anything asked of a message that does not exist", () => {
    const commands = [
      the.startAttempt(),
      the.settle(1, the.outcomes.accepted()),
      the.abandon(1),
      the.cancel,
      the.recordReceipt("sent")
    ]
    for (const command of commands) given().when(command).thenRejectedIn("NEW")
  })

  it("settling another attempt than the open one", () => {
    for (const attempt of [0, 1, 3]) {
      for (const outcome of Object.values(the.outcomes)) {
        given(queued(), started(1), failed(1, noon), started(2))
          .when(the.settle(attempt, outcome()))
          .thenRejectedIn("SENDING")
      }
    }
  })

  it("abandoning another attempt than the open one", () => {
    for (const attempt of [0, 1, 3]) {
      given(queued(), started(1), failed(1, noon), started(2)).when(the.abandon(attempt)).thenRejectedIn("SENDING")
    }
  })
})

/** Asked of the law itself: the decider would never propose most of these. */
describe("the law", () => {
  const allows = (history: ReadonlyArray<MessageFact>, fact: MessageFact) => can(replay(history), fact)
  const sending = [queued(), started(1)]
  const settled = [...sending, failed(1, null)]

  it("lets the attempts of an epoch come in turn only", () => {
    expect([0, 1, 2].filter((attempt) => allows([queued()], started(attempt)))).toEqual([1])
    const retrying = [...sending, failed(1, noon)]
    expect([0, 1, 2, 3].filter((attempt) => allows(retrying, started(attempt)))).toEqual([2])
  })

  it("lets an attempt start in the current epoch only", () => {
    expect([0, 1, 2].filter((epoch) => allows([queued()], started(1, epoch)))).toEqual([1])
    const again = [...the.endings.FAILED, the.replayed(2)]
    expect([1, 2, 3].filter((epoch) => allows(again, started(1, epoch)))).toEqual([2])
  })

  it("lets no attempt start beyond those allowed", () => {
    // No fact leads here; the law must hold even for a message that arrives here by mistake.
    const { status, progress } = replay([lastAttempt])
    expect(can({ status, progress: { ...progress, attempt: 1 } }, started(2))).toBe(false)
    expect(can({ status, progress: { ...progress, attempt: 1, attemptsMax: 2 } }, started(2))).toBe(true)
  })

  it("lets no retry be promised when no attempt is left", () => {
    for (const close of [failed, abandoned]) {
      expect(allows([lastAttempt, started(1)], close(1, noon))).toBe(false)
      expect(allows([lastAttempt, started(1)], close(1, null))).toBe(true)
    }
  })

  it("lets an attempt be closed once, and no other attempt in its place", () => {
    for (const attempt of [0, 1, 2]) {
      const isOpen = attempt === 1
      expect(allows(sending, succeeded(attempt))).toBe(isOpen)
      expect(allows(sending, unresolved(attempt))).toBe(isOpen)
      for (const retryAt of [noon, null]) {
        expect(allows(sending, failed(attempt, retryAt))).toBe(isOpen)
        expect(allows(sending, abandoned(attempt, retryAt))).toBe(isOpen)
        expect(allows(settled, failed(attempt, retryAt))).toBe(false)
        expect(allows(settled, abandoned(attempt, retryAt))).toBe(false)
      }
      expect(allows(settled, succeeded(attempt))).toBe(false)
      expect(allows(settled, unresolved(attempt))).toBe(false)
    }
  })

  it("lets an attempt be doubted five times", () => {
    const doubts = Array.from({ length: 5 }, () => unresolved(1))
    expect(allows([...sending, ...doubts.slice(1)], unresolved(1))).toBe(true)
    expect(allows([...sending, ...doubts], unresolved(1))).toBe(false)
  })

  it("lets a doubtful attempt be closed by knowledge, never by abandoning it", () => {
    const doubted = [...sending, unresolved(1)]
    expect(allows(doubted, succeeded(1))).toBe(true)
    expect(allows(doubted, failed(1, noon))).toBe(true)
    expect(allows(doubted, failed(1, null))).toBe(true)
    expect(allows(doubted, abandoned(1, noon))).toBe(false)
    expect(allows(doubted, abandoned(1, null))).toBe(false)
  })

  it("lets a message end badly only once its last attempt is closed", () => {
    for (const ending of [the.refusedForGood("response"), deadLettered()]) {
      expect(allows(sending, ending)).toBe(false)
      expect(allows([...sending, unresolved(1)], ending)).toBe(false)
      expect(allows(settled, ending)).toBe(true)
    }
  })

  it("lets a sent message fail by a receipt only", () => {
    const sent = [...sending, succeeded(1)]
    expect(allows(sent, the.refusedForGood("receipt"))).toBe(true)
    expect(allows(sent, the.refusedForGood("response"))).toBe(false)
  })

  it("lets nothing but the attempt's ending follow an attempt that leaves no attempt", () => {
    for (const fact of [started(2), the.cancelled, the.expired(noon), the.replayed(2), delivered("response")]) {
      expect(allows(settled, fact)).toBe(false)
    }
  })

  it("lets a replay open the next epoch only", () => {
    for (const ended of [the.endings.FAILED, the.endings.DEAD_LETTER]) {
      expect([0, 1, 2, 3].filter((epoch) => allows(ended, the.replayed(epoch)))).toEqual([2])
    }
  })

  it("lets a receipt be recorded once per epoch", () => {
    const sent = [...sending, succeeded(1), the.received("sent")]
    expect(allows(sent, the.received("sent"))).toBe(false)
    expect(allows(sent, the.received("sent", { providerMessageId: "wamid.2" }))).toBe(true)
    expect(allows(sent, the.received("read"))).toBe(true)
  })

  it("stops us at a history it forbids, with the fact and the status", () => {
    expect(() => replay([queued(), succeeded(1)])).toThrow("AttemptSucceeded cannot follow QUEUED")
    expect(() => evolve(initial, started(1))).toThrow("AttemptStarted cannot follow NEW")
  })
})

describe("a decision", () => {
  it("depends on nothing but the message and the command", () => {
    const message = replay([queued({ retry: { strategy: "exponential", baseMs: 1_000 } }), started(1)])
    const command = the.settle(1, the.outcomes.unreachable(), noon, 0.37)
    expect(decide(message, command)).toEqual(decide(message, command))
  })

  it("leaves the message it was asked about as it was", () => {
    const message = replay([queued(), started(1)])
    const before = structuredClone({ ...message, progress: { ...message.progress, openedAt: null } })
    decide(message, the.settle(1, the.outcomes.unreachable()))
    expect({ ...message, progress: { ...message.progress, openedAt: null } }).toEqual(before)
    expect(DateTime.formatIso(message.progress.openedAt!)).toBe("2026-01-01T12:00:00.000Z")
  })
})

describe("a dead letter", () => {
  const dead = [lastAttempt, started(1), failed(1, null), deadLettered()]
  const dismiss = { type: "DismissMessage", reason: "seen" } as const
  const dismissed: MessageFact = { type: "MessageDismissed", reason: "seen" }

  it("is dismissed once, stays what it is, and can still be replayed", () => {
    given(...dead)
      .when(dismiss)
      .then(dismissed)
      .in("DEAD_LETTER")
    given(...dead, dismissed)
      .when(dismiss)
      .then()
      .in("DEAD_LETTER")
    expect(can(replay([...dead, dismissed]), dismissed)).toBe(false)
    const again = replay([...dead, dismissed, the.replayed(2)])
    expect([again.status, again.progress.dismissed]).toEqual(["QUEUED", false])
  })

  it("alone can be dismissed", () => {
    given(queued()).when(dismiss).thenRejectedIn("QUEUED")
    given(queued(), started(1), succeeded(1), delivered("response")).when(dismiss).thenRejectedIn("DELIVERED")
  })
})
