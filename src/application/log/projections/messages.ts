/**
 * The projection `messages`: the view of each message. Each step folds the touched streams whole, so no order of
 * arrival can make a view wrong.
 */
import { Effect } from "effect"
import { type MessageView, viewOf } from "../../../domain/message/view.ts"
import { MessageViews } from "../../ports/MessageViews.ts"
import type { Step } from "../../ports/Projections.ts"
import { LogReader } from "../LogReader.ts"
import type { Projection } from "./Projection.ts"

/** Folds between two yields: about a millisecond. */
const YIELD_EVERY = 100

export const messages: Projection<MessageViews> = {
  name: "messages",
  version: 1,
  project: Effect.fnUntraced(function* (facts) {
    const views: Array<MessageView> = []
    let folded = 0
    for (const [id, history] of yield* (yield* LogReader).streams(facts)) {
      if (++folded % YIELD_EVERY === 0) yield* Effect.yieldNow
      const view = viewOf(id, history)
      if (view !== null) views.push(view)
    }
    const { project } = yield* MessageViews
    return (step: Step) => project(step, views)
  }),
  clear: (limit) => Effect.flatMap(MessageViews, (views) => views.clear(limit))
}
