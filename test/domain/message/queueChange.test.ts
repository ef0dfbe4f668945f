import { describe, expect, it } from "vitest"
import { evolve, replay } from "../../../src/domain/message/decider.ts"
import type { MessageFact } from "../../../src/domain/message/facts.ts"
import { attentionAt, type QueueChange, queueChange } from "../../../src/domain/message/queueChange.ts"
import * as the from "./samples.ts"

const { queued, started, failed, abandoned, succeeded, unresolved, noon, noonPlus, lane } = the

/** What the last fact of a history means for the queue. */
const changeAfter = (...history: ReadonlyArray<MessageFact>): QueueChange | null => {
  const before = replay(history.slice(0, -1))
  const fact = history.at(-1)!
  return queueChange(before, fact, evolve(before, fact))
}

const wait = (dueAt = noon, attempt = 0, epoch = 1) => ({ type: "Wait", lane, dueAt, epoch, attempt, line: null })
const leave = (dueAt = noon) => ({ type: "Leave", lane, dueAt, line: null, dead: false })

describe("a message waits in the lane of its destination", () => {
  it("from the moment it is queued until it is due", () => {
    expect(changeAfter(queued({ dueAt: noonPlus(60_000) }))).toEqual(wait(noonPlus(60_000)))
  })

  it("until its retry, with the attempts it has made", () => {
    expect(changeAfter(queued(), started(1), failed(1, noonPlus(1_000)))).toEqual(wait(noonPlus(1_000), 1))
    expect(changeAfter(queued(), started(1), abandoned(1, noonPlus(1_000)))).toEqual(wait(noonPlus(1_000), 1))
    expect(
      changeAfter(queued(), started(1), failed(1, noonPlus(1_000)), started(2), failed(2, noonPlus(9_000)))
    ).toEqual(wait(noonPlus(9_000), 2))
  })

  it("until a deferral is over, with the attempts it had made before", () => {
    const { deferred } = the
    expect(changeAfter(queued(), started(1), deferred(1, noonPlus(30_000)))).toEqual(wait(noonPlus(30_000), 0))
    expect(
      changeAfter(queued(), started(1), failed(1, noonPlus(1_000)), started(2), deferred(2, noonPlus(9_000)))
    ).toEqual(wait(noonPlus(9_000), 1))
  })

  it("until somebody should find out what became of a doubtful attempt, which is not closed", () => {
    expect(changeAfter(queued(), started(1), unresolved(1, noonPlus(90_000)))).toEqual(wait(noonPlus(90_000), 0))
  })

  it("from its replay on, in the new epoch", () => {
    expect(changeAfter(...the.endings.FAILED, the.replayed(2, noonPlus(5_000)))).toEqual(wait(noonPlus(5_000), 0, 2))
  })

  it("until its retry again when a doubtful attempt turned out not to have been taken", () => {
    expect(changeAfter(queued(), started(1), unresolved(1), failed(1, noonPlus(2_000)))).toEqual(
      wait(noonPlus(2_000), 1)
    )
  })
})

describe("an expiry", () => {
  it("is when a message that would expire first wants attention", () => {
    expect(changeAfter(queued({ dueAt: noonPlus(60_000), expiresAt: noonPlus(30_000) }))).toEqual(
      wait(noonPlus(30_000))
    )
    expect(changeAfter(queued({ expiresAt: noonPlus(500) }), started(1), failed(1, noonPlus(1_000)))).toEqual(
      wait(noonPlus(500), 1)
    )
  })

  it("comes before a deferral that would outlast it", () => {
    expect(changeAfter(queued({ expiresAt: noonPlus(500) }), started(1), the.deferred(1, noonPlus(30_000)))).toEqual(
      wait(noonPlus(500), 0)
    )
  })

  it("does not hurry a message that is due before", () => {
    expect(changeAfter(queued({ dueAt: noonPlus(10_000), expiresAt: noonPlus(30_000) }))).toEqual(
      wait(noonPlus(10_000))
    )
  })

  it("means nothing for a doubtful attempt: it may have been sent in time", () => {
    const doubted = [queued({ expiresAt: noonPlus(500) }), started(1), unresolved(1, noonPlus(90_000))]
    expect(changeAfter(...doubted)).toEqual(wait(noonPlus(90_000), 0))
    expect(attentionAt(replay(doubted))).toEqual(noonPlus(90_000))
  })
})

describe("a message leaves its lane, under the time it waited for,", () => {
  it("when it grows too old, as a dead letter", () => {
    expect(changeAfter(queued(), the.deadLettered("too old"))).toEqual({ ...leave(), dead: true })
  })

  it("when it is cancelled", () => {
    expect(changeAfter(queued({ dueAt: noonPlus(60_000) }), the.cancelled)).toEqual(leave(noonPlus(60_000)))
    expect(changeAfter(queued(), started(1), failed(1, noonPlus(1_000)), the.cancelled)).toEqual(leave(noonPlus(1_000)))
  })

  it("when it expires, even if it waited for the expiry itself", () => {
    expect(changeAfter(queued({ expiresAt: noon }), the.expired(noon))).toEqual(leave(noon))
    expect(
      changeAfter(queued({ dueAt: noonPlus(60_000), expiresAt: noonPlus(30_000) }), the.expired(noonPlus(30_000)))
    ).toEqual(leave(noonPlus(30_000)))
  })

  it("when a receipt settles a doubtful attempt", () => {
    const doubted = [queued(), started(1), unresolved(1, noonPlus(90_000)), the.received("sent")]
    expect(changeAfter(...doubted, succeeded(1))).toEqual(leave(noonPlus(90_000)))
  })
})

describe("a message that waited for another attempt leaves its lane", () => {
  it("when a receipt proves that the last one was taken", () => {
    const waiting = [queued(), started(1), failed(1, noonPlus(90_000)), the.received("sent")]
    expect(changeAfter(...waiting, succeeded(1))).toEqual(leave(noonPlus(90_000)))
  })
})

describe("the queue does not care", () => {
  it("about an attempt that starts: its message was claimed before", () => {
    expect(changeAfter(queued(), started(1))).toBeNull()
  })

  it("about how an attempt ends when no retry follows", () => {
    expect(changeAfter(queued(), started(1), succeeded(1))).toBeNull()
    expect(changeAfter(queued(), started(1), failed(1, null))).toBeNull()
    expect(changeAfter(queued(), started(1), abandoned(1, null))).toBeNull()
  })

  it("about how a claimed message ends", () => {
    expect(changeAfter(...the.endings.DELIVERED)).toBeNull()
    expect(changeAfter(...the.endings.FAILED)).toBeNull()
    expect(changeAfter(...the.endings.DEAD_LETTER)).toBeNull()
  })

  it("about a receipt that is only kept", () => {
    for (const history of Object.values(the.histories)) expect(changeAfter(...history, the.received("sent"))).toBeNull()
  })
})

describe("a message that does not wait", () => {
  it("wants no attention", () => {
    for (const status of ["SENDING", "SENT", "DELIVERED", "FAILED", "DEAD_LETTER"] as const) {
      expect(attentionAt(replay(the.histories[status]))).toBeNull()
    }
  })
})

describe("a message with an ordering key", () => {
  const keyed = () => queued({ line: "customer 7" })
  const line = "customer 7"

  it("waits and leaves in its line", () => {
    expect(changeAfter(keyed())).toEqual({ ...wait(), line })
    expect(changeAfter(keyed(), started(1), failed(1, noonPlus(1_000)))).toEqual({ ...wait(noonPlus(1_000), 1), line })
    expect(changeAfter(keyed(), the.cancelled)).toEqual({ ...leave(), line })
  })

  it("makes way once the destination has taken it", () => {
    expect(changeAfter(keyed(), started(1), succeeded(1))).toEqual({ type: "LeaveLine", lane, line, dead: false })
  })

  it("makes way as a dead letter when it failed for good", () => {
    const over = [keyed(), started(1), failed(1, null)]
    expect(changeAfter(...over, the.refusedForGood("response"))).toEqual({ type: "LeaveLine", lane, line, dead: true })
    expect(changeAfter(...over, the.deadLettered())).toEqual({ type: "LeaveLine", lane, line, dead: true })
  })

  it("has made way long before a provider reports its failure", () => {
    expect(changeAfter(keyed(), started(1), succeeded(1), the.refusedForGood("receipt"))).toBeNull()
  })
})
