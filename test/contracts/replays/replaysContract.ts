/** What every adapter of `Replays` promises. `layer` gives an empty store to each test. */
import { describe, expect, it } from "@effect/vitest"
import { type DateTime, Duration, Effect, type Layer } from "effect"
import type { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { type Opening, Replays } from "../../../src/application/ports/Replays.ts"
import { ReplayId } from "../../../src/domain/ids.ts"
import type { DeadLetterFilter, WaitingFilter } from "../../../src/domain/replay/facts.ts"
import { delivered, inMillis, newOrg, next, now, opened, type Sample, type StorePorts } from "../sample.ts"
import { refused, write } from "../written.ts"
import { ended, projected } from "./deadLetterSamples.ts"
import { listed } from "./openings.ts"
import { searched } from "./searched.ts"

const LEASE = Duration.seconds(30)

/** A message that waits for its hour. */
const ahead = (wishes: Parameters<typeof opened>[0] & { readonly acceptedAt: DateTime.Utc }) => {
  const queued = opened({ ...wishes, dueAt: inMillis(3_600_000) })
  return write({ ...queued, entry: { ...queued.entry, at: wishes.acceptedAt } })
}

export const replaysContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer))

  describe(`${name} replays`, () => {
    test(
      "keep what was asked for, and its messages in their order",
      Effect.gen(function* () {
        const replays = yield* Replays
        const opening = listed(newOrg(), 5)
        const { set, idempotency: _, ...asked } = opening
        const { items } = set as Extract<Opening["set"], { readonly items: unknown }>
        const job = { ...asked, matched: 5, searching: false }
        expect(yield* replays.open(opening)).toEqual({ type: "Opened", job })
        expect(yield* replays.get(opening.orgId, opening.id)).toEqual(job)
        expect(yield* replays.items(opening.id, 0, 100)).toEqual(items)
        expect(yield* replays.items(opening.id, 2, 2)).toEqual(items.slice(2, 4))
        expect(yield* replays.items(opening.id, 5, 2)).toEqual([])
      })
    )

    test(
      "belong to their org",
      Effect.gen(function* () {
        const replays = yield* Replays
        const opening = listed(newOrg(), 1)
        yield* replays.open(opening)
        expect(yield* replays.get(newOrg(), opening.id)).toBeNull()
        expect(yield* replays.list(newOrg(), { cursor: null, limit: 10 })).toEqual({ items: [], nextCursor: null })
      })
    )

    test(
      "of a filter are for the dead letters there are now, in the order they were accepted",
      Effect.gen(function* () {
        const replays = yield* Replays
        const orgId = newOrg()
        const dead: Array<Sample> = []
        for (let i = 0; i < 4; i++) {
          // The later it was accepted, the earlier it died.
          const acceptedAt = inMillis(i * 1_000 - 60_000)
          dead.push(yield* ended(refused(), inMillis(-i * 1_000), { orgId, acceptedAt }))
        }
        const others = [
          yield* ended(refused("http_410"), now(), { orgId }),
          yield* ended(delivered, now(), { orgId }),
          yield* ended(refused(), now())
        ]
        const twice = next(dead[0]!, { type: "ReplayMessage", now: now(), reason: null })
        yield* projected([...dead, ...others])
        const filter = { errorCode: "http_400" }
        const opening = listed(orgId, 0, { selection: { filter }, set: { filter } })
        const result = yield* replays.open(opening)
        expect(result.type).toBe("Opened")
        expect(result.job).toMatchObject({ matched: 0, searching: true, selection: { filter } })
        expect(yield* replays.search(result.job, 2)).toMatchObject({ matched: 2, searching: true })
        // What dies later is not in the set, although the search has not come to it.
        yield* projected([yield* ended(refused(), inMillis(60_000), { orgId })])
        expect(yield* searched(result.job, 2)).toEqual({ ...result.job, matched: 4, searching: false })
        expect(yield* replays.items(opening.id, 0, 100)).toEqual(
          dead.map(({ id, message }) => ({ messageId: id, epoch: message.progress.epoch }))
        )
        expect(twice.after.message.progress.epoch).toBe(2)
        yield* projected([yield* ended(refused(), now(), { orgId })])
        expect(yield* replays.search(result.job, 2)).toMatchObject({ matched: 4, searching: false })
        expect(yield* replays.items(opening.id, 0, 100)).toHaveLength(4)
      })
    )

    test(
      "of waiting messages are for those that match every part of the filter",
      Effect.gen(function* () {
        const replays = yield* Replays
        const orgId = newOrg()
        // All by one moment: to store the messages takes its time.
        const [createdAfter, createdBefore] = [inMillis(-60_000), inMillis(-10_000)]
        const wishes = { to: "a", eventType: "order.paid", correlationId: "c", acceptedAt: inMillis(-30_000) }
        const others = [
          { to: "b" },
          { channel: "http" },
          { eventType: "order.sent" },
          { eventType: null },
          { correlationId: "d" },
          { acceptedAt: inMillis(-90_000) },
          { acceptedAt: inMillis(-5_000) },
          { orgId: newOrg() }
        ]
        const wanted = yield* ahead({ orgId, ...wishes })
        const unwanted = yield* Effect.forEach(others, (change) =>
          ahead({ orgId, ...wishes, ...change } as typeof wishes)
        )
        yield* projected([...unwanted, wanted])
        const waiting = {
          ...{ to: "a", channel: "webhook", eventType: "order.paid", correlationId: "c" },
          ...{ createdAfter, createdBefore }
        } as WaitingFilter
        const found = Effect.fnUntraced(function* (filter: WaitingFilter) {
          const opening = listed(orgId, 0, { selection: { waiting: filter }, set: { waiting: filter } })
          const { job } = yield* replays.open(opening)
          yield* searched(job, 3)
          return (yield* replays.items(job.id, 0, 100)).map((item) => ("messageId" in item ? item.messageId : null))
        })
        expect(yield* found(waiting)).toEqual([wanted.id])
        expect(yield* found({})).toHaveLength(others.length)
      })
    )

    test(
      "hold each dead letter once, however many search at once",
      Effect.gen(function* () {
        const replays = yield* Replays
        const orgId = newOrg()
        const dead = yield* Effect.forEach(Array.from({ length: 12 }), () =>
          ended(refused(), inMillis(-1_000), { orgId })
        )
        yield* projected(dead)
        const opening = listed(orgId, 0, { selection: { filter: {} }, set: { filter: {} } })
        const { job } = yield* replays.open(opening)
        yield* Effect.all(
          Array.from({ length: 6 }, () => searched(job, 1)),
          { concurrency: "unbounded" }
        )
        expect(yield* replays.get(orgId, job.id)).toMatchObject({ matched: 12, searching: false })
        const items = yield* replays.items(job.id, 0, 100)
        const found = items.map((item) => ("messageId" in item ? item.messageId : null))
        expect(found.toSorted()).toEqual(dead.map(({ id }) => id).toSorted())
      })
    )

    test(
      "are for what was found when their search is ended",
      Effect.gen(function* () {
        const replays = yield* Replays
        const orgId = newOrg()
        yield* projected(yield* Effect.forEach([1, 2, 3], () => ended(refused(), inMillis(-1_000), { orgId })))
        const opening = listed(orgId, 0, { selection: { filter: {} }, set: { filter: {} } })
        const { job } = yield* replays.open(opening)
        yield* replays.search(job, 2)
        yield* replays.endSearch(job.id)
        expect(yield* replays.search(job, 2)).toMatchObject({ matched: 2, searching: false })
        expect(yield* replays.items(job.id, 0, 100)).toHaveLength(2)
      })
    )

    test(
      "find the dead letters of each filter, in many steps as in one",
      Effect.gen(function* () {
        const replays = yield* Replays
        const orgId = newOrg()
        const [first, between, second, afterwards, third] = [-9_000, -7_500, -6_000, -4_500, -3_000].map(inMillis)
        const letters = [
          yield* ended(refused(), first!, { orgId, to: "here" }),
          yield* ended(refused("http_410"), second!, { orgId, to: "here" }),
          yield* ended(refused(), third!, { orgId, to: "there" })
        ]
        yield* projected(letters)
        const nameOf = (id: string) => letters.findIndex((letter) => letter.id === id)
        const found = Effect.fnUntraced(function* (filter: DeadLetterFilter, limit: number) {
          const { job } = yield* replays.open(listed(orgId, 0, { selection: { filter }, set: { filter } }))
          yield* searched(job, limit)
          const items = yield* replays.items(job.id, 0, 100)
          return items.map((item) => ("messageId" in item ? nameOf(item.messageId) : null)).toSorted()
        })
        for (const limit of [1, 2, 100]) {
          expect(yield* found({}, limit)).toEqual([0, 1, 2])
          expect(yield* found({ to: "here" }, limit)).toEqual([0, 1])
          expect(yield* found({ to: "here", errorCode: "http_410" }, limit)).toEqual([1])
          expect(yield* found({ channel: "http" }, limit)).toEqual([])
          expect(yield* found({ statuses: ["DEAD_LETTER"] }, limit)).toEqual([])
          expect(yield* found({ after: between!, before: afterwards! }, limit)).toEqual([1])
        }
      })
    )

    test(
      "with one key are one replay, whoever asks first",
      Effect.gen(function* () {
        const replays = yield* Replays
        const orgId = newOrg()
        const idempotency = { key: "k", requestHash: "h" }
        const openings = Array.from({ length: 8 }, () => listed(orgId, 2, { idempotency }))
        const results = yield* Effect.all(openings.map(replays.open), { concurrency: "unbounded" })
        const [first, ...more] = results.filter(({ type }) => type === "Opened")
        expect(more).toEqual([])
        for (const result of results) {
          expect(result.job).toEqual(first!.job)
          if (result.type === "DuplicateKey") expect(result.requestHash).toBe("h")
        }
        const lost = openings.filter(({ id }) => id !== first!.job.id)
        for (const { id } of lost) expect(yield* replays.items(id, 0, 10)).toEqual([])
        expect((yield* replays.list(orgId, { cursor: null, limit: 10 })).items).toHaveLength(1)
        expect((yield* replays.open(listed(newOrg(), 1, { idempotency }))).type).toBe("Opened")
      })
    )

    test(
      "are listed newest first, each on exactly one page",
      Effect.gen(function* () {
        const replays = yield* Replays
        const orgId = newOrg()
        const ids = Array.from({ length: 5 }, (_, n) => ReplayId.make(`0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a0${n}`))
        for (const id of ids) yield* replays.open(listed(orgId, 1, { id }))
        const seen: Array<string> = []
        let cursor: string | null = null
        do {
          const page: Effect.Success<ReturnType<typeof replays.list>> = yield* replays.list(orgId, { cursor, limit: 2 })
          seen.push(...page.items.map(({ id }) => id))
          cursor = page.nextCursor
        } while (cursor !== null)
        expect(seen).toEqual(ids.toReversed())
      })
    )

    test(
      "are taken by one at a time, and again when the lease is over",
      Effect.gen(function* () {
        const replays = yield* Replays
        const opening = listed(newOrg(), 1)
        yield* replays.open(opening)
        for (let round = 0; round < 20; round++) {
          const taken = yield* Effect.all(
            Array.from({ length: 8 }, () => replays.take(LEASE)),
            { concurrency: "unbounded" }
          )
          expect(taken.filter((job) => job !== null).map(({ id }) => id)).toEqual([opening.id])
          yield* replays.back(opening.id, Duration.zero)
        }
        yield* replays.take(Duration.seconds(3))
        expect(yield* replays.take(LEASE)).toBeNull()
        yield* Effect.sleep("3100 millis")
        expect((yield* replays.take(LEASE))?.id).toBe(opening.id)
      })
    )

    test(
      "that were put back wait out their pause, while others take their turn",
      Effect.gen(function* () {
        const replays = yield* Replays
        const [one, two] = [listed(newOrg(), 1), listed(newOrg(), 1)]
        yield* replays.open(one)
        expect((yield* replays.take(LEASE))?.id).toBe(one.id)
        yield* replays.back(one.id, Duration.seconds(3))
        yield* replays.open(two)
        expect((yield* replays.take(LEASE))?.id).toBe(two.id)
        expect(yield* replays.take(LEASE)).toBeNull()
        yield* Effect.sleep("3100 millis")
        expect((yield* replays.take(LEASE))?.id).toBe(one.id)
      })
    )

    test(
      "that are closed are never taken again, and still known",
      Effect.gen(function* () {
        const replays = yield* Replays
        const opening = listed(newOrg(), 3)
        yield* replays.open(opening)
        yield* replays.close(opening.id)
        yield* replays.back(opening.id, Duration.zero)
        expect(yield* replays.take(LEASE)).toBeNull()
        expect(yield* replays.items(opening.id, 0, 10)).toEqual([])
        expect((yield* replays.get(opening.orgId, opening.id))?.matched).toBe(3)
      })
    )
  })
}
