/**
 * What a worker does with one message, step by step, over the memory store and in simulated time: the claim, and a call to a
 * payment provider behind its circuit.
 */
import { it } from "@effect/vitest"
import { DateTime, Duration, Effect, type Scope } from "effect"
import { describe, expect } from "vitest"
import { dispatch } from "../../../src/application/deliver/dispatch.ts"
import { Senders } from "../../../src/application/deliver/Senders.ts"
import type { OutboundMessage, Reply } from "../../../src/application/ports/Channels.ts"
import { Circuits } from "../../../src/application/ports/Circuits.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import type { AttemptOutcome } from "../../../src/domain/delivery/outcome.ts"
import { presets } from "../../../src/domain/delivery/retry.ts"
import type { DestinationId, MessageId } from "../../../src/domain/ids.ts"
import { asWorker } from "../../contracts/deliver/claims.ts"
import { delivered, inMillis, newLane, now, opened, type StorePorts, unreachable } from "../../contracts/sample.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"
import { simulateTime } from "../../simulatedTime.ts"

simulateTime()

const circuit = { failuresMax: 5, openMs: 30_000, openMaxMs: 30_000 }
/** 1, 2, 4, 8, 16 s, without chance. */
const retry = { ...presets.payments, jitter: [1, 1] } as const

interface Calls {
  /** One for each, and when it came, in milliseconds. */
  readonly calls: ReadonlyArray<{ readonly at: number; readonly message: OutboundMessage }>
}

/** One worker over an empty store, and a provider that answers `answer`. */
const withProvider = <A, E>(
  answer: (message: OutboundMessage) => AttemptOutcome,
  body: (provider: Calls) => Effect.Effect<A, E, StorePorts | Senders | Scope.Scope>
) => {
  const calls: Array<Calls["calls"][number]> = []
  const channel = {
    send: (message: OutboundMessage): Effect.Effect<Reply> =>
      Effect.sync(() => {
        calls.push({ at: DateTime.toEpochMillis(now()), message })
        return { outcome: answer(message), responseBody: null }
      }),
    capacity: () => Effect.succeed(1),
    dedupes: () => Effect.succeed(true)
  }
  const worker = dispatch({
    worker: "worker",
    concurrency: 8,
    lease: Duration.minutes(2),
    grace: Duration.seconds(5),
    circuit
  })
  return Effect.scoped(Effect.andThen(worker, body({ calls }))).pipe(
    Effect.provideService(Senders, { webhook: channel }),
    Effect.provide(MemoryPorts.layer)
  )
}

const put = Effect.fnUntraced(function* (...wishes: ReadonlyArray<Parameters<typeof opened>[0]>) {
  const steps = wishes.map((wish) => opened({ retry, ...wish }))
  yield* (yield* EventStore).append(steps.map(({ entry }) => entry))
  return steps.map(({ after }) => after.id)
})

const history = Effect.fnUntraced(function* (id: MessageId) {
  return (yield* (yield* EventStore).load(id)).facts.map(({ fact }) => fact)
})

const typesOf = (id: MessageId) => Effect.map(history(id), (facts) => facts.map(({ type }) => type))

const circuitOf = Effect.fnUntraced(function* (destination: DestinationId) {
  return (yield* (yield* Circuits).states([destination]))[0]!
})

describe("the relay", () => {
  it.live("1. picks up only what is ready: new, or its wait after a failure over", () =>
    withProvider(
      () => unreachable(),
      ({ calls }) =>
        Effect.gen(function* () {
          const start = DateTime.toEpochMillis(now())
          const [fresh, later] = yield* put({}, { dueAt: inMillis(10_000) })
          yield* Effect.sleep("2 seconds")
          const seen = () => calls.map(({ message }) => [message.messageId, message.attempt])
          expect(seen()).toEqual([
            [fresh, 1],
            [fresh, 2]
          ])
          expect(calls[1]!.at - start).toBeGreaterThanOrEqual(1_000)
          yield* Effect.sleep("9 seconds")
          expect(seen()).toContainEqual([later, 1])
        })
    )
  )

  it.live(
    "2. takes the oldest first, 3. no more than its limit, 4. and passes over what another worker has taken",
    () =>
      Effect.gen(function* () {
        const queue = yield* Queue
        const destination = newLane()
        const [second, first, third] = yield* put(
          ...[-2_000, -3_000, -1_000].map((ago) => ({ destination, dueAt: inMillis(ago) }))
        )
        const claimed = Effect.fnUntraced(function* (worker: string) {
          const claim = yield* queue.claim({ ...asWorker(worker), limit: 2 })
          return claim?.messages.map(({ messageId }) => messageId) ?? []
        })
        expect(yield* claimed("one")).toEqual([first, second])
        expect(yield* claimed("another")).toEqual([third])
        expect(yield* claimed("one")).toEqual([])
      }).pipe(Effect.provide(MemoryPorts.layer))
  )

  it.live("5. is done with what was taken", () =>
    withProvider(
      () => delivered,
      ({ calls }) =>
        Effect.gen(function* () {
          const [id] = yield* put({})
          yield* Effect.sleep("1 minute")
          expect((yield* typesOf(id!)).at(-1)).toBe("MessageDelivered")
          expect(calls).toHaveLength(1)
        })
    )
  )

  it.live("6. keeps the error of a failure, counts it and puts the message back for later", () =>
    withProvider(
      () => unreachable(),
      () =>
        Effect.gen(function* () {
          const before = now()
          const [id] = yield* put({})
          yield* Effect.sleep("500 millis")
          const last = (yield* history(id!)).at(-1)!
          expect(last).toMatchObject({ type: "AttemptFailed", attempt: 1, error: { code: "http_503" } })
          if (last.type !== "AttemptFailed") return
          const wait = DateTime.toEpochMillis(last.retryAt!) - DateTime.toEpochMillis(before)
          expect(wait).toBeGreaterThanOrEqual(1_000)
          expect(wait).toBeLessThan(1_500)
        })
    )
  )

  it.live("7. makes it a dead letter when no attempt is left, and calls no more", () =>
    withProvider(
      () => unreachable(),
      ({ calls }) =>
        Effect.gen(function* () {
          const [id] = yield* put({ retry: { ...retry, attemptsMax: 3 } })
          yield* Effect.sleep("1 hour")
          expect((yield* typesOf(id!)).at(-1)).toBe("MessageDeadLettered")
          expect(calls.map(({ message }) => message.attempt)).toEqual([1, 2, 3])
        })
    )
  )
})

describe("a call to a payment provider", () => {
  it.live("1. that answers leaves its circuit closed", () =>
    withProvider(
      () => delivered,
      () =>
        Effect.gen(function* () {
          const destination = newLane()
          const [id] = yield* put({ destination })
          yield* Effect.sleep("1 second")
          expect((yield* typesOf(id!)).at(-1)).toBe("MessageDelivered")
          expect(yield* circuitOf(destination)).toMatchObject({ status: "CLOSED", failures: 0 })
        })
    )
  )

  it.live("2. that fails counts, and comes again after 1, 2, 4 and 8 s while the circuit is closed", () =>
    withProvider(
      () => unreachable(),
      ({ calls }) =>
        Effect.gen(function* () {
          const destination = newLane()
          yield* put({ destination })
          yield* Effect.sleep("10 seconds")
          expect(yield* circuitOf(destination)).toMatchObject({ status: "CLOSED", failures: 4 })
          yield* Effect.sleep("8 seconds")
          const waits = calls.slice(1).map(({ at }, n) => Math.round((at - calls[n]!.at) / 1_000))
          expect(waits).toEqual([1, 2, 4, 8])
        })
    )
  )

  it.live(
    "3. opens the circuit with the fifth failure in a row, 4. is not made while it is open, and waits unharmed",
    () => {
      const destination = newLane()
      return withProvider(
        () => unreachable(),
        ({ calls }) =>
          Effect.gen(function* () {
            const [first] = yield* put({ destination })
            yield* Effect.sleep("20 seconds")
            expect(yield* circuitOf(destination)).toMatchObject({ status: "OPEN" })
            const [second] = yield* put({ destination })
            yield* Effect.sleep("20 seconds")
            expect(calls).toHaveLength(5)
            expect(yield* typesOf(second!)).toEqual(["MessageQueued"])
            // Its own sixth attempt is due, and it is not used up.
            expect((yield* typesOf(first!)).filter((type) => type === "AttemptStarted")).toHaveLength(5)
          })
      )
    }
  )

  it.live(
    "5. is made once after 30 s to find out, 6. and again not while that one fails, 7. or closes the circuit",
    () => {
      const destination = newLane()
      let isBack = false
      return withProvider(
        () => (isBack ? delivered : unreachable()),
        ({ calls }) =>
          Effect.gen(function* () {
            const [id] = yield* put({ destination, retry: { ...retry, attemptsMax: 20 } })
            yield* Effect.sleep("17 seconds")
            expect(calls).toHaveLength(5)
            yield* Effect.sleep("40 seconds")
            expect(calls).toHaveLength(6)
            expect(calls[5]!.at - calls[4]!.at).toBeGreaterThanOrEqual(30_000)
            expect(yield* circuitOf(destination)).toMatchObject({ status: "OPEN" })
            isBack = true
            yield* Effect.sleep("2 minutes")
            expect(calls).toHaveLength(7)
            expect(yield* circuitOf(destination)).toMatchObject({ status: "CLOSED" })
            expect((yield* typesOf(id!)).at(-1)).toBe("MessageDelivered")
          })
      )
    }
  )
})
