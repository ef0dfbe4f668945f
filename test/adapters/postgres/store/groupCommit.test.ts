import { it } from "@effect/vitest"
import { Clock, Effect, Exit, Latch } from "effect"
import { describe, expect } from "vitest"
import { groupCommit } from "../../../../src/adapters/postgres/groupCommit.ts"
import { QueryFailed } from "../../../../src/adapters/postgres/Postgres.ts"
import { weightOf } from "../../../../src/adapters/postgres/store/append.ts"
import { Askers, makeAskers } from "../../../../src/application/askers.ts"
import { OrgId } from "../../../../src/domain/ids.ts"
import { opened } from "../../../contracts/sample.ts"

const numbered = (name: string, count: number) => Array.from({ length: count }, (_, n) => `${name}${n}`)

/** Others ask all the time. */
const amongOthers = Effect.provideService(Askers, { asked: () => {}, areSeveral: () => true })

/** Items are named `<org><number>`, and `*` makes one heavy. Answers the statements in their order, when all are answered. */
const statementsOf = Effect.fnUntraced(function* (items: ReadonlyArray<string>, atOnce: number) {
  const statements: Array<ReadonlyArray<string>> = []
  const ask = yield* groupCommit<string, string>({
    ...{ keyOf: (item: string) => item, orgOf: (item: string) => OrgId.make(item[0]!) },
    ...{ atOnce, max: 10, ofOne: 4, weightOf: (item: string) => (item.endsWith("*") ? 20 : 1) },
    run: (items) =>
      Effect.suspend(() => {
        statements.push(items)
        return Effect.delay(Effect.succeed(items), "1 millis")
      })
  })
  yield* Effect.forEach(items, (item) => ask([item]), { concurrency: "unbounded" })
  return statements
})

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
  it.live("sends what came in one call in one statement, also where others came before", () =>
    Effect.gen(function* () {
      const { statements, askAll } = yield* asking
      const calls = [numbered("a", 6), numbered("b", 10), numbered("c", 4)]
      const answers = yield* askAll(calls)
      expect(answers.slice(0, 3)).toEqual(calls)
      expect(statements).toEqual([[...numbered("a", 6), ...numbered("c", 4)], numbered("b", 10)])
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

  it.live("has no more of one org under way than its share while another asks, and all of it otherwise", () =>
    Effect.gen(function* () {
      const underWay: Array<string> = []
      let most = 0
      let areSeveral = false
      const ask = yield* groupCommit<string, string>({
        ...{ keyOf: (item: string) => item, orgOf: (item: string) => OrgId.make(item[0]!) },
        ...{ atOnce: 2, max: 10, ofOne: 4 },
        run: (items) =>
          Effect.suspend(() => {
            underWay.push(...items)
            most = Math.max(most, underWay.filter((item) => item.startsWith("a")).length)
            const ended = Effect.sync(() => {
              for (const item of items) underWay.splice(underWay.indexOf(item), 1)
              return items
            })
            // Alone, both statements are under way before one ends.
            const mayEnd = Effect.repeat(Effect.sleep("1 millis"), { until: () => areSeveral || most === 20 })
            return Effect.andThen(mayEnd, ended)
          })
      }).pipe(Effect.provideService(Askers, { asked: () => {}, areSeveral: () => areSeveral }))
      const askAll = (calls: ReadonlyArray<ReadonlyArray<string>>) =>
        Effect.forEach(calls, ask, { concurrency: "unbounded" })
      const calls = [numbered("a", 10), ...numbered("a-", 10).map((item) => [item])]
      expect(yield* askAll(calls)).toEqual(calls)
      expect(most).toBe(20)
      most = 0
      areSeveral = true
      expect(yield* askAll(calls)).toEqual(calls)
      expect(most).toBe(4)
    }).pipe(Effect.scoped)
  )

  it.live("lets no part of a call overtake another, whatever has room or a share", () =>
    Effect.gen(function* () {
      const statements: Array<ReadonlyArray<string>> = []
      const ask = yield* groupCommit<string, string>({
        ...{ keyOf: (item: string) => item, orgOf: (item: string) => OrgId.make(item[0]!) },
        ...{ atOnce: 2, max: 10, ofOne: 4 },
        run: (items) =>
          Effect.suspend(() => {
            statements.push(items)
            return Effect.delay(Effect.succeed(items), "5 millis")
          })
      })
      yield* Effect.all([ask(["b0"]), ask(["a-"]), ask(numbered("a", 6))], { concurrency: "unbounded" })
      expect(statements.flat().filter((item) => item !== "b0")).toEqual(["a-", ...numbered("a", 6)])
    }).pipe(amongOthers, Effect.scoped)
  )

  it.live(
    "puts what weighs too much for all of them after what another org asked for, however much of it came before",
    () =>
      Effect.gen(function* () {
        const heavy = numbered("a", 4).map((item) => `${item}*`)
        expect(yield* statementsOf([...heavy, "b0", "b1"], 1)).toEqual([
          ["a0*"],
          ["b0", "b1"],
          ["a1*"],
          ["a2*"],
          ["a3*"]
        ])
      }).pipe(amongOthers, Effect.scoped)
  )

  it.live("leaves a small statement to others beside a heavy one", () =>
    Effect.gen(function* () {
      const statements = yield* statementsOf(["a0*", "a1*", "b0", "b1"], 2)
      expect(statements.slice(0, 2)).toEqual([["a0*"], ["b0", "b1"]])
    }).pipe(amongOthers, Effect.scoped)
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

  it.effect("tells who asks that another org asks too", () =>
    Effect.gen(function* () {
      const askers = makeAskers()
      const ask = yield* groupCommit<string, string>({
        ...{ keyOf: (item: string) => item, orgOf: (item: string) => OrgId.make(item[0]!) },
        ...{ atOnce: 1, max: 10, run: Effect.succeed }
      }).pipe(Effect.provideService(Askers, askers))
      const now = Effect.map(Clock.Clock, (clock) => Number(clock.monotonicTimeNanosUnsafe()) / 1e6)
      yield* ask(["a0"])
      expect(askers.areSeveral(yield* now)).toBe(false)
      yield* ask(["b0"])
      expect(askers.areSeveral(yield* now)).toBe(true)
    }).pipe(Effect.scoped)
  )

  it("weighs a message by its text", () => {
    const ofText = (length: number) =>
      weightOf({ ...opened().entry, opening: { body: "x".repeat(length), idempotency: null } })
    expect([2, 4_095, 4_096, 200_000].map(ofText)).toEqual([1, 1, 2, 49])
  })

  it.live("answers so many calls in one turn of the event loop", () =>
    Effect.gen(function* () {
      const ask = yield* groupCommit<string, string>({
        ...{ keyOf: (item: string) => item, atOnce: 1, max: 100 },
        run: Effect.succeed
      })
      let turn = 0
      let isOver = false
      const count = () => {
        turn += 1
        if (!isOver) setImmediate(count)
      }
      count()
      const turns = yield* Effect.forEach(numbered("a", 100), (item) => Effect.map(ask([item]), () => turn), {
        concurrency: "unbounded"
      })
      isOver = true
      const each = [...Map.groupBy(turns, (one) => one).values()].map(({ length }) => length)
      expect(each).toEqual([32, 32, 32, 4])
    }).pipe(Effect.scoped)
  )

  it.live("answers who has few before the rest of who has many", () =>
    Effect.gen(function* () {
      const answered: Array<string> = []
      const ask = yield* groupCommit<string, string>({
        ...{ keyOf: (item: string) => item, orgOf: (item: string) => OrgId.make(item[0]!) },
        ...{ atOnce: 1, max: 1_000 },
        run: Effect.succeed
      })
      const calls = [...numbered("a", 100), "b0", "b1", ...numbered("c", 40)].map((item) => [item])
      const answers = yield* Effect.forEach(
        calls,
        (call) => Effect.tap(ask(call), ([item]) => Effect.sync(() => answered.push(item!))),
        { concurrency: "unbounded" }
      )
      expect(answers).toEqual(calls)
      expect(answered.slice(0, 7)).toEqual(["a0", "b0", "c0", "a1", "b1", "c1", "a2"])
      expect(answered.filter((item) => item.startsWith("a"))).toEqual(numbered("a", 100))
    }).pipe(Effect.scoped)
  )

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
