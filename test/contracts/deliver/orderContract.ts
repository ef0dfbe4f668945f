/**
 * What every store promises about messages with an ordering key: one of them at a time, in the order they were
 * accepted. Call it once per adapter, with a layer that gives each test an empty store.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { Destinations } from "../../../src/application/ports/Destinations.ts"
import type { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { type BatchId, Queue } from "../../../src/application/ports/Queue.ts"
import type { AttemptOutcome } from "../../../src/domain/delivery/outcome.ts"
import type { MessageCommand } from "../../../src/domain/message/decider.ts"
import { makeEndpoint, webhook } from "../destinations/samples.ts"
import {
  delivered,
  inMillis,
  newLane,
  newOrg,
  next,
  now,
  type Sample,
  type StorePorts,
  settled,
  started,
  unreachable
} from "../sample.ts"
import { put, refused, write } from "../written.ts"
import { asWorker } from "./claims.ts"

/** What is handed out now: ids in turn, and the batch that holds them. */
const claim = Effect.gen(function* () {
  const given = yield* (yield* Queue).claim(asWorker("w"))
  return { batch: given?.batch as BatchId, ids: given?.messages.map(({ messageId }) => messageId) ?? [] }
})

const attempt = (sample: Sample, outcome: AttemptOutcome) =>
  Effect.gen(function* () {
    const open = yield* write(started(sample))
    return yield* write(settled(open, outcome))
  })

const command = (sample: Sample, order: MessageCommand) => write(next(sample, order))

export const orderContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer))

  describe(`${name} lines`, () => {
    test(
      "hand out one message of an ordering key at a time, in the order they were accepted",
      Effect.gen(function* () {
        const lane = newLane()
        const samples = yield* put(Array.from({ length: 4 }, () => ({ destination: lane, orderingKey: "a" })))
        for (const sample of samples) {
          expect((yield* claim).ids).toEqual([sample.id])
          expect((yield* claim).ids).toEqual([])
          yield* attempt(sample, delivered)
        }
        expect((yield* claim).ids).toEqual([])
        expect(yield* (yield* Queue).nextDueAt).toBeNull()
      })
    )

    test(
      "keep the order of what was asked for in one call, whatever its size and however long each append takes",
      Effect.gen(function* () {
        const lane = newLane()
        const wishes = Array.from({ length: 30 }, (_, n) => ({
          destination: lane,
          orderingKey: n % 3 === 0 ? "b" : "a"
        }))
        const samples = yield* put(wishes)
        const turns = { a: samples.filter((_, n) => n % 3 !== 0), b: samples.filter((_, n) => n % 3 === 0) }
        const went = { a: [] as Array<string>, b: [] as Array<string> }
        for (let n = 0; n < turns.a.length; n++) {
          const { ids } = yield* claim
          for (const key of ["a", "b"] as const) {
            const sample = turns[key].find(({ id }) => ids.includes(id))
            if (sample === undefined) continue
            went[key].push(sample.id)
            yield* attempt(sample, delivered)
          }
        }
        expect(went).toEqual({ a: turns.a.map(({ id }) => id), b: turns.b.map(({ id }) => id) })
      })
    )

    test(
      "do not hold up other keys, other lanes and messages without a key",
      Effect.gen(function* () {
        const lane = newLane()
        const samples = yield* put([
          { destination: lane, orderingKey: "a" },
          { destination: lane, orderingKey: "a" },
          { destination: lane, orderingKey: "b" },
          { destination: lane },
          { destination: newLane(), orderingKey: "a" }
        ])
        const expected = samples.filter((_, n) => n !== 1).map(({ id }) => id)
        expect((yield* claim).ids.toSorted()).toEqual(expected.toSorted())
      })
    )

    test(
      "keep their order over appends, also when the one before is due later",
      Effect.gen(function* () {
        const lane = newLane()
        const [first] = yield* put([{ destination: lane, orderingKey: "a", dueAt: inMillis(60_000) }])
        const [second] = yield* put([{ destination: lane, orderingKey: "a", dueAt: inMillis(-60_000) }])
        expect((yield* claim).ids).toEqual([])
        yield* command(first!, { type: "CancelMessage", reason: null })
        expect((yield* claim).ids).toEqual([second!.id])
      })
    )

    test(
      "stay with their head while it is retried",
      Effect.gen(function* () {
        const lane = newLane()
        const [first, second] = yield* put([
          { destination: lane, orderingKey: "a" },
          { destination: lane, orderingKey: "a" }
        ])
        expect((yield* claim).ids).toEqual([first!.id])
        const waiting = yield* attempt(first!, unreachable())
        expect((yield* claim).ids).toEqual([first!.id])
        yield* attempt(waiting, delivered)
        expect((yield* claim).ids).toEqual([second!.id])
      })
    )

    test(
      "stay with a head that was handed back",
      Effect.gen(function* () {
        const lane = newLane()
        const [first] = yield* put([
          { destination: lane, orderingKey: "a" },
          { destination: lane, orderingKey: "a" }
        ])
        const { batch } = yield* claim
        yield* (yield* Queue).putBack(batch, [first!.id])
        expect((yield* claim).ids).toEqual([first!.id])
      })
    )

    test(
      "close up when a message in their middle is cancelled",
      Effect.gen(function* () {
        const lane = newLane()
        const [first, second, third] = yield* put(
          Array.from({ length: 3 }, () => ({ destination: lane, orderingKey: "a" }))
        )
        yield* command(second!, { type: "CancelMessage", reason: null })
        expect((yield* claim).ids).toEqual([first!.id])
        yield* attempt(first!, delivered)
        expect((yield* claim).ids).toEqual([third!.id])
      })
    )

    test(
      "go on when their head expires",
      Effect.gen(function* () {
        const lane = newLane()
        const [first, second] = yield* put([
          { destination: lane, orderingKey: "a", expiresAt: inMillis(-10) },
          { destination: lane, orderingKey: "a" }
        ])
        expect((yield* claim).ids).toEqual([first!.id])
        yield* write(started(first!))
        expect((yield* claim).ids).toEqual([second!.id])
      })
    )

    test(
      "let a dead letter step aside, and its replay goes to their end",
      Effect.gen(function* () {
        const lane = newLane()
        const [first, second, third] = yield* put(
          Array.from({ length: 3 }, () => ({ destination: lane, orderingKey: "a" }))
        )
        yield* claim
        const dead = yield* attempt(first!, refused())
        expect((yield* claim).ids).toEqual([second!.id])
        yield* command(dead, { type: "ReplayMessage", now: now(), reason: null })
        yield* attempt(second!, delivered)
        expect((yield* claim).ids).toEqual([third!.id])
        yield* attempt(third!, delivered)
        expect((yield* claim).ids).toEqual([first!.id])
      })
    )

    test(
      "go on after a dead letter that used up its attempts",
      Effect.gen(function* () {
        const lane = newLane()
        const [first, second] = yield* put([
          { destination: lane, orderingKey: "a", retry: { strategy: "fixed", baseMs: 0, attemptsMax: 1 } },
          { destination: lane, orderingKey: "a" }
        ])
        yield* claim
        yield* attempt(first!, unreachable())
        expect((yield* claim).ids).toEqual([second!.id])
      })
    )

    test(
      "give every message its own turn when many are accepted and settled at once",
      Effect.gen(function* () {
        const lane = newLane()
        const put40 = Effect.forEach(
          Array.from({ length: 40 }),
          () => Effect.map(put([{ destination: lane, orderingKey: "a" }]), ([sample]) => sample!),
          { concurrency: "unbounded" }
        )
        const waiting = new Map((yield* put40).map((sample) => [sample.id as string, sample]))
        for (let left = 40; left > 0; left--) {
          const { ids } = yield* claim
          expect(ids).toHaveLength(1)
          yield* Effect.all([attempt(waiting.get(ids[0]!)!, delivered), put([{ destination: newLane() }])], {
            concurrency: "unbounded"
          })
          waiting.delete(ids[0]!)
          // The message beside it is of no interest; it only makes the appends meet.
          yield* claim.pipe(Effect.flatMap(({ batch, ids: others }) => handBackOwn(batch, others, waiting)))
        }
        expect(waiting.size).toBe(0)
      })
    )

    describe("of an endpoint whose dead letters block", () => {
      const blocked = Effect.gen(function* () {
        const orgId = newOrg()
        const { id: lane } = yield* makeEndpoint(orgId, { onDeadLetter: "block" })
        const samples = yield* put(Array.from({ length: 2 }, () => ({ orgId, destination: lane, orderingKey: "a" })))
        yield* claim
        const dead = yield* attempt(samples[0]!, refused())
        expect((yield* claim).ids).toEqual([])
        return { orgId, lane, dead, next: samples[1]! }
      })

      test(
        "wait until the dead letter was replayed, which goes first",
        Effect.gen(function* () {
          const { dead, next } = yield* blocked
          const again = yield* command(dead, { type: "ReplayMessage", now: now(), reason: null })
          expect((yield* claim).ids).toEqual([dead.id])
          yield* attempt(again, delivered)
          expect((yield* claim).ids).toEqual([next.id])
        })
      )

      test(
        "wait for whoever is accepted later too",
        Effect.gen(function* () {
          const { orgId, lane, next } = yield* blocked
          yield* put([{ orgId, destination: lane, orderingKey: "a" }])
          const [other] = yield* put([{ orgId, destination: lane, orderingKey: "b" }])
          expect((yield* claim).ids).toEqual([other!.id])
          yield* command(next, { type: "CancelMessage", reason: null })
          expect((yield* claim).ids).toEqual([])
        })
      )

      test(
        "go on when they shall not block any more",
        Effect.gen(function* () {
          const { orgId, lane, next } = yield* blocked
          yield* (yield* Destinations).change(webhook, orgId, lane, { settings: { onDeadLetter: "skip" } })
          expect((yield* claim).ids).toEqual([next.id])
        })
      )

      test(
        "come to an end when the endpoint is removed",
        Effect.gen(function* () {
          const { orgId, lane, next } = yield* blocked
          yield* (yield* Destinations).remove(webhook, orgId, lane)
          expect((yield* claim).ids).toEqual([next.id])
        })
      )
    })
  })
}

/** What belongs to the line goes back as it was. */
const handBackOwn = (batch: BatchId, ids: ReadonlyArray<Sample["id"]>, own: ReadonlyMap<string, Sample>) =>
  Effect.gen(function* () {
    const back = ids.filter((id) => own.has(id))
    if (back.length > 0) yield* (yield* Queue).putBack(batch, back)
  })
