import { it } from "@effect/vitest"
import { DateTime, Deferred, Duration, Effect, Option, type Scope } from "effect"
import { describe, expect } from "vitest"
import { dispatch } from "../../../src/application/deliver/dispatch.ts"
import { Senders } from "../../../src/application/deliver/Senders.ts"
import { eraseMessage } from "../../../src/application/messages/commandMessage.ts"
import { Bodies } from "../../../src/application/ports/Bodies.ts"
import type { OutboundMessage, Reply } from "../../../src/application/ports/Channels.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { CLAIMED_BODY_MAX, Queue } from "../../../src/application/ports/Queue.ts"
import { Telemetry, unwatched } from "../../../src/application/ports/Telemetry.ts"
import type { AttemptOutcome } from "../../../src/domain/delivery/outcome.ts"
import { type MessageId, OrgId } from "../../../src/domain/ids.ts"
import { makeEndpoint } from "../../contracts/destinations/samples.ts"
import {
  delivered,
  inMillis,
  newLane,
  next,
  opened,
  type StorePorts,
  started,
  unreachable
} from "../../contracts/sample.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"
import { simulateTime } from "../../simulatedTime.ts"

simulateTime()

type Far = (message: OutboundMessage) => Effect.Effect<AttemptOutcome>

/** A worker over an empty store, sending to `far`. */
const withWorker = <A, E>(
  far: Far,
  body: (sent: ReadonlyArray<OutboundMessage>) => Effect.Effect<A, E, StorePorts | Senders | Scope.Scope>
) => {
  const sent: Array<OutboundMessage> = []
  const channel = {
    send: (message: OutboundMessage): Effect.Effect<Reply> => {
      sent.push(message)
      return Effect.map(far(message), (outcome) => ({ outcome, responseBody: "answer" }))
    },
    capacity: () => Effect.succeed(2),
    dedupes: () => Effect.succeed(true)
  }
  return Effect.scoped(body(sent)).pipe(
    Effect.provideService(Senders, { webhook: channel }),
    Effect.provide(MemoryPorts.layer)
  )
}

const worker = (
  wishes: { readonly name?: string; readonly lease?: Duration.Input; readonly grace?: Duration.Input } = {}
) =>
  dispatch({
    worker: wishes.name ?? "worker",
    concurrency: 8,
    lease: Duration.fromInputUnsafe(wishes.lease ?? "10 seconds"),
    grace: Duration.fromInputUnsafe(wishes.grace ?? "5 seconds")
  })

const put = Effect.fnUntraced(function* (...steps: ReadonlyArray<ReturnType<typeof opened>>) {
  const store = yield* EventStore
  yield* store.append(steps.map(({ entry }) => entry))
  return steps.map(({ after }) => after)
})

const history = Effect.fnUntraced(function* (id: MessageId) {
  const { facts } = yield* (yield* EventStore).load(id)
  return facts.map(({ fact }) => fact.type)
})

/** Waits until the history of `id` ends with `type`. */
const until = Effect.fnUntraced(function* (id: MessageId, type: string) {
  while ((yield* history(id)).at(-1) !== type) yield* Effect.sleep("5 millis")
  return yield* history(id)
})

const leases = Effect.fnUntraced(function* () {
  const queue = yield* Queue
  yield* Effect.sleep("30 millis")
  return yield* queue.takeOver("census", Duration.minutes(1), 1_000)
})

const succeed: Far = () => Effect.succeed(delivered)
const hang: Far = () => Effect.never

describe("a worker", () => {
  it.live("delivers what is due, with its body, and keeps the answer", () =>
    withWorker(succeed, (sent) =>
      Effect.gen(function* () {
        yield* worker()
        const [message] = yield* put(opened({ body: "[1.10]" }))
        expect(yield* until(message!.id, "MessageDelivered")).toEqual([
          "MessageQueued",
          "AttemptStarted",
          "AttemptSucceeded",
          "MessageDelivered"
        ])
        expect(sent).toMatchObject([{ messageId: message!.id, body: "[1.10]", epoch: 1, attempt: 1 }])
      })
    )
  )

  it.live("reads a large body before it starts, also from a store that does not answer at first", () => {
    const body = `"${"x".repeat(CLAIMED_BODY_MAX)}"`
    return withWorker(succeed, (sent) =>
      Effect.gen(function* () {
        const bodies = yield* Bodies
        let reads = 0
        const shaky = Bodies.of({
          ...bodies,
          load: (id) =>
            Effect.suspend(() => {
              reads += 1
              return reads < 4 ? Effect.fail(new StoreUnavailable({ cause: "away" })) : bodies.load(id)
            })
        })
        yield* Effect.provideService(worker(), Bodies, shaky)
        const [message] = yield* put(opened({ body }))
        while (reads < 3) yield* Effect.sleep("5 millis")
        expect(yield* history(message!.id)).toEqual(["MessageQueued"])
        yield* until(message!.id, "MessageDelivered")
        expect(sent).toMatchObject([{ messageId: message!.id, body }])
      })
    )
  })

  it.live("stores the start of an attempt before anything is sent", () => {
    const seen: Array<ReadonlyArray<string>> = []
    return Effect.gen(function* () {
      const store = yield* EventStore
      const far: Far = ({ messageId }) =>
        store.load(messageId).pipe(
          Effect.orDie,
          Effect.tap(({ facts }) => Effect.sync(() => seen.push(facts.map(({ fact }) => fact.type)))),
          Effect.as(delivered)
        )
      const channel = {
        send: (message: OutboundMessage) =>
          Effect.map(far(message), (outcome): Reply => ({ outcome, responseBody: null })),
        capacity: () => Effect.succeed(1),
        dedupes: () => Effect.succeed(true)
      }
      yield* worker().pipe(Effect.provideService(Senders, { webhook: channel }))
      const [message] = yield* put(opened())
      yield* until(message!.id, "MessageDelivered")
      expect(seen).toEqual([["MessageQueued", "AttemptStarted"]])
    }).pipe(Effect.scoped, Effect.provide(MemoryPorts.layer))
  })

  it.live("tries again when the wait is over, and dead-letters when no attempt is left", () =>
    withWorker(
      () => Effect.succeed(unreachable()),
      (sent) =>
        Effect.gen(function* () {
          yield* worker()
          const [message] = yield* put(
            opened({ retry: { strategy: "fixed", baseMs: 10, attemptsMax: 2, jitter: [1, 1] } })
          )
          expect(yield* until(message!.id, "MessageDeadLettered")).toEqual([
            "MessageQueued",
            "AttemptStarted",
            "AttemptFailed",
            "AttemptStarted",
            "AttemptFailed",
            "MessageDeadLettered"
          ])
          expect(sent.map(({ attempt }) => attempt)).toEqual([1, 2])
        })
    )
  )

  it.live("keeps no more requests to one destination under way than it takes, and serves the others meanwhile", () => {
    const stuck = newLane()
    return withWorker(
      ({ destination }) => (destination === stuck ? Effect.never : Effect.succeed(delivered)),
      (sent) =>
        Effect.gen(function* () {
          yield* put(...Array.from({ length: 20 }, () => opened({ destination: stuck })))
          yield* worker({ grace: "10 millis" })
          yield* Effect.sleep("50 millis")
          const [healthy] = yield* put(opened())
          yield* until(healthy!.id, "MessageDelivered")
          expect(sent.filter(({ destination }) => destination === stuck)).toHaveLength(2)
        })
    )
  })

  it.live("expires a message that is too late, and sends nothing", () =>
    withWorker(succeed, (sent) =>
      Effect.gen(function* () {
        const [message] = yield* put(opened({ expiresAt: inMillis(-10) }))
        yield* worker()
        expect(yield* until(message!.id, "MessageExpired")).toEqual(["MessageQueued", "MessageExpired"])
        expect(sent).toEqual([])
      })
    )
  )

  it.live("does not send what was cancelled after it was claimed", () =>
    Effect.gen(function* () {
      const answer = yield* Deferred.make<AttemptOutcome>()
      yield* withWorker(
        () => Deferred.await(answer),
        (sent) =>
          Effect.gen(function* () {
            const lane = newLane()
            const messages = yield* put(...Array.from({ length: 3 }, () => opened({ destination: lane })))
            yield* Effect.scoped(
              Effect.gen(function* () {
                yield* worker()
                while (sent.length < 2) yield* Effect.sleep("5 millis")
                const waiting = messages.find(({ id }) => !sent.some(({ messageId }) => messageId === id))!
                const store = yield* EventStore
                yield* store.append([next(waiting, { type: "CancelMessage", reason: null }).entry])
                yield* Deferred.succeed(answer, delivered)
                for (const { messageId } of sent) yield* until(messageId, "MessageDelivered")
                yield* Effect.sleep("30 millis")
                expect(yield* history(waiting.id)).toEqual(["MessageQueued", "MessageCancelled"])
              })
            )
            expect(sent).toHaveLength(2)
            expect(yield* leases()).toEqual([])
          })
      )
    })
  )

  it.live("counts a channel that breaks as a failed attempt and goes on", () =>
    withWorker(
      ({ attempt }) => (attempt === 1 ? Effect.die(new Error("bug")) : Effect.succeed(delivered)),
      () =>
        Effect.gen(function* () {
          yield* worker()
          const [message] = yield* put(opened())
          expect(yield* until(message!.id, "MessageDelivered")).toContain("AttemptFailed")
        })
    )
  )

  it.live("goes on when a destination can't even be asked how much it takes", () => {
    const channel = {
      send: () => Effect.succeed<Reply>({ outcome: delivered, responseBody: null }),
      capacity: () => Effect.die(new Error("its secret does not open")),
      dedupes: () => Effect.succeed(true)
    }
    return Effect.gen(function* () {
      yield* worker().pipe(Effect.provideService(Senders, { webhook: channel }))
      const [first] = yield* put(opened())
      yield* until(first!.id, "MessageDelivered")
      const [second] = yield* put(opened())
      yield* until(second!.id, "MessageDelivered")
    }).pipe(Effect.scoped, Effect.provide(MemoryPorts.layer))
  })

  it.live(
    "starts what a rate limit handed out also when the store takes longer to say so than it may wait",
    () =>
      withWorker(succeed, () =>
        Effect.gen(function* () {
          const queue = yield* Queue
          const slow = {
            ...queue,
            claim: (...request: Parameters<typeof queue.claim>) =>
              Effect.tap(queue.claim(...request), (claim) => (claim === null ? Effect.void : Effect.sleep("80 millis")))
          }
          const rateLimit = { limit: 100, periodMs: 1_000 }
          const { id } = yield* makeEndpoint(OrgId.make("acme"), { rateLimit, maxInFlight: 10, timeoutMs: 1_000 })
          yield* worker().pipe(Effect.provideService(Queue, slow))
          const [message] = yield* put(opened({ destination: id }))
          expect(yield* until(message!.id, "MessageDelivered")).toHaveLength(4)
        })
      ),
    60_000
  )

  it.live("settles what a worker that died had started, and delivers what it had not", () =>
    withWorker(succeed, () =>
      Effect.gen(function* () {
        const [open, untouched] = yield* put(opened(), opened())
        const queue = yield* Queue
        const store = yield* EventStore
        const claim = yield* queue.claim({
          worker: "dead",
          limit: 10,
          perLane: 10,
          room: new Map(),
          fullOrgs: new Set<never>(),
          lease: Duration.millis(20)
        })
        yield* store.append([started(open!, { fence: claim!.batch }).entry])
        yield* worker({ lease: "60 millis" })
        expect(yield* until(open!.id, "MessageDelivered")).toEqual([
          "MessageQueued",
          "AttemptStarted",
          "AttemptAbandoned",
          "AttemptStarted",
          "AttemptSucceeded",
          "MessageDelivered"
        ])
        expect(yield* until(untouched!.id, "MessageDelivered")).not.toContain("AttemptAbandoned")
        // The batch it works on now is its own.
        expect((yield* store.append([started(open!, { fence: claim!.batch }).entry]))[0]!.type).toBe("FenceLost")
      })
    )
  )
})

describe("a lease", () => {
  it.live("is kept for as long as the work takes, and nobody else gets the message meanwhile", () =>
    withWorker(
      () => Effect.delay(Effect.succeed(delivered), "45 seconds"),
      (sent) =>
        Effect.gen(function* () {
          yield* worker({ name: "one" })
          yield* worker({ name: "other" })
          const [message] = yield* put(opened())
          yield* Effect.sleep("1 minute")
          expect(yield* history(message!.id)).toEqual([
            "MessageQueued",
            "AttemptStarted",
            "AttemptSucceeded",
            "MessageDelivered"
          ])
          expect(sent).toHaveLength(1)
        })
    )
  )
})

describe("the loss of a lease", () => {
  /** Runs a worker with one message under way, whose renewals and releases the test lets through, and answers how many were lost. */
  const lostWhile = (
    body: (at: {
      readonly message: MessageId
      readonly endAttempt: Effect.Effect<unknown>
      readonly renewing: Effect.Effect<void>
      readonly answerRenewal: Effect.Effect<unknown>
      readonly answerRelease: Effect.Effect<unknown>
    }) => Effect.Effect<void, never, StorePorts>
  ) =>
    Effect.gen(function* () {
      const attemptEnds = yield* Deferred.make<void>()
      const renewing = yield* Deferred.make<void>()
      const renewalAnswers = yield* Deferred.make<void>()
      const releaseAnswers = yield* Deferred.make<void>()
      let lost = 0
      return yield* withWorker(
        () => Effect.as(Deferred.await(attemptEnds), delivered),
        () =>
          Effect.gen(function* () {
            const queue = yield* Queue
            // The store answers what it finds when it is let, and its answers can be late.
            const late: Queue["Service"] = {
              ...queue,
              renew: (...renewal) =>
                Deferred.succeed(renewing, undefined).pipe(
                  Effect.andThen(Deferred.await(renewalAnswers)),
                  Effect.andThen(queue.renew(...renewal))
                ),
              release: (...release) => Effect.tap(queue.release(...release), () => Deferred.await(releaseAnswers))
            }
            const telemetry = {
              ...unwatched,
              leaseLost: () => {
                lost += 1
              }
            }
            yield* worker({ lease: "30 seconds" }).pipe(
              Effect.provideService(Queue, late),
              Effect.provideService(Telemetry, telemetry)
            )
            const [message] = yield* put(opened())
            yield* until(message!.id, "AttemptStarted")
            yield* body({
              message: message!.id,
              endAttempt: Deferred.succeed(attemptEnds, undefined),
              renewing: Deferred.await(renewing),
              answerRenewal: Deferred.succeed(renewalAnswers, undefined),
              answerRelease: Deferred.succeed(releaseAnswers, undefined)
            })
            yield* Effect.sleep("1 second")
            const counted = lost
            for (const door of [attemptEnds, renewalAnswers, releaseAnswers]) yield* Deferred.succeed(door, undefined)
            return counted
          })
      )
    })

  it.live("is told when another worker took the batch over", () =>
    Effect.gen(function* () {
      const lost = yield* lostWhile(
        Effect.fnUntraced(function* ({ renewing, answerRenewal }) {
          yield* renewing
          yield* Effect.sleep("1 minute")
          expect(yield* Effect.orDie((yield* Queue).takeOver("another", Duration.minutes(1), 10))).toHaveLength(1)
          yield* answerRenewal
        })
      )
      expect(lost).toBe(1)
    })
  )

  it.live("is not told of a batch that ended while its renewal was on its way", () =>
    Effect.gen(function* () {
      const lost = yield* lostWhile(
        Effect.fnUntraced(function* ({ message, renewing, endAttempt, answerRelease, answerRenewal }) {
          yield* renewing
          yield* answerRelease
          yield* endAttempt
          yield* Effect.orDie(until(message, "MessageDelivered"))
          yield* Effect.sleep("1 second")
          yield* answerRenewal
        })
      )
      expect(lost).toBe(0)
    })
  )

  it.live("is not told of a batch whose release is still unanswered", () =>
    Effect.gen(function* () {
      const lost = yield* lostWhile(
        Effect.fnUntraced(function* ({ message, renewing, endAttempt, answerRenewal }) {
          yield* renewing
          yield* endAttempt
          yield* Effect.orDie(until(message, "MessageDelivered"))
          yield* Effect.sleep("1 second")
          yield* answerRenewal
        })
      )
      expect(lost).toBe(0)
    })
  )
})

describe("a worker that stood still for longer than its lease", () => {
  /** What the queue says to a worker that can't hear it until it has woken up. */
  const deafUntil = (awake: () => boolean) =>
    Effect.map(Queue, (queue): Queue["Service"] => ({
      ...queue,
      renew: (...renewal) => Effect.suspend(() => (awake() ? queue.renew(...renewal) : Effect.never)),
      takeOver: () => Effect.succeed([])
    }))

  it.live.each([true, false])("sends only what nobody has taken over meanwhile (taken over: %s)", (isTakenOver) => {
    const sent: Array<OutboundMessage> = []
    let awake = false
    return Effect.gen(function* () {
      const queue = yield* Queue
      const standStill = Effect.gen(function* () {
        yield* Effect.sleep("60 millis")
        if (isTakenOver) yield* Effect.orDie(queue.takeOver("another", Duration.minutes(1), 10))
        awake = true
        return true
      })
      const channel = {
        send: (message: OutboundMessage) =>
          Effect.sync((): Reply => {
            sent.push(message)
            return { outcome: delivered, responseBody: null }
          }),
        capacity: () => Effect.succeed(1),
        dedupes: () => standStill
      }
      const [message] = yield* put(opened())
      yield* worker({ lease: "30 millis" }).pipe(
        Effect.provideService(Senders, { webhook: channel }),
        Effect.provideService(Queue, yield* deafUntil(() => awake))
      )
      if (isTakenOver) {
        while (!awake) yield* Effect.sleep("5 millis")
        yield* Effect.sleep("50 millis")
      } else yield* until(message!.id, "MessageDelivered")
      expect([sent.length, (yield* history(message!.id)).at(-1)]).toEqual(
        isTakenOver ? [0, "AttemptStarted"] : [1, "MessageDelivered"]
      )
    }).pipe(Effect.scoped, Effect.provide(MemoryPorts.layer))
  })
})

describe("an erasure", () => {
  const erase = (id: MessageId, orgId: OrgId) => eraseMessage(orgId, id, null)
  const orgOf = (step: ReturnType<typeof opened>) => {
    const [fact] = step.entry.facts
    return fact?.type === "MessageQueued" ? fact.orgId : OrgId.make("nobody")
  }

  it.live("between claim and start leaves nothing to send", () =>
    withWorker(
      () => Effect.delay(Effect.succeed(delivered), "100 millis"),
      (sent) =>
        Effect.gen(function* () {
          const lane = newLane()
          const steps = Array.from({ length: 3 }, () => opened({ destination: lane }))
          const messages = yield* put(...steps)
          yield* worker()
          while (sent.length < 2) yield* Effect.sleep("5 millis")
          const waiting = messages.findIndex(({ id }) => sent.every(({ messageId }) => messageId !== id))
          yield* erase(messages[waiting]!.id, orgOf(steps[waiting]!))
          expect((yield* until(messages[waiting]!.id, "MessageFailed")).slice(1)).toEqual([
            "MessageBodyErased",
            "AttemptStarted",
            "AttemptFailed",
            "MessageFailed"
          ])
          expect(sent).toHaveLength(2)
        })
    )
  )

  it.live("while it is sent keeps no answer, and is no reason to send again", () =>
    Effect.gen(function* () {
      const [asked, answer] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const slow: Far = () =>
        Deferred.succeed(asked, undefined).pipe(Effect.andThen(Deferred.await(answer)), Effect.as(delivered))
      yield* withWorker(slow, (sent) =>
        Effect.gen(function* () {
          yield* worker()
          const step = opened()
          const [message] = yield* put(step)
          yield* Deferred.await(asked)
          yield* erase(message!.id, orgOf(step))
          yield* Deferred.succeed(answer, undefined)
          yield* until(message!.id, "MessageDelivered")
          expect((yield* (yield* Bodies).responses(message!.id)).answers.size).toBe(0)
          expect(sent).toHaveLength(1)
        })
      )
    })
  )

  it.live("before a worker went away does not hide the attempt it left open", () =>
    withWorker(succeed, () =>
      Effect.gen(function* () {
        const queue = yield* Queue
        const store = yield* EventStore
        const step = opened({ retry: { strategy: "fixed", baseMs: 0, attemptsMax: 1 } })
        const [message] = yield* put(step)
        const claim = yield* queue.claim({
          worker: "gone",
          limit: 10,
          perLane: 10,
          room: new Map(),
          fullOrgs: new Set<never>(),
          lease: Duration.millis(50)
        })
        yield* erase(message!.id, orgOf(step))
        const erased = { ...message!, version: 2 }
        yield* store.append([started(erased, { fence: claim!.batch }).entry])
        yield* Effect.sleep("60 millis")
        yield* worker()
        expect((yield* until(message!.id, "MessageDeadLettered")).slice(2)).toEqual([
          "AttemptStarted",
          "AttemptAbandoned",
          "MessageDeadLettered"
        ])
      })
    )
  )
})

describe("stopping a worker", () => {
  it.live("waits for what is under way and leaves no lease", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<void>()
      const slow: Far = () =>
        Deferred.succeed(asked, undefined).pipe(Effect.andThen(Effect.sleep("50 millis")), Effect.as(delivered))
      yield* withWorker(slow, () =>
        Effect.gen(function* () {
          const [message] = yield* put(opened())
          yield* Effect.scoped(worker().pipe(Effect.andThen(Deferred.await(asked))))
          expect((yield* history(message!.id)).at(-1)).toBe("MessageDelivered")
          expect(yield* leases()).toEqual([])
        })
      )
    })
  )

  it.live("abandons what does not end in time, visibly, and leaves the rest waiting", () =>
    withWorker(hang, (sent) =>
      Effect.gen(function* () {
        const lane = newLane()
        const messages = yield* put(
          ...Array.from({ length: 4 }, () =>
            opened({ destination: lane, retry: { strategy: "fixed", baseMs: 60_000, attemptsMax: 3 } })
          )
        )
        yield* Effect.scoped(worker({ grace: "30 millis" }).pipe(Effect.andThen(Effect.sleep("50 millis"))))
        expect(sent).toHaveLength(2)
        for (const { id } of messages) {
          const facts = yield* history(id)
          const wasSent = sent.some(({ messageId }) => messageId === id)
          expect(facts.at(-1)).toBe(wasSent ? "AttemptAbandoned" : "MessageQueued")
        }
        expect(yield* leases()).toEqual([])
        const queue = yield* Queue
        const again = yield* queue.claim({
          worker: "next",
          limit: 10,
          perLane: 10,
          room: new Map(),
          fullOrgs: new Set<never>(),
          lease: Duration.minutes(1)
        })
        expect(again!.messages).toHaveLength(2)
        expect(DateTime.isDateTime(again!.messages[0]!.dueAt)).toBe(true)
      })
    )
  )

  it.live("does not wait for a store that is silent: what it can't hand back waits for its lease", () =>
    withWorker(hang, () =>
      Effect.gen(function* () {
        const queue = yield* Queue
        const silent = Effect.fail(new StoreUnavailable({ cause: new Error("silent") }))
        const lane = newLane()
        const more = (length: number) => put(...Array.from({ length }, () => opened({ destination: lane })))
        yield* more(2)
        // The second batch finds no slot: all of it has to be handed back.
        const busy = worker({ grace: "30 millis" }).pipe(
          Effect.andThen(Effect.sleep("40 millis")),
          Effect.andThen(more(3)),
          Effect.andThen(Effect.sleep("40 millis"))
        )
        const stopped = Effect.scoped(busy).pipe(
          Effect.provideService(Queue, { ...queue, release: () => silent }),
          Effect.timeoutOption("10 seconds")
        )
        expect(Option.isSome(yield* stopped)).toBe(true)
      })
    )
  )
})
