/** Whatever holds connections, accepting and settling have their own. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer, type Redacted } from "effect"
import * as Postgres from "../../../src/adapters/postgres/Postgres.ts"
import * as PostgresPulse from "../../../src/adapters/postgres/PostgresPulse.ts"
import * as PostgresEventStore from "../../../src/adapters/postgres/store/PostgresEventStore.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { opened } from "../../contracts/sample.ts"
import { freshDatabase } from "../../servers/freshDatabase.ts"
import { session } from "../../servers/session.ts"
import { PATIENCE_MS } from "../../servers/until.ts"

const storeAt = (url: Redacted.Redacted) =>
  PostgresEventStore.layer.pipe(
    Layer.provide(PostgresPulse.layer),
    Layer.provideMerge(Postgres.layer({ url, answersWithinMs: PATIENCE_MS }))
  )

const BLOCKED = "select pg_advisory_xact_lock_shared(4711)"

/** In a database of its own, where `BLOCKED` waits until `unblock`. */
const whileBlocked = <A, E, R, P, F>(
  portsAt: (url: Redacted.Redacted) => Layer.Layer<P, F>,
  body: (unblock: Effect.Effect<unknown>) => Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    const url = yield* freshDatabase
    const holder = yield* session(url)
    yield* Effect.promise(() => holder.query("select pg_advisory_lock(4711)"))
    const unblock = Effect.promise(() => holder.query("select pg_advisory_unlock_all()"))
    return yield* body(unblock).pipe(Effect.provide(Layer.fresh(portsAt(url))))
  })

/** So many of them at once for each pool, and how many were answered. */
const blocked = Effect.fnUntraced(function* (pools: ReadonlyArray<Postgres.Connections>, each: number) {
  let answered = 0
  const all = Array.from({ length: each }).flatMap(() => pools)
  const asked = Effect.forEach(
    all,
    (pool) => Effect.tap(pool.rows({ text: BLOCKED }, []), () => Effect.sync(() => answered++)),
    { concurrency: "unbounded", discard: true }
  )
  return { fiber: yield* Effect.forkChild(asked, { startImmediately: true }), answered: () => answered }
})

describe("an append", () => {
  it.live("waits for no statement of another kind, such as those of replays that are asked for again and again", () =>
    whileBlocked(
      storeAt,
      Effect.fnUntraced(function* (unblock) {
        const { durable, queue, derived, bulk } = yield* Postgres.Postgres
        const { append } = yield* EventStore
        const others = yield* blocked([durable, queue, derived, bulk], 8)
        expect(yield* append([opened().entry])).toEqual([{ type: "Appended", version: 1 }])
        expect(others.answered()).toBe(0)
        yield* unblock
        yield* Fiber.join(others.fiber)
      })
    )
  )
})
