import { it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { LogReader } from "../../../src/application/log/LogReader.ts"
import { projectOnce } from "../../../src/application/log/projections/keepProjections.ts"
import { EventStore, type LoggedFact } from "../../../src/application/ports/EventStore.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { wholeOf } from "../../../src/domain/recorded.ts"
import { ended } from "../../contracts/replays/deadLetterSamples.ts"
import { allRead, forgetMessages } from "../../contracts/retention/forgetting.ts"
import {
  delivered,
  endedBefore,
  inMillis,
  newOrg,
  opened,
  settled,
  started,
  unreachable
} from "../../contracts/sample.ts"
import { write } from "../../contracts/written.ts"
import * as Memory from "../../model/Memory.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const reader = Layer.fresh(LogReader.layer)
const ports = Layer.provideMerge(reader, MemoryPorts.layer)
/** What another process on the same store would see. */
const anotherReader = Effect.map(Layer.build(reader), (context) => context).pipe(
  Effect.flatMap((context) => Effect.provide(LogReader, context))
)

const many = (count: number) => Array.from({ length: count }, () => opened())

describe("reading the log", () => {
  it.effect("gives every fact once and in order, from the beginning and past the end as it was", () =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const log = yield* LogReader
      yield* write(...many(7))
      const seen: Array<string> = []
      let after: string | null = null
      for (let i = 0; i < 20; i++) {
        const page: ReadonlyArray<{ readonly stream: string; readonly position: string }> = yield* log.read(after, 3)
        seen.push(...page.map(({ stream }) => stream))
        after = page.at(-1)?.position ?? after
        if (i % 4 === 3 && i < 16) yield* write(...many(2))
        yield* TestClock.adjust("30 millis")
      }
      const all = yield* store.readAll(null, 100)
      expect(seen).toEqual(all.map(({ stream }) => stream))
      expect(seen).toHaveLength(15)
    }).pipe(Effect.provide(ports))
  )

  it.effect("reaches to the end whenever it answers fewer than asked for, whoever has read on meanwhile", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const here = yield* LogReader
        const there = yield* anotherReader
        yield* here.read(null, 100)
        yield* TestClock.adjust("1 second")
        yield* write(...many(2))
        expect(yield* here.read(null, 100)).toHaveLength(2)
        yield* TestClock.adjust("1 second")
        yield* write(...many(3))
        const further = yield* there.read(null, 100)
        expect(further).toHaveLength(5)
        expect((yield* here.read(null, 100)).at(-1)!.position).toBe(further.at(-1)!.position)
      })
    ).pipe(Effect.provide(ports))
  )

  it.effect("wakes who waits for news, also at a place it has not come to itself", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const here = yield* LogReader
        const there = yield* anotherReader
        yield* here.read(null, 10)
        yield* write(...many(1))
        const [fact] = yield* there.read(null, 10)
        const waiting = yield* Effect.forkChild(
          Effect.gen(function* () {
            for (;;) {
              const page = yield* here.read(fact!.position, 10)
              if (page.length > 0) return page
              yield* here.news(fact!.position)
            }
          })
        )
        yield* TestClock.adjust("1 second")
        yield* write(...many(1))
        yield* TestClock.adjust("1 second")
        expect(yield* Fiber.join(waiting)).toHaveLength(1)
      })
    ).pipe(Effect.provide(ports))
  )

  it.effect("waits without end for nothing, and lets go when it is told to", () =>
    Effect.gen(function* () {
      const log = yield* LogReader
      const waiting = yield* Effect.forkChild(Effect.flatMap(log.end, log.news))
      yield* TestClock.adjust("1 hour")
      expect(waiting.pollUnsafe()).toBeUndefined()
      yield* Fiber.interrupt(waiting)
    }).pipe(Effect.provide(ports))
  )
})

describe("what was read before", () => {
  /** Reads all there is in small pages, with its streams. */
  const readAll = Effect.fnUntraced(function* (log: LogReader["Service"]) {
    const found: Array<string> = []
    for (let after: string | null = null; ; ) {
      const page: ReadonlyArray<LoggedFact> = yield* log.read(after, 2)
      found.push(...page.map(wholeOf))
      for (const history of (yield* log.streams(page)).values())
        for (const { fact } of history) if (fact.type === "MessageQueued") found.push(fact.to)
      if (page.length < 2) return found.join()
      after = page.at(-1)!.position
    }
  })
  const isKept = Effect.fnUntraced(function* (log: LogReader["Service"]) {
    return (yield* readAll(log)).includes("4915112345678")
  })

  it.effect.each(["comes near the end", "is far from it"])(
    "by who %s is read again when a reader begins, and every ten minutes: it may be erased by now",
    (place) =>
      Effect.gen(function* () {
        const { tables } = yield* Memory.Memory
        const log = yield* LogReader
        // Where a process was there from the first fact on, its memory of the end reaches back to the beginning.
        if (place === "comes near the end") yield* log.end
        const messages = Array.from({ length: 3 }, () => opened({ to: "4915112345678" }))
        yield* write(...messages)
        yield* TestClock.adjust("1 second")
        const become = (from: string, to: string) => {
          for (const stream of tables.streams.values())
            for (const [n, fact] of stream.entries())
              stream[n] = { ...fact, forgettable: fact.forgettable?.replaceAll(from, to) ?? null }
        }
        const erase = () => become("4915112345678", "erased")
        const restore = () => become('"erased"', '"4915112345678"')
        yield* log.begin("lists")
        expect(yield* isKept(log)).toBe(true)
        erase()
        yield* log.begin("lists")
        expect(yield* isKept(log)).toBe(true)
        yield* log.begin("lists, built anew")
        expect(yield* isKept(log)).toBe(false)
        restore()
        yield* log.begin("lists, built anew again")
        expect(yield* isKept(log)).toBe(true)
        erase()
        yield* TestClock.adjust("9 minutes")
        expect(yield* isKept(log)).toBe(true)
        yield* TestClock.adjust("1 minute")
        expect(yield* isKept(log)).toBe(false)
      }).pipe(Effect.provide(Layer.provideMerge(reader, Layer.provideMerge(MemoryPorts.layerShared, Memory.layer))))
  )
})

describe("the streams of what was read", () => {
  it.effect("are whole, however the facts were spread over pages, and without those that were forgotten", () =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const log = yield* LogReader
      const orgId = newOrg()
      const queued = opened({ orgId })
      const start = started(queued.after)
      const failed = settled(start.after, unreachable())
      yield* write(queued, start, failed)
      const gone = yield* ended(delivered, inMillis(-7_200_000), { orgId, acceptedAt: inMillis(-10_000_000) })
      const facts = yield* store.readAll(null, 100)
      const whole = (yield* store.load(queued.after.id)).facts
      for (const some of [facts.slice(2), facts.slice(0, 1), facts.slice(1, 2), facts]) {
        const streams = yield* log.streams(some)
        const history = streams.get(queued.after.id)
        const last = Math.max(
          ...some.filter(({ messageId }) => messageId === queued.after.id).map(({ version }) => version)
        )
        expect(history!.length).toBeGreaterThanOrEqual(last)
        expect(history).toEqual(whole.slice(0, history!.length))
      }
      yield* projectOnce()
      yield* allRead
      expect(yield* forgetMessages(endedBefore(inMillis(-3_600_000)))).toEqual([1])
      const late = facts.filter(({ messageId, version }) => messageId === gone.id && version > 1)
      const fresh = yield* Effect.scoped(Effect.flatMap(anotherReader, (there) => there.streams(late)))
      expect(fresh.has(gone.id)).toBe(false)
    }).pipe(Effect.provide(ports))
  )
})

describe("whose a stream is", () => {
  it.effect("is told by the first fact of it, which need not be among those read", () =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const log = yield* LogReader
      const orgId = newOrg()
      const queued = opened({ orgId })
      yield* write(queued, started(queued.after))
      const at = inMillis(0)
      const journals = yield* Journals
      const ours = [{ name: "Tested@1", data: JSON.stringify({ orgId }) }]
      yield* journals.append("test-1", 0, [...ours, { name: "Tested@1", data: "{}" }], at, null)
      yield* journals.append("test-2", 0, [{ name: "Tested@1", data: "{}" }], at, null)
      const facts = yield* store.readAll(null, 100)
      const orgs = yield* log.orgs(facts.filter(({ version, stream }) => version > 1 || stream === "test-2"))
      expect(Object.fromEntries(orgs)).toEqual({ [`message-${queued.after.id}`]: orgId, "test-1": orgId })
    }).pipe(Effect.provide(ports))
  )
})
