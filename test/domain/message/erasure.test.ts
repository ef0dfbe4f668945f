import { describe, it } from "vitest"
import { given } from "./given.ts"
import * as the from "./samples.ts"

const { erase, erased, replayMessage, replayed, noonPlus } = the

describe("a body", () => {
  for (const [status, history] of Object.entries(the.histories)) {
    it(`can be erased in ${status}, and the message stays there`, () => {
      given(...history)
        .when(erase)
        .then(erased)
        .in(status as keyof typeof the.histories)
    })
  }

  it("can't be erased before there is a message", () => {
    given().when(erase).thenRejectedIn("NEW")
  })

  it("is erased once: asking again adds nothing", () => {
    given(...the.endings.DELIVERED, erased)
      .when(erase)
      .then()
  })

  it("that was erased can't be replayed", () => {
    given(...the.endings.FAILED, erased)
      .when(replayMessage())
      .thenRejectedIn("FAILED")
  })

  it("that was erased can be replaced on replay, and erased again", () => {
    const another = { ...(replayed(2) as object), edited: true } as ReturnType<typeof replayed>
    given(...the.endings.FAILED, erased)
      .when(replayMessage(noonPlus(3_600_000), true))
      .then(another)
      .in("QUEUED")
    given(...the.endings.FAILED, erased, another)
      .when(erase)
      .then(erased)
      .in("QUEUED")
  })

  it("that was replaced is said to be", () => {
    given(...the.endings.DEAD_LETTER)
      .when(replayMessage(noonPlus(3_600_000), true))
      .then({
        type: "MessageReplayed",
        epoch: 2,
        replayedAt: noonPlus(3_600_000),
        reason: null,
        edited: true,
        replayId: null
      })
      .in("QUEUED")
  })
})
