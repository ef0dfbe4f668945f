/**
 * Receipts come late, twice, in any order and before our own commit. All orders are tried, not some:
 * there are few enough of them.
 */
import { Result } from "effect"
import { describe, expect, it } from "vitest"
import { decide, evolve, type MessageCommand, replay } from "../../src/domain/message/decider.ts"
import type { FactOf, MessageFact } from "../../src/domain/message/facts.ts"
import type { Message } from "../../src/domain/message/transitions.ts"
import { given } from "./given.ts"
import {
  abandon,
  delivered,
  endings,
  noon,
  outcomes,
  queued,
  received,
  recordReceipt,
  refusedForGood,
  replayed,
  settle,
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
const ourCommit = settle(1, outcomes.accepted({ delivered: false, providerMessageId: "wamid.1" }))
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

  it("settle an attempt whose outcome is unknown just the same", () => {
    for (const order of orders.filter(({ length }) => length > 0)) {
      const { message, facts } = play(
        [...sending, unresolved(1)],
        order.map((receipt) => recordReceipt(receipt))
      )
      expect(message.status, order.join()).toBe(order.some((receipt) => receipt !== "sent") ? "DELIVERED" : "SENT")
      expect(facts.filter(({ type }) => type === "AttemptSucceeded").length).toBe(1)
    }
  })
})

describe("a receipt that says failed, among the others", () => {
  const orders = sequences<Receipt>(["sent", "delivered", "read", "failed"], 5).filter((order) =>
    order.includes("failed")
  )

  it("ends the message if it is the first that decides, and changes nothing if it is not", () => {
    for (const order of orders) {
      const first = order.map(decides).find((decision) => decision !== null)
      for (const commands of interleaved(order)) {
        const { message, facts } = play(sending, commands)
        expect(message.status, order.join()).toBe(first === "failed" ? "FAILED" : "DELIVERED")
        expect(message.progress.verdict).toBe(first)
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
      .then(succeeded(1, { status: null, durationMs: 30_000 }))
      .in("SENT")
    given(...sending, received("read"))
      .when(settle(1, outcomes.unreachable()))
      .then(succeeded(1, { status: 503 }), delivered("receipt"))
      .in("DELIVERED")
    given(...sending, received("read"))
      .when(abandon(1))
      .then(succeeded(1, { status: null, durationMs: 0 }), delivered("receipt"))
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

  it("is news again in the next epoch", () => {
    given(...endings.FAILED, received("sent"), replayed(2), started(1, 2))
      .when(recordReceipt("sent"))
      .then(received("sent"))
      .in("SENDING")
  })

  it("keeps the time it was first reported", () => {
    expect(replay([...sending, received("sent")]).progress.receipts).toEqual(["sent:wamid.1"])
    const { receipts } = play(sending, [recordReceipt("sent"), recordReceipt("sent")])
    expect(receipts.map(({ reportedAt }) => reportedAt)).toEqual([noon])
  })
})
