/** What every adapter of `Bodies` promises, together with the event store that writes them. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { Bodies } from "../../../src/application/ports/Bodies.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { PAGE_READ_BYTES, type StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { newMessageId, next, now, opened, type StorePorts, settled, started, unreachable } from "../sample.ts"

export const bodiesContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer))

  describe(`${name} bodies`, () => {
    for (const [what, body] of [
      ["digits and spaces", '{ "id": 12345678901234567890,\n  "price": 1.10, "id": 2 }'],
      ["text of any script", '"žluťoučký 🚚 \u2028 \\u0000"'],
      ["nothing at all", ""],
      ["a megabyte", `"${"x".repeat(1_000_000)}"`]
    ] as const) {
      test(
        `gives back ${what} as it was written`,
        Effect.gen(function* () {
          const step = opened({ body })
          yield* (yield* EventStore).append([step.entry])
          expect((yield* (yield* Bodies).load(step.after.id)) === body).toBe(true)
        })
      )
    }

    test(
      "knows no body for a message that does not exist, or whose first append was refused",
      Effect.gen(function* () {
        const bodies = yield* Bodies
        const refused = opened()
        yield* (yield* EventStore).append([{ ...refused.entry, expected: 4 }])
        expect(yield* bodies.load(newMessageId())).toBeNull()
        expect(yield* bodies.load(refused.after.id)).toBeNull()
        expect((yield* bodies.responses(refused.after.id)).answers).toEqual(new Map())
      })
    )

    test(
      "keeps what the far side answered to each attempt",
      Effect.gen(function* () {
        const store = yield* EventStore
        const queued = opened()
        const first = started(queued.after)
        const failed = settled(first.after, unreachable(), {
          response: {
            epoch: 1,
            attempt: 1,
            body: "<h1>no & no</h1>\n",
            headers: { server: "nginx", "x-request-id": "“r” 1" }
          }
        })
        const second = started(failed.after)
        const again = settled(second.after, unreachable(), {
          response: { epoch: 1, attempt: 2, body: "", headers: null }
        })
        for (const { entry } of [queued, first, failed, second, again]) {
          expect((yield* store.append([entry]))[0]!.type).toBe("Appended")
        }
        expect((yield* (yield* Bodies).responses(queued.after.id)).answers).toEqual(
          new Map([
            ["1/1", { body: "<h1>no & no</h1>\n", headers: { server: "nginx", "x-request-id": "“r” 1" } }],
            ["1/2", { body: "", headers: null }]
          ])
        )
      })
    )

    test(
      "reads no more answers at once than fit, in the order of their attempts, and from any attempt on",
      Effect.gen(function* () {
        const store = yield* EventStore
        const attempts = 12
        const queued = opened({ retry: { strategy: "fixed", baseMs: 0, attemptsMax: attempts + 1, jitter: [1, 1] } })
        yield* store.append([queued.entry])
        let last = queued.after
        const body = "x".repeat(PAGE_READ_BYTES / 5)
        for (let attempt = 1; attempt <= attempts; attempt++) {
          const start = started(last)
          const answered = { response: { epoch: 1, attempt, body, headers: { n: String(attempt) } } }
          const failed = settled(start.after, unreachable(), answered)
          for (const { entry } of [start, failed]) yield* store.append([entry])
          last = failed.after
        }
        const read: Array<ReadonlyArray<string>> = []
        for (let from = 1; from !== 0; ) {
          const { answers, end } = yield* (yield* Bodies).responses(queued.after.id, { epoch: 1, attempt: from })
          read.push([...answers.keys()])
          from = end === null ? 0 : end.attempt + 1
        }
        expect(read.flat()).toEqual(Array.from({ length: attempts }, (_, n) => `1/${n + 1}`))
        // As they are stored, they may have more bytes.
        for (const part of read.slice(0, -1)) expect([4, 5]).toContain(part.length)
      })
    )

    test(
      "does not keep the answer of an append that was refused",
      Effect.gen(function* () {
        const store = yield* EventStore
        const queued = opened()
        const start = started(queued.after)
        const failed = settled(start.after, unreachable(), {
          response: { epoch: 1, attempt: 1, body: "late", headers: null }
        })
        yield* store.append([queued.entry])
        yield* store.append([failed.entry])
        expect((yield* (yield* Bodies).responses(queued.after.id)).answers).toEqual(new Map())
      })
    )

    test(
      "gives back another body once a replay has brought one",
      Effect.gen(function* () {
        const store = yield* EventStore
        const bodies = yield* Bodies
        const queued = opened({ body: "first" })
        const start = started(queued.after)
        const failed = settled(start.after, {
          type: "Refused",
          error: { code: "http_400", message: "answered 400", retryable: false },
          status: 400,
          durationMs: 1
        })
        for (const { entry } of [queued, start, failed]) yield* store.append([entry])
        const replay = { type: "ReplayMessage", now: now(), reason: null, edited: true } as const
        const opening = { body: '{"n": 1.10}', idempotency: null }
        const { entry } = next(failed.after, replay, { opening })
        yield* store.append([{ ...entry, expected: 2 }])
        expect(yield* bodies.load(queued.after.id)).toBe("first")
        yield* store.append([entry])
        expect(yield* bodies.load(queued.after.id)).toBe('{"n": 1.10}')
      })
    )

    test(
      "erases body and answers of one message, once, and leaves its history",
      Effect.gen(function* () {
        const store = yield* EventStore
        const bodies = yield* Bodies
        const [queued, other] = [opened(), opened({ body: "other" })]
        const start = started(queued.after)
        const failed = settled(start.after, unreachable(), {
          response: { epoch: 1, attempt: 1, body: "no", headers: null }
        })
        for (const { entry } of [queued, other, start, failed]) yield* store.append([entry])
        expect(yield* bodies.erase(queued.after.id)).toBe(true)
        expect(yield* bodies.load(queued.after.id)).toBeNull()
        expect((yield* bodies.responses(queued.after.id)).answers).toEqual(new Map())
        expect(yield* bodies.erase(queued.after.id)).toBe(false)
        expect(yield* bodies.erase(newMessageId())).toBe(false)
        expect((yield* store.load(queued.after.id)).version).toBe(3)
        expect(yield* bodies.load(other.after.id)).toBe("other")
      })
    )
  })
}
