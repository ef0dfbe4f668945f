/**
 * However many lists one org asks for, the connections that it may not have are there for others, and for Posthaste itself; and whatever
 * holds connections, accepting and settling have their own.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer, type Redacted } from "effect"
import * as Postgres from "../../../src/adapters/postgres/Postgres.ts"
import * as PostgresPulse from "../../../src/adapters/postgres/PostgresPulse.ts"
import { sharing } from "../../../src/adapters/postgres/shares.ts"
import * as PostgresEventStore from "../../../src/adapters/postgres/store/PostgresEventStore.ts"
import { AskedFor } from "../../../src/application/askedFor.ts"
import { Askers } from "../../../src/application/askers.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { newOrg, opened } from "../../contracts/sample.ts"
import { freshDatabase } from "../../servers/freshDatabase.ts"
import { session } from "../../servers/session.ts"
import { PATIENCE_MS } from "../../servers/until.ts"

/** A piece of work that ends when it is told to. */
const work = () => {
  let end = () => {}
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  const piece = { begun: false, end, effect: Effect.void as Effect.Effect<void> }
  piece.effect = Effect.suspend(() => {
    piece.begun = true
    return Effect.promise(() => ended)
  })
  return piece
}

const asked = (...who: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const share = sharing({ places: 3, ofOne: 2 })
    const fibers: Array<Fiber.Fiber<void>> = []
    const all: Array<{ readonly name: string; readonly piece: ReturnType<typeof work> }> = []
    for (const name of who) {
      const piece = work()
      all.push({ name, piece })
      fibers.push(yield* Effect.forkChild(share(name, piece.effect), { startImmediately: true }))
    }
    return { all, fibers, begun: () => all.flatMap(({ name, piece }) => (piece.begun ? [name] : [])) }
  })

describe("shares", () => {
  it.effect("leave places to others, and give each its turn", () =>
    Effect.gen(function* () {
      const { all, fibers, begun } = yield* asked("a", "a", "a", "a", "b", "b", "c")
      expect(begun()).toEqual(["a", "a", "b"])
      all[0]!.piece.end()
      yield* Fiber.join(fibers[0]!)
      // The one of a, b and c whose turn it is, and that has places left.
      expect(begun()).toHaveLength(4)
      all[1]!.piece.end()
      yield* Fiber.join(fibers[1]!)
      all[4]!.piece.end()
      yield* Fiber.join(fibers[4]!)
      expect(begun().toSorted()).toEqual(["a", "a", "a", "b", "b", "c"])
      for (const { piece } of all) piece.end()
      yield* Fiber.joinAll(fibers)
    })
  )

  it.effect("are given back by what is interrupted, whether it ran or waited", () =>
    Effect.gen(function* () {
      const { all, fibers, begun } = yield* asked("a", "a", "a", "a", "b", "c", "c")
      for (const n of [2, 5, 0, 1]) yield* Fiber.interrupt(fibers[n]!)
      expect(begun()).toEqual(["a", "a", "a", "b", "c"])
      for (const { piece } of all) piece.end()
      yield* Fiber.joinAll([fibers[3]!, fibers[4]!, fibers[6]!])
    })
  )
})

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

describe.each(["reads", "lookups"] as const)("the connections for %s", (kind) => {
  it.live("answer another org and Posthaste itself while one org's two hundred slow lists wait", () =>
    whileBlocked(
      (url) => Postgres.layer({ url, answersWithinMs: PATIENCE_MS }),
      Effect.fnUntraced(function* (unblock) {
        const { [kind]: reads } = yield* Postgres.Postgres
        const lists = yield* Effect.provideService(blocked([reads], 200), AskedFor, newOrg())
        const one = reads.rows({ text: "select 1" }, [])
        const other = newOrg()
        for (let n = 0; n < 20; n++) {
          expect(yield* Effect.provideService(one, AskedFor, other)).toEqual([["1"]])
          expect(yield* one).toEqual([["1"]])
        }
        expect(lists.answered()).toBe(0)
        yield* unblock
        yield* Fiber.join(lists.fiber)
        expect(lists.answered()).toBe(200)
      })
    )
  )
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

  it.live("waits for no more of another org's large texts than small messages take", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      yield* Effect.gen(function* () {
        const { append } = yield* EventStore
        const body = "x".repeat(200_000)
        const large = Array.from({ length: 12 }, () => {
          const { entry } = opened()
          return { ...entry, opening: { ...entry.opening!, body } }
        })
        const order: Array<string> = []
        const noted = (name: string) => Effect.sync(() => order.push(name))
        yield* Effect.all(
          [Effect.andThen(append(large), noted("large")), Effect.andThen(append([opened().entry]), noted("small"))],
          { concurrency: "unbounded" }
        )
        expect(order).toEqual(["small", "large"])
      }).pipe(Effect.provide(Layer.fresh(storeAt(url))))
    }).pipe(Effect.provideService(Askers, { asked: () => {}, areSeveral: () => true }))
  )
})
