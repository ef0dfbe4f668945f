/** How workers obey circuits, limits and pauses: several of them on one memory store, with nothing replaced but the far side. */

import { it } from "@effect/vitest"
import { DateTime, Duration, Effect, Layer, type Scope } from "effect"
import { describe, expect } from "vitest"
import { dispatch } from "../../../src/application/deliver/dispatch.ts"
import { Senders } from "../../../src/application/deliver/Senders.ts"
import type { OutboundMessage, Reply } from "../../../src/application/ports/Channels.ts"
import { Circuits } from "../../../src/application/ports/Circuits.ts"
import { Destinations } from "../../../src/application/ports/Destinations.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { evolve, initial } from "../../../src/domain/circuit/decider.ts"
import { initialState, stateOf } from "../../../src/domain/circuit/state.ts"
import { outcomeOfFailure, outcomeOfStatus } from "../../../src/domain/delivery/classify.ts"
import type { AttemptOutcome } from "../../../src/domain/delivery/outcome.ts"
import type { DestinationId, MessageId } from "../../../src/domain/ids.ts"
import { circuitFacts, makeEndpoint, webhook } from "../../contracts/destinations/samples.ts"
import { delivered, inMillis, newLane, newOrg, opened, type StorePorts } from "../../contracts/sample.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"
import { simulateTime } from "../../simulatedTime.ts"

simulateTime()

const OPEN_MS = 150
const down = outcomeOfStatus(503, 1, null)
const circuit = { failuresMax: 5, openMs: OPEN_MS, openMaxMs: 60_000 }
const CAPACITY = 4

interface World {
  /** When each request came, in milliseconds. */
  readonly sent: ReadonlyArray<{ readonly at: number; readonly message: OutboundMessage }>
  readonly underWayMost: () => number
  readonly resetUnderWay: () => void
}

const now = () => DateTime.toEpochMillis(inMillis(0))

type Far = (message: OutboundMessage, nth: number) => Effect.Effect<AttemptOutcome>

const aWorker = (n: number) =>
  dispatch({
    worker: `worker-${n}`,
    concurrency: 8,
    lease: Duration.seconds(10),
    grace: Duration.seconds(5),
    circuit
  })

/** `count` workers over one empty store, sending to `far`. */
const withWorkers = <A, E>(
  count: number,
  far: Far,
  body: (world: World) => Effect.Effect<A, E, StorePorts | Senders | Scope.Scope>
) => {
  const sent: Array<World["sent"][number]> = []
  let underWay = 0
  let most = 0
  const channel = {
    send: (message: OutboundMessage): Effect.Effect<Reply> =>
      Effect.gen(function* () {
        sent.push({ at: now(), message })
        underWay += 1
        most = Math.max(most, underWay)
        const outcome = yield* far(message, sent.length)
        underWay -= 1
        return { outcome, responseBody: null }
      }),
    capacity: () => Effect.succeed(CAPACITY),
    dedupes: () => Effect.succeed(true)
  }
  const world: World = {
    sent,
    underWayMost: () => most,
    resetUnderWay: () => {
      most = underWay
    }
  }
  const workers = Effect.forEach(Array.from({ length: count }), (_, n) => aWorker(n))
  return Effect.scoped(Effect.andThen(workers, body(world))).pipe(
    Effect.provideService(Senders, { webhook: channel }),
    Effect.provide(MemoryPorts.layer)
  )
}

/** The same over a store that is there already, whose circuits answer in their own time. */
const withWorkersOn = <A, E>(
  circuits: Circuits["Service"],
  count: number,
  far: Far,
  body: (world: Pick<World, "sent">) => Effect.Effect<A, E, StorePorts | Senders | Scope.Scope>
) => {
  const sent: Array<World["sent"][number]> = []
  const channel = {
    send: (message: OutboundMessage): Effect.Effect<Reply> =>
      Effect.suspend(() => {
        sent.push({ at: now(), message })
        return Effect.map(far(message, sent.length), (outcome) => ({ outcome, responseBody: null }))
      }),
    capacity: () => Effect.succeed(CAPACITY),
    dedupes: () => Effect.succeed(true)
  }
  const workers = Effect.forEach(Array.from({ length: count }), (_, n) => aWorker(n))
  return Effect.scoped(Effect.andThen(workers, body({ sent }))).pipe(
    Effect.provideService(Senders, { webhook: channel }),
    Effect.provideService(Circuits, circuits)
  )
}

const put = Effect.fnUntraced(function* (destination: DestinationId, count: number, dueIn = 0) {
  const steps = Array.from({ length: count }, () =>
    opened({
      destination,
      dueAt: inMillis(dueIn),
      retry: { strategy: "fixed", baseMs: 10, attemptsMax: 100, jitter: [1, 1] }
    })
  )
  yield* (yield* EventStore).append(steps.map(({ entry }) => entry))
  return steps.map(({ after }) => after.id)
})

/** As a worker opens it that saw enough failures. */
const openCircuit = Effect.fnUntraced(function* (destination: DestinationId) {
  const opened = { type: "CircuitOpened", failures: 5, until: inMillis(OPEN_MS), openings: 1, error: null } as const
  const after = stateOf(evolve(initial, opened), 1)
  yield* (yield* Circuits).append(destination, 0, [opened], after, null)
})

const facts = Effect.fnUntraced(function* (destination: DestinationId) {
  return (yield* circuitFacts(destination)).map(({ type }) => type)
})
const state = Effect.fnUntraced(function* (destination: DestinationId) {
  return (yield* (yield* Circuits).states([destination]))[0]!
})
const starts = Effect.fnUntraced(function* (ids: ReadonlyArray<MessageId>) {
  const streams = yield* (yield* EventStore).loadMany(ids)
  return [...streams.values()].flatMap(({ facts }) => facts.filter(({ fact }) => fact.type === "AttemptStarted")).length
})

const until = <R, E>(holds: Effect.Effect<boolean, E, R>) =>
  holds.pipe(
    Effect.tap((yes) => (yes ? Effect.void : Effect.sleep("3 millis"))),
    Effect.repeat({ until: (yes) => yes }),
    Effect.timeout("8 seconds")
  )

const allDelivered = (ids: ReadonlyArray<MessageId>) =>
  Effect.map(
    Effect.flatMap(EventStore, (store) => store.loadMany(ids)),
    (streams) => [...streams.values()].every(({ facts }) => facts.at(-1)!.fact.type === "MessageDelivered")
  )

const refusing: Far = () => Effect.succeed(down)

describe("a circuit that is about to open", () => {
  const WORKERS = 2
  const slowly =
    (millis: number) =>
    (circuits: Circuits["Service"]): Circuits["Service"] => ({
      ...circuits,
      report: (reports) => Effect.delay(circuits.report(reports), Duration.millis(millis))
    })

  it.live(
    "lets no more through than its threshold and what the workers have under way, however slow their reports",
    () =>
      Effect.gen(function* () {
        const circuits = slowly(40)(yield* Circuits)
        yield* withWorkersOn(
          circuits,
          WORKERS,
          () => Effect.succeed(down),
          ({ sent }) =>
            Effect.gen(function* () {
              const lane = newLane()
              yield* put(lane, 60)
              yield* until(Effect.map(facts(lane), (types) => types.includes("CircuitOpened")))
              expect(sent.length).toBeLessThanOrEqual(circuit.failuresMax + WORKERS * CAPACITY)
              expect(sent.length).toBeGreaterThanOrEqual(circuit.failuresMax)
            })
        )
      }).pipe(Effect.provide(MemoryPorts.layer))
  )
})

describe("failures whose report fails", () => {
  it.live.each([
    ["because the store does not answer", Effect.fail(new StoreUnavailable({ cause: "silent" }))],
    ["by a bug", Effect.die("a bug")]
  ] as const)("%s stop nobody: their places come back", ([_, failure]) =>
    Effect.gen(function* () {
      const circuits = yield* Circuits
      let reports = 0
      const failing = {
        ...circuits,
        report: (...given: Parameters<typeof circuits.report>) =>
          Effect.suspend(() => (++reports <= 1 ? failure : circuits.report(...given)))
      }
      const far: Far = (_, nth) => Effect.succeed(nth <= 2 * CAPACITY ? down : delivered)
      yield* withWorkersOn(failing, 1, far, () => Effect.flatMap(put(newLane(), 20), (ids) => until(allDelivered(ids))))
    }).pipe(Effect.provide(MemoryPorts.layer))
  )
})

describe("workers whose destination is down", () => {
  it.live("open its circuit together, and then send nothing and use up no attempt", () => {
    const lane = newLane()
    return withWorkers(3, refusing, ({ sent }) =>
      Effect.gen(function* () {
        const ids = yield* put(lane, 60)
        yield* until(Effect.map(facts(lane), (types) => types.includes("CircuitOpened")))
        yield* Effect.sleep("30 millis")
        const before = sent.length
        // Each worker may have had so many under way when it opened, but not one more.
        expect(before).toBeLessThanOrEqual(5 + 3 * CAPACITY)
        yield* Effect.sleep(`${OPEN_MS - 60} millis`)
        expect(sent).toHaveLength(before)
        expect(yield* starts(ids)).toBe(before)
      })
    )
  })

  it.live("probe with one message at a time, and wait longer each time", () => {
    const lane = newLane()
    const slow: Far = () => Effect.delay(Effect.succeed(down), "20 millis")
    return withWorkers(3, slow, (world) =>
      Effect.gen(function* () {
        const ids = yield* put(lane, 60)
        yield* until(Effect.map(facts(lane), (types) => types.includes("CircuitOpened")))
        yield* Effect.sleep("40 millis")
        world.resetUnderWay()
        yield* until(
          Effect.map(facts(lane), (types) => types.filter((type) => type === "CircuitReopened").length === 2)
        )
        expect(world.underWayMost()).toBe(1)
        expect(yield* facts(lane)).toEqual([
          "CircuitOpened",
          "CircuitProbed",
          "CircuitReopened",
          "CircuitProbed",
          "CircuitReopened"
        ])
        expect(yield* starts(ids)).toBe(world.sent.length)
      })
    )
  })

  it.live("deliver everything once it is back, beginning with a little", () => {
    const lane = newLane()
    let healthy = false
    let most = 0
    let underWay = 0
    const far: Far = () =>
      healthy
        ? Effect.sync(() => {
            most = Math.max(most, ++underWay)
          }).pipe(
            Effect.andThen(Effect.sleep("5 millis")),
            Effect.andThen(
              Effect.sync(() => {
                underWay -= 1
                return delivered
              })
            )
          )
        : Effect.succeed(down)
    return withWorkers(2, far, ({ sent }) =>
      Effect.gen(function* () {
        const ids = yield* put(lane, 40)
        yield* until(Effect.map(facts(lane), (types) => types.includes("CircuitOpened")))
        yield* Effect.sleep("30 millis")
        healthy = true
        const before = sent.length
        yield* until(Effect.sync(() => sent.length >= before + 3))
        expect(most).toBeLessThanOrEqual(2)
        yield* until(allDelivered(ids))
        expect((yield* facts(lane)).at(-1)).toBe("CircuitClosed")
        expect((yield* state(lane)).failures).toBe(0)
      })
    )
  })

  it.live("do not keep others waiting meanwhile", () => {
    const lane = newLane()
    const far: Far = ({ destination }) => Effect.succeed(destination === lane ? down : delivered)
    return withWorkers(1, far, () =>
      Effect.gen(function* () {
        yield* put(lane, 100)
        yield* until(Effect.map(facts(lane), (types) => types.includes("CircuitOpened")))
        const others = yield* put(newLane(), 30)
        yield* until(allDelivered(others)).pipe(Effect.timeout("1 second"))
      })
    )
  })
})

describe("a circuit", () => {
  it.live("does not open for failures that were not in a row", () => {
    const lane = newLane()
    // Two in three fail, one after the other.
    const far: Far = (_, nth) => Effect.succeed(nth % 3 === 0 ? delivered : down)
    return withWorkers(1, far, () =>
      Effect.gen(function* () {
        const ids = yield* put(lane, 1)
        for (let n = 1; n < 10; n++) ids.push(...(yield* put(lane, 1, n * 40)))
        yield* until(allDelivered(ids))
        expect(yield* facts(lane)).toEqual([])
      })
    )
  })

  it.live.each([
    ["refusals for good", outcomeOfStatus(404, 1, null)],
    ["faults of our own", outcomeOfFailure("forbidden_address", 1)]
  ] as const)("does not open for %s", ([_, outcome]) => {
    const lane = newLane()
    return withWorkers(
      1,
      () => Effect.succeed(outcome),
      ({ sent }) =>
        Effect.gen(function* () {
          yield* put(lane, 20)
          yield* until(Effect.sync(() => sent.length >= 20))
          yield* Effect.sleep("30 millis")
          expect(yield* facts(lane)).toEqual([])
          expect((yield* state(lane)).failures).toBe(0)
        })
    )
  })

  it.live("probes again when the probe was a message that had to be dropped", () => {
    let healthy = false
    return withWorkers(
      1,
      () => Effect.succeed(healthy ? delivered : down),
      () =>
        Effect.gen(function* () {
          const store = yield* EventStore
          const { id: lane } = yield* makeEndpoint(newOrg(), { maxInFlight: CAPACITY, timeoutMs: 1_000 })
          yield* put(lane, 6)
          yield* until(Effect.map(facts(lane), (types) => types.includes("CircuitOpened")))
          healthy = true
          // Due before all others, and too late when its turn comes.
          const late = opened({ destination: lane, dueAt: inMillis(-9_000), expiresAt: inMillis(-10) })
          yield* store.append([late.entry])
          yield* until(Effect.map(facts(lane), (types) => types.at(-1) === "CircuitClosed"))
          expect((yield* facts(lane)).filter((type) => type === "CircuitProbed")).toHaveLength(2)
        })
    )
  })
})

describe("a probe", () => {
  it.live("is never handed to a worker whose requests to the destination hang: another worker probes at once", () => {
    const lane = newLane()
    return withWorkers(
      1,
      // As many as a destination gets that has never answered.
      (_, nth) => (nth <= 2 ? Effect.never : Effect.succeed(delivered)),
      ({ sent }) =>
        Effect.gen(function* () {
          yield* put(lane, 2)
          yield* until(Effect.sync(() => sent.length === 2))
          yield* Effect.sleep("1500 millis")
          yield* openCircuit(lane)
          const [probe] = yield* put(lane, 1)
          yield* Effect.sleep("9 seconds")
          const began = now()
          yield* aWorker(1)
          yield* until(allDelivered([probe!]))
          expect(now() - began).toBeLessThan(2_000)
        })
    )
  })
})

describe("what a worker already holds", () => {
  it.live("is given back when its lane is paused, and nothing of it is sent", () => {
    const orgId = newOrg()
    return withWorkers(
      1,
      () => Effect.delay(Effect.succeed(delivered), "20 millis"),
      ({ sent }) =>
        Effect.gen(function* () {
          const destinations = yield* Destinations
          const { id } = yield* makeEndpoint(orgId, { maxInFlight: CAPACITY, timeoutMs: 1_000 })
          const ids = yield* put(id, 50)
          yield* until(Effect.sync(() => sent.length >= 8))
          yield* destinations.setPaused(webhook, orgId, id, true)
          yield* Effect.sleep("30 millis")
          const before = sent.length
          yield* Effect.sleep("100 millis")
          expect(sent).toHaveLength(before)
          expect(yield* starts(ids)).toBe(before)
          yield* destinations.setPaused(webhook, orgId, id, false)
          yield* until(allDelivered(ids))
          expect(sent).toHaveLength(50)
        })
    )
  })
})

describe("what must wait", () => {
  it.live("is not held up by a batch-mate that takes its time", () => {
    const slow = newLane()
    const far: Far = ({ destination }) =>
      destination === slow ? Effect.never : Effect.delay(Effect.succeed(delivered), "10 millis")
    return withWorkers(0, far, ({ sent }) =>
      Effect.gen(function* () {
        const circuits = yield* Circuits
        const lane = newLane()
        yield* put(slow, 1)
        const ids = yield* put(lane, 30)
        yield* dispatch({
          worker: "w",
          concurrency: 8,
          lease: Duration.seconds(10),
          grace: Duration.millis(10),
          circuit
        })
        yield* until(Effect.sync(() => sent.length >= 6))
        // One batch held all of it. The lane is stopped while most of it still waits in the worker.
        const stopped = { ...initialState, status: "HELD", generation: 1 } as const
        yield* circuits.append(lane, 0, [{ type: "CircuitHeld", reason: null }], stopped, null)
        yield* Effect.sleep("30 millis")
        const held = sent.length
        expect(held).toBeLessThan(20)
        yield* circuits.append(
          lane,
          1,
          [{ type: "CircuitReset", reason: null }],
          { ...initialState, generation: 2 },
          null
        )
        yield* until(allDelivered(ids)).pipe(Effect.timeout("2 seconds"))
        expect(sent.filter(({ message }) => message.destination === lane)).toHaveLength(30)
      })
    )
  })
})

describe("a worker that is healthy", () => {
  it.live("never tells a circuit about its successes", () => {
    const told: Array<string> = []
    const spy = Layer.effect(
      Circuits,
      Effect.map(Circuits, (circuits) => ({
        ...circuits,
        report: (reports: Parameters<typeof circuits.report>[0]) => {
          told.push("report")
          return circuits.report(reports)
        }
      }))
    ).pipe(Layer.provideMerge(MemoryPorts.layer))
    const channel = {
      send: () => Effect.succeed({ outcome: delivered, responseBody: null }),
      capacity: () => Effect.succeed(CAPACITY),
      dedupes: () => Effect.succeed(true)
    }
    return Effect.scoped(
      Effect.gen(function* () {
        yield* dispatch({
          worker: "w",
          concurrency: 8,
          lease: Duration.seconds(10),
          grace: Duration.seconds(1),
          circuit
        })
        const ids = yield* put(newLane(), 50)
        yield* until(allDelivered(ids))
        expect(told).toEqual([])
      })
    ).pipe(Effect.provideService(Senders, { webhook: channel }), Effect.provide(spy))
  })
})
