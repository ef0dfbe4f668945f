/**
 * Receipts come late, twice, in any order and before our own commit. All orders are tried, not some:
 * there are few enough of them.
 */
import { Result } from "effect"
import { describe, expect, it } from "vitest"
import { MessageId } from "../../../src/domain/ids.ts"
import { decide, evolve, type MessageCommand, replay } from "../../../src/domain/message/decider.ts"
import type { FactOf, MessageFact } from "../../../src/domain/message/facts.ts"
import type { Message } from "../../../src/domain/message/transitions.ts"
import { viewOf } from "../../../src/domain/message/view.ts"
import { given } from "./given.ts"
import {
  abandon,
  abandoned,
  cancel,
  deadLettered,
  deferred,
  delivered,
  doubtful,
  endings,
  failed,
  gone,
  noon,
  noonPlus,
  outcomes,
  queued,
  received,
  recordReceipt,
  refusedForGood,
  replayed,
  settle,
  startAttempt,
  started,
  succeeded,
  unresolved
} from "./samples.ts"

type Receipt = FactOf<"ReceiptRecorded">["receipt"]

/** Every sequence of up to `most` words, repetitions included. */
const sequences = <T>(words: ReadonlyArray<T>, most: number): ReadonlyArray<ReadonlyArray<T>> => {
  const all: Array<ReadonlyArray<T>> = [[]]
  for (let from = 0, length = 1; length <= most; length++) {
    const to = all.length
    for (const shorter of all.slice(from, to)) for (const word of words) all.push([...shorter, word])
    from = to
  }
  return all
}

const take = (message: Message, command: MessageCommand): { message: Message; facts: ReadonlyArray<MessageFact> } => {
  const facts = Result.getOrThrow(decide(message, command))
  return { message: facts.reduce(evolve, message), facts }
}

const play = (history: ReadonlyArray<MessageFact>, commands: ReadonlyArray<MessageCommand>) => {
  let message = replay(history)
  const facts: Array<MessageFact> = []
  for (const command of commands) {
    const taken = take(message, command)
    message = taken.message
    facts.push(...taken.facts)
  }
  const receipts = facts.filter((fact) => fact.type === "ReceiptRecorded")
  return { message, facts, receipts }
}

const sending = [queued({ channel: "whatsapp", to: "+4915112345678" }), started(1)]
/** The first attempt was doubted, then given up as failed; the message waits for its second. */
const waiting = [...sending, unresolved(1), failed(1, noonPlus(60_000), { error: doubtful, status: null })]
const ourCommit = settle(1, outcomes.accepted({ delivered: false, providerMessageId: "wamid.1" }))
const id = MessageId.make("0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a02")
const decides = (receipt: Receipt) => (receipt === "failed" ? "failed" : receipt === "sent" ? null : "delivered")

/** The same receipts with our own commit at every place between them. */
const interleaved = (receipts: ReadonlyArray<Receipt>): ReadonlyArray<ReadonlyArray<MessageCommand>> => {
  const commands = receipts.map((receipt) => recordReceipt(receipt))
  return Array.from({ length: commands.length + 1 }, (_, at) => commands.toSpliced(at, 0, ourCommit))
}

describe("receipts that say sent, delivered and read, in any order and number", () => {
  const orders = sequences<Receipt>(["sent", "delivered", "read"], 6)

  it("are tried in all 1,093 orders", () => {
    expect(orders.length).toBe(3 ** 0 + 3 ** 1 + 3 ** 2 + 3 ** 3 + 3 ** 4 + 3 ** 5 + 3 ** 6)
  })

  it("end in the same status, wherever our own commit falls among them", () => {
    for (const order of orders) {
      const expected = order.some((receipt) => receipt !== "sent") ? "DELIVERED" : "SENT"
      for (const commands of interleaved(order)) {
        const { message, facts } = play(sending, commands)
        expect(message.status, order.join()).toBe(expected)
        expect(facts.filter(({ type }) => type === "AttemptSucceeded").length).toBe(1)
        expect(facts.filter(({ type }) => type === "MessageDelivered").length).toBe(expected === "SENT" ? 0 : 1)
      }
    }
  })

  it("are each kept once and contradict nothing", () => {
    for (const order of orders) {
      for (const commands of interleaved(order)) {
        const { receipts } = play(sending, commands)
        expect(receipts.map(({ receipt }) => receipt)).toEqual([...new Set(order)])
        expect(receipts.filter(({ contradicts }) => contradicts)).toEqual([])
      }
    }
  })

  it.each([
    ["whose outcome is unknown", [...sending, unresolved(1)]],
    ["that was thought to have failed", waiting]
  ] as const)("settle an attempt %s just the same", (_, history) => {
    for (const order of orders.filter(({ length }) => length > 0)) {
      const { message, facts } = play(
        history,
        order.map((receipt) => recordReceipt(receipt))
      )
      expect(message.status, order.join()).toBe(order.some((receipt) => receipt !== "sent") ? "DELIVERED" : "SENT")
      expect(facts.filter(({ type }) => type === "AttemptSucceeded").length).toBe(1)
    }
  })

  it("tell the same of the message in the end: its status, its name and when it was read", () => {
    const seen = (commands: ReadonlyArray<MessageCommand>) => {
      const { facts } = play(sending, commands)
      const history = [...sending, ...facts].map((fact, index) => ({ version: index + 1, at: noon, fact }))
      const { status, providerMessageId, readAt, lastError, contradicted } = viewOf(id, history)!
      return { status, providerMessageId, readAt, lastError, contradicted }
    }
    for (const order of orders) {
      for (const commands of interleaved(order)) {
        expect(seen(commands), order.join()).toEqual({
          status: order.some((receipt) => receipt !== "sent") ? "DELIVERED" : "SENT",
          providerMessageId: "wamid.1",
          readAt: order.includes("read") ? noon : null,
          lastError: null,
          contradicted: false
        })
      }
    }
  })
})

describe("a receipt that says failed, among the others", () => {
  /** Up to five others, and failed at every place among them. */
  const orders = sequences<Receipt>(["sent", "delivered", "read"], 5).flatMap((others) =>
    Array.from({ length: others.length + 1 }, (_, at) => others.toSpliced(at, 0, "failed"))
  )

  it("ends the message if it is the first that decides, and changes nothing if it is not", () => {
    for (const order of orders) {
      const first = order.map(decides).find((decision) => decision !== null)
      for (const commands of interleaved(order)) {
        const { message, facts } = play(sending, commands)
        expect(message.status, order.join()).toBe(first === "failed" ? "FAILED" : "DELIVERED")
        expect(message.progress.receiptOutcome).toBe(first)
        const ended = facts.filter(({ type }) => type === "MessageFailed" || type === "MessageDelivered")
        expect(ended.length).toBe(1)
      }
    }
  })

  it("makes every later receipt that says the opposite of the first be kept as a contradiction", () => {
    for (const order of orders) {
      const first = order.map(decides).find((decision) => decision !== null)
      for (const commands of interleaved(order)) {
        const { receipts } = play(sending, commands)
        expect(receipts.map(({ receipt }) => receipt)).toEqual([...new Set(order)])
        for (const { receipt, contradicts } of receipts) {
          const decision = decides(receipt)
          expect(contradicts, `${receipt} in ${order.join()}`).toBe(decision !== null && decision !== first)
        }
      }
    }
  })

  it("settles an attempt whose outcome is unknown if it is the first that decides", () => {
    for (const order of orders) {
      const first = order.map(decides).find((decision) => decision !== null)
      const { message } = play(
        [...sending, unresolved(1)],
        order.map((receipt) => recordReceipt(receipt))
      )
      expect(message.status, order.join()).toBe(first === "failed" ? "FAILED" : "DELIVERED")
    }
  })
})

describe("a receipt for a message that waits for another attempt", () => {
  it("keeps the next attempt from being made: the last one was taken", () => {
    given(...waiting)
      .when(recordReceipt("sent"))
      .then(received("sent"), succeeded(1, { status: null, providerMessageId: "wamid.1", durationMs: 0 }))
      .in("SENT")
    for (const receipt of ["delivered", "read"] as const) {
      given(...waiting)
        .when(recordReceipt(receipt))
        .then(
          received(receipt),
          succeeded(1, { status: null, providerMessageId: "wamid.1", durationMs: 0 }),
          delivered("receipt")
        )
        .in("DELIVERED")
    }
  })

  it("does so whatever the attempt was thought to have come to", () => {
    const closed = [[failed(1, noon)], [abandoned(1, noon)], [failed(1, noon), started(2), deferred(2, noon)]]
    for (const facts of closed) {
      const history = [...sending, ...facts]
      expect(replay(history).status).toBe("QUEUED")
      given(...history)
        .when(recordReceipt("sent"))
        .then(received("sent"), succeeded(1, { status: null, providerMessageId: "wamid.1", durationMs: 0 }))
        .in("SENT")
    }
  })

  it("says nothing new when it says failed: the attempt is known to have, and another follows", () => {
    given(...waiting)
      .when(recordReceipt("failed"))
      .then(received("failed"))
      .in("QUEUED")
    given(...waiting, received("failed"), started(2))
      .when(settle(2, outcomes.accepted({ delivered: false, providerMessageId: "wamid.2" })))
      .then(succeeded(2, { providerMessageId: "wamid.2" }))
      .in("SENT")
  })

  it("was the last word all the same when another one says that the try was taken", () => {
    const taken = succeeded(1, { status: null, providerMessageId: "wamid.1", durationMs: 0 })
    const reported = {
      code: "receipt_failed",
      message: "the provider reported that the message could not be delivered",
      retryable: false
    }
    given(...waiting, received("failed"))
      .when(recordReceipt("sent"))
      .then(received("sent"), taken, refusedForGood("receipt", reported))
      .in("FAILED")
  })

  it("proves nothing before anything was sent", () => {
    given(queued()).when(recordReceipt("sent")).then(received("sent")).in("QUEUED")
    given(queued(), received("sent")).when(startAttempt()).then(started(1)).in("SENDING")
    given(queued(), received("sent"), started(1))
      .when(settle(1, outcomes.unreachable()))
      .then(failed(1, noonPlus(1_000)))
      .in("QUEUED")
  })

  it("settles it at its next start where it was recorded before it could settle it at once", () => {
    const recordedOnly = [...waiting, received("read", { epoch: null })]
    expect(replay(recordedOnly).status).toBe("QUEUED")
    given(...recordedOnly)
      .when(startAttempt())
      .then(succeeded(1, { status: null, providerMessageId: "wamid.1", durationMs: 0 }), delivered("receipt"))
      .in("DELIVERED")
    given(...recordedOnly)
      .when(cancel)
      .then({ type: "MessageCancelled", reason: null })
      .in("CANCELLED")
  })
})

describe("a receipt about the attempt before the one that is under way", () => {
  const resending = [...waiting, started(2)]

  it("proves that the message was taken, whatever comes of the attempt that should not have been", () => {
    const about = { attempt: 1 }
    const history = [...resending, received("sent", about)]
    given(...resending)
      .when(recordReceipt("sent", "wamid.1", about))
      .then(received("sent", about))
      .in("SENDING")
    for (const outcome of [outcomes.unreachable(), outcomes.refused(), outcomes.unknown(), outcomes.deferred()]) {
      const { message } = play(history, [settle(2, outcome)])
      expect(message.status, outcome.type).toBe("SENT")
    }
  })

  it("does not fail the one under way when it says failed", () => {
    const history = [...resending, received("failed", { attempt: 1 })]
    expect(play(history, [settle(2, outcomes.accepted({ delivered: false }))]).message.status).toBe("SENT")
    expect(play(history, [settle(2, outcomes.unreachable())]).message.status).toBe("QUEUED")
    given(...history, unresolved(2))
      .when(recordReceipt("failed", "wamid.1", { attempt: 1 }))
      .then()
      .in("SENDING")
    given(...resending, succeeded(2, { providerMessageId: "wamid.2" }))
      .when(recordReceipt("failed", "wamid.1", { attempt: 1 }))
      .then(received("failed", { attempt: 1 }))
      .in("SENT")
  })

  describe("that turns out to have been the one that was taken", () => {
    const about = { attempt: 1 }
    const first = (receipt: Receipt) => recordReceipt(receipt, "wamid.1", about)
    const lost = [outcomes.unreachable(), outcomes.refused(), outcomes.unknown(), outcomes.deferred()]

    it("is the last word on the message when it says failed, before or after we knew", () => {
      for (const outcome of lost) {
        const orders = [
          [first("failed"), first("sent"), settle(2, outcome)],
          [first("sent"), first("failed"), settle(2, outcome)],
          [first("sent"), settle(2, outcome), first("failed")]
        ]
        for (const commands of orders) {
          const { message, facts } = play(resending, commands)
          expect(message.status, outcome.type).toBe("FAILED")
          expect(facts).toContainEqual(
            expect.objectContaining({ type: "AttemptSucceeded", providerMessageId: "wamid.1" })
          )
          expect(facts.at(-1)).toMatchObject({ type: "MessageFailed", by: "receipt" })
        }
      }
      const abandonedLate = [first("failed"), first("sent"), abandon(2)]
      expect(play(resending, abandonedLate).message.status).toBe("FAILED")
    })

    it("is the only one whose failure fails the message", () => {
      for (const outcome of lost) {
        const other = recordReceipt("failed", "wamid.2", { attempt: 2 })
        const { message, receipts } = play(resending, [first("sent"), settle(2, outcome), other])
        expect(message.status, outcome.type).toBe("SENT")
        expect(receipts.map(({ contradicts }) => contradicts)).toEqual([false, false])
      }
    })

    it("counts no more once the provider has answered for the one under way", () => {
      const answered = settle(2, outcomes.accepted({ delivered: false, providerMessageId: "wamid.2" }))
      for (const commands of [
        [first("sent"), first("failed"), answered],
        [first("sent"), answered, first("failed")],
        [answered, first("sent"), first("failed")]
      ]) {
        const { message } = play(resending, commands)
        expect(message).toMatchObject({ status: "SENT", progress: { sentAs: "wamid.2" } })
      }
    })

    it("counts less than one that was taken and has not failed", () => {
      const second = recordReceipt("sent", "wamid.2", { attempt: 2 })
      for (const receipts of [
        [first("sent"), first("failed"), second],
        [second, first("failed"), first("sent")],
        [first("failed"), second, first("sent")]
      ]) {
        const { message } = play(resending, [...receipts, settle(2, outcomes.unreachable())])
        expect(message).toMatchObject({ status: "SENT", progress: { sentAs: "wamid.2" } })
      }
    })
  })

  it("fails the one under way when it names that one", () => {
    const history = [...resending, received("failed", { attempt: 2 })]
    expect(play(history, [settle(2, outcomes.accepted({ delivered: false }))]).message.status).toBe("FAILED")
  })
})

describe("an answer that says no", () => {
  it("is overruled by a receipt that says the message was taken", () => {
    given(...sending, received("delivered"))
      .when(settle(1, outcomes.refused()))
      .then(succeeded(1, { status: 410, providerMessageId: "wamid.1" }), delivered("receipt"))
      .in("DELIVERED")
  })

  it("stands when the receipt says failed too", () => {
    given(...sending, received("failed"))
      .when(settle(1, outcomes.refused()))
      .then(failed(1, null, { error: gone, status: 410 }), refusedForGood("response"))
      .in("FAILED")
  })

  it("does not end a message that was not tried, and is forgotten with the try", () => {
    given(...sending, received("failed"))
      .when(settle(1, outcomes.deferred(30_000)))
      .then(deferred(1, noonPlus(30_000)))
      .in("QUEUED")
    given(...sending, received("failed"), deferred(1, noon), started(1))
      .when(ourCommit)
      .then(succeeded(1, { providerMessageId: "wamid.1" }))
      .in("SENT")
  })
})

describe("a receipt of an earlier epoch", () => {
  /** Nobody could say what became of it, and somebody sent it again. */
  const lost = [...sending, unresolved(1), failed(1, null, { error: doubtful }), deadLettered("outcome unknown")]
  const known = [...lost, received("sent"), replayed(2)]
  const runs = {
    QUEUED: [],
    SENDING: [started(1, 2)],
    "in doubt": [started(1, 2), unresolved(1)],
    "waiting again": [started(1, 2), failed(1, noon)],
    SENT: [started(1, 2), succeeded(1, { providerMessageId: "wamid.2" })]
  } satisfies Record<string, ReadonlyArray<MessageFact>>

  it.each(Object.keys(runs) as Array<keyof typeof runs>)("does not settle a message that is %s", (run) => {
    const history = [...known, ...runs[run]]
    for (const receipt of ["delivered", "read", "failed"] as const) {
      const about = { contradicts: receipt !== "failed" }
      for (const attempt of [1, null]) {
        // By the provider's name for it, whatever else it says of itself.
        given(...history)
          .when(recordReceipt(receipt, "wamid.1", { epoch: 2, attempt }))
          .then(received(receipt, { ...about, attempt }))
          .in(replay(history).status)
        // By what came back with it, where the provider's name is new to us.
        given(...history)
          .when(recordReceipt(receipt, "wamid.9", { epoch: 1, attempt }))
          .then(received(receipt, { ...about, attempt, providerMessageId: "wamid.9" }))
          .in(replay(history).status)
      }
    }
  })

  it("proves nothing about the attempts of this one", () => {
    const { message } = play([...known, started(1, 2)], [recordReceipt("delivered"), settle(1, outcomes.unreachable())])
    expect(message).toMatchObject({ status: "QUEUED", progress: { taken: false, receiptOutcome: null } })
  })

  it("is what one is taken for that says nothing of itself while nothing was tried in this one", () => {
    given(...known)
      .when(recordReceipt("read", null))
      .then(received("read", { providerMessageId: null, contradicts: true }))
      .in("QUEUED")
    given(...known, started(1, 2), unresolved(1))
      .when(recordReceipt("read", null))
      .then(
        received("read", { providerMessageId: null, epoch: 2 }),
        succeeded(1, { status: null, durationMs: 0 }),
        delivered("receipt")
      )
      .in("DELIVERED")
  })

  it("is not made up: one that names an epoch which never was is about this one", () => {
    for (const epoch of [0, 3, 99]) {
      given(...known, started(1, 2))
        .when(recordReceipt("sent", "wamid.9", { epoch }))
        .then(received("sent", { epoch: 2, providerMessageId: "wamid.9" }))
        .in("SENDING")
    }
  })

  it("does not lend its name to this one", () => {
    given(...known, started(1, 2), received("read", { contradicts: true }))
      .when(settle(1, outcomes.accepted({ delivered: false })))
      .then(succeeded(1))
      .in("SENT")
  })
})

describe("a receipt for a message that has ended", () => {
  const orders = sequences<Receipt>(["sent", "delivered", "read", "failed"], 4)

  it.each(Object.keys(endings) as Array<keyof typeof endings>)("never moves a %s message", (status) => {
    for (const order of orders) {
      const { message, facts } = play(
        endings[status],
        order.map((receipt) => recordReceipt(receipt))
      )
      expect(message.status).toBe(status)
      expect(facts.every(({ type }) => type === "ReceiptRecorded")).toBe(true)
      expect(facts.length).toBe(new Set(order).size)
    }
  })

  it.each(["FAILED", "DEAD_LETTER", "CANCELLED", "EXPIRED"] as const)(
    "says whether it contradicts the status of a %s message",
    (status) => {
      for (const receipt of ["delivered", "read"] as const) {
        given(...endings[status])
          .when(recordReceipt(receipt))
          .then(received(receipt, { contradicts: true }))
          .in(status)
      }
      for (const receipt of ["sent", "failed"] as const) {
        given(...endings[status])
          .when(recordReceipt(receipt))
          .then(received(receipt))
          .in(status)
      }
    }
  )

  it("says that failed contradicts a delivered message, and nothing else does", () => {
    given(...endings.DELIVERED)
      .when(recordReceipt("failed"))
      .then(received("failed", { contradicts: true }))
      .in("DELIVERED")
    for (const receipt of ["sent", "delivered", "read"] as const) {
      given(...endings.DELIVERED)
        .when(recordReceipt(receipt))
        .then(received(receipt))
        .in("DELIVERED")
    }
  })
})

describe("a receipt that arrives before our own commit", () => {
  it("waits, and is applied by the commit", () => {
    given(...sending)
      .when(recordReceipt("delivered"))
      .then(received("delivered"))
      .in("SENDING")
    given(...sending, received("delivered"))
      .when(ourCommit)
      .then(succeeded(1, { providerMessageId: "wamid.1" }), delivered("receipt"))
      .in("DELIVERED")
  })

  it("carries a failure over the commit", () => {
    given(...sending, received("failed"))
      .when(ourCommit)
      .then(
        succeeded(1, { providerMessageId: "wamid.1" }),
        refusedForGood("receipt", {
          code: "receipt_failed",
          message: "the provider reported that the message could not be delivered",
          retryable: false
        })
      )
      .in("FAILED")
  })

  it("proves that the message was taken when our own request could not tell", () => {
    given(...sending, received("sent"))
      .when(settle(1, outcomes.unknown()))
      .then(succeeded(1, { status: null, providerMessageId: "wamid.1", durationMs: 30_000 }))
      .in("SENT")
    given(...sending, received("read"))
      .when(settle(1, outcomes.unreachable()))
      .then(succeeded(1, { status: 503, providerMessageId: "wamid.1" }), delivered("receipt"))
      .in("DELIVERED")
    given(...sending, received("read"))
      .when(abandon(1))
      .then(succeeded(1, { status: null, providerMessageId: "wamid.1", durationMs: 0 }), delivered("receipt"))
      .in("DELIVERED")
  })
})

describe("a receipt that comes again", () => {
  it("is accepted and adds no fact, whatever the status", () => {
    for (const status of Object.keys(endings) as Array<keyof typeof endings>) {
      given(...endings[status], received("sent"))
        .when(recordReceipt("sent"))
        .then()
    }
    given(...sending, received("sent"))
      .when(recordReceipt("sent"))
      .then()
      .in("SENDING")
    given(queued(), received("sent")).when(recordReceipt("sent")).then().in("QUEUED")
  })

  it("is news again when it names another message of the provider", () => {
    given(...endings.DELIVERED, received("sent"))
      .when(recordReceipt("sent", "wamid.2"))
      .then(received("sent", { providerMessageId: "wamid.2" }))
      .in("DELIVERED")
  })

  it("is news again when it is about the next epoch, and only then", () => {
    const again = [...endings.FAILED, received("sent"), replayed(2), started(1, 2)]
    given(...again)
      .when(recordReceipt("sent"))
      .then()
      .in("SENDING")
    given(...again)
      .when(recordReceipt("sent", "wamid.2"))
      .then(received("sent", { epoch: 2, providerMessageId: "wamid.2" }))
      .in("SENDING")
  })

  it("keeps the time it was first reported", () => {
    expect(replay([...sending, received("sent")]).progress.receipts).toEqual(["1:sent:wamid.1"])
    const { receipts } = play(sending, [recordReceipt("sent"), recordReceipt("sent")])
    expect(receipts.map(({ reportedAt }) => reportedAt)).toEqual([noon])
  })
})
