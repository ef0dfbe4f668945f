import { describe, expect, it } from "vitest"
import type { MessageFact } from "../../../src/domain/message/facts.ts"
import { beginning, placeOf, track } from "../../../src/domain/message/place.ts"
import * as the from "./samples.ts"

const { queued, started, failed, succeeded, unresolved, noon, noonPlus, lane } = the

const courseOf = (...history: ReadonlyArray<MessageFact>) =>
  history.reduce((course, fact, index) => track(course, { version: index + 1, at: noon, fact })!, beginning)
const placeAfter = (...history: ReadonlyArray<MessageFact>) => placeOf(courseOf(...history))

const wait = { lane, dueAt: noon, line: null, version: 1, epoch: 1, attempt: 0 }

describe("the place of a message", () => {
  it("is in its lane as it was when it began to wait", () => {
    expect(placeAfter(queued())).toEqual({ type: "Waiting", ...wait })
    expect(placeAfter(queued(), started(1), failed(1, noonPlus(1_000)))).toEqual({
      type: "Waiting",
      ...wait,
      dueAt: noonPlus(1_000),
      version: 3,
      attempt: 1
    })
    expect(placeAfter(queued({ line: "key" }))).toMatchObject({ type: "Waiting", line: "key" })
  })

  it("is with a worker while an attempt is open, as it was when it was claimed", () => {
    expect(placeAfter(queued(), started(1))).toEqual({ type: "UnderWay", ...wait })
  })

  it("is in its lane again while an attempt is in doubt", () => {
    expect(placeAfter(queued(), started(1), unresolved(1, noonPlus(9_000)))).toEqual({
      type: "Waiting",
      ...wait,
      dueAt: noonPlus(9_000),
      version: 3
    })
  })

  it("stays what it was when a fact says nothing about it", () => {
    expect(placeAfter(queued(), { type: "MessageBodyErased", reason: null })).toEqual({ type: "Waiting", ...wait })
  })

  it("is nowhere once the message was taken or has ended", () => {
    expect(placeAfter()).toEqual({ type: "Out", dead: false })
    expect(placeAfter(queued(), started(1), succeeded(1))).toEqual({ type: "Out", dead: false })
    expect(placeAfter(queued(), { type: "MessageCancelled", reason: null })).toEqual({ type: "Out", dead: false })
    expect(placeAfter(...the.endings.FAILED)).toEqual({ type: "Out", dead: true })
    expect(placeAfter(...the.endings.DEAD_LETTER)).toEqual({ type: "Out", dead: true })
  })
})

describe("a message enters its line", () => {
  it("when it is accepted and when it is replayed, and with nothing in between", () => {
    const { FAILED } = the.endings
    expect(courseOf(...FAILED).enteredAt).toBe(1)
    expect(courseOf(...FAILED, the.replayed(2, noon)).enteredAt).toBe(FAILED.length + 1)
  })
})

describe("a course", () => {
  it("does not go on with a fact that the law forbids", () => {
    expect(
      track(courseOf(queued()), { version: 2, at: noon, fact: { type: "MessageDelivered", proof: "response" } })
    ).toBeNull()
  })
})
