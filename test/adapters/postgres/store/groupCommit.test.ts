import { it } from "@effect/vitest"
import { Effect, Exit, Latch } from "effect"
import { describe, expect } from "vitest"
import { groupCommit } from "../../../../src/adapters/postgres/groupCommit.ts"
import { QueryFailed } from "../../../../src/adapters/postgres/Postgres.ts"
import { weightOf } from "../../../../src/adapters/postgres/store/append.ts"
import { opened } from "../../../contracts/sample.ts"

const numbered = (name: string, count: number) => Array.from({ length: count }, (_, n) => `${name}${n}`)

const asking = Effect.gen(function* () {
  const statements: Array<ReadonlyArray<string>> = []
  const open = yield* Latch.make()
  const ask = yield* groupCommit<string, string>({
    keyOf: (item) => item,
    atOnce: 2,
    max: 10,
    run: (items) => {
      statements.push(items)
      return open.await.pipe(Effect.as(items))
    }
  })
  /** Everything is asked at once, and answered when nothing more can start. */
  const askAll = (calls: ReadonlyArray<ReadonlyArray<string>>, more: ReadonlyArray<ReturnType<typeof ask>> = []) =>
    Effect.all([...calls.map(ask), ...more, Effect.andThen(Effect.sleep("20 millis"), open.open)], {
      concurrency: "unbounded"
    })
  return { statements, askAll }
})

describe("a group commit", () => {
  it.live("sends items in their order, as many as a statement holds, and a call's parts one after another", () =>
    Effect.gen(function* () {
      const { statements, askAll } = yield* asking
      const calls = [numbered("a", 6), numbered("b", 10), numbered("c", 4)]
      const answers = yield* askAll(calls)
      expect(answers.slice(0, 3)).toEqual(calls)
      expect(statements).toEqual([
        [...numbered("a", 6), ...numbered("b", 4)],
        numbered("c", 4),
        ["b4", "b5", "b6", "b7", "b8", "b9"]
      ])
    }).pipe(Effect.scoped)
  )

  it.live("cuts a call only where a statement is full or would have a key twice", () =>
    Effect.gen(function* () {
      const { statements, askAll } = yield* asking
      const [[twelve], [twice]] = [yield* askAll([numbered("a", 12)]), yield* askAll([["x", "y", "x"]])]
      expect([twelve, twice]).toEqual([numbered("a", 12), ["x", "y", "x"]])
      expect(statements).toEqual([numbered("a", 10), ["a10", "a11"], ["x", "y"], ["x"]])
    }).pipe(Effect.scoped)
  )

  it.live("sends a heavy item alone, and what is lighter beside it", () =>
    Effect.gen(function* () {
      const statements: Array<ReadonlyArray<string>> = []
      const ask = yield* groupCommit<string, string>({
        ...{ keyOf: (item: string) => item, atOnce: 1, max: 10 },
        weightOf: (item) => (item.endsWith("*") ? 20 : 1),
        run: (items) =>
          Effect.suspend(() => {
            statements.push(items)
            return Effect.delay(Effect.succeed(items), "1 millis")
          })
      })
      yield* Effect.forEach(["a*", "b*", "c", "d"], (item) => ask([item]), { concurrency: "unbounded" })
      expect(statements).toEqual([["a*"], ["b*"], ["c", "d"]])
    }).pipe(Effect.scoped)
  )

  it.live("has one item with a key under way, and asks for the next with it when that is answered", () =>
    Effect.gen(function* () {
      const underWay = new Set<string>()
      const met: Array<string> = []
      const ask = yield* groupCommit<string, string>({
        ...{ keyOf: (item: string) => item, atOnce: 2, max: 10 },
        run: (items) =>
          Effect.suspend(() => {
            for (const item of items) {
              if (underWay.has(item)) met.push(item)
              underWay.add(item)
            }
            const ended = Effect.sync(() => {
              for (const item of items) underWay.delete(item)
              return items
            })
            return Effect.delay(ended, "1 millis")
          })
      })
      const calls = Array.from({ length: 6 }, () => ["x"]).concat([["y"], ["x", "y"]])
      expect(yield* Effect.forEach(calls, ask, { concurrency: "unbounded" })).toEqual(calls)
      expect(met).toEqual([])
    }).pipe(Effect.scoped)
  )

  it("weighs a message by its text", () => {
    const ofText = (length: number) =>
      weightOf({ ...opened().entry, opening: { body: "x".repeat(length), idempotency: null } })
    expect([2, 4_095, 4_096, 200_000].map(ofText)).toEqual([1, 1, 2, 49])
  })

  it.effect("fails only the call that holds an item which the server can't read", () =>
    Effect.gen(function* () {
      const statements: Array<ReadonlyArray<string>> = []
      const ask = yield* groupCommit<string, string>({
        keyOf: (item) => item,
        atOnce: 1,
        max: 10,
        run: (items) => {
          statements.push(items)
          return items.includes("bad")
            ? Effect.fail(new QueryFailed({ code: "22021", cause: "invalid byte sequence" }))
            : Effect.succeed(items.map((item) => `${item}!`))
        }
      })
      const [good, bad, other] = yield* Effect.all(
        [["a", "b"], ["c", "bad", "d"], ["e"]].map((call) => Effect.exit(ask(call))),
        { concurrency: "unbounded" }
      )
      expect(good).toEqual(Exit.succeed(["a!", "b!"]))
      expect(Exit.isFailure(bad!)).toBe(true)
      expect(other).toEqual(Exit.succeed(["e!"]))
      expect(statements).toEqual([["a", "b", "c", "bad", "d", "e"], ["a"], ["b"], ["c"], ["bad"], ["d"], ["e"]])
    }).pipe(Effect.scoped)
  )

  it.effect("fails the calls of a statement that can't be put together, and goes on", () =>
    Effect.gen(function* () {
      const ask = yield* groupCommit<string, string>({
        keyOf: (item) => item,
        atOnce: 1,
        max: 10,
        run: (items) => {
          if (items.includes("bug")) throw new Error("a bug")
          return Effect.succeed(items)
        }
      })
      expect(Exit.hasDies(yield* Effect.exit(ask(["bug"])))).toBe(true)
      expect(yield* ask(["a"])).toEqual(["a"])
    }).pipe(Effect.scoped)
  )
})
