/** What workers do when the far side did not try a message: nobody's attempts are burnt, and only what must wait waits. */

import { it } from "@effect/vitest"
import { DateTime, Duration, Effect, type Scope } from "effect"
import { describe, expect } from "vitest"
import { dispatch } from "../../../src/application/deliver/dispatch.ts"
import { Senders } from "../../../src/application/deliver/Senders.ts"
import { Bodies } from "../../../src/application/ports/Bodies.ts"
import type { OutboundMessage } from "../../../src/application/ports/Channels.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import type { AttemptOutcome } from "../../../src/domain/delivery/outcome.ts"
import type { DestinationId, MessageId } from "../../../src/domain/ids.ts"
import { replay } from "../../../src/domain/message/decider.ts"
import { circuitFacts } from "../../contracts/destinations/samples.ts"
import { delivered, inMillis, newLane, opened, type StorePorts } from "../../contracts/sample.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"
import { simulateTime } from "../../simulatedTime.ts"

simulateTime()

const OPEN_MS = 300
const CAPACITY = 4

const deferred = (scope: "message" | "lane" | "circuit", afterMs: number): AttemptOutcome => ({
  type: "Deferred",
  error: { code: "190", message: "access token has expired", retryable: true },
  status: 401,
  scope,
  afterMs,
  durationMs: 1
})

type Far = (message: OutboundMessage, nth: number) => AttemptOutcome | Effect.Effect<AttemptOutcome>

interface Seen {
  readonly at: number
  readonly messageId: MessageId
  readonly destination: DestinationId
  readonly attempt: number
}

const now = () => DateTime.toEpochMillis(inMillis(0))

/** `count` workers over one empty store, sending to `far`, whose answer has the number of the request as its body. */
const withWorkers = <A, E>(
  count: number,
  far: Far,
  body: (sent: ReadonlyArray<Seen>) => Effect.Effect<A, E, StorePorts | Senders | Scope.Scope>
) => {
  const sent: Array<Seen> = []
  const channel = {
    send: (message: OutboundMessage) =>
      Effect.suspend(() => {
        const { messageId, destination, attempt } = message
        const nth = sent.push({ at: now(), messageId, destination, attempt })
        const outcome = far(message, nth)
        return Effect.map(Effect.isEffect(outcome) ? outcome : Effect.succeed(outcome), (outcome) => ({
          outcome,
          responseBody: `answer ${nth}`
        }))
      }),
    capacity: () => Effect.succeed(CAPACITY),
    dedupes: () => Effect.succeed(true)
  }
  const workers = Effect.forEach(Array.from({ length: count }), (_, n) =>
    dispatch({
      worker: `worker-${n}`,
      concurrency: 16,
      lease: Duration.seconds(10),
      grace: Duration.seconds(5),
      circuit: { failuresMax: 5, openMs: OPEN_MS, openMaxMs: 60_000 }
    })
  )
  return Effect.scoped(Effect.andThen(workers, body(sent))).pipe(
    Effect.provideService(Senders, { webhook: channel }),
    Effect.provide(MemoryPorts.layer)
  )
}

const put = Effect.fnUntraced(function* (destination: DestinationId, count: number) {
  const steps = Array.from({ length: count }, () =>
    // The one attempt there is must not be lost by being put off.
    opened({ destination, dueAt: inMillis(-1), retry: { strategy: "fixed", baseMs: 1, attemptsMax: 1 } })
  )
  yield* (yield* EventStore).append(steps.map(({ entry }) => entry))
  return steps.map(({ after }) => after.id)
})

const facts = Effect.fnUntraced(function* (id: MessageId) {
  return (yield* (yield* EventStore).load(id)).facts.map(({ fact }) => fact)
})
const messages = Effect.fnUntraced(function* (ids: ReadonlyArray<MessageId>) {
  const streams = yield* (yield* EventStore).loadMany(ids)
  return ids.map((id) => replay(streams.get(id)!.facts.map(({ fact }) => fact)))
})
const until = <R, E>(holds: Effect.Effect<boolean, E, R>) =>
  holds.pipe(
    Effect.tap((yes) => (yes ? Effect.void : Effect.sleep("3 millis"))),
    Effect.repeat({ until: (yes) => yes }),
    Effect.timeout("15 seconds")
  )
const allDelivered = (ids: ReadonlyArray<MessageId>) =>
  Effect.map(
    Effect.flatMap(EventStore, (store) => store.loadMany(ids)),
    (streams) => [...streams.values()].every(({ facts }) => facts.at(-1)!.fact.type === "MessageDelivered")
  )

describe("a message that is put off", () => {
  it.live("waits by itself, and has its attempt still before it", () => {
    const lane = newLane()
    let first: MessageId | null = null
    const far: Far = ({ messageId }) => {
      first ??= messageId
      return messageId === first && sentTo(first) < 3 ? deferred("message", 120) : delivered
    }
    let seen: ReadonlyArray<Seen> = []
    const sentTo = (id: MessageId) => seen.filter(({ messageId }) => messageId === id).length
    return withWorkers(1, far, (sent) =>
      Effect.gen(function* () {
        seen = sent
        const ids = yield* put(lane, 20)
        yield* until(allDelivered(ids.filter((id) => id !== ids[0])))
        yield* until(allDelivered(ids))
        const [one, two, three] = sent.filter(({ messageId }) => messageId === first)
        expect([one, two, three].map((request) => request?.attempt)).toEqual([1, 1, 1])
        expect(two!.at - one!.at).toBeGreaterThanOrEqual(115)
        expect((yield* facts(first!)).map(({ type }) => type)).toEqual([
          "MessageQueued",
          "AttemptStarted",
          "AttemptDeferred",
          "AttemptStarted",
          "AttemptDeferred",
          "AttemptStarted",
          "AttemptSucceeded",
          "MessageDelivered"
        ])
        expect(yield* circuitFacts(lane)).toEqual([])
      })
    )
  })

  it.live("keeps the answer of the try that counted", () => {
    const far: Far = (_, nth) => (nth === 1 ? deferred("message", 1) : delivered)
    return withWorkers(1, far, () =>
      Effect.gen(function* () {
        const ids = yield* put(newLane(), 1)
        yield* until(allDelivered(ids))
        expect((yield* (yield* Bodies).responses(ids[0]!)).answers.get("1/1")?.body).toBe("answer 2")
      })
    )
  })

  it.live("is not put off a second time for one try, although its next try has the same number", () =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const sent: Array<number> = []
      let lost = false
      // Its answer to the deferral is lost, and late: the next try is under way by then.
      const losing = {
        ...store,
        append: Effect.fnUntraced(function* (entries: Parameters<typeof store.append>[0]) {
          const results = yield* store.append(entries)
          if (lost || !entries.some(({ facts }) => facts.some(({ type }) => type === "AttemptDeferred"))) {
            return results
          }
          lost = true
          yield* until(Effect.sync(() => sent.length === 3))
          return yield* new StoreUnavailable({ cause: new Error("the answer was lost") })
        })
      }
      const [first, mate] = [newLane(), newLane()]
      const channel = {
        send: ({ destination }: OutboundMessage) =>
          Effect.gen(function* () {
            const nth = sent.push(now())
            const isFirst = destination === first && !sentFirst
            if (destination === first) sentFirst = true
            if (isFirst) return { outcome: deferred("message", 0), responseBody: null }
            // Long enough for the worker to hear that its answer was lost, and to look.
            yield* Effect.sleep(nth === 3 ? "200 millis" : "600 millis")
            return { outcome: delivered, responseBody: null }
          }),
        capacity: () => Effect.succeed(1),
        dedupes: () => Effect.succeed(true)
      }
      let sentFirst = false
      yield* dispatch({
        worker: "w",
        concurrency: 8,
        lease: Duration.seconds(10),
        grace: Duration.seconds(5)
      }).pipe(Effect.provideService(EventStore, losing), Effect.provideService(Senders, { webhook: channel }))
      // One claim for both: the mate, still under way, keeps the batch of the first try.
      const steps = [first, mate].map((destination) => opened({ destination, dueAt: inMillis(-1) }))
      yield* store.append(steps.map(({ entry }) => entry))
      const ids = steps.map(({ after }) => after.id)
      yield* until(allDelivered(ids))
      expect((yield* facts(ids[0]!)).map(({ type }) => type)).toEqual([
        "MessageQueued",
        "AttemptStarted",
        "AttemptDeferred",
        "AttemptStarted",
        "AttemptSucceeded",
        "MessageDelivered"
      ])
      expect(sent).toHaveLength(3)
    }).pipe(Effect.scoped, Effect.provide(MemoryPorts.layer))
  )
})

describe("a destination that wants less of us", () => {
  it.live("is left alone by all workers for as long as it said, and then gets everything", () => {
    const lane = newLane()
    let endsAt = 0
    const far: Far = () => {
      if (endsAt === 0) {
        endsAt = now() + 300
        return deferred("lane", 300)
      }
      return now() < endsAt - 5 ? deferred("lane", endsAt - now()) : delivered
    }
    return withWorkers(3, far, (sent) =>
      Effect.gen(function* () {
        const ids = yield* put(lane, 200)
        yield* until(allDelivered(ids))
        // What each worker had under way when the first answer came, and nothing after that.
        const tooEarly = sent.filter(({ at }) => at < endsAt - 10)
        expect(tooEarly.length).toBeLessThanOrEqual(3 * CAPACITY)
        expect(sent).toHaveLength(200 + tooEarly.length)
        expect(sent.every(({ attempt }) => attempt === 1)).toBe(true)
        // No one is asked about its health for that.
        expect(yield* circuitFacts(lane)).toEqual([])
      })
    )
  })

  it.live("does not keep others waiting meanwhile", () => {
    const lane = newLane()
    const far: Far = ({ destination }) => (destination === lane ? deferred("lane", 60_000) : delivered)
    return withWorkers(1, far, () =>
      Effect.gen(function* () {
        yield* put(lane, 100)
        const others = yield* put(newLane(), 50)
        yield* until(allDelivered(others)).pipe(Effect.timeout("5 seconds"))
      })
    )
  })
})

describe("a destination that somebody must put right", () => {
  it.live("is silent after its first answer, says why, and burns nobody's attempts", () => {
    const lane = newLane()
    const far: Far = () => deferred("circuit", 0)
    return withWorkers(3, far, (sent) =>
      Effect.gen(function* () {
        const ids = yield* put(lane, 100)
        yield* until(Effect.map(circuitFacts(lane), (all) => all.length > 0))
        const [fact] = yield* circuitFacts(lane)
        expect(fact).toMatchObject({
          type: "CircuitOpened",
          openings: 1,
          error: { code: "190", message: "access token has expired" }
        })
        yield* until(Effect.map(circuitFacts(lane), (all) => all.some(({ type }) => type === "CircuitProbed")))
        // What each worker had under way when the first answer came, and the probe.
        expect(sent.length).toBeLessThanOrEqual(3 * CAPACITY + 1)
        const burnt = (yield* messages(ids)).filter(
          ({ status, progress }) => progress.attempt !== (status === "SENDING" ? 1 : 0)
        )
        expect(burnt).toEqual([])
      })
    )
  })

  it.live("is asked with one message at a time, less and less often, and goes on when it is right again", () => {
    const lane = newLane()
    let right = false
    const far: Far = () => (right ? delivered : deferred("circuit", 0))
    return withWorkers(2, far, (sent) =>
      Effect.gen(function* () {
        const ids = yield* put(lane, 40)
        yield* until(Effect.map(circuitFacts(lane), (all) => all.at(-1)?.type === "CircuitReopened"))
        const [opened, probed, reopened] = yield* circuitFacts(lane)
        expect([opened?.type, probed?.type, reopened?.type]).toEqual([
          "CircuitOpened",
          "CircuitProbed",
          "CircuitReopened"
        ])
        expect(reopened).toMatchObject({ openings: 2, error: { code: "190" } })
        right = true
        const before = sent.length
        yield* until(allDelivered(ids))
        expect(sent).toHaveLength(before + 40)
        expect((yield* circuitFacts(lane)).at(-1)?.type).toBe("CircuitClosed")
      })
    )
  })

  it.live("leaves 49 others and 10,000 messages unaffected", () => {
    const lanes = Array.from({ length: 50 }, newLane)
    const expired = lanes[17]!
    const far: Far = ({ destination }) => (destination === expired ? deferred("circuit", 0) : delivered)
    return withWorkers(2, far, (sent) =>
      Effect.gen(function* () {
        const ids = new Map<DestinationId, ReadonlyArray<MessageId>>()
        for (const lane of lanes) ids.set(lane, yield* put(lane, 200))
        const others = lanes.filter((lane) => lane !== expired).flatMap((lane) => ids.get(lane)!)
        yield* until(allDelivered(others).pipe(Effect.delay("500 millis")))
        const to = (lane: DestinationId) => sent.filter(({ destination }) => destination === lane).length
        for (const lane of lanes) if (lane !== expired) expect(to(lane)).toBe(200)
        const waiting = yield* messages(ids.get(expired)!)
        expect(waiting.every(({ status, progress }) => status === "QUEUED" && progress.attempt === 0)).toBe(true)
        expect(to(expired)).toBeLessThanOrEqual(2 * CAPACITY + 5)
        expect((yield* circuitFacts(expired))[0]).toMatchObject({ type: "CircuitOpened", error: { code: "190" } })
      })
    )
  })
})
