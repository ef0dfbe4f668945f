/** What every adapter of `Retention` promises. `layer` gives an empty store to each test. */
import { describe, expect, it } from "@effect/vitest"
import { type DateTime, Effect, type Layer } from "effect"
import { commandCircuit } from "../../../src/application/destinations/commandCircuit.ts"
import { Bodies } from "../../../src/application/ports/Bodies.ts"
import { Circuits } from "../../../src/application/ports/Circuits.ts"
import { type Destination, Destinations } from "../../../src/application/ports/Destinations.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import type { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { MessageViews } from "../../../src/application/ports/MessageViews.ts"
import { Orgs, unset } from "../../../src/application/ports/Orgs.ts"
import { Projections } from "../../../src/application/ports/Projections.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import { type Before, Retention } from "../../../src/application/ports/Retention.ts"
import { initialState } from "../../../src/domain/circuit/state.ts"
import type { AttemptOutcome } from "../../../src/domain/delivery/outcome.ts"
import { journalOf, journalsOf } from "../../../src/domain/destination/changes.ts"
import { asWorker, claimAll } from "../deliver/claims.ts"
import { makeAccount, makeEndpoint, webhook, whatsapp } from "../destinations/samples.ts"
import { ended, projected } from "../replays/deadLetterSamples.ts"
import {
  delivered,
  endedBefore,
  inMillis,
  newOrg,
  next,
  now,
  opened,
  readLogUntil,
  type Sample,
  type StorePorts,
  settled,
  started
} from "../sample.ts"
import { refused, write } from "../written.ts"
import { allRead, forgetDestinations, forgetMessages, sum } from "./forgetting.ts"

const HOUR = 3_600_000

/** Its provider reports the delivery later. */
const sentOnly: AttemptOutcome = {
  type: "Accepted",
  status: 200,
  providerMessageId: null,
  delivered: false,
  durationMs: 3
}

export const retentionContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer))

  /** Deletes what ended well an hour ago, once the log was read; how many went in each step. */
  const forgotten = Effect.fnUntraced(function* (
    limit: number,
    deadBefore: DateTime.Utc | null = null,
    more: Partial<Before> = {}
  ) {
    yield* allRead
    return yield* forgetMessages({ ...endedBefore(inMillis(-HOUR)), dead: deadBefore, ...more }, limit)
  })

  describe(`${name} retention`, () => {
    test(
      "has nothing to do in an empty store",
      Effect.gen(function* () {
        expect(yield* forgotten(10)).toEqual([0])
      })
    )

    test(
      "forgets what ended well long ago with all that belongs to it, and nothing else",
      Effect.gen(function* () {
        const store = yield* EventStore
        const bodies = yield* Bodies
        const orgId = newOrg()
        const long = { orgId, acceptedAt: inMillis(-3 * HOUR) }
        const key = { orgId, key: "k", requestHash: "h" }
        const old = yield* ended(delivered, inMillis(-2 * HOUR), { ...long, idempotency: key })
        const cancelled = opened(long)
        yield* store.append([{ ...cancelled.entry, at: inMillis(-3 * HOUR) }])
        const cancel = next(cancelled.after, { type: "CancelMessage", reason: null })
        yield* store.append([{ ...cancel.entry, at: inMillis(-2 * HOUR) }])
        const recent = yield* ended(delivered, inMillis(-HOUR / 2), long)
        const dead = yield* ended(refused(), inMillis(-2 * HOUR), long)
        const waiting = opened(long)
        yield* store.append([{ ...waiting.entry, at: inMillis(-3 * HOUR) }])
        const gone: ReadonlyArray<Sample> = [old, cancel.after]
        const kept: ReadonlyArray<Sample> = [recent, dead, waiting.after]
        yield* projected([...gone, ...kept])

        expect(sum(yield* forgotten(100))).toBe(2)

        for (const { id } of gone) {
          expect((yield* store.load(id)).version).toBe(0)
          expect(yield* bodies.load(id)).toBeNull()
        }
        for (const { id, version } of kept) {
          expect((yield* store.load(id)).version).toBe(version)
          expect(yield* bodies.load(id)).not.toBeNull()
        }
        const views = yield* MessageViews
        const listed = (yield* views.list(orgId, {}, { cursor: null, limit: 10 })).items.map(({ id }) => id)
        expect(listed.toSorted()).toEqual(kept.map(({ id }) => id).toSorted())
        expect((yield* views.stats(orgId)).byStatus).toMatchObject({
          DELIVERED: 1,
          CANCELLED: 0,
          FAILED: 1,
          QUEUED: 1
        })
        // The key is free again, and what is left can still be read in order.
        const again = opened({ orgId, idempotency: key })
        expect((yield* store.append([again.entry]))[0]!.type).toBe("Appended")
        const ids = (facts: ReadonlyArray<{ readonly messageId: unknown }>) =>
          new Set(facts.flatMap(({ messageId }) => messageId ?? []))
        // A store that keeps streams elsewhere may remove them a moment later.
        const left = ids(
          yield* readLogUntil((facts) => ids(facts).has(again.after.id) && !gone.some(({ id }) => ids(facts).has(id)))
        )
        expect(left).toEqual(new Set([...kept.map(({ id }) => id), again.after.id]))
      })
    )

    test(
      "keeps dead letters, and what was sent and never proven, for a life of their own",
      Effect.gen(function* () {
        const store = yield* EventStore
        const orgId = newOrg()
        const long = { orgId, acceptedAt: inMillis(-4 * HOUR) }
        const older = yield* ended(refused(), inMillis(-3 * HOUR), long)
        const younger = yield* ended(refused(), inMillis(-HOUR), long)
        // The list does not know yet that it goes again.
        const replayed = yield* ended(refused(), inMillis(-3 * HOUR), long)
        const sent = opened(long)
        yield* store.append([{ ...sent.entry, at: inMillis(-4 * HOUR) }])
        const start = started(sent.after)
        yield* store.append([{ ...start.entry, at: inMillis(-4 * HOUR) }])
        const taken = settled(start.after, sentOnly)
        yield* store.append([{ ...taken.entry, at: inMillis(-4 * HOUR) }])
        // Accepted long ago, and sent of late.
        const youngSent = yield* ended(sentOnly, inMillis(-HOUR), long)
        yield* projected([older, younger, replayed, taken.after, youngSent])
        const again = next(replayed, { type: "ReplayMessage", now: now(), reason: null })
        yield* store.append([again.entry])
        expect(sum(yield* forgotten(100))).toBe(0)
        const removed = sum(yield* forgotten(100, inMillis(-2 * HOUR)))
        expect(removed).toBe(2)
        expect((yield* store.load(older.id)).version).toBe(0)
        expect((yield* store.load(taken.after.id)).version).toBe(0)
        expect((yield* store.load(younger.id)).version).toBe(younger.version)
        expect((yield* store.load(youngSent.id)).version).toBe(youngSent.version)
        expect((yield* store.load(replayed.id)).version).toBe(again.after.version)
        expect((yield* (yield* MessageViews).stats(orgId)).byStatus).toMatchObject({ FAILED: 2, SENT: 1 })
      })
    )

    test(
      "keeps a dead letter that holds the place of its ordering key",
      Effect.gen(function* () {
        const orgId = newOrg()
        const { id: destination } = yield* makeEndpoint(orgId, { onDeadLetter: "block" })
        const wishes = { orgId, destination, acceptedAt: inMillis(-4 * HOUR) }
        const plain = yield* ended(refused(), inMillis(-3 * HOUR), wishes)
        const holding = yield* ended(refused(), inMillis(-3 * HOUR), { ...wishes, orderingKey: "one" })
        yield* projected([plain, holding])
        const removed = yield* forgotten(100, inMillis(-2 * HOUR))
        expect(sum(removed)).toBe(1)
        const store = yield* EventStore
        expect((yield* store.load(plain.id)).version).toBe(0)
        expect((yield* store.load(holding.id)).version).toBe(holding.version)
      })
    )

    test(
      "goes by an org's own days where it has some, shorter or longer, and never by more than the most",
      Effect.gen(function* () {
        const orgs = yield* Orgs
        const [short, long, plain] = [newOrg(), newOrg(), newOrg()]
        yield* orgs.set(short, { ...unset, retention: { endedDays: 2, deadLetterDays: 5 } })
        yield* orgs.set(long, { ...unset, retention: { endedDays: 30 } })
        const DAY = 24 * HOUR
        const samples = new Map<string, Sample>()
        for (const [org, orgId] of Object.entries({ short, long, plain })) {
          const wishes = { orgId, acceptedAt: inMillis(-20 * DAY) }
          for (const days of [1, 3, 10]) {
            samples.set(`${org} ${days}`, yield* ended(delivered, inMillis(-days * DAY), wishes))
          }
          samples.set(`${org} dead`, yield* ended(refused(), inMillis(-3 * DAY), wishes))
          samples.set(`${org} older dead`, yield* ended(refused(), inMillis(-6 * DAY), wishes))
        }
        yield* projected([...samples.values()])
        const store = yield* EventStore
        const left = Effect.fnUntraced(function* () {
          const found: Array<string> = []
          for (const [name, { id }] of samples) if ((yield* store.load(id)).version > 0) found.push(name)
          return found
        })
        yield* forgotten(100, null, { ended: inMillis(-7 * DAY) })
        const kept = [
          ...["short 1", "short dead", "long 1", "long 3", "long 10", "long dead", "long older dead"],
          ...["plain 1", "plain 3", "plain dead", "plain older dead"]
        ]
        expect(yield* left()).toEqual(kept)
        // For ever, but for those that have days of their own.
        yield* forgotten(100, null, { ended: null })
        expect(yield* left()).toEqual(kept)
        yield* forgotten(100, null, { ended: null, daysMax: 5 })
        expect(yield* left()).toEqual(kept.filter((name) => name !== "long 10"))
      })
    )

    test(
      "forgets each message once, however many sweep at the same moment",
      Effect.gen(function* () {
        const retention = yield* Retention
        const orgId = newOrg()
        const samples: Array<Sample> = []
        for (let i = 0; i < 20; i++) {
          samples.push(yield* ended(delivered, inMillis(-2 * HOUR), { orgId, acceptedAt: inMillis(-3 * HOUR) }))
        }
        yield* projected(samples)
        yield* allRead
        const { messages } = yield* retention.find(endedBefore(inMillis(-HOUR)), null, 100)
        const all = Array.from({ length: 6 }, () => retention.forget(messages))
        const removed = yield* Effect.all(all, { concurrency: "unbounded" })
        expect(sum(removed.map((each) => each ?? 0))).toBe(20)
        expect((yield* (yield* MessageViews).stats(orgId)).byStatus.DELIVERED).toBe(0)
      })
    )

    test(
      "goes through everything in small steps, org by org, past what stays",
      Effect.gen(function* () {
        const orgs = [newOrg(), newOrg(), newOrg()]
        const samples: Array<Sample> = []
        for (const orgId of orgs) {
          for (let i = 0; i < 5; i++) {
            const wishes = { orgId, acceptedAt: inMillis(i * 1_000 - 3 * HOUR) }
            samples.push(yield* ended(i < 2 ? refused() : delivered, inMillis(-2 * HOUR), wishes))
          }
        }
        yield* projected(samples)
        const steps = yield* forgotten(2)
        expect(sum(steps)).toBe(9)
        expect(Math.max(...steps)).toBeLessThanOrEqual(2)
        const views = yield* MessageViews
        for (const orgId of orgs) {
          expect((yield* views.stats(orgId)).byStatus).toMatchObject({ DELIVERED: 0, FAILED: 2 })
        }
        expect(sum(yield* forgotten(2))).toBe(0)
      })
    )

    test(
      "keeps a message that has gone on since it was found",
      Effect.gen(function* () {
        const [store, retention] = [yield* EventStore, yield* Retention]
        const dead = yield* ended(refused(), inMillis(-2 * HOUR), { acceptedAt: inMillis(-3 * HOUR) })
        yield* projected([dead])
        yield* allRead
        const { messages } = yield* retention.find({ ...endedBefore(now()), dead: now() }, null, 10)
        expect(messages).toEqual([{ id: dead.id, version: dead.version }])
        const again = next(dead, { type: "ReplayMessage", now: now(), reason: null })
        yield* store.append([again.entry])
        expect(yield* retention.forget(messages)).toBe(0)
        expect((yield* store.load(dead.id)).version).toBe(again.after.version)
      })
    )
  })

  describe(`${name} retention of destinations`, () => {
    const later = () => inMillis(HOUR)
    const removed = Effect.fnUntraced(function* (destination: Destination) {
      const kind = destination.channel === "webhook" ? webhook : whatsapp
      yield* (yield* Destinations).remove(kind, destination.orgId, destination.id)
    })
    const knownOf = Effect.fnUntraced(function* (destinations: ReadonlyArray<Destination>) {
      const known = yield* (yield* Destinations).among(destinations.map(({ id }) => id))
      return destinations.filter(({ id }) => known.has(id))
    })

    test(
      "forgets one that was removed, when its days are over, with its journals and its lane",
      Effect.gen(function* () {
        const journals = yield* Journals
        const orgId = newOrg()
        const [living, gone, paused] = [
          yield* makeEndpoint(orgId),
          yield* makeEndpoint(orgId),
          yield* makeAccount(orgId)
        ]
        for (const { id } of [living, gone]) {
          yield* commandCircuit(orgId, id, { type: "HoldCircuit", reason: "a hunch" })
        }
        yield* (yield* Destinations).setPaused(whatsapp, orgId, paused.id, true)
        yield* removed(gone)
        yield* removed(paused)
        yield* allRead
        expect(yield* forgetDestinations(inMillis(-HOUR))).toBe(0)
        expect(yield* knownOf([living, gone, paused])).toEqual([living, gone, paused])
        expect(yield* forgetDestinations(later())).toBe(2)
        expect(yield* knownOf([living, gone, paused])).toEqual([living])
        for (const { id } of [gone, paused]) {
          for (const journal of [...journalsOf(webhook.journal, id), ...journalsOf(whatsapp.journal, id)]) {
            expect(yield* journals.load(journal)).toEqual([])
          }
        }
        expect(yield* (yield* Circuits).states([gone.id])).toEqual([initialState])
        expect((yield* journals.load(journalOf(webhook, living.id))).length).toBeGreaterThan(0)
        expect(yield* (yield* Circuits).states([living.id])).toMatchObject([{ status: "HELD", generation: 1 }])
        expect(yield* forgetDestinations(later())).toBe(0)
      })
    )

    test(
      "keeps one while its lane holds a message, and hands out one that comes to it afterwards",
      Effect.gen(function* () {
        const [store, queue] = [yield* EventStore, yield* Queue]
        const endpoint = yield* makeEndpoint(newOrg())
        const { orgId, id } = endpoint
        const sent = opened({ orgId, destination: id, to: id })
        yield* store.append([sent.entry])
        yield* removed(endpoint)
        yield* allRead
        expect(yield* forgetDestinations(later())).toBe(0)
        const claim = (yield* queue.claim(asWorker("one")))!
        expect(yield* forgetDestinations(later())).toBe(0)
        const start = started(sent.after)
        yield* write(start, settled(start.after, delivered))
        yield* queue.release(claim.batch, [])
        yield* allRead
        expect(yield* forgetDestinations(later())).toBe(1)
        const late = opened({ orgId, destination: id, to: id })
        yield* store.append([late.entry])
        expect(yield* claimAll).toEqual([late.after.id])
      })
    )
  })
}

/** Where the facts of messages stand in the log that its followers read. */
export const followersContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  describe(`${name} retention`, () => {
    it.live("waits for whoever reads the log: for the lists, for alerting, and for a rebuild", () =>
      Effect.gen(function* () {
        const projections = yield* Projections
        const after = yield* ended(delivered, inMillis(-2 * HOUR), { acceptedAt: inMillis(-3 * HOUR) })
        yield* projected([after])
        const before = endedBefore(inMillis(-HOUR))
        expect(yield* forgetMessages(before)).toEqual([0])
        yield* allRead
        yield* projections.build("messages", 99, 1)
        expect(yield* forgetMessages(before)).toEqual([0])
        yield* allRead
        expect(yield* forgetMessages(before)).toEqual([1])
      }).pipe(Effect.provide(layer))
    )
  })
}
