/** What every adapter promises about streams that readers of the log owe facts of. `layer` gives an empty store to each test. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import type { StoreUnavailable } from "../../../src/application/errors.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { MessageViews } from "../../../src/application/ports/MessageViews.ts"
import { Projections, type Run, type Step } from "../../../src/application/ports/Projections.ts"
import { SetAside } from "../../../src/application/ports/SetAside.ts"
import { type StreamAside, StreamsAside } from "../../../src/application/ports/StreamsAside.ts"
import type { MessageId } from "../../../src/domain/ids.ts"
import { viewOf } from "../../../src/domain/message/view.ts"
import { streamOf } from "../../../src/domain/streams.ts"
import { newMessageId, newOrg, opened, type StorePorts } from "../sample.ts"

const outlet = { name: "outlet", generation: 0 }

const aside = (id: MessageId, ...versions: ReadonlyArray<number>): StreamAside => ({
  ...{ stream: streamOf(id), versions, reason: "unreadable" },
  detail: "version 2: Unheard@1\u0000"
})

export const streamsAsideContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer))

  const page = { cursor: null, limit: 9 }
  const listed = Effect.map(
    Effect.flatMap(SetAside, ({ list }) => list(page)),
    ({ items }) => items
  )
  const runs = Effect.flatMap(Projections, (projections) => projections.runs)
  const live = Effect.map(runs, (all) => all.find((run) => run.name === "messages" && run.live)!)
  const readerOf = ({ name, generation }: Run) => ({ name, generation })
  const dueOf = (reader: { readonly name: string; readonly generation: number }) =>
    Effect.flatMap(StreamsAside, ({ due }) => due(reader, 9))

  const project = Effect.fnUntraced(function* (run: Run, ids: ReadonlyArray<MessageId>, step: Partial<Step>) {
    const store = yield* EventStore
    const views = yield* Effect.forEach(ids, (id) => Effect.map(store.load(id), ({ facts }) => viewOf(id, facts)!))
    const { generation, position: from } = run
    return yield* (yield* MessageViews).project({ generation, from, to: from ?? "1:1", facts: 1, ...step }, views)
  })
  const statsOf = (orgId: ReturnType<typeof newOrg>) =>
    Effect.flatMap(MessageViews, (views) => Effect.map(views.stats(orgId), ({ byStatus }) => byStatus.QUEUED))

  describe(`${name}: a stream that a reader of the log sets aside`, () => {
    test(
      "is owed fact by fact, whatever is said twice, and is forgotten only as a whole",
      Effect.gen(function* () {
        const asides = yield* StreamsAside
        const id = newMessageId()
        yield* asides.owe(outlet, [])
        yield* asides.owe(outlet, [aside(id, 2, 3)])
        yield* asides.owe(outlet, [aside(id, 3, 4), aside(newMessageId(), 1)])
        yield* asides.owe({ name: "alerts", generation: 0 }, [aside(id, 2)])
        const known = yield* asides.of(outlet)
        expect(known.size).toBe(2)
        expect(known.get(streamOf(id))).toMatchObject({ reason: "unreadable" })
        yield* asides.madeUp(outlet, { stream: streamOf(id), versions: [2, 3] })
        expect((yield* asides.of(outlet)).size).toBe(2)
        yield* asides.madeUp(outlet, { stream: streamOf(id), versions: [2, 3, 4] })
        expect([...(yield* asides.of(outlet)).keys()]).not.toContain(streamOf(id))
        expect((yield* asides.of({ name: "alerts", generation: 0 })).size).toBe(1)
      })
    )

    test(
      "is tried again when its time has come, by one caller at a time",
      Effect.gen(function* () {
        const asides = yield* StreamsAside
        const id = newMessageId()
        yield* asides.owe(outlet, [aside(id, 2, 3)])
        expect(yield* dueOf(outlet)).toEqual([])
        expect(yield* (yield* SetAside).tryAgain([id])).toBe(1)
        expect(yield* dueOf({ name: "alerts", generation: 0 })).toEqual([])
        expect(yield* dueOf(outlet)).toEqual([{ stream: streamOf(id), versions: [2, 3] }])
        expect(yield* dueOf(outlet)).toEqual([])
        expect(yield* (yield* SetAside).tryAgain(null)).toBe(1)
        expect(yield* dueOf(outlet)).toHaveLength(1)
      })
    )

    test(
      "is listed once, with everybody who set it aside",
      Effect.gen(function* () {
        const asides = yield* StreamsAside
        const setAside = yield* SetAside
        const [id, other] = [newMessageId(), newMessageId()].toSorted()
        const broke = { reason: "failed", detail: "it broke" } as const
        yield* setAside.put(null, [{ messageId: id!, orgId: null, lane: null, version: 2, ...broke }])
        yield* asides.owe(outlet, [aside(id!, 2)])
        yield* asides.owe({ name: "alerts", generation: 0 }, [aside(id!, 2)])
        yield* asides.owe(outlet, [{ ...aside(other!, 1), stream: `replay-${other}` }, aside(other!, 7)])
        // Of a generation that is over.
        yield* asides.owe({ name: "messages", generation: 77 }, [aside(newMessageId(), 1)])
        expect(yield* listed).toMatchObject([
          { stream: streamOf(id!), messageId: id, parts: ["alerts", "outlet", "queue"], reason: "failed", tries: 1 },
          { stream: streamOf(other!), messageId: other, parts: ["outlet"], reason: "unreadable", orgId: null },
          { stream: `replay-${other}`, messageId: null, parts: ["outlet"] }
        ])
        const first = yield* setAside.list({ ...page, limit: 1 })
        expect(first.items).toHaveLength(1)
        const second = yield* setAside.list({ cursor: first.nextCursor, limit: 9 })
        expect(second.items.map(({ stream }) => stream)).toEqual([streamOf(other!), `replay-${other}`])
      })
    )
  })

  describe(`${name}: a projection that owes facts`, () => {
    test(
      "owes them with its step, and makes up for them once",
      Effect.gen(function* () {
        const store = yield* EventStore
        const orgId = newOrg()
        const [owed, other] = [opened({ orgId }), opened({ orgId })]
        yield* store.append([owed.entry, other.entry])
        const before = yield* live
        const owes = [aside(owed.after.id, 1)]
        expect(yield* project(before, [other.after.id], { to: "1:9", owes })).toBe(true)
        expect(yield* statsOf(orgId)).toBe(1)
        // Whoever comes second with the same step owes nothing.
        expect(yield* project(before, [], { to: "1:9", owes: [aside(other.after.id, 1)] })).toBe(false)
        const run = yield* live
        expect(run.position).toBe("1:9")
        expect([...(yield* (yield* StreamsAside).of(readerOf(run))).keys()]).toEqual([streamOf(owed.after.id)])
        const makesUp = { stream: streamOf(owed.after.id), versions: [1] }
        const up = (versions: ReadonlyArray<number>) =>
          project(run, [owed.after.id], { makesUp: { ...makesUp, versions }, facts: 0 })
        expect(yield* up([1, 2])).toBe(false)
        expect(yield* statsOf(orgId)).toBe(1)
        // From a place where the run is not, nothing is made up for, and it stays owed.
        expect(yield* project({ ...run, position: "1:5" }, [owed.after.id], { makesUp, facts: 0 })).toBe(false)
        const twice = yield* Effect.all([up([1]), up([1]), up([1])], { concurrency: "unbounded" })
        expect(twice.filter((done) => done)).toHaveLength(1)
        expect(yield* statsOf(orgId)).toBe(2)
        expect((yield* (yield* StreamsAside).of(readerOf(run))).size).toBe(0)
        expect(yield* live).toMatchObject({ position: "1:9", facts: run.facts })
      })
    )

    test(
      "owes nothing any more once its rows are those of an earlier generation",
      Effect.gen(function* () {
        const projections = yield* Projections
        const asides = yield* StreamsAside
        const before = yield* live
        expect(yield* project(before, [], { to: "1:9", owes: [aside(newMessageId(), 1)] })).toBe(true)
        const build = yield* projections.build("messages", 1, 1)
        expect(yield* project(build, [], { to: "1:9", owes: [aside(newMessageId(), 2)] })).toBe(true)
        expect(yield* listed).toHaveLength(2)
        expect(yield* projections.swap("messages", build.generation)).toBe(true)
        expect((yield* asides.of(readerOf(build))).size).toBe(1)
        expect(yield* listed).toHaveLength(1)
      })
    )
  })
}
