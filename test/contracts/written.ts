/** Steps of messages that are written to the store, as the suites need them again and again. */
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { EventStore } from "../../src/application/ports/EventStore.ts"
import type { AttemptOutcome } from "../../src/domain/delivery/outcome.ts"
import { opened, type Sample, type Step } from "./sample.ts"

/** Writes each step in an append of its own, in this order; answers the message of the last. */
export const write = Effect.fnUntraced(function* (...steps: ReadonlyArray<Step>) {
  const store = yield* EventStore
  for (const { entry } of steps) expect((yield* store.append([entry]))[0]!.type).toBe("Appended")
  return steps.at(-1)!.after
})

/** Writes new messages in one append and answers them in order. */
export const put = Effect.fnUntraced(function* (wishes: ReadonlyArray<Parameters<typeof opened>[0]>) {
  const steps = wishes.map((wish) => opened(wish))
  const results = yield* (yield* EventStore).append(steps.map(({ entry }) => entry))
  expect(results.map(({ type }) => type)).toEqual(steps.map(() => "Appended"))
  return steps.map(({ after }): Sample => after)
})

export const refused = (code = "http_400"): AttemptOutcome => ({
  type: "Refused",
  error: { code, message: `the endpoint said ${code}`, retryable: false },
  status: 400,
  durationMs: 3
})
