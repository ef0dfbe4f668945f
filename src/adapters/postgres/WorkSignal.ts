/**
 * Tells waiting dispatchers that something may be due: the ones in this process at once, the others by a
 * NOTIFY of its own, sent after the commit and at most once per few milliseconds. A notification inside the
 * appending transaction would take a lock that all committers share.
 */
import { Clock, Context, Duration, Effect, Layer } from "effect"
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
    let rung = false
    const waiting = new Set<() => void>()
    const ring = () => {
      if (waiting.size === 0) {
        rung = true
        return
      }
      for (const wake of [...waiting]) wake()
    }

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
        Effect.callback<void>((resume) => {
          if (rung) {
            rung = false
            return resume(Effect.void)
          }
          const wake = () => {
            waiting.delete(wake)
            resume(Effect.void)
          }
          waiting.add(wake)
          return Effect.sync(() => waiting.delete(wake))
        }).pipe(Effect.timeoutOption(atMost), Effect.asVoid)
    })
  })
)
