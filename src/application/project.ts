/**
 * Keeps the list projection up with the facts: reads what is new in all streams, folds each touched stream
 * whole and writes the views with the position they stand for. Streams are short, so folding again is
 * cheaper than keeping state, and no order of arrival can make a view wrong.
 */
import { Duration, Effect } from "effect"
import type { MessageId } from "../domain/ids.ts"
import { viewOf } from "../domain/message/view.ts"
import { EventStore, type FeedFact, type Stream } from "./ports/EventStore.ts"
import { MessageViews } from "./ports/MessageViews.ts"

const FACTS_AT_ONCE = 2_000
const PAUSE_BUSY = Duration.millis(100)
const PAUSE_IDLE_MAX = Duration.millis(250)
const PAUSE_STORE = Duration.seconds(1)

/** One step; answers how many facts were new. */
export const projectOnce = Effect.fnUntraced(function* () {
  const store = yield* EventStore
  const views = yield* MessageViews
  const from = yield* views.position
  const facts = yield* store.readAll(from, FACTS_AT_ONCE)
  if (facts.length === 0) return 0
  const touched = Map.groupBy(facts, ({ messageId }) => messageId)
  const begunBefore = [...touched].flatMap(([id, news]) => (isWhole(news) ? [] : [id]))
  const loaded = begunBefore.length === 0 ? new Map<MessageId, Stream>() : yield* store.loadMany(begunBefore)
  const folded = [...touched].flatMap(([id, news]) => viewOf(id, loaded.get(id)?.facts ?? news) ?? [])
  yield* views.project(from, facts.at(-1)!.position, folded)
  return facts.length
})

/** What is new in the stream is all there is up to its last fact: nothing needs to be read again. */
const isWhole = (news: ReadonlyArray<FeedFact>): boolean => news.every(({ version }, index) => version === index + 1)

/** Runs until interrupted. Several may run at once: the position lets only one of them write each step. */
export const project = Effect.gen(function* () {
  let pause = PAUSE_BUSY
  return yield* Effect.suspend(projectOnce).pipe(
    Effect.flatMap((count) => {
      pause = count > 0 ? PAUSE_BUSY : Duration.min(Duration.times(pause, 2), PAUSE_IDLE_MAX)
      return count === FACTS_AT_ONCE ? Effect.void : Effect.sleep(pause)
    }),
    Effect.catchTag("StoreUnavailable", () => Effect.sleep(PAUSE_STORE)),
    Effect.catchDefect((defect) =>
      Effect.logError("projecting failed", defect).pipe(Effect.andThen(Effect.sleep(PAUSE_STORE)))
    ),
    Effect.forever
  )
})
