/**
 * Wakes loops of this process at once, and of others by a NOTIFY after the commit, at most one in 10 ms for all topics. Inside the
 * appending transaction it would take a lock that all committers share.
 */
import { Clock, Duration, Effect, Layer } from "effect"
import { makeListeners, Pulse, type Topic, topics } from "../../application/ports/Pulse.ts"
import { Postgres, prepared } from "./Postgres.ts"

const CHANNEL = "wake"
const NOTIFY_EVERY_MS = 10
const notifyStatement = prepared`select pg_notify(current_schema() || '_${CHANNEL}', $1)`

export const layer = Layer.effect(
  Pulse,
  Effect.gen(function* () {
    const postgres = yield* Postgres
    const { ring, listener } = makeListeners()

    // Without names the connection was lost meanwhile.
    yield* Effect.forkScoped(
      postgres.listen(CHANNEL, (named) => {
        for (const topic of topics) if (named === undefined || named.includes(topic)) ring(topic)
      })
    )

    let notifiedAt = Number.NEGATIVE_INFINITY
    const owed = new Set<Topic>()
    const notify = Effect.fnUntraced(function* () {
      const now = yield* Clock.currentTimeMillis
      yield* Effect.sleep(Duration.millis(Math.max(0, notifiedAt + NOTIFY_EVERY_MS - now)))
      notifiedAt = yield* Clock.currentTimeMillis
      const named = [...owed].join(",")
      owed.clear()
      yield* postgres.queue.rows(notifyStatement, [named])
    }, Effect.ignore)
    const scope = yield* Effect.scope

    const wake = (...woken: ReadonlyArray<Topic>) =>
      Effect.suspend(() => {
        const isScheduled = owed.size > 0
        for (const topic of woken) {
          ring(topic)
          owed.add(topic)
        }
        return isScheduled ? Effect.void : Effect.asVoid(Effect.forkIn(notify(), scope))
      })

    return { wake, ring, listener }
  })
)
