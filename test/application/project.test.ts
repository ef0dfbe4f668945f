import { it } from "@effect/vitest"
import { Effect } from "effect"
import { describe, expect } from "vitest"
import * as MemoryPorts from "../../src/adapters/memory/MemoryPorts.ts"
import { EventStore } from "../../src/application/ports/EventStore.ts"
import { MessageViews } from "../../src/application/ports/MessageViews.ts"
import { projectOnce } from "../../src/application/project.ts"
import { viewOf } from "../../src/domain/message/view.ts"
import { delivered, newOrg, opened, settled, started, unreachable } from "../contracts/sample.ts"

const orgId = newOrg()
const write = Effect.fnUntraced(function* (...steps: ReadonlyArray<ReturnType<typeof opened>>) {
  const store = yield* EventStore
  for (const { entry } of steps) yield* store.append([entry])
})

describe("the projection", () => {
  it.effect("equals the fold of each stream, however its facts were spread over steps", () =>
    Effect.gen(function* () {
      const views = yield* MessageViews
      const store = yield* EventStore
      const queued = opened({ orgId })
      const other = opened({ orgId })
      yield* write(queued, other)
      expect(yield* projectOnce()).toBe(2)
      const first = started(queued.after)
      const failed = settled(first.after, unreachable())
      yield* write(first, failed)
      expect(yield* projectOnce()).toBe(2)
      const second = started(failed.after)
      const done = settled(second.after, delivered)
      yield* write(second, done)
      expect(yield* projectOnce()).toBe(3)
      expect(yield* projectOnce()).toBe(0)
      const { items } = yield* views.list(orgId, {}, { cursor: null, limit: 10 })
      const folds = []
      for (const { id } of items) folds.push(viewOf(id, (yield* store.load(id)).facts))
      expect(items).toEqual(folds)
      expect(items.map(({ status }) => status).toSorted()).toEqual(["DELIVERED", "QUEUED"])
      expect((yield* views.stats(orgId)).byStatus).toMatchObject({ DELIVERED: 1, QUEUED: 1, SENDING: 0 })
    }).pipe(Effect.provide(MemoryPorts.layer))
  )

  it.effect("writes a step once when two projectors take it", () =>
    Effect.gen(function* () {
      const views = yield* MessageViews
      yield* write(opened({ orgId }), opened({ orgId }))
      yield* Effect.all([projectOnce(), projectOnce()], { concurrency: 2 })
      expect((yield* views.stats(orgId)).byStatus.QUEUED).toBe(2)
    }).pipe(Effect.provide(MemoryPorts.layer))
  )
})
