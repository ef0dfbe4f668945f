/** The life of one message to a payment provider that does not answer, step by step: backoff, dead letter, recovery. */
import { expect, it } from "vitest"
import { presets } from "../../../src/domain/delivery/retry.ts"
import { decide, evolve, replay } from "../../../src/domain/message/decider.ts"
import type { MessageFact } from "../../../src/domain/message/facts.ts"
import * as the from "./samples.ts"

const { queued, started, succeeded, failed, deadLettered, noon, noonPlus } = the
/** The die in the middle of the jitter: the wait as it is computed. */
const MIDDLE = 0.5

it("1.–5. attempts fail and wait 1, 2, 4, 8 and 16 s, 6. the last one makes a dead letter, 7. replayed it is sent", () => {
  const failing = (history: ReadonlyArray<MessageFact>, attempt: number) => {
    const decided = decide(
      replay([...history, started(attempt)]),
      the.settle(attempt, the.outcomes.unreachable(), noon, MIDDLE)
    )
    if (decided._tag === "Failure") throw new Error(`attempt ${attempt} was refused`)
    return decided.success
  }
  let history: ReadonlyArray<MessageFact> = [queued({ retry: presets.exponential })]
  for (const [n, seconds] of [1, 2, 4, 8, 16].entries()) {
    const facts = failing(history, n + 1)
    expect(facts).toEqual([failed(n + 1, noonPlus(seconds * 1_000))])
    history = [...history, started(n + 1), ...facts]
    expect(replay(history).status).toBe("QUEUED")
  }
  const last = failing(history, 6)
  expect(last).toEqual([failed(6, null), deadLettered()])
  history = [...history, started(6), ...last]
  expect(replay(history).status).toBe("DEAD_LETTER")
  const again = [...history, the.replayed(2), started(1, 2)]
  expect(evolve(replay(again), succeeded(1)).status).toBe("SENT")
})
