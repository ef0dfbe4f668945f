/** What every event store promises. Call it once per adapter, with a layer that gives each test an empty store. */
import { randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { Effect, type Layer, Schedule } from "effect"
import { type Append, EventStore, type LoggedFact, type Position } from "../../../src/application/ports/EventStore.ts"
import type { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import { toRecorded } from "../../../src/domain/message/recorded.ts"
import { asWorker, claimAll, minute } from "../deliver/claims.ts"
import { inMillis, newMessageId, newOrg, opened, type StorePorts, settled, started, unreachable } from "../sample.ts"

const conflict = { type: "VersionConflict" } as const

const place = ({ messageId, version }: LoggedFact) => `${messageId}@${version}`

/** Reads on from `after` until `count` facts have come; a store may show a fact a moment after its commit. */
const readOn = (
  after: Position | null,
  count: number,
  limit = 7
): Effect.Effect<ReadonlyArray<LoggedFact>, StoreUnavailable, EventStore> =>
  Effect.gen(function* () {
    const store = yield* EventStore
    const seen: Array<LoggedFact> = []
    while (seen.length < count) {
      const page = yield* store.readAll(seen.at(-1)?.position ?? after, limit)
      expect(page.length).toBeLessThanOrEqual(limit)
      seen.push(...page)
      if (page.length === 0) yield* Effect.sleep("5 millis")
    }
    return seen
  })

export const eventStoreContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer))

  describe(`${name} event store`, () => {
    test(
      "reads an unknown stream as empty, at version 0",
      Effect.gen(function* () {
        expect(yield* (yield* EventStore).load(newMessageId())).toEqual({ version: 0, facts: [] })
      })
    )

    test(
      "gives back what was written, in order, with its version and time",
      Effect.gen(function* () {
        const store = yield* EventStore
        const queued = opened({ expiresAt: inMillis(3_600_000), metadata: { a: "1", b: "zwei" } })
        const start = started(queued.after)
        const failed = settled(start.after, unreachable())
        expect(yield* store.append([queued.entry])).toEqual([{ type: "Appended", version: 1 }])
        expect(yield* store.append([start.entry])).toEqual([{ type: "Appended", version: 2 }])
        expect(yield* store.append([failed.entry])).toEqual([{ type: "Appended", version: 3 }])
        const stream = yield* store.load(queued.after.id)
        expect(stream).toEqual({
          version: 3,
          facts: [queued, start, failed].map(({ entry }, index) => ({
            version: index + 1,
            at: entry.at,
            actor: entry.actor,
            fact: entry.facts[0]
          }))
        })
      })
    )

    test(
      "writes all facts of one entry together",
      Effect.gen(function* () {
        const store = yield* EventStore
        const queued = opened({ retry: { strategy: "fixed", baseMs: 0, attemptsMax: 1 } })
        const start = started(queued.after)
        const last = settled(start.after, unreachable())
        yield* store.append([queued.entry])
        yield* store.append([start.entry])
        expect(last.entry.facts.map((fact) => fact.type)).toEqual(["AttemptFailed", "MessageDeadLettered"])
        expect(yield* store.append([last.entry])).toEqual([{ type: "Appended", version: 4 }])
        const { facts } = yield* store.load(queued.after.id)
        expect(facts.map((stored) => [stored.version, stored.fact.type])).toEqual([
          [1, "MessageQueued"],
          [2, "AttemptStarted"],
          [3, "AttemptFailed"],
          [4, "MessageDeadLettered"]
        ])
      })
    )

    test(
      "loads many streams at once and leaves unknown ones out",
      Effect.gen(function* () {
        const store = yield* EventStore
        const [one, two] = [opened(), opened()]
        yield* store.append([one.entry, two.entry])
        yield* store.append([started(two.after).entry])
        const streams = yield* store.loadMany([two.after.id, newMessageId(), one.after.id])
        expect([...streams.keys()].toSorted()).toEqual([one.after.id, two.after.id].toSorted())
        expect(streams.get(one.after.id)).toEqual(yield* store.load(one.after.id))
        expect(streams.get(two.after.id)).toEqual(yield* store.load(two.after.id))
        expect(yield* store.loadMany([])).toEqual(new Map())
      })
    )

    for (const expected of [0, 2, 7]) {
      test(
        `refuses to append at version ${expected} when the stream is at 1, and writes nothing`,
        Effect.gen(function* () {
          const store = yield* EventStore
          const queued = opened()
          yield* store.append([queued.entry])
          const stale = { ...started(queued.after).entry, expected }
          expect(yield* store.append([stale])).toEqual([conflict])
          expect((yield* store.load(queued.after.id)).version).toBe(1)
        })
      )
    }

    test(
      "refuses a first append above version 0",
      Effect.gen(function* () {
        const store = yield* EventStore
        const queued = opened()
        expect(yield* store.append([{ ...queued.entry, expected: 1 }])).toEqual([conflict])
        expect((yield* store.load(queued.after.id)).version).toBe(0)
      })
    )

    test(
      "answers the repeat of an append with a conflict and writes it once",
      Effect.gen(function* () {
        const store = yield* EventStore
        const queued = opened()
        const start = started(queued.after)
        yield* store.append([queued.entry])
        expect(yield* store.append([queued.entry])).toEqual([conflict])
        yield* store.append([start.entry])
        expect(yield* store.append([start.entry])).toEqual([conflict])
        expect((yield* store.load(queued.after.id)).version).toBe(2)
      })
    )

    test(
      "treats each entry of an append on its own and answers in their order",
      Effect.gen(function* () {
        const store = yield* EventStore
        const there = opened()
        yield* store.append([there.entry])
        const [fresh, another] = [opened(), opened()]
        const results = yield* store.append([
          fresh.entry,
          there.entry,
          another.entry,
          { ...started(there.after).entry, expected: 9 },
          started(there.after).entry
        ])
        expect(results).toEqual([
          { type: "Appended", version: 1 },
          conflict,
          { type: "Appended", version: 1 },
          conflict,
          { type: "Appended", version: 2 }
        ])
        expect((yield* store.load(there.after.id)).version).toBe(2)
      })
    )

    test(
      "lets one of two racers on one version win, whatever their entries travel with",
      Effect.gen(function* () {
        const store = yield* EventStore
        const races = Array.from({ length: 20 }, () => opened())
        yield* store.append(races.map((race) => race.entry))
        const mine = races.map((race) => started(race.after).entry)
        const results = yield* Effect.all([store.append(mine), store.append(mine.toReversed())], {
          concurrency: "unbounded"
        })
        const [forth, back] = [results[0], results[1].toReversed()]
        for (const [index, race] of races.entries()) {
          expect([forth[index]!.type, back[index]!.type].toSorted()).toEqual(["Appended", "VersionConflict"])
          expect((yield* store.load(race.after.id)).version).toBe(2)
        }
      })
    )

    test(
      "applies entries for one stream in one append in their order, each on top of the one before",
      Effect.gen(function* () {
        const store = yield* EventStore
        const queued = opened()
        const start = started(queued.after)
        expect(yield* store.append([queued.entry, start.entry])).toEqual([
          { type: "Appended", version: 1 },
          { type: "Appended", version: 2 }
        ])
        expect((yield* store.load(queued.after.id)).facts.map((stored) => stored.fact.type)).toEqual([
          "MessageQueued",
          "AttemptStarted"
        ])
      })
    )

    test(
      "lets the first of two entries with the same expected version in one append win",
      Effect.gen(function* () {
        const store = yield* EventStore
        const queued = opened()
        yield* store.append([queued.entry])
        const start = started(queued.after).entry
        expect(yield* store.append([start, { ...start, at: queued.entry.at }])).toEqual([
          { type: "Appended", version: 2 },
          conflict
        ])
        expect((yield* store.load(queued.after.id)).version).toBe(2)
      })
    )

    describe("an idempotency key", () => {
      const keyed = (orgId: ReturnType<typeof newOrg>, key: string, requestHash: string) =>
        opened({ orgId, idempotency: { orgId, key, requestHash } })

      test(
        "that was used before names its message and the hash of its request, and nothing is written",
        Effect.gen(function* () {
          const store = yield* EventStore
          const orgId = newOrg()
          const first = keyed(orgId, "order 17", "hash-a")
          const second = keyed(orgId, "order 17", "hash-b")
          yield* store.append([first.entry])
          expect(yield* store.append([second.entry])).toEqual([
            { type: "DuplicateKey", messageId: first.after.id, requestHash: "hash-a" }
          ])
          expect((yield* store.load(second.after.id)).version).toBe(0)
          expect(yield* claimAll).toEqual([first.after.id])
        })
      )

      test(
        "can be asked for without using it, within its org",
        Effect.gen(function* () {
          const store = yield* EventStore
          const orgId = newOrg()
          const first = keyed(orgId, "order 17", "hash-a")
          expect(yield* store.acceptedUnder(orgId, "order 17")).toBeNull()
          yield* store.append([first.entry])
          expect(yield* store.acceptedUnder(orgId, "order 17")).toEqual({
            messageId: first.after.id,
            requestHash: "hash-a"
          })
          expect(yield* store.acceptedUnder(newOrg(), "order 17")).toBeNull()
        })
      )

      test(
        "belongs to its org",
        Effect.gen(function* () {
          const store = yield* EventStore
          const key = randomUUID()
          const results = yield* store.append([keyed(newOrg(), key, "h").entry, keyed(newOrg(), key, "h").entry])
          expect(results.map((result) => result.type)).toEqual(["Appended", "Appended"])
        })
      )

      test(
        "used twice in one append is given to the first",
        Effect.gen(function* () {
          const store = yield* EventStore
          const orgId = newOrg()
          const [first, second] = [keyed(orgId, "k", "h"), keyed(orgId, "k", "h")]
          expect(yield* store.append([first.entry, second.entry])).toEqual([
            { type: "Appended", version: 1 },
            { type: "DuplicateKey", messageId: first.after.id, requestHash: "h" }
          ])
          expect((yield* store.load(second.after.id)).version).toBe(0)
        })
      )

      test(
        "used by fifty appends at once opens one message",
        Effect.gen(function* () {
          const store = yield* EventStore
          const orgId = newOrg()
          const entries = Array.from({ length: 50 }, () => keyed(orgId, "once", "h").entry)
          const results = (yield* Effect.forEach(entries, (entry) => store.append([entry]), {
            concurrency: "unbounded"
          })).flat()
          const winner = entries[results.findIndex((result) => result.type === "Appended")]!.messageId
          expect(results.filter((result) => result.type === "Appended")).toHaveLength(1)
          expect(results.filter((result) => result.type === "DuplicateKey")).toEqual(
            Array.from({ length: 49 }, () => ({ type: "DuplicateKey", messageId: winner, requestHash: "h" }))
          )
          expect((yield* store.loadMany(entries.map((entry) => entry.messageId))).size).toBe(1)
          expect(yield* claimAll).toEqual([winner])
        })
      )

      test(
        "is not used up by an append that was refused",
        Effect.gen(function* () {
          const store = yield* EventStore
          const orgId = newOrg()
          const refused = keyed(orgId, "k", "h")
          expect(yield* store.append([{ ...refused.entry, expected: 3 }])).toEqual([conflict])
          expect((yield* store.append([keyed(orgId, "k", "h").entry]))[0]!.type).toBe("Appended")
        })
      )

      test(
        "repeated with its own append is refused by the key or the version, and written once",
        Effect.gen(function* () {
          const store = yield* EventStore
          const first = keyed(newOrg(), "k", "h")
          yield* store.append([first.entry])
          const [repeat] = yield* store.append([first.entry])
          expect([conflict, { type: "DuplicateKey", messageId: first.after.id, requestHash: "h" }]).toContainEqual(
            repeat
          )
          expect((yield* store.load(first.after.id)).version).toBe(1)
        })
      )
    })

    describe("a fence", () => {
      const claimOne = Effect.gen(function* () {
        const store = yield* EventStore
        const queue = yield* Queue
        const queued = opened()
        yield* store.append([queued.entry])
        const claim = yield* queue.claim(asWorker("first", "150 millis"))
        return { queued, batch: claim!.batch }
      })

      test(
        "lets the holder of the batch write",
        Effect.gen(function* () {
          const store = yield* EventStore
          const { queued, batch } = yield* claimOne
          expect(yield* store.append([started(queued.after, { fence: batch }).entry])).toEqual([
            { type: "Appended", version: 2 }
          ])
        })
      )

      test(
        "still lets it write when the lease ran out but nobody took over",
        Effect.gen(function* () {
          const store = yield* EventStore
          const { queued, batch } = yield* claimOne
          yield* Effect.sleep("400 millis")
          expect((yield* store.append([started(queued.after, { fence: batch }).entry]))[0]!.type).toBe("Appended")
        })
      )

      test(
        "is lost once somebody took over, and the new batch writes",
        Effect.gen(function* () {
          const store = yield* EventStore
          const queue = yield* Queue
          const { queued, batch } = yield* claimOne
          yield* Effect.sleep("400 millis")
          const [taken] = yield* queue.takeOver("second", minute, 10)
          expect(yield* store.append([started(queued.after, { fence: batch }).entry])).toEqual([{ type: "FenceLost" }])
          expect((yield* store.load(queued.after.id)).version).toBe(1)
          expect(yield* store.append([started(queued.after, { fence: taken!.batch }).entry])).toEqual([
            { type: "Appended", version: 2 }
          ])
        })
      )

      test(
        "is lost once the batch was released, and only for the entries that carry it",
        Effect.gen(function* () {
          const store = yield* EventStore
          const { queued, batch } = yield* claimOne
          yield* (yield* Queue).release(batch, [])
          const free = opened()
          expect(yield* store.append([started(queued.after, { fence: batch }).entry, free.entry])).toEqual([
            { type: "FenceLost" },
            { type: "Appended", version: 1 }
          ])
        })
      )

      test(
        "never lets both sides of a take-over write",
        Effect.gen(function* () {
          const store = yield* EventStore
          const queue = yield* Queue
          const { queued, batch } = yield* claimOne
          yield* Effect.sleep("400 millis")
          const start = started(queued.after, { fence: batch })
          const [old, [first]] = yield* Effect.all(
            [store.append([start.entry]), queue.takeOver("second", minute, 10)],
            {
              concurrency: "unbounded"
            }
          )
          // A batch that is being written for at that very moment may be left for the next look.
          const taken = first ?? (yield* queue.takeOver("second", minute, 10))[0]
          const { version } = yield* store.load(queued.after.id)
          expect(version).toBe(old[0]!.type === "Appended" ? 2 : 1)
          const settle = settled(start.after, unreachable(), { fence: batch })
          expect((yield* store.append([settle.entry]))[0]!.type).toBe("FenceLost")
          const again = started(queued.after, { fence: taken!.batch })
          expect((yield* store.append([again.entry]))[0]!.type).toBe(version === 2 ? "VersionConflict" : "Appended")
        })
      )
    })

    describe("the extent of the log", () => {
      test(
        "reaches to the last fact that can be read, and says about how many there are",
        Effect.gen(function* () {
          const store = yield* EventStore
          expect(yield* store.extent).toEqual({ head: null, facts: 0 })
          const queued = opened()
          const start = started(queued.after)
          for (const { entry } of [queued, start]) yield* store.append([entry])
          const seen = yield* readOn(null, 2)
          // The number may come a little later than the facts.
          const { head, facts } = yield* Effect.repeat(store.extent, {
            until: (extent) => extent.facts > 0,
            schedule: Schedule.spaced("20 millis")
          })
          expect(head).toBe(seen.at(-1)!.position)
          expect(facts).toBeGreaterThan(0)
          expect(yield* store.readAll(head, 10)).toEqual([])
        })
      )
    })

    describe("unreadSince", () => {
      test(
        "is the time of the first fact after a place, whoever has read it",
        Effect.gen(function* () {
          const store = yield* EventStore
          expect(yield* store.unreadSince(null)).toBeNull()
          const queued = opened()
          const start = started(queued.after)
          yield* store.append([queued.entry])
          yield* store.append([{ ...start.entry, at: inMillis(1_000) }])
          const [first, second] = yield* readOn(null, 2)
          expect(yield* store.unreadSince(null)).toEqual(first!.at)
          expect(yield* store.unreadSince(first!.position)).toEqual(second!.at)
          expect(second!.at).not.toEqual(first!.at)
          expect(yield* store.unreadSince(second!.position)).toBeNull()
        })
      )
    })

    describe("readAll", () => {
      test(
        "gives every fact in the order it was appended, page by page",
        Effect.gen(function* () {
          const store = yield* EventStore
          expect(yield* store.readAll(null, 10)).toEqual([])
          const written: Array<Append> = []
          for (let i = 0; i < 5; i++) {
            const queued = opened()
            const start = started(queued.after)
            for (const { entry } of [queued, start]) {
              yield* store.append([entry])
              written.push(entry)
            }
          }
          const seen = yield* readOn(null, 10, 3)
          expect(seen.map(({ position: _, forgettable: __, ...fact }) => fact)).toEqual(
            written.map(({ messageId, expected, at, facts, actor }) => {
              const { name, data } = toRecorded(facts[0]!)
              return { stream: `message-${messageId}`, messageId, version: expected + 1, at, actor, name, data }
            })
          )
          expect(yield* store.readAll(seen.at(-1)!.position, 10)).toEqual([])
          expect(yield* readOn(seen[3]!.position, 6, 100)).toEqual(seen.slice(4))
        })
      )

      test(
        "shows each fact exactly once to a reader that reads while appends race",
        Effect.gen(function* () {
          const store = yield* EventStore
          const writers = Array.from({ length: 40 }, (_, index) =>
            Effect.gen(function* () {
              const queued = opened()
              const start = started(queued.after)
              yield* store.append([queued.entry])
              if (index % 3 === 0) yield* Effect.sleep("2 millis")
              yield* store.append([start.entry])
              yield* store.append([settled(start.after, unreachable()).entry])
            })
          )
          const [, seen] = yield* Effect.all([Effect.all(writers, { concurrency: 16 }), readOn(null, 120)], {
            concurrency: "unbounded"
          })
          expect(new Set(seen.map(place)).size).toBe(120)
          expect(yield* store.readAll(seen.at(-1)!.position, 100)).toEqual([])
          expect((yield* readOn(null, 120, 1000)).map(place)).toEqual(seen.map(place))
        })
      )
    })
  })
}
