import { it } from "@effect/vitest"
import { DateTime, Duration, Effect, Fiber, Layer, Logger } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { LogReader } from "../../../../src/application/log/LogReader.ts"
import {
  FactsAtOnce,
  keepProjections,
  projectOnce
} from "../../../../src/application/log/projections/keepProjections.ts"
import { rebuildProjection } from "../../../../src/application/log/projections/rebuild.ts"
import { listMessages } from "../../../../src/application/messages/listMessages.ts"
import { DestinationHealth } from "../../../../src/application/ports/DestinationHealth.ts"
import { EventStore } from "../../../../src/application/ports/EventStore.ts"
import { StoreUnavailable } from "../../../../src/application/ports/errors.ts"
import { MessageViews } from "../../../../src/application/ports/MessageViews.ts"
import { Projections, type Stall } from "../../../../src/application/ports/Projections.ts"
import { Pulse } from "../../../../src/application/ports/Pulse.ts"
import type { MessageId } from "../../../../src/domain/ids.ts"
import { viewOf } from "../../../../src/domain/message/view.ts"
import { delivered, newOrg, opened, settled, started, unreachable } from "../../../contracts/sample.ts"
import { put, write } from "../../../contracts/written.ts"
import * as MemoryPorts from "../../../model/MemoryPorts.ts"

const PAGE = 20

const ports = Layer.provideMerge(LogReader.layer, MemoryPorts.layer)
/** Of the projection `messages`, which stands for all. */
const runs = Effect.flatMap(Projections, (projections) =>
  Effect.map(projections.runs, (all) => all.filter(({ name }) => name === "messages"))
)
const list = Effect.fnUntraced(function* (orgId: ReturnType<typeof newOrg>) {
  return (yield* listMessages(orgId, {}, { cursor: null, limit: 100 })).items
})
const folds = Effect.fnUntraced(function* (
  views: ReadonlyArray<{ readonly id: ReturnType<typeof opened>["after"]["id"] }>
) {
  const store = yield* EventStore
  return yield* Effect.forEach(views, ({ id }) => Effect.map(store.load(id), ({ facts }) => viewOf(id, facts)))
})
/** All that one message goes through: six facts. */
const story = (orgId: ReturnType<typeof newOrg>) => {
  const queued = opened({ orgId })
  const first = started(queued.after)
  const failed = settled(first.after, unreachable())
  const second = started(failed.after)
  return [queued, first, failed, second, settled(second.after, delivered)]
}

describe("a projection", () => {
  it.effect("equals the fold of each stream, however its facts were spread over steps", () =>
    Effect.gen(function* () {
      const orgId = newOrg()
      const [queued, first, failed, second, done] = story(orgId)
      yield* write(queued!, opened({ orgId }))
      expect(yield* projectOnce()).toBe(2)
      yield* write(first!, failed!)
      expect(yield* projectOnce()).toBe(2)
      yield* write(second!, done!)
      expect(yield* projectOnce()).toBe(3)
      expect(yield* projectOnce()).toBe(0)
      const items = yield* list(orgId)
      expect(items).toEqual(yield* folds(items))
      expect(items.map(({ status }) => status).toSorted()).toEqual(["DELIVERED", "QUEUED"])
      expect((yield* (yield* MessageViews).stats(orgId)).byStatus).toMatchObject({
        DELIVERED: 1,
        QUEUED: 1,
        SENDING: 0
      })
    }).pipe(Effect.provide(ports))
  )

  it.effect("writes a step once when two processes take it", () =>
    Effect.gen(function* () {
      const orgId = newOrg()
      yield* write(opened({ orgId }), opened({ orgId }))
      const another = Effect.provide(projectOnce(), Layer.fresh(LogReader.layer))
      yield* Effect.all([projectOnce(), another], { concurrency: 2 })
      expect((yield* (yield* MessageViews).stats(orgId)).byStatus.QUEUED).toBe(2)
    }).pipe(Effect.provide(ports))
  )
})

const inPages = Effect.provideService(keepProjections, FactsAtOnce, PAGE)

/** A message whose facts lie in the first page of the log and in the next one, and many others beside it. */
const overTwoPages = Effect.gen(function* () {
  const orgId = newOrg()
  const [queued, first, failed, second, done] = story(orgId)
  yield* put(Array.from({ length: PAGE - 2 }, () => ({ orgId })))
  yield* write(queued!, first!)
  yield* write(failed!, second!, done!)
  return { orgId, id: queued!.after.id }
})

/** Which version of the message each step of the projection gave, and how far that step went. */
const watching = (id: MessageId) =>
  Effect.map(MessageViews, (views) => {
    const given: Array<{ readonly facts: number; readonly version: number | undefined }> = []
    const watched = Layer.succeed(MessageViews, {
      ...views,
      project: (step, rows) => {
        given.push({ facts: step.facts, version: rows.find((row) => row.id === id)?.version })
        return views.project(step, rows)
      }
    })
    return { given, watched }
  })

describe("a projection that is behind by more than a page", () => {
  it.effect.each(["follows", "is built anew"])(
    "and %s writes a message with facts in two pages once, as it is after both",
    (kind) =>
      Effect.gen(function* () {
        const { orgId, id } = yield* overTwoPages
        if (kind === "is built anew") {
          while ((yield* projectOnce()) > 0) {}
          yield* rebuildProjection("messages")
        }
        const { given, watched } = yield* watching(id)
        // A process that has read nothing yet.
        const reader = Layer.fresh(LogReader.layer)
        const keeper = yield* Effect.forkChild(Effect.provide(inPages, Layer.merge(watched, reader)))
        yield* TestClock.adjust("5 seconds")
        // What is written already is not written again (see MessageViews).
        expect(given).toEqual([
          { facts: PAGE, version: 6 },
          { facts: 4, version: 6 }
        ])
        const [view] = (yield* listMessages(orgId, { status: "DELIVERED" }, { cursor: null, limit: 9 })).items
        expect([view]).toEqual(yield* folds([view!]))
        expect(yield* runs).toMatchObject([{ live: true, facts: PAGE + 4 }])
        yield* Fiber.interrupt(keeper)
      }).pipe(Effect.provide(ports))
  )

  it.effect("writes its page where the next one can't be read", () =>
    Effect.gen(function* () {
      const { id } = yield* overTwoPages
      const store = yield* EventStore
      const first = yield* store.readAll(null, PAGE)
      const end = first.at(-1)!.position
      let isBroken = true
      const broken = Layer.succeed(EventStore, {
        ...store,
        readAll: (after, limit) =>
          isBroken && after === end ? Effect.fail(new StoreUnavailable({ cause: "gone" })) : store.readAll(after, limit)
      })
      const { given, watched } = yield* watching(id)
      const reader = Layer.provide(Layer.fresh(LogReader.layer), broken)
      const keeper = yield* Effect.forkChild(Effect.provide(inPages, Layer.merge(watched, reader)))
      yield* TestClock.adjust("5 seconds")
      expect(given).toEqual([{ facts: PAGE, version: 2 }])
      isBroken = false
      yield* TestClock.adjust("5 seconds")
      expect(given.slice(1)).toEqual([{ facts: 4, version: 6 }])
      yield* Fiber.interrupt(keeper)
    }).pipe(Effect.provide(ports))
  )
})

describe("a projection that is kept", () => {
  it.effect("is built anew beside the live one, which goes on, and takes its place with the same rows", () =>
    Effect.gen(function* () {
      const orgId = newOrg()
      for (let i = 0; i < 3; i++) yield* write(...story(orgId))
      const keeper = yield* Effect.forkChild(keepProjections)
      yield* TestClock.adjust("2 seconds")
      const before = yield* list(orgId)
      expect(before).toHaveLength(3)
      expect(yield* rebuildProjection("messages")).toMatchObject({
        live: { generation: 1 },
        build: { generation: 2, facts: 0, total: 18 }
      })
      yield* write(...story(orgId))
      yield* TestClock.adjust("5 seconds")
      const after = yield* list(orgId)
      expect(yield* runs).toMatchObject([{ generation: 2, live: true, facts: 24 }])
      expect(after).toHaveLength(4)
      expect(after).toEqual(expect.arrayContaining([...before]))
      expect(after).toEqual(yield* folds(after))
      yield* write(opened({ orgId }))
      yield* TestClock.adjust("4 seconds")
      expect(yield* list(orgId)).toHaveLength(5)
      yield* Fiber.interrupt(keeper)
    }).pipe(Effect.provide(ports))
  )

  it.effect("goes on with a build where a process that died left it", () =>
    Effect.gen(function* () {
      const orgId = newOrg()
      const store = yield* EventStore
      yield* write(...story(orgId), ...story(orgId))
      const build = yield* (yield* Projections).build("messages", 1, 12)
      yield* projectOnce()
      // Another process took the first eight facts and is gone.
      const facts = yield* store.readAll(null, 8)
      const seen = new Set(facts.flatMap(({ messageId }) => messageId ?? []))
      const views = yield* Effect.forEach(seen, (id) =>
        Effect.map(store.load(id), (stream) => viewOf(id, stream.facts)!)
      )
      const to = facts.at(-1)!.position
      yield* (yield* MessageViews).project({ generation: build.generation, from: null, to, facts: 8 }, views)
      const asked: Array<string | null> = []
      const watched = Layer.succeed(EventStore, {
        ...store,
        readAll: (after, limit) => {
          asked.push(after)
          return store.readAll(after, limit)
        }
      })
      yield* Effect.forkChild(
        Effect.provide(keepProjections, Layer.provideMerge(Layer.fresh(LogReader.layer), watched))
      )
      yield* TestClock.adjust("5 seconds")
      expect(yield* runs).toMatchObject([{ generation: 2, live: true, facts: 12 }])
      expect(asked).not.toContain(null)
      const items = yield* list(orgId)
      expect(items).toEqual(yield* folds(items))
    }).pipe(Effect.provide(ports))
  )

  it.effect("builds itself anew when its fold is newer than the rows, and leaves rows of a newer fold alone", () =>
    Effect.gen(function* () {
      const orgId = newOrg()
      const projections = yield* Projections
      yield* write(opened({ orgId }))
      const outdated = Layer.succeed(Projections, {
        ...projections,
        runs: Effect.map(projections.runs, (all) =>
          all.map((run) => (run.generation === 1 ? { ...run, version: 0 } : run))
        )
      })
      yield* Effect.forkChild(Effect.provide(keepProjections, outdated))
      yield* TestClock.adjust("5 seconds")
      expect(yield* runs).toMatchObject([{ generation: 2, live: true, version: 1 }])
      expect(yield* list(orgId)).toHaveLength(1)
    }).pipe(Effect.provide(ports))
  )

  it.effect("leaves rows of a newer fold than its own alone", () =>
    Effect.gen(function* () {
      const orgId = newOrg()
      const projections = yield* Projections
      yield* write(opened({ orgId }))
      const newer = Layer.succeed(Projections, {
        ...projections,
        runs: Effect.map(projections.runs, (all) => all.map((run) => ({ ...run, version: 99 })))
      })
      yield* Effect.forkChild(Effect.provide(keepProjections, newer))
      yield* TestClock.adjust("5 seconds")
      expect(yield* runs).toMatchObject([{ generation: 1, position: null }])
    }).pipe(Effect.provide(ports))
  )

  it.effect("is not held up by another one that fails or never answers, and catches up when it can again", () =>
    Effect.gen(function* () {
      const orgId = newOrg()
      const counts = yield* DestinationHealth
      let isBroken = true
      const broken = Layer.succeed(DestinationHealth, {
        ...counts,
        project: (...given) => (isBroken ? Effect.die(new Error("broken")) : counts.project(...given))
      })
      const errors: Array<string> = []
      const log = Logger.layer([Logger.make(({ message }) => void errors.push(String(message)))])
      const keeper = yield* Effect.forkChild(Effect.provide(keepProjections, Layer.merge(broken, log)))
      yield* write(...story(orgId))
      yield* TestClock.adjust("5 seconds")
      const positions = Effect.map(
        Effect.flatMap(Projections, (projections) => projections.runs),
        (all) => Object.fromEntries(all.map(({ name, facts }) => [name, facts]))
      )
      expect(yield* positions).toEqual({ messages: 6, health: 0 })
      expect(errors.some((error) => error.includes("projecting health failed"))).toBe(true)
      isBroken = false
      yield* TestClock.adjust("5 seconds")
      expect(yield* positions).toMatchObject({ messages: 6, health: 6 })
      yield* Fiber.interrupt(keeper)
    }).pipe(Effect.provide(ports))
  )

  it.effect("tells once of a transaction that keeps it from reading on", () =>
    Effect.gen(function* () {
      const projections = yield* Projections
      const since = yield* DateTime.now
      let stall: Stall | null = { pid: 4711, application: "nightly report", since }
      const stalled = Layer.succeed(Projections, { ...projections, stall: () => Effect.sync(() => stall) })
      const told: Array<string> = []
      const log = Logger.layer([
        Logger.make(({ message }) => void (/read on/.test(String(message)) && told.push(String(message))))
      ])
      yield* TestClock.adjust("84 seconds")
      yield* Effect.forkChild(Effect.provide(keepProjections, Layer.merge(stalled, log)))
      yield* TestClock.adjust("1 minute")
      expect(told).toEqual([
        "no projection can read on: a transaction of process 4711 (nightly report) is open for 84 s"
      ])
      stall = null
      yield* TestClock.adjust("1 minute")
      stall = { pid: 4711, application: "nightly report", since }
      yield* TestClock.adjust("1 minute")
      expect(told.slice(1)).toEqual([
        expect.stringMatching(/^the projections read on again, 15\d s$/),
        expect.stringMatching(/^no projection can read on: a transaction of process 4711/)
      ])
    }).pipe(Effect.provide(ports))
  )

  it.effect(
    "reads the log once for all who stand at the same place, and seldom while nothing happens, and at once when it is rung",
    () =>
      Effect.gen(function* () {
        const store = yield* EventStore
        let reads = 0
        const counted = Layer.succeed(EventStore, {
          ...store,
          readAll: (after, limit) =>
            Effect.suspend(() => {
              reads++
              return store.readAll(after, limit)
            })
        })
        const keep = Effect.provide(
          Effect.all([keepProjections, keepProjections, keepProjections], { concurrency: "unbounded" }),
          Layer.provideMerge(Layer.fresh(LogReader.layer), counted)
        )
        yield* Effect.forkChild(keep)
        yield* TestClock.adjust(Duration.seconds(2))
        reads = 0
        yield* TestClock.adjust(Duration.seconds(10))
        expect(reads).toBeLessThanOrEqual(10)
        reads = 0
        yield* write(opened({}))
        ;(yield* Pulse).ring("log")
        yield* TestClock.adjust(Duration.millis(100))
        expect(reads).toBeGreaterThan(0)
        yield* TestClock.adjust(Duration.seconds(1))
        expect(reads).toBeLessThanOrEqual(16)
      }).pipe(Effect.provide(ports))
  )
})
