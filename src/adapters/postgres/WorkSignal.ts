/**
 * Tells waiting dispatchers that a message may be due: the dispatcher of this process at once, those of other processes by a
 * NOTIFY, which is sent after the commit and at most once per few milliseconds. A notification inside the appending
 * transaction would take a lock that all committers share.
 */
import { Clock, Context, Duration, Effect, Latch, Layer } from "effect"
import { Postgres, prepared } from "./Postgres.ts"

const TOPIC = "work"
const NOTIFY_EVERY_MS = 10
const notifyStatement = prepared`select pg_notify(current_schema() || '_${TOPIC}', '')`

export class WorkSignal extends Context.Service<
  WorkSignal,
  {
    /** Called after a commit that put a message where it can be claimed, or allowed a lane more. */
    readonly changed: Effect.Effect<void>
    /** Returns at the next signal, at once if one came since the last return, or after `atMost`. */
    readonly wait: (atMost: Duration.Duration) => Effect.Effect<void>
  }
>()("posthaste/adapters/postgres/WorkSignal") {}

export const layer = Layer.effect(
  WorkSignal,
  Effect.gen(function* () {
    const postgres = yield* Postgres
    const work = Latch.makeUnsafe(false)
    const ring = () => void work.openUnsafe()

    // Everybody listens, also the process that notifies: it then simply looks once more.
    yield* Effect.forkScoped(postgres.listen(TOPIC, ring))

    let notified = Number.NEGATIVE_INFINITY
    let owed = false
    const notify = Effect.fnUntraced(function* () {
      if (owed) return
      owed = true
      const now = yield* Clock.currentTimeMillis
      yield* Effect.sleep(Duration.millis(Math.max(0, notified + NOTIFY_EVERY_MS - now)))
      owed = false
      notified = yield* Clock.currentTimeMillis
      yield* postgres.queue.rows(notifyStatement, [])
    }, Effect.ignore)
    const scope = yield* Effect.scope

    const changed = Effect.suspend(() => {
      ring()
      return owed ? Effect.void : Effect.asVoid(Effect.forkIn(notify(), scope))
    })

    return WorkSignal.of({
      changed,
      wait: (atMost) =>
        work.await.pipe(Effect.timeoutOption(atMost), Effect.andThen(Effect.sync(() => void work.closeUnsafe())))
    })
  })
)
