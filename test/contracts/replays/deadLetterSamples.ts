/** Messages that died, for the suites of what is done with them. */
import { expect } from "@effect/vitest"
import { type DateTime, Effect } from "effect"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { MessageViews } from "../../../src/application/ports/MessageViews.ts"
import type { AttemptOutcome } from "../../../src/domain/delivery/outcome.ts"
import type { MessageQueued } from "../../../src/domain/message/facts.ts"
import { type MessageView, viewOf } from "../../../src/domain/message/view.ts"
import { opened, type Sample, settled, someStep, started } from "../sample.ts"
import { write } from "../written.ts"

/** A message that was attempted once and ended at `endedAt`. */
export const ended = Effect.fnUntraced(function* (
  outcome: AttemptOutcome,
  endedAt: DateTime.Utc,
  wishes: Partial<MessageQueued> & { readonly acceptedAt?: DateTime.Utc } & Parameters<typeof opened>[0] = {}
) {
  const queued = opened(wishes)
  const start = started(queued.after)
  const end = settled(start.after, outcome)
  const acceptedAt = wishes.acceptedAt ?? queued.entry.at
  yield* write({ ...queued, entry: { ...queued.entry, at: acceptedAt } }, start, {
    ...end,
    entry: { ...end.entry, at: endedAt }
  })
  return end.after
})

/** Projects all these, so that the views know them as they are now. */
export const projected = Effect.fnUntraced(function* (samples: ReadonlyArray<Sample>) {
  const store = yield* EventStore
  const views = yield* MessageViews
  const known: Array<MessageView> = []
  for (const { id } of samples) known.push(viewOf(id, (yield* store.load(id)).facts)!)
  expect(yield* views.project(yield* someStep("messages"), known)).toBe(true)
  return known
})
