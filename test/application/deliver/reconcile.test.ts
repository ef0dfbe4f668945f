/** What becomes of attempts that may have been taken, where the far side would not drop a duplicate. */
import { it } from "@effect/vitest"
import { DateTime, Duration, Effect, type Scope } from "effect"
import { describe, expect } from "vitest"
import { dispatch } from "../../../src/application/deliver/dispatch.ts"
import { type Sender, Senders } from "../../../src/application/deliver/Senders.ts"
import { Bodies } from "../../../src/application/ports/Bodies.ts"
import type { Doubted, OutboundMessage } from "../../../src/application/ports/Channels.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import type { AttemptOutcome } from "../../../src/domain/delivery/outcome.ts"
import type { DestinationId, MessageId } from "../../../src/domain/ids.ts"
import {
  delivered,
  newLane,
  opened,
  type Sample,
  type StorePorts,
  started,
  unreachable
} from "../../contracts/sample.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"
import { simulateTime } from "../../simulatedTime.ts"

simulateTime()

const unknown = (reconcileAfterMs: number | null = 1): AttemptOutcome => ({
  type: "Unknown",
  error: { code: "outcome_unknown", message: "it may have been taken", retryable: false },
  status: null,
  reconcileAfterMs,
  durationMs: 3
})

/** What was asked of the channel, in order. */
interface Seen {
  readonly sent: Array<OutboundMessage>
  readonly asked: Array<Doubted>
  /** Destinations that were asked whether they drop duplicates. */
  readonly judged: Array<DestinationId>
}

interface Far {
  readonly send: (message: OutboundMessage) => Effect.Effect<AttemptOutcome>
  /** `nth` counts from 1. Absent: there is nobody to ask. */
  readonly reconcile?: (message: Doubted, nth: number) => Effect.Effect<AttemptOutcome>
  /** How long the channel wants an attempt to be in doubt before it is asked. */
  readonly doubtMs?: number
  /** Runs before the channel says that duplicates are not dropped. */
  readonly beforeJudging?: Effect.Effect<void, never, Queue>
}

/** A store, and a channel to `far` that can't dedupe. */
const against = <A, E>(far: Far, body: (seen: Seen) => Effect.Effect<A, E, StorePorts | Senders | Scope.Scope>) =>
  Effect.gen(function* () {
    const seen: Seen = { sent: [], asked: [], judged: [] }
    const queue = yield* Queue
    const reply = (outcome: AttemptOutcome) => ({ outcome, responseBody: "answer" })
    const { reconcile } = far
    const channel: Sender = {
      send: (message) => {
        seen.sent.push(message)
        return Effect.map(far.send(message), reply)
      },
      capacity: () => Effect.succeed(10),
      dedupes: (_, destination) => {
        seen.judged.push(destination)
        return (far.beforeJudging ?? Effect.void).pipe(Effect.provideService(Queue, queue), Effect.as(false))
      },
      ...(far.doubtMs === undefined ? {} : { doubtMs: () => Effect.succeed(far.doubtMs!) }),
      ...(reconcile === undefined
        ? {}
        : {
            reconcile: (message) => {
              seen.asked.push(message)
              return Effect.map(reconcile(message, seen.asked.length), reply)
            }
          })
    }
    return yield* body(seen).pipe(Effect.provideService(Senders, { http: channel }))
  }).pipe(Effect.scoped, Effect.provide(MemoryPorts.layer))

const worker = (lease: Duration.Input = "10 seconds", grace: Duration.Input = "5 seconds") =>
  dispatch({
    worker: "worker",
    concurrency: 8,
    lease: Duration.fromInputUnsafe(lease),
    grace: Duration.fromInputUnsafe(grace)
  })

const put = Effect.fnUntraced(function* (...wishes: ReadonlyArray<Parameters<typeof opened>[0]>) {
  const steps = wishes.map((wish) => opened({ channel: "http", ...wish }))
  yield* (yield* EventStore).append(steps.map(({ entry }) => entry))
  return steps.map(({ after }) => after)
})

const facts = (id: MessageId) =>
  Effect.flatMap(EventStore, (store) => Effect.map(store.load(id), (stream) => stream.facts.map(({ fact }) => fact)))

/** Waits until the history of `id` ends with `type`; answers what follows `MessageQueued`. */
const until = Effect.fnUntraced(function* (id: MessageId, type: string) {
  while ((yield* facts(id)).at(-1)!.type !== type) yield* Effect.sleep("5 millis")
  return (yield* facts(id)).slice(1).map((fact) => fact.type)
})

const send = () => Effect.succeed(unknown())

describe("an attempt in doubt", () => {
  it.live("is delivered when the far side says that it was taken, and sent once", () =>
    against({ send, reconcile: () => Effect.succeed(delivered) }, ({ sent, asked }) =>
      Effect.gen(function* () {
        yield* worker()
        const [message] = yield* put({})
        expect(yield* until(message!.id, "MessageDelivered")).toEqual([
          "AttemptStarted",
          "AttemptUnresolved",
          "AttemptSucceeded",
          "MessageDelivered"
        ])
        expect(sent).toHaveLength(1)
        expect(asked).toMatchObject([{ messageId: message!.id, destination: message!.lane, epoch: 1, attempt: 1 }])
        expect((yield* (yield* Bodies).responses(message!.id)).answers.get("1/1")?.body).toBe("answer")
      })
    )
  )

  it.live("is sent again when the far side says that it was not taken", () =>
    against(
      {
        send: ({ attempt }) => Effect.succeed(attempt === 1 ? unknown() : delivered),
        reconcile: () => Effect.succeed(unreachable())
      },
      ({ sent, asked }) =>
        Effect.gen(function* () {
          yield* worker()
          const [message] = yield* put({})
          expect(yield* until(message!.id, "MessageDelivered")).toEqual([
            "AttemptStarted",
            "AttemptUnresolved",
            "AttemptFailed",
            "AttemptStarted",
            "AttemptSucceeded",
            "MessageDelivered"
          ])
          expect(sent.map(({ attempt }) => attempt)).toEqual([1, 2])
          expect(asked).toHaveLength(1)
        })
    )
  )

  it.live("is asked about until it is known", () =>
    against({ send, reconcile: (_, nth) => Effect.succeed(nth < 3 ? unknown() : delivered) }, ({ sent, asked }) =>
      Effect.gen(function* () {
        yield* worker()
        const [message] = yield* put({})
        expect(yield* until(message!.id, "MessageDelivered")).toEqual([
          "AttemptStarted",
          "AttemptUnresolved",
          "AttemptUnresolved",
          "AttemptUnresolved",
          "AttemptSucceeded",
          "MessageDelivered"
        ])
        expect([sent.length, asked.length]).toEqual([1, 3])
      })
    )
  )

  it.live("is doubted once, however often the store does not say that it has written the doubt", () =>
    against({ send: () => Effect.succeed(unknown(150)), reconcile: () => Effect.succeed(delivered) }, ({ asked }) =>
      Effect.gen(function* () {
        const real = yield* EventStore
        const away = Effect.fail(new StoreUnavailable({ cause: new Error("away") }))
        const forgetful: EventStore["Service"] = {
          ...real,
          append: (entries) =>
            entries[0]!.facts[0]!.type === "AttemptUnresolved"
              ? Effect.andThen(real.append(entries), away)
              : real.append(entries)
        }
        const [message] = yield* put({})
        yield* worker().pipe(Effect.provideService(EventStore, forgetful))
        expect(yield* until(message!.id, "MessageDelivered")).toEqual([
          "AttemptStarted",
          "AttemptUnresolved",
          "AttemptSucceeded",
          "MessageDelivered"
        ])
        expect(asked).toHaveLength(1)
      })
    )
  )

  it.live("becomes a dead letter when five questions told nothing", () =>
    against({ send, reconcile: () => Effect.succeed(unknown()) }, ({ sent, asked }) =>
      Effect.gen(function* () {
        yield* worker()
        const [message] = yield* put({})
        yield* until(message!.id, "MessageDeadLettered")
        expect((yield* facts(message!.id)).at(-1)).toMatchObject({ reason: "outcome unknown" })
        expect([sent.length, asked.length]).toEqual([1, 5])
      })
    )
  )

  it.live("becomes a dead letter after its wait when there is nobody to ask", () =>
    against({ send }, ({ sent }) =>
      Effect.gen(function* () {
        yield* worker()
        const [message] = yield* put({})
        expect(yield* until(message!.id, "MessageDeadLettered")).toEqual([
          "AttemptStarted",
          "AttemptUnresolved",
          "AttemptFailed",
          "MessageDeadLettered"
        ])
        expect((yield* facts(message!.id)).at(-1)).toMatchObject({ reason: "outcome unknown" })
        expect(sent).toHaveLength(1)
      })
    )
  )

  it.live("is not taken for a failure because its channel is not set up here", () =>
    against({ send: () => Effect.succeed(unknown(50)) }, () =>
      Effect.gen(function* () {
        const [message] = yield* put({})
        yield* Effect.scoped(worker().pipe(Effect.andThen(until(message!.id, "AttemptUnresolved"))))
        yield* worker().pipe(Effect.provideService(Senders, {}))
        yield* until(message!.id, "MessageDeadLettered")
      })
    )
  )

  it.live("is still asked about when its body was erased", () =>
    against({ send: () => Effect.succeed(unknown(50)), reconcile: () => Effect.succeed(delivered) }, () =>
      Effect.gen(function* () {
        yield* worker()
        const [message] = yield* put({})
        yield* until(message!.id, "AttemptUnresolved")
        yield* (yield* Bodies).erase(message!.id)
        yield* until(message!.id, "MessageDelivered")
      })
    )
  )

  it.live("stays in doubt when the channel breaks while asking", () =>
    against({ send, reconcile: () => Effect.die(new Error("bug")) }, ({ sent, asked }) =>
      Effect.gen(function* () {
        yield* worker()
        const [message] = yield* put({})
        while (asked.length === 0) yield* Effect.sleep("5 millis")
        expect(yield* until(message!.id, "AttemptUnresolved")).not.toContain("AttemptFailed")
        expect(sent).toHaveLength(1)
      })
    )
  )
})

describe("a send that breaks in the middle", () => {
  it.live("by a bug in its channel is in doubt", () =>
    against({ send: () => Effect.die(new Error("bug")), reconcile: () => Effect.succeed(delivered) }, ({ sent }) =>
      Effect.gen(function* () {
        yield* worker()
        const [message] = yield* put({})
        expect(yield* until(message!.id, "AttemptUnresolved")).toEqual(["AttemptStarted", "AttemptUnresolved"])
        expect(sent).toHaveLength(1)
      })
    )
  )

  it.live("by the worker's stop is in doubt", () =>
    against({ send: () => Effect.never }, ({ sent }) =>
      Effect.gen(function* () {
        const [message] = yield* put({})
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* worker("10 seconds", "10 millis")
            while (sent.length === 0) yield* Effect.sleep("5 millis")
          })
        )
        expect(yield* until(message!.id, "AttemptUnresolved")).toEqual(["AttemptStarted", "AttemptUnresolved"])
      })
    )
  )

  /** A worker claims and starts all that is due, and is never heard of again. */
  const die = Effect.fnUntraced(function* (messages: ReadonlyArray<Sample>) {
    const queue = yield* Queue
    const lease = Duration.millis(20)
    const claim = yield* queue.claim({
      worker: "dead",
      limit: 10,
      perLane: 10,
      room: new Map(),
      fullOrgs: new Set<never>(),
      lease
    })
    expect(claim!.messages).toHaveLength(messages.length)
    const store = yield* EventStore
    yield* store.append(messages.map((message) => started(message, { fence: claim!.batch }).entry))
  })

  it.live("by the worker's death is in doubt, to be asked about later; each destination is judged once", () =>
    against({ send }, ({ sent, judged }) =>
      Effect.gen(function* () {
        const [one, other] = [newLane(), newLane()]
        const messages = yield* put({ destination: one }, { destination: one }, { destination: other })
        yield* die(messages)
        yield* worker("60 millis")
        for (const { id } of messages) {
          expect(yield* until(id, "AttemptUnresolved")).toEqual(["AttemptStarted", "AttemptUnresolved"])
          const doubt = (yield* facts(id)).at(-1)!
          if (doubt.type !== "AttemptUnresolved") throw new Error("not in doubt")
          expect(doubt.error).toEqual({ code: "abandoned", message: "the worker went away", retryable: true })
          expect(DateTime.toEpochMillis(doubt.reconcileAt) - Date.now()).toBeGreaterThan(3_000)
        }
        expect(sent).toEqual([])
        expect(judged.toSorted()).toEqual([one, other].toSorted())
      })
    )
  )

  it.live("by death or by a bug is in doubt for as long as its channel says", () =>
    against({ send: () => Effect.die(new Error("bug")), doubtMs: 90_000 }, () =>
      Effect.gen(function* () {
        const abandoned = yield* put({})
        yield* die(abandoned)
        yield* worker("60 millis")
        for (const { id } of [...abandoned, ...(yield* put({}))]) {
          yield* until(id, "AttemptUnresolved")
          const doubt = (yield* facts(id)).at(-1)!
          if (doubt.type !== "AttemptUnresolved") throw new Error("not in doubt")
          expect(DateTime.toEpochMillis(doubt.reconcileAt) - Date.now()).toBeGreaterThan(80_000)
        }
      })
    )
  )

  it.live("by the worker's death is in doubt when nobody here knows its channel", () =>
    against({ send }, () =>
      Effect.gen(function* () {
        const messages = yield* put({})
        yield* die(messages)
        yield* worker("60 millis").pipe(Effect.provideService(Senders, {}))
        expect(yield* until(messages[0]!.id, "AttemptUnresolved")).not.toContain("AttemptAbandoned")
      })
    )
  )
})

describe("a worker that stood still between start and send", () => {
  it.live("sends nothing once its batch was taken over", () => {
    let stoodStill = true
    const standStill = Effect.gen(function* () {
      const queue = yield* Queue
      yield* Effect.sleep("40 millis")
      expect(yield* queue.takeOver("another", Duration.minutes(1), 10).pipe(Effect.orDie)).toHaveLength(1)
      stoodStill = false
    })
    /** The queue as a process sees it that renews and takes over nothing while it stands still. */
    const seenFromThere = Effect.map(Queue, (queue) => ({
      ...queue,
      renew: (...renewal: Parameters<typeof queue.renew>) =>
        stoodStill ? Effect.succeed(new Set(renewal[0])) : queue.renew(...renewal),
      takeOver: () => Effect.succeed([])
    }))
    return against({ send, beforeJudging: standStill }, ({ sent }) =>
      Effect.gen(function* () {
        const [message] = yield* put({})
        yield* worker("20 millis").pipe(Effect.provideService(Queue, yield* seenFromThere))
        while (stoodStill) yield* Effect.sleep("5 millis")
        yield* Effect.sleep("50 millis")
        expect(sent).toEqual([])
        expect((yield* facts(message!.id)).at(-1)!.type).toBe("AttemptStarted")
      })
    )
  })

  it.live("asks on when the store can't say whether it still holds its batch, and then sends", () =>
    against({ send: () => Effect.succeed(delivered) }, ({ sent }) =>
      Effect.gen(function* () {
        let failures = 2
        const away = Effect.fail(new StoreUnavailable({ cause: new Error("away") }))
        const now = yield* Queue
        const soon: Queue["Service"] = {
          ...now,
          renew: (...renewal) => Effect.suspend(() => (failures-- > 0 ? away : now.renew(...renewal)))
        }
        const [message] = yield* put({})
        yield* worker().pipe(Effect.provideService(Queue, soon))
        yield* until(message!.id, "MessageDelivered")
        expect([sent.length, failures < 0]).toEqual([1, true])
      })
    )
  )
})
