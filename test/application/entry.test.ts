import { describe, expect, it } from "vitest"
import { entryOf } from "../../src/application/entry.ts"
import { MessageId } from "../../src/domain/ids.ts"
import { initial, replay } from "../../src/domain/message/decider.ts"
import {
  delivered,
  failed,
  lane,
  noon,
  noonPlus,
  queued,
  received,
  started,
  succeeded,
  unresolved
} from "../domain/message/samples.ts"

const id = MessageId.make("0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a02")

describe("an entry", () => {
  it("carries the facts and what they mean together for the queue", () => {
    const { entry, after } = entryOf(id, initial, 0, [queued()], noon)
    expect(entry).toEqual({
      messageId: id,
      expected: 0,
      facts: [queued()],
      at: noon,
      actor: null,
      queue: { type: "Wait", lane, dueAt: noon, epoch: 1, attempt: 0, line: null },
      fence: null,
      gate: null,
      opening: null,
      response: null
    })
    expect(after.status).toBe("QUEUED")
  })

  it("keeps the last change of the queue, whatever facts follow it", () => {
    const before = replay([queued(), started(1), unresolved(1, noonPlus(9))])
    const settled = entryOf(id, before, 3, [received("delivered"), succeeded(1), delivered("receipt")], noon)
    expect(settled.entry.queue).toEqual({ type: "Leave", lane, dueAt: noonPlus(9), line: null, dead: false })
    expect(settled.after.status).toBe("DELIVERED")
  })

  it("changes nothing in the queue when no fact does", () => {
    expect(entryOf(id, replay([queued()]), 1, [started(1)], noon).entry.queue).toBeNull()
  })

  it("waits again after a failure that leaves an attempt", () => {
    const { queue } = entryOf(id, replay([queued(), started(1)]), 2, [failed(1, noonPlus(5))], noon).entry
    expect(queue).toEqual({ type: "Wait", lane, dueAt: noonPlus(5), epoch: 1, attempt: 1, line: null })
  })

  it("can't hold history the law forbids", () => {
    expect(() => entryOf(id, initial, 0, [queued(), succeeded(1)], noon)).toThrow("cannot follow QUEUED")
  })
})
