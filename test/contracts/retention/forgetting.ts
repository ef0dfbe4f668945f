/** Retention as its job carries it out, for the suites that have something deleted. */
import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { type DateTime, Effect } from "effect"
import { Channels } from "../../../src/application/ports/Channels.ts"
import { Followers } from "../../../src/application/ports/Followers.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { MessageViews } from "../../../src/application/ports/MessageViews.ts"
import { Projections } from "../../../src/application/ports/Projections.ts"
import { type Before, Retention } from "../../../src/application/ports/Retention.ts"
import { now, readLogUntil } from "../sample.ts"

/** Alerting and the lists come to the end of the log; rows of the lists stay as they are. */
export const allRead = Effect.gen(function* () {
  // Once a reader of the log finds it, it finds all that was written before.
  const mark = `mark-${randomUUID()}` as const
  yield* (yield* Journals).append(mark, 0, [{ name: "Marked@1", data: "{}" }], now(), null)
  const head = (yield* readLogUntil((facts) => facts.some(({ stream }) => stream === mark))).at(-1)!.position
  for (const run of yield* (yield* Projections).runs) {
    if (run.name !== "messages" || run.position === head) continue
    const step = { generation: run.generation, from: run.position, to: head, facts: 0 }
    expect(yield* (yield* MessageViews).project(step, [])).toBe(true)
  }
  const followers = yield* Followers
  yield* followers.advance("alerts", yield* followers.position("alerts"), head)
})

/** Deletes messages until none is left to find; how many went in each step. */
export const forgetMessages = Effect.fnUntraced(function* (before: Before, limit = 100) {
  const retention = yield* Retention
  const steps: Array<number> = []
  for (let from: string | null = null; ; ) {
    const found: Effect.Success<ReturnType<typeof retention.find>> = yield* retention.find(before, from, limit)
    steps.push(found.messages.length === 0 ? 0 : ((yield* retention.forget(found.messages)) ?? 0))
    if (found.next === null) return steps
    from = found.next
  }
})

/** Deletes events until none is left to find, one at a time; how many went. */
export const forgetEvents = Effect.fnUntraced(function* (before: Before) {
  const retention = yield* Retention
  let removed = 0
  for (let from: string | null = null; ; ) {
    const swept: Effect.Success<ReturnType<typeof retention.forgetEvents>> = yield* retention.forgetEvents(
      before,
      from,
      1
    )
    removed += swept.removed
    if (swept.next === null) return removed
    from = swept.next
  }
})

export const forgetDestinations = Effect.fnUntraced(function* (removedBefore: DateTime.Utc) {
  const journals = new Map([...(yield* Channels)].map(([name, { journal }]) => [name, journal]))
  return yield* (yield* Retention).forgetDestinations(removedBefore, journals, 100)
})

export const sum = (steps: ReadonlyArray<number>): number => steps.reduce((a, b) => a + b, 0)
