/** What every adapter of `DestinationHealth` promises. Call it once per adapter, with a layer that gives an empty store. */
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Effect, type Layer } from "effect"
import { DestinationHealth } from "../../../src/application/ports/DestinationHealth.ts"
import type { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { Projections } from "../../../src/application/ports/Projections.ts"
import { DestinationId } from "../../../src/domain/ids.ts"
import { type AttemptEnd, changeOf } from "../../../src/domain/message/health.ts"
import { newLane, type StorePorts } from "../sample.ts"

const noon = DateTime.makeUnsafe("2026-01-01T12:00:00Z")
const noonPlus = (minutes: number) => DateTime.add(noon, { minutes })
const end = (minutes: number, succeeded: boolean, durationMs = 10): AttemptEnd => ({
  at: noonPlus(minutes),
  succeeded,
  durationMs
})

export const destinationHealthContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer), 20_000)

  /** The next step of the live run. */
  const project = Effect.fnUntraced(function* (
    changes: ReadonlyArray<readonly [DestinationId, ReadonlyArray<AttemptEnd>]>
  ) {
    const projections = yield* Projections
    const find = Effect.map(projections.runs, (runs) => runs.find((run) => run.name === "health" && run.live))
    const run = (yield* find) ?? (yield* projections.build("health", 1, 0))
    const step = { generation: run.generation, from: run.position, to: `${run.facts + 1}`, facts: 1 }
    const told = new Map(changes.map(([id, ends]) => [id, changeOf(ends)] as const))
    return yield* (yield* DestinationHealth).project(step, told)
  })
  const read = (id: DestinationId) => Effect.flatMap(DestinationHealth, (health) => health.read(id))

  describe(`${name} health of destinations`, () => {
    test(
      "counts in buckets of five minutes, whatever pieces the ends come in",
      Effect.gen(function* () {
        const [whole, pieces, other] = [newLane(), newLane(), newLane()]
        const ends = [end(0, true), end(1, false, 100), end(4.9, true), end(5, false), end(12, true)]
        expect(yield* project([[whole, ends]])).toBe(true)
        for (const each of ends)
          yield* project([
            [pieces, [each]],
            [other, [end(0, true)]]
          ])
        const found = (yield* read(whole))!
        expect(found.buckets.map(({ startsAt, succeeded, failed }) => [startsAt, succeeded, failed])).toEqual([
          [noon, 2, 1],
          [noonPlus(5), 0, 1],
          [noonPlus(10), 1, 0]
        ])
        expect(found.buckets[0]!.latencies.reduce((a, b) => a + b)).toBe(3)
        expect(yield* read(pieces)).toEqual(found)
        expect(yield* read(newLane())).toBeNull()
      })
    )

    test(
      "fails since the first failure after the last success",
      Effect.gen(function* () {
        const id = newLane()
        yield* project([[id, [end(0, false), end(1, false)]]])
        expect(yield* read(id)).toMatchObject({ failingSince: noon, lastFailedAt: noonPlus(1), lastSucceededAt: null })
        yield* project([[id, [end(2, false)]]])
        expect(yield* read(id)).toMatchObject({ failingSince: noon, lastFailedAt: noonPlus(2) })
        yield* project([[id, [end(3, true)]]])
        expect(yield* read(id)).toMatchObject({
          failingSince: null,
          lastFailedAt: noonPlus(2),
          lastSucceededAt: noonPlus(3)
        })
        yield* project([[id, [end(4, false), end(5, true), end(6, false)]]])
        expect(yield* read(id)).toMatchObject({ failingSince: noonPlus(6), lastSucceededAt: noonPlus(5) })
      })
    )

    test(
      "goes by the times of ends that come late",
      Effect.gen(function* () {
        const id = newLane()
        yield* project([[id, [end(5, true), end(7, false), end(8, false)]]])
        const before = { failingSince: noonPlus(7), lastFailedAt: noonPlus(8), lastSucceededAt: noonPlus(5) }
        yield* project([[id, [end(1, false), end(2, true), end(3, false)]]])
        expect(yield* read(id)).toMatchObject(before)
        yield* project([[id, [end(6, false)]]])
        expect(yield* read(id)).toMatchObject({ ...before, failingSince: noonPlus(6) })
        yield* project([[id, [end(9, true)]]])
        yield* project([[id, [end(8.5, false)]]])
        expect(yield* read(id)).toMatchObject({ failingSince: null, lastSucceededAt: noonPlus(9) })
      })
    )

    test(
      "keeps a day of buckets before the newest",
      Effect.gen(function* () {
        const id = newLane()
        yield* project([[id, [end(0, true), end(60, true)]]])
        yield* project([[id, [end(25 * 60, true)]]])
        const starts = (yield* read(id))!.buckets.map(({ startsAt }) => startsAt)
        expect(starts).toEqual([noonPlus(60), noonPlus(25 * 60)])
        yield* project([[id, [end(1, true)]]])
        expect((yield* read(id))!.buckets.map(({ startsAt }) => startsAt)).toEqual(starts)
      })
    )

    test(
      "names those that fail for a minute at least, page by page",
      Effect.gen(function* () {
        const ids = [newLane(), newLane(), newLane()].toSorted()
        const [fails, once, recovered] = ids
        yield* project([
          [fails!, [end(0, false), end(1, false)]],
          [once!, [end(0, false), end(0.9, false)]],
          [recovered!, [end(0, false), end(5, true)]]
        ])
        const health = yield* DestinationHealth
        const named: Array<string> = []
        let cursor: string | null = null
        do {
          const page: Effect.Success<ReturnType<typeof health.failing>> = yield* health.failing({ cursor, limit: 1 })
          named.push(...page.items.map(({ destination }) => destination))
          cursor = page.nextCursor
        } while (cursor !== null)
        expect(named.filter((id) => ids.includes(DestinationId.make(id)))).toEqual([fails])
        expect(new Set(named).size).toBe(named.length)
      })
    )

    test(
      "is written by whoever takes the step first",
      Effect.gen(function* () {
        const id = newLane()
        yield* project([[id, [end(0, true)]]])
        const step = { generation: 1, from: "elsewhere", to: "x", facts: 1 }
        const health = yield* DestinationHealth
        expect(yield* health.project(step, new Map([[id, changeOf([end(0, false)])]]))).toBe(false)
        expect(yield* read(id)).toMatchObject({ failingSince: null })
      })
    )
  })
}
