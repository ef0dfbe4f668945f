/** What every adapter of `Projections` promises. `layer` gives an empty store to each test. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import type { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { MessageViews } from "../../../src/application/ports/MessageViews.ts"
import { Projections, type Run } from "../../../src/application/ports/Projections.ts"
import { viewOf } from "../../../src/domain/message/view.ts"
import { newOrg, opened, type Sample, type StorePorts } from "../sample.ts"

const _HOUR = 3_600_000

export const projectionsContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer))

  const runs = Effect.map(
    Effect.flatMap(Projections, (projections) => projections.runs),
    (all) => all.filter((run) => run.name === "messages")
  )
  const live = Effect.map(runs, (all) => all.find((run) => run.live)!)
  const beginBuild = Effect.flatMap(Projections, (projections) => projections.build("messages", 1, 7))

  const viewsOf = Effect.fnUntraced(function* (samples: ReadonlyArray<Sample>) {
    const store = yield* EventStore
    return yield* Effect.forEach(samples, ({ id }) => Effect.map(store.load(id), ({ facts }) => viewOf(id, facts)!))
  })
  const take = Effect.fnUntraced(function* (run: Run, to: string, samples: ReadonlyArray<Sample>) {
    const step = { generation: run.generation, from: run.position, to, facts: 3 }
    return yield* (yield* MessageViews).project(step, yield* viewsOf(samples))
  })
  const listed = Effect.fnUntraced(function* (orgId: ReturnType<typeof newOrg>) {
    const views = yield* MessageViews
    const { items } = yield* views.list(orgId, {}, { cursor: null, limit: 100 })
    const { byStatus } = yield* views.stats(orgId)
    return { ids: items.map(({ id }) => id).toSorted(), counted: Object.values(byStatus).reduce((a, b) => a + b) }
  })
  const written = Effect.fnUntraced(function* (count: number) {
    const store = yield* EventStore
    const orgId = newOrg()
    const samples = Array.from({ length: count }, () => opened({ orgId }))
    for (const { entry } of samples) yield* store.append([entry])
    return { orgId, samples: samples.map(({ after }) => after) }
  })

  describe(`${name} projections`, () => {
    test(
      "begin with the live rows of the messages, at no position",
      Effect.gen(function* () {
        expect(yield* runs).toMatchObject([
          { name: "messages", generation: 1, version: 1, live: true, position: null, facts: 0 }
        ])
      })
    )

    test(
      "are live at once when they are new, however many begin with them",
      Effect.gen(function* () {
        const projections = yield* Projections
        const begun = yield* Effect.all(
          Array.from({ length: 5 }, () => projections.build("brand-new", 3, 9)),
          { concurrency: "unbounded" }
        )
        const known = (yield* projections.runs).filter((run) => run.name === "brand-new")
        expect(known.filter((run) => run.live)).toMatchObject([{ generation: 1, version: 3, total: 9 }])
        expect(new Set(begun.map(({ generation }) => generation)).size).toBeLessThanOrEqual(2)
      })
    )

    test(
      "are built beside what is live, which nobody notices until the swap, and then all at once",
      Effect.gen(function* () {
        const projections = yield* Projections
        const { orgId, samples } = yield* written(3)
        yield* take(yield* live, "1:5", samples.slice(0, 2))
        const build = yield* beginBuild
        expect(build).toMatchObject({ generation: 2, live: false, position: null, facts: 0, total: 7 })
        expect(yield* take(build, "1:5", samples)).toBe(true)
        expect(yield* listed(orgId)).toEqual({ ids: [samples[0]!.id, samples[1]!.id].toSorted(), counted: 2 })
        expect(yield* projections.swap("messages", 2)).toBe(true)
        expect(yield* listed(orgId)).toEqual({ ids: samples.map(({ id }) => id).toSorted(), counted: 3 })
        expect(yield* runs).toMatchObject([{ generation: 2, live: true, position: "1:5", facts: 3 }])
      })
    )

    test(
      "are swapped only where both stand at the same place, and once",
      Effect.gen(function* () {
        const projections = yield* Projections
        const { samples } = yield* written(2)
        yield* take(yield* live, "1:5", samples)
        const build = yield* beginBuild
        expect(yield* projections.swap("messages", build.generation)).toBe(false)
        yield* take(build, "1:4", samples)
        expect(yield* projections.swap("messages", build.generation)).toBe(false)
        expect(yield* live).toMatchObject({ generation: 1 })
        yield* take({ ...build, position: "1:4" }, "1:5", samples)
        const swaps = yield* Effect.all(
          Array.from({ length: 4 }, () => projections.swap("messages", build.generation)),
          { concurrency: "unbounded" }
        )
        expect(swaps.filter(Boolean)).toHaveLength(1)
        expect(yield* projections.swap("messages", 1)).toBe(false)
        expect(yield* projections.swap("messages", 99)).toBe(false)
      })
    )

    test(
      "remember how far a build has come, for whoever goes on with it",
      Effect.gen(function* () {
        const { samples } = yield* written(2)
        const build = yield* beginBuild
        yield* take(build, "1:4", samples)
        expect(yield* beginBuild).toMatchObject({ generation: 2, position: "1:4", facts: 3 })
        const won = yield* Effect.all(
          [take({ ...build, position: "1:4" }, "1:6", []), take({ ...build, position: "1:4" }, "1:7", [])],
          { concurrency: "unbounded" }
        )
        expect(won.toSorted()).toEqual([false, true])
        expect((yield* beginBuild).facts).toBe(6)
      })
    )

    test(
      "give up a build for one of a newer fold, and not for one of an older",
      Effect.gen(function* () {
        const projections = yield* Projections
        const { orgId, samples } = yield* written(1)
        const old = yield* beginBuild
        yield* take(old, "1:4", samples)
        const build = yield* projections.build("messages", 2, 7)
        expect(build).toMatchObject({ version: 2, position: null, facts: 0 })
        expect(build.generation).toBeGreaterThan(old.generation)
        expect(yield* beginBuild).toMatchObject({ version: 2, generation: build.generation })
        expect(yield* take({ ...old, position: "1:4" }, "1:5", samples)).toBe(false)
        yield* take(yield* live, "1:5", [])
        yield* take(build, "1:5", [])
        expect(yield* projections.swap("messages", build.generation)).toBe(true)
        expect((yield* listed(orgId)).ids).toEqual([])
        expect((yield* live).version).toBe(2)
      })
    )

    test(
      "leave rows behind after a swap that can be cleared bit by bit, and no others",
      Effect.gen(function* () {
        const projections = yield* Projections
        const views = yield* MessageViews
        const { orgId, samples } = yield* written(5)
        yield* take(yield* live, "1:5", samples)
        const build = yield* beginBuild
        yield* take(build, "1:5", samples)
        expect(yield* views.clear(100)).toBe(0)
        yield* projections.swap("messages", build.generation)
        while ((yield* views.clear(2)) > 0) {}
        expect(yield* listed(orgId)).toEqual({ ids: samples.map(({ id }) => id).toSorted(), counted: 5 })
      })
    )
  })
}
