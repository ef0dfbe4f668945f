import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { MessageId } from "../../../src/domain/ids.ts"
import type { MessageFact } from "../../../src/domain/message/facts.ts"
import { attemptsOf, type StoredFact, timeline, viewOf } from "../../../src/domain/message/view.ts"
import { anyLife } from "../arbitraries.ts"
import * as the from "./samples.ts"

const { queued, started, failed, abandoned, succeeded, unresolved, delivered, received, noon, noonPlus } = the
const id = MessageId.make("0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a02")

/** Each fact recorded a second after the one before. */
const stored = (facts: ReadonlyArray<MessageFact>): ReadonlyArray<StoredFact> =>
  facts.map((fact, index) => ({ version: index + 1, at: noonPlus(index * 1_000), fact }))
const view = (...facts: ReadonlyArray<MessageFact>) => viewOf(id, stored(facts))!
const attempts = (...facts: ReadonlyArray<MessageFact>) => attemptsOf(stored(facts))

describe("a timeline", () => {
  it("tells the status after each fact", () => {
    const history = [
      queued(),
      started(1),
      failed(1, noonPlus(1_000)),
      started(2),
      succeeded(2),
      delivered("response"),
      received("sent")
    ]
    const { steps, message } = timeline(stored(history))
    expect(steps.map(({ status }) => status)).toEqual([
      "QUEUED",
      "SENDING",
      "QUEUED",
      "SENDING",
      "SENT",
      "DELIVERED",
      "DELIVERED"
    ])
    expect(message.status).toBe("DELIVERED")
    expect(steps.map(({ fact }) => fact)).toEqual(history)
  })
})

describe("a view", () => {
  it("shows a new message as it was handed over", () => {
    const request = queued({
      channel: "whatsapp",
      templateCode: "reminder",
      dossierId: "D-17",
      orderingKey: "order-9",
      correlationId: "c-1",
      metadata: { source: "checkout" },
      dueAt: noonPlus(60_000),
      expiresAt: noonPlus(90_000)
    })
    expect(view(request)).toEqual({
      id,
      version: 1,
      orgId: "acme",
      channel: "whatsapp",
      to: the.lane,
      destination: the.lane,
      status: "QUEUED",
      epoch: 1,
      attempts: 0,
      attemptsMax: 3,
      nextAttemptAt: noonPlus(60_000),
      lastError: null,
      providerMessageId: null,
      eventType: "order.paid",
      templateCode: "reminder",
      dossierId: "D-17",
      orderingKey: "order-9",
      correlationId: "c-1",
      metadata: { source: "checkout" },
      deliverAt: noonPlus(60_000),
      expiresAt: noonPlus(90_000),
      endsAt: noonPlus(90_000),
      createdAt: noon,
      updatedAt: noon,
      lastAttemptAt: null,
      deliveredAt: null,
      endedAt: null,
      bodyErased: false,
      contradicted: false,
      readAt: null
    })
  })

  it("is nothing for a stream that does not exist", () => {
    expect(viewOf(id, [])).toBeNull()
  })

  it("says when the next attempt comes, and only while there will be one", () => {
    expect(view(queued(), started(1)).nextAttemptAt).toBeNull()
    expect(view(queued(), started(1), failed(1, noonPlus(9_000))).nextAttemptAt).toEqual(noonPlus(9_000))
    expect(view(queued(), started(1), unresolved(1)).nextAttemptAt).toBeNull()
    for (const ended of Object.values(the.endings)) expect(view(...ended).nextAttemptAt).toBeNull()
  })

  it("carries the version and the time of the last fact", () => {
    expect(view(queued(), started(1), succeeded(1))).toMatchObject({
      version: 3,
      createdAt: noon,
      updatedAt: noonPlus(2_000)
    })
  })

  it("explains the last thing that went wrong", () => {
    expect(view(queued(), started(1), failed(1, noon)).lastError).toEqual(the.down)
    expect(view(queued(), started(1), unresolved(1)).lastError).toEqual(the.doubtful)
    expect(view(queued(), started(1), abandoned(1, noon)).lastError).toEqual({
      code: "abandoned",
      message: "the worker went away",
      retryable: true
    })
    expect(view(...the.endings.FAILED).lastError).toEqual(the.gone)
    expect(view(...the.endings.DEAD_LETTER).lastError).toEqual(the.down)
    expect(view(queued(), started(1), failed(1, noon), started(2)).lastError).toEqual(the.down)
  })

  it("shows a deferral as what keeps the message waiting, and not among its attempts", () => {
    expect(view(queued(), started(1), failed(1, noon), started(2), the.deferred(2, noonPlus(30_000)))).toMatchObject({
      status: "QUEUED",
      attempts: 1,
      nextAttemptAt: noonPlus(30_000),
      lastError: the.throttled
    })
  })

  it("has nothing left to explain once an attempt succeeded", () => {
    expect(view(queued(), started(1), failed(1, noon), started(2), succeeded(2)).lastError).toBeNull()
    expect(view(...the.endings.DELIVERED).lastError).toBeNull()
  })

  it("explains a failure that a receipt reported after the attempt succeeded", () => {
    const failure = the.refusedForGood("receipt", the.unreachablePhone)
    expect(view(queued(), started(1), succeeded(1), received("failed"), failure).lastError).toEqual(
      the.unreachablePhone
    )
  })

  it("knows the provider's name for the message, from the answer or from a receipt", () => {
    const answered = [queued(), started(1), succeeded(1, { providerMessageId: "wamid.1" })]
    expect(view(...answered).providerMessageId).toBe("wamid.1")
    expect(view(...answered, received("sent", { providerMessageId: null })).providerMessageId).toBe("wamid.1")
    expect(view(queued(), started(1), received("sent", { providerMessageId: "wamid.2" })).providerMessageId).toBe(
      "wamid.2"
    )
  })

  it("prefers the name our own attempt was answered with, and that of the current epoch", () => {
    const resent = [queued(), started(1), failed(1, noon), started(2)]
    expect(
      view(...resent, succeeded(2, { providerMessageId: "wamid.2" }), received("sent", { attempt: 1 }))
        .providerMessageId
    ).toBe("wamid.2")
    const lost = [...the.endings.FAILED, received("sent"), the.replayed(2)]
    expect(view(...lost).providerMessageId).toBe("wamid.1")
    const again = [...lost, started(1, 2), received("sent", { epoch: 2, providerMessageId: "wamid.2" })]
    expect(view(...again).providerMessageId).toBe("wamid.2")
    expect(view(...again, received("delivered", { contradicts: true })).providerMessageId).toBe("wamid.2")
  })

  it("knows when the message was read, in the current epoch", () => {
    const sent = [queued(), started(1), succeeded(1), received("delivered"), delivered("receipt")]
    expect(view(...sent).readAt).toBeNull()
    expect(view(...sent, received("read", { reportedAt: noonPlus(7_000) })).readAt).toEqual(noonPlus(7_000))
    expect(
      view(
        ...sent,
        received("read", { reportedAt: noonPlus(7_000) }),
        received("read", { reportedAt: noonPlus(9_000), providerMessageId: "wamid.2" })
      ).readAt
    ).toEqual(noonPlus(7_000))
    const readBefore = [...the.endings.FAILED, received("read", { contradicts: true }), the.replayed(2)]
    expect(view(...readBefore).readAt).toBeNull()
    expect(view(...readBefore, received("read", { epoch: null, providerMessageId: "wamid.2" })).readAt).toEqual(noon)
  })

  it("knows when the message was delivered in the current epoch: by its own answer, else as the provider reported", () => {
    expect(view(queued(), started(1), succeeded(1)).deliveredAt).toBeNull()
    const answered = view(queued(), started(1), succeeded(1), delivered("response"))
    expect(answered.deliveredAt).toEqual(answered.updatedAt)
    const sent = [queued(), started(1), succeeded(1)]
    const at = noonPlus(7_000)
    for (const receipt of ["delivered", "read"] as const) {
      const history = [...sent, received(receipt, { reportedAt: at }), delivered("receipt")]
      expect(view(...history).deliveredAt).toEqual(at)
    }
    const replayed = [...the.endings.FAILED, received("delivered", { contradicts: true }), the.replayed(2)]
    expect(view(...replayed).deliveredAt).toBeNull()
  })

  it("knows when the last attempt was started", () => {
    const failedOnce = [queued(), started(1), failed(1, noonPlus(60_000))]
    expect(view(queued()).lastAttemptAt).toBeNull()
    expect(view(...failedOnce).lastAttemptAt).toEqual(noonPlus(1_000))
    expect(view(...failedOnce, started(2)).lastAttemptAt).toEqual(noonPlus(3_000))
  })

  it("counts attempts in the current epoch", () => {
    expect(view(...the.endings.DEAD_LETTER)).toMatchObject({ epoch: 1, attempts: 1, attemptsMax: 1 })
    expect(view(...the.endings.DEAD_LETTER, the.replayed(2))).toMatchObject({ epoch: 2, attempts: 0, status: "QUEUED" })
    expect(view(...the.endings.DEAD_LETTER, the.replayed(2), started(1, 2))).toMatchObject({ epoch: 2, attempts: 1 })
  })
})

describe("a view tells when its epoch ended", () => {
  it.each(Object.entries(the.endings))("in %s, whatever is kept afterwards", (_, history) => {
    const at = noonPlus((history.length - 1) * 1_000)
    expect(view(...history).endedAt).toEqual(at)
    expect(view(...history, received("sent"), the.erased).endedAt).toEqual(at)
  })

  it("not while it goes on, nor once it was replayed", () => {
    for (const open of [the.histories.QUEUED, the.histories.SENDING, the.histories.SENT]) {
      expect(view(...open).endedAt).toBeNull()
    }
    expect(view(...the.endings.DEAD_LETTER, the.replayed(2)).endedAt).toBeNull()
  })
})

describe("a view warns of a contradiction", () => {
  it("when a receipt says the opposite of the ending before it", () => {
    expect(view(...the.endings.FAILED, received("delivered", { contradicts: true })).contradicted).toBe(true)
    expect(view(...the.endings.FAILED, received("sent")).contradicted).toBe(false)
  })

  it("when a message ends otherwise than a receipt before it had said", () => {
    const [request, start, ...refused] = the.endings.FAILED
    expect(view(request, start, received("delivered"), ...refused).contradicted).toBe(true)
    expect(view(request, start, received("failed"), ...refused).contradicted).toBe(false)
    expect(view(queued(), received("read"), the.cancelled).contradicted).toBe(true)
    expect(view(queued({ expiresAt: noon }), received("delivered"), the.expired(noon)).contradicted).toBe(true)
    const ours = [succeeded(1), delivered("response")]
    expect(view(request, start, received("failed"), ...ours).contradicted).toBe(true)
    expect(view(request, start, received("delivered"), ...ours).contradicted).toBe(false)
  })

  it("not while the message has not ended", () => {
    expect(view(queued(), started(1), received("delivered")).contradicted).toBe(false)
    expect(view(queued(), started(1), received("failed")).contradicted).toBe(false)
  })
})

describe("the attempts of a message", () => {
  it("are listed oldest first, each with its own ending", () => {
    expect(
      attempts(
        queued(),
        started(1),
        failed(1, noonPlus(1_000)),
        started(2),
        abandoned(2, noonPlus(5_000)),
        started(3),
        succeeded(3, { status: 202 }),
        delivered("response")
      )
    ).toEqual([
      {
        epoch: 1,
        number: 1,
        startedAt: noonPlus(1_000),
        endedAt: noonPlus(2_000),
        outcome: "failed",
        error: the.down,
        status: 503,
        durationMs: null,
        exchange: null
      },
      {
        epoch: 1,
        number: 2,
        startedAt: noonPlus(3_000),
        endedAt: noonPlus(4_000),
        outcome: "abandoned",
        error: { code: "abandoned", message: "the worker went away", retryable: true },
        status: null,
        durationMs: null,
        exchange: null
      },
      {
        epoch: 1,
        number: 3,
        startedAt: noonPlus(5_000),
        endedAt: noonPlus(6_000),
        outcome: "succeeded",
        error: null,
        status: 202,
        durationMs: null,
        exchange: null
      }
    ])
  })

  it("have no ending while they are open or in doubt", () => {
    expect(attempts(queued(), started(1))[0]).toMatchObject({ endedAt: null, outcome: null, error: null })
    expect(attempts(queued(), started(1), unresolved(1))[0]).toMatchObject({
      endedAt: null,
      outcome: "unresolved",
      error: the.doubtful
    })
  })

  it("lose their doubt once they are settled", () => {
    expect(attempts(queued(), started(1), unresolved(1), succeeded(1))[0]).toMatchObject({
      endedAt: noonPlus(3_000),
      outcome: "succeeded",
      error: null
    })
    expect(attempts(queued(), started(1), unresolved(1), failed(1, noon))[0]).toMatchObject({
      outcome: "failed",
      error: the.down
    })
  })

  it("show the try that was turned away, and the next one under its number", () => {
    const both = attempts(queued(), started(1), the.deferred(1, noonPlus(30_000)), started(1), succeeded(1))
    expect(both.map(({ number, outcome }) => [number, outcome])).toEqual([
      [1, "deferred"],
      [1, "succeeded"]
    ])
    expect(both[0]).toMatchObject({ endedAt: noonPlus(2_000), error: the.throttled, status: 400 })
  })

  it("show as taken the one a receipt came back to", () => {
    const late = attempts(queued(), started(1), failed(1, noon), received("sent"), succeeded(1, { status: null }))
    expect(late).toMatchObject([{ number: 1, outcome: "succeeded", error: null, endedAt: noonPlus(4_000) }])
    const beforeDeferral = [queued(), started(1), failed(1, noon), started(2), the.deferred(2, noon)]
    expect(attempts(...beforeDeferral, received("sent"), succeeded(1)).map(({ outcome }) => outcome)).toEqual([
      "succeeded",
      "deferred"
    ])
  })

  it("of all epochs are kept", () => {
    const both = attempts(...the.endings.FAILED, the.replayed(2), started(1, 2), succeeded(1))
    expect(both.map(({ epoch, number, outcome }) => [epoch, number, outcome])).toEqual([
      [1, 1, "failed"],
      [2, 1, "succeeded"]
    ])
  })

  it("are none for a message that never started one", () => {
    expect(attempts(...the.endings.CANCELLED)).toEqual([])
  })
})

describe("any life of a message", () => {
  it("shows the status and the attempts that its facts make", () => {
    fc.assert(
      fc.property(anyLife, ({ history, message }) => {
        const facts = stored(history)
        expect(viewOf(id, facts)).toMatchObject({
          status: message.status,
          epoch: message.progress.epoch,
          attempts: message.progress.attempt,
          version: history.length
        })
        const listed = attemptsOf(facts)
        expect(listed.length).toBe(history.filter(({ type }) => type === "AttemptStarted").length)
        expect(listed.filter(({ endedAt }) => endedAt === null).length).toBe(message.status === "SENDING" ? 1 : 0)
      })
    )
  })

  it("seen at an earlier version is what was seen then", () => {
    fc.assert(
      fc.property(anyLife, ({ turns }) => {
        const sofar: Array<MessageFact> = []
        for (const { facts, after } of turns) {
          sofar.push(...facts)
          expect(viewOf(id, stored(sofar))?.status).toBe(after.status)
        }
      })
    )
  })
})
