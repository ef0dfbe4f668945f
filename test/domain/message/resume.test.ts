import { DateTime } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { attemptsMaxOf } from "../../../src/domain/delivery/retry.ts"
import { decide, evolve, initial, replay } from "../../../src/domain/message/decider.ts"
import type { MessageFact, MessageQueued } from "../../../src/domain/message/facts.ts"
import { attentionAt, queueChange } from "../../../src/domain/message/queueChange.ts"
import { resume } from "../../../src/domain/message/resume.ts"
import { anyLife, someQueued } from "../arbitraries.ts"
import * as the from "./samples.ts"

/** `MessageQueued` and up to as many failed attempts as leave one. */
const waiting: fc.Arbitrary<readonly [MessageQueued, ...ReadonlyArray<MessageFact>]> = someQueued
  .map((queued) => ({ ...queued, channel: "webhook" as const }))
  .chain((queued) =>
    fc
      .array(fc.tuple(fc.boolean(), fc.integer({ min: 0, max: 200_000 }).map(the.noonPlus)), {
        maxLength: attemptsMaxOf(queued.retry) - 1
      })
      .map((attempts) => [
        queued,
        ...attempts.flatMap(([answered, retryAt], index): ReadonlyArray<MessageFact> => {
          const attempt = index + 1
          return [the.started(attempt), answered ? the.failed(attempt, retryAt) : the.abandoned(attempt, retryAt)]
        })
      ])
  )

describe("a message resumed from its queue row", () => {
  it("is the message its history makes, apart from whose the due time is", () => {
    fc.assert(
      fc.property(waiting, (history) => {
        const message = replay(history)
        const { epoch, attempt } = message.progress
        const dueAt = attentionAt(message)!
        const resumed = resume(history[0], epoch, attempt, history.length, dueAt)
        expect(resumed).toEqual({ ...message, progress: { ...message.progress, dueAt } })
      })
    )
  })

  it("decides and does to the queue what the message its history makes would", () => {
    fc.assert(
      fc.property(waiting, fc.integer({ min: 0, max: 400_000 }), (history, elapsedMs) => {
        const message = replay(history)
        const { attempt } = message.progress
        const resumed = resume(history[0], 1, attempt, history.length, attentionAt(message)!)!
        const now = the.noonPlus(elapsedMs)
        for (const first of [the.startAttempt(now), the.cancel, the.recordReceipt("delivered")]) {
          const decision = decide(message, first)
          expect(decide(resumed, first)).toEqual(decision)
          if (decision._tag === "Failure") continue
          let [left, right] = [message, resumed]
          for (const fact of decision.success) {
            const [nextLeft, nextRight] = [evolve(left, fact), evolve(right, fact)]
            expect(queueChange(right, fact, nextRight)).toEqual(queueChange(left, fact, nextLeft))
            ;[left, right] = [nextLeft, nextRight]
          }
          // Once an attempt has started, nothing remembers the difference.
          if (left.status === "SENDING") expect(right).toEqual(left)
        }
      })
    )
  })

  it("leaves its lane under the row's own due time when it has expired", () => {
    const queued = the.queued({ expiresAt: the.noonPlus(500) })
    const row = the.noonPlus(500)
    const resumed = resume(queued, 1, 1, 3, row)!
    const fact = the.expired(the.noonPlus(500))
    expect(queueChange(resumed, fact, evolve(resumed, fact))).toEqual({
      type: "Leave",
      lane: the.lane,
      dueAt: row,
      line: null,
      dead: false
    })
  })

  it("is the message its history makes for every row any message ever had, or is not resumed", () => {
    let [resumed, refused] = [0, 0]
    fc.assert(
      fc.property(anyLife, ({ history }) => {
        let message = initial
        history.forEach((fact, index) => {
          const before = message
          message = evolve(message, fact)
          const row = queueChange(before, fact, message)
          if (row?.type !== "Wait") return
          const found = resume(history[0] as MessageQueued, row.epoch, row.attempt, index + 1, row.dueAt)
          if (found === null) refused++
          else {
            resumed++
            expect(found).toEqual({ ...message, progress: { ...message.progress, dueAt: row.dueAt } })
          }
        })
      }),
      { numRuns: 500 }
    )
    // Neither answer may be the only one heard.
    expect(Math.min(resumed, refused)).toBeGreaterThan(100)
  })
})

describe("a message whose row does not tell the whole story", () => {
  const queued = the.queued()
  const resumeOf = (history: ReadonlyArray<MessageFact>) => {
    const { epoch, attempt } = replay(history).progress
    return resume(queued, epoch, attempt, history.length, the.noon)
  }

  it("is not resumed after a replay", () => {
    expect(resumeOf([...the.endings.FAILED, the.replayed(2)])).toBeNull()
    // Even where the number of facts would fit.
    expect(resume(queued, 2, 0, 1, the.noon)).toBeNull()
  })

  it("is not resumed when a receipt came in between", () => {
    expect(resumeOf([queued, the.received("sent")])).toBeNull()
    expect(resumeOf([queued, the.started(1), the.received("sent"), the.failed(1, the.noon)])).toBeNull()
  })

  it("is not resumed when an attempt was deferred", () => {
    expect(resumeOf([queued, the.started(1), the.deferred(1, the.noon)])).toBeNull()
    const both = [queued, the.started(1), the.deferred(1, the.noon), the.started(1), the.failed(1, the.noon)]
    expect(resumeOf(both)).toBeNull()
    expect(resumeOf([...both, the.started(2), the.deferred(2, the.noon)])).toBeNull()
  })

  it("is not resumed while an attempt is in doubt", () => {
    const whatsapp = the.queued({ channel: "whatsapp" })
    const doubted = [whatsapp, the.started(1), the.unresolved(1)]
    const closed = replay(doubted).progress.attempt - 1
    expect(resume(whatsapp, 1, closed, doubted.length, the.noonPlus(60_000))).toBeNull()
  })

  it("is not resumed when an attempt had been in doubt", () => {
    expect(resumeOf([queued, the.started(1), the.unresolved(1), the.failed(1, the.noon)])).toBeNull()
  })

  it("is not resumed when the number of attempts and of facts do not agree", () => {
    expect(resume(queued, 1, 1, 2, the.noon)).toBeNull()
    expect(resume(queued, 1, 1, 4, the.noon)).toBeNull()
    expect(resume(queued, 1, 0, 3, the.noon)).toBeNull()
    expect(resume(queued, 1, 1, 3, the.noon)?.progress.attempt).toBe(1)
  })

  it("is resumed exactly as it was handed over when nothing has happened yet", () => {
    const resumed = resume(queued, 1, 0, 1, queued.dueAt)
    expect(resumed).toEqual(replay([queued]))
    expect(DateTime.formatIso(resumed!.progress.dueAt!)).toBe("2026-01-01T12:00:00.000Z")
  })
})
