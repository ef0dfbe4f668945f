/** One stream that can't be processed holds up no reader of the log, and is in rows that are built anew once it can be. */

import { it } from "@effect/vitest"
import { Effect, Fiber, Layer, Logger } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import * as WebhookAlerts from "../../src/adapters/channels/webhook/WebhookAlerts.ts"
import { alertOnFactsOnce } from "../../src/application/alerts/alertOnFacts.ts"
import { type FeedFilter, readFeed } from "../../src/application/log/feed.ts"
import { LogReader } from "../../src/application/log/LogReader.ts"
import { FactsAtOnce, keepProjections } from "../../src/application/log/projections/keepProjections.ts"
import { readProjection, rebuildProjection } from "../../src/application/log/projections/rebuild.ts"
import { type OutgoingFact, publishFacts } from "../../src/application/log/publishFacts.ts"
import { listMessages } from "../../src/application/messages/listMessages.ts"
import { AlertFormats } from "../../src/application/ports/AlertFormats.ts"
import type { Alerting } from "../../src/application/ports/Destinations.ts"
import type { Position } from "../../src/application/ports/EventStore.ts"
import { MessageViews } from "../../src/application/ports/MessageViews.ts"
import { Parked } from "../../src/application/ports/Parked.ts"
import type { MessageId } from "../../src/domain/ids.ts"
import { streamOf } from "../../src/domain/streams.ts"
import { makeEndpoint } from "../contracts/destinations/samples.ts"
import { delivered, newOrg, opened, type Step, settled, started, unreachable } from "../contracts/sample.ts"
import { put, write } from "../contracts/written.ts"
import * as Fingerprints from "../model/Fingerprints.ts"
import { liveRows } from "../model/log/runs.ts"
import * as Memory from "../model/Memory.ts"
import * as MemoryPorts from "../model/MemoryPorts.ts"

const PAGE = 20
const inPages = Effect.provideService(keepProjections, FactsAtOnce, PAGE)

const layer = LogReader.layer.pipe(
  Layer.provideMerge(MemoryPorts.layerShared),
  Layer.provideMerge(Memory.layer),
  Layer.provideMerge(Fingerprints.layer)
)

/** What is stored of a fact becomes something that no release ever wrote, or a fact that may not come there. */
const breakings = ["unreadable", "impossible"] as const
const breakFact = Effect.fnUntraced(function* (kind: (typeof breakings)[number], id: MessageId, version: number) {
  const { tables } = yield* Memory.Memory
  const rows = tables.streams.get(id)!
  const right = rows[version - 1]!
  rows[version - 1] = kind === "unreadable" ? { ...right, name: "Unheard@1" } : rows[0]!
  return Effect.sync(() => {
    rows[version - 1] = right
  })
})

/** The three steps of a message that arrives. */
const story = (orgId = newOrg()): readonly [Step, Step, Step] => {
  const queued = opened({ orgId })
  const begun = started(queued.after)
  return [queued, begun, settled(begun.after, delivered)]
}

const page = { cursor: null, limit: 100 }
const statuses = Effect.fnUntraced(function* (orgId: ReturnType<typeof newOrg>) {
  const { items } = yield* listMessages(orgId, {}, page)
  return Object.fromEntries(items.map(({ id, status }) => [id, status]))
})
const parked = Effect.map(
  Effect.flatMap(Parked, ({ list }) => list(page)),
  ({ items }) => items.map(({ stream, reason }) => ({ stream, reason }))
)
const successes = Effect.map(Memory.Memory, ({ tables }) =>
  [...liveRows(tables, "health", tables.health).values()]
    .flatMap(({ buckets }) => buckets)
    .reduce((sum, { succeeded }) => sum + succeeded, 0)
)

describe("a projection", () => {
  it.effect.each(breakings)("goes on past what can't be processed, and has it once it is built anew (%s)", (kind) =>
    Effect.gen(function* () {
      const logged: Array<string> = []
      const logger = Logger.make(({ message, logLevel }) => void (logLevel === "Error" && logged.push(String(message))))
      const orgId = newOrg()
      const [queued, begun, done] = story(orgId)
      const [other, otherBegun, otherDone] = story(orgId)
      yield* write(queued, begun, other)
      const mend = yield* breakFact(kind, queued.after.id, 2)
      const keeper = yield* Effect.forkChild(Effect.provide(keepProjections, Logger.layer([logger])))
      yield* TestClock.adjust("3 seconds")
      yield* write(done, otherBegun, otherDone)
      yield* TestClock.adjust("3 seconds")
      expect(yield* statuses(orgId)).toEqual({ [other.after.id]: "DELIVERED" })
      const stream = streamOf(queued.after.id)
      expect(yield* parked).toEqual([{ stream, reason: kind === "unreadable" ? "unreadable" : "failed" }])
      // The health of destinations judges no history, but reads it.
      expect(yield* successes).toBe(kind === "unreadable" ? 1 : 2)
      expect(logged).toEqual([expect.stringContaining(`${stream} is parked: it can't be processed`)])
      yield* Fiber.interrupt(keeper)
      // Another release, in another process.
      yield* mend
      const next = yield* Effect.forkChild(Effect.provide(keepProjections, Layer.fresh(LogReader.layer)))
      yield* rebuildProjection("messages")
      yield* TestClock.adjust("5 seconds")
      expect(yield* statuses(orgId)).toEqual({ [other.after.id]: "DELIVERED", [queued.after.id]: "DELIVERED" })
      yield* Fiber.interrupt(next)
    }).pipe(Effect.provide(layer))
  )

  it.effect.each(breakings)(
    "writes all others of a page where it looks ahead to what can't be processed (%s)",
    (kind) =>
      Effect.gen(function* () {
        const orgId = newOrg()
        const [queued, begun, done] = story(orgId)
        const [other, ...rest] = story(orgId)
        yield* put(Array.from({ length: PAGE - 2 }, () => ({ orgId })))
        yield* write(queued, other, begun, done, ...rest)
        const mend = yield* breakFact(kind, queued.after.id, 2)
        const keeper = yield* Effect.forkChild(inPages)
        yield* TestClock.adjust("3 seconds")
        const views = yield* MessageViews
        const counts = Effect.map(views.stats(orgId), ({ byStatus }) => byStatus)
        expect(yield* counts).toMatchObject({ QUEUED: kind === "unreadable" ? PAGE - 1 : PAGE - 2, DELIVERED: 1 })
        expect((yield* readProjection("messages")).live).toMatchObject({ facts: PAGE + 6 })
        yield* Fiber.interrupt(keeper)
        yield* mend
        const next = yield* Effect.forkChild(Effect.provide(inPages, Layer.fresh(LogReader.layer)))
        yield* rebuildProjection("messages")
        yield* TestClock.adjust("5 seconds")
        expect(yield* counts).toMatchObject({ QUEUED: PAGE - 2, DELIVERED: 2 })
        yield* Fiber.interrupt(next)
      }).pipe(Effect.provide(layer))
  )

  it.effect("parks nothing when its rows can't be written", () =>
    Effect.gen(function* () {
      const views = yield* MessageViews
      const orgId = newOrg()
      const [queued] = story(orgId)
      yield* write(queued)
      const broken = { ...views, project: () => Effect.die(new Error("a bug")) }
      const keeper = yield* Effect.forkChild(Effect.provideService(keepProjections, MessageViews, broken))
      yield* TestClock.adjust("3 seconds")
      expect(yield* parked).toEqual([])
      yield* Fiber.interrupt(keeper)
    }).pipe(Effect.provide(layer))
  )
})

describe("the outlet of facts", () => {
  it.effect.each(breakings)("lets out all others (%s)", (kind) =>
    Effect.gen(function* () {
      const out: Array<string> = []
      const letOut = (facts: ReadonlyArray<OutgoingFact>) =>
        Effect.sync(() => void out.push(...facts.map(({ messageId, version }) => `${messageId} ${version}`)))
      const [queued, begun, done] = story()
      const [other, otherBegun, otherDone] = story()
      yield* write(queued, begun, other)
      yield* breakFact(kind, queued.after.id, 2)
      const outlet = yield* Effect.forkChild(publishFacts(letOut))
      yield* TestClock.adjust("5 seconds")
      yield* write(done, otherBegun, otherDone)
      yield* TestClock.adjust("5 seconds")
      const those = [1, 2, 3, 4].map((version) => `${other.after.id} ${version}`)
      expect(out).toEqual(those)
      expect(yield* parked).toMatchObject([{ stream: streamOf(queued.after.id) }])
      yield* Fiber.interrupt(outlet)
    }).pipe(Effect.provide(layer))
  )
})

describe("alerting", () => {
  // The fourth fact is the one to alert about: a type that this release does not know may be such a one.
  it.effect.each([2, 4])("goes on with all others (fact %s)", (version) =>
    Effect.gen(function* () {
      const orgId = newOrg()
      const alerting = {
        ...{ type: "webhook", oldestDueSeconds: 60, severity: null, description: null },
        events: ["deadLetter"]
      } satisfies Alerting
      yield* makeEndpoint(orgId, { url: "https://ops.example" }, { alerting })
      const [here, there] = [
        yield* makeEndpoint(orgId, { url: "https://a.example" }),
        yield* makeEndpoint(orgId, { url: "https://b.example" })
      ]
      const dead = (destination: typeof here.id) => {
        const queued = opened({
          orgId,
          destination,
          retry: { strategy: "fixed", baseMs: 0, attemptsMax: 1, jitter: [1, 1] }
        })
        const begun = started(queued.after)
        return [queued, begun, settled(begun.after, unreachable())] as const
      }
      const [one, other] = [dead(here.id), dead(there.id)]
      yield* write(...one, ...other)
      yield* breakFact("unreadable", one[0].after.id, version)
      const alerted = Effect.map(
        Memory.Memory,
        ({ tables }) =>
          [...tables.streams.values()].filter(
            ([first]) => first!.data.includes("dead_letter") || first!.data.includes("deadLetter")
          ).length
      )
      const before = yield* alerted
      while (yield* alertOnFactsOnce());
      expect((yield* alerted) - before).toBe(1)
      expect(yield* parked).toMatchObject([{ stream: streamOf(one[0].after.id) }])
    }).pipe(Effect.provideService(AlertFormats, { webhook: WebhookAlerts.format } as never), Effect.provide(layer))
  )
})

describe("the feed", () => {
  it.effect.each(breakings)("shows what can't be processed as it is stored, and all others as ever (%s)", (kind) =>
    Effect.gen(function* () {
      const orgId = newOrg()
      const [queued, begun] = story(orgId)
      const [other] = story(orgId)
      yield* write(queued, begun, other)
      yield* breakFact(kind, queued.after.id, 2)
      // A process that has read nothing yet, and one that begins after the facts that it could read.
      const fresh = <A, E, R>(read: Effect.Effect<A, E, R>) => Effect.provide(read, Layer.fresh(LogReader.layer))
      const read = (filter: FeedFilter, after: Position | null) => readFeed(orgId, filter, after, (fact) => fact)
      const { items } = yield* fresh(read({}, null))
      expect(items.map(({ logged, message }) => [logged.version, message?.id ?? null])).toEqual([
        [1, null],
        [2, null],
        [1, other.after.id]
      ])
      const later = yield* fresh(read({}, items[0]!.logged.position))
      expect(later.items.map(({ message }) => message?.id ?? null)).toEqual([null, other.after.id])
      const chosen = yield* fresh(read({ channel: "webhook" }, null))
      expect(chosen.items.map(({ message }) => message?.id)).toEqual([other.after.id])
    }).pipe(Effect.provide(layer))
  )
})
