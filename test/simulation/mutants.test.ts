/**
 * Who judges the judge? Each of these stores breaks one promise of its port on purpose, now and then, the
 * way a real one would. The simulation must notice within a few worlds, or it would not notice a real bug.
 */
import { Context, DateTime, Effect } from "effect"
import { describe, expect, it } from "vitest"
import { Memory } from "../../src/adapters/memory/Memory.ts"
import { putWaiting } from "../../src/adapters/memory/waiting.ts"
import { type Append, EventStore } from "../../src/application/ports/EventStore.ts"
import { MessageViews } from "../../src/application/ports/MessageViews.ts"
import { Queue } from "../../src/application/ports/Queue.ts"
import { EPOCH } from "./clock.ts"
import { type Sabotage, type Store, World } from "./world.ts"

const SEEDS_MAX = 300

/** A store whose appends are changed before they are done. */
const appending =
  (change: (entry: Append, store: Store) => Append): Sabotage =>
  (store) => {
    const real = Context.get(store, EventStore)
    return Context.add(store, EventStore, {
      ...real,
      append: (entries) => Effect.suspend(() => real.append(entries.map((entry) => change(entry, store))))
    })
  }

const mutants: Record<string, Sabotage> = {
  "ignores the fence": appending((entry) => ({ ...entry, fence: null })),

  "ignores the gate of a circuit": appending((entry) => ({ ...entry, gate: null })),

  "ignores the expected version": appending((entry, store) => ({
    ...entry,
    expected: Context.get(store, Memory).tables.streams.get(entry.messageId)?.length ?? 0
  })),

  "forgets idempotency keys": appending((entry) => ({
    ...entry,
    opening: entry.opening === null ? null : { ...entry.opening, idempotency: null }
  })),

  "reads the numbers of a body": appending((entry) => ({
    ...entry,
    opening: entry.opening === null ? null : { ...entry.opening, body: JSON.stringify(JSON.parse(entry.opening.body)) }
  })),

  "makes retries due at once": appending((entry) => ({
    ...entry,
    queue:
      entry.queue?.type === "Wait" && entry.expected > 0
        ? { ...entry.queue, dueAt: DateTime.makeUnsafe(EPOCH) }
        : entry.queue
  })),

  "loses the queue change of an append": appending((entry) => ({
    ...entry,
    queue: entry.expected > 0 ? null : entry.queue
  })),

  "answers an append before it is safe, and loses some": (store, { dice }) => {
    const real = Context.get(store, EventStore)
    return Context.add(store, EventStore, {
      ...real,
      append: (entries) =>
        Effect.suspend(() =>
          dice.chance(0.02)
            ? Effect.succeed(
                entries.map(({ expected, facts }) => ({ type: "Appended", version: expected + facts.length }) as const)
              )
            : real.append(entries)
        )
    })
  },

  "writes the start of an attempt a moment after it said so": (store, { timeline }) => {
    const real = Context.get(store, EventStore)
    return Context.add(store, EventStore, {
      ...real,
      append: (entries) =>
        Effect.suspend(() => {
          if (entries[0]?.facts[0]?.type !== "AttemptStarted") return real.append(entries)
          timeline.after(20, () => void Effect.runSync(real.append(entries)))
          return Effect.succeed(entries.map(({ expected }) => ({ type: "Appended", version: expected + 1 }) as const))
        })
    })
  },

  "hands some messages out twice": (store, { dice }) => {
    const memory = Context.get(store, Memory)
    const real = Context.get(store, Queue)
    return Context.add(store, Queue, {
      ...real,
      claim: (request) =>
        Effect.tap(real.claim(request), (claim) =>
          Effect.sync(() => {
            if (claim !== null && dice.chance(0.05)) putWaiting(memory, claim.messages[0]!)
          })
        )
    })
  },

  "takes leases over that still live": (store) => {
    const { tables } = Context.get(store, Memory)
    const real = Context.get(store, Queue)
    return Context.add(store, Queue, {
      ...real,
      takeOver: (worker, lease, batchesMax) =>
        Effect.suspend(() => {
          for (const [batch, claim] of tables.claims) {
            tables.claims.set(batch, { ...claim, until: DateTime.makeUnsafe(EPOCH) })
          }
          return real.takeOver(worker, lease, batchesMax)
        })
    })
  },

  "keeps the old claim when a batch is taken over": (store) => {
    const { tables } = Context.get(store, Memory)
    const real = Context.get(store, Queue)
    return Context.add(store, Queue, {
      ...real,
      takeOver: (worker, lease, batchesMax) =>
        Effect.suspend(() => {
          const before = [...tables.claims]
          return Effect.tap(real.takeOver(worker, lease, batchesMax), () =>
            Effect.sync(() => {
              for (const [batch, claim] of before) tables.claims.set(batch, claim)
            })
          )
        })
    })
  },

  "forgets what a release puts back": (store) => {
    const real = Context.get(store, Queue)
    return Context.add(store, Queue, { ...real, release: (batch) => real.release(batch, []) })
  },

  "skips a fact in the feed": (store, { dice }) => {
    const real = Context.get(store, EventStore)
    return Context.add(store, EventStore, {
      ...real,
      readAll: (after, limit) =>
        Effect.map(real.readAll(after, limit), (facts) =>
          facts.length > 1 && dice.chance(0.2) ? facts.toSpliced(0, 1) : facts
        )
    })
  },

  "moves the projection on without its rows": (store, { dice }) => {
    const real = Context.get(store, MessageViews)
    return Context.add(store, MessageViews, {
      ...real,
      project: (step, views) => real.project(step, dice.chance(0.2) ? [] : views)
    })
  }
}

describe("the simulation notices a store that", () => {
  for (const [name, sabotage] of Object.entries(mutants)) {
    it(name, () => {
      let seed = 1
      while (seed <= SEEDS_MAX && new World(seed, sabotage).run().violation === null) seed += 1
      expect(seed).toBeLessThanOrEqual(SEEDS_MAX)
      // The same world with a store that keeps its promises is fine: it is the sabotage that was noticed.
      expect(new World(seed).run().violation).toBeNull()
    })
  }
})
