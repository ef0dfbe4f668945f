/** What a worker reports to circuits, observation by observation, on the memory store. */

import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { watchCircuits } from "../../../src/application/deliver/watchCircuits.ts"
import { Circuits } from "../../../src/application/ports/Circuits.ts"
import { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import type { ClaimTerms } from "../../../src/application/ports/Queue.ts"
import { evolve, initial } from "../../../src/domain/circuit/decider.ts"
import type { CircuitFact } from "../../../src/domain/circuit/facts.ts"
import { initialState, stateOf } from "../../../src/domain/circuit/state.ts"
import { outcomeOfStatus } from "../../../src/domain/delivery/classify.ts"
import type { AttemptOutcome } from "../../../src/domain/delivery/outcome.ts"
import type { DestinationId } from "../../../src/domain/ids.ts"
import { circuitFacts } from "../../contracts/destinations/samples.ts"
import { delivered, inMillis, newLane, newMessageId, type StorePorts } from "../../contracts/sample.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const policy = { failuresMax: 3, openMs: 1_000, openMaxMs: 60_000 }
const down = outcomeOfStatus(503, 1, null)
/** Enough by itself to open a circuit. */
const outOfUse: AttemptOutcome = {
  ...{ type: "Deferred", scope: "circuit", status: 401, afterMs: 0, durationMs: 1 },
  error: { code: "token_invalid", message: "the token is not valid any more", retryable: true }
}

const of = (lane: DestinationId, generation = 0, circuitMode: ClaimTerms["circuitMode"] = null) => ({
  lane,
  terms: { generation, circuitMode, inFlightMax: null, startWithinMs: null, isRateLimited: false }
})

const test = (rule: string, body: (lane: DestinationId) => Effect.Effect<void, unknown, StorePorts>) =>
  it.effect(rule, () => Effect.provide(body(newLane()), MemoryPorts.layer))

const state = Effect.fnUntraced(function* (lane: DestinationId) {
  return (yield* (yield* Circuits).states([lane]))[0]!
})
const facts = circuitFacts

const opened: CircuitFact = { type: "CircuitOpened", failures: 3, until: inMillis(1_000), openings: 1, error: null }
const reset: CircuitFact = { type: "CircuitReset", reason: null }

/** As another worker opened the circuit and an operator reset it. */
const openAndReset = (circuits: Circuits["Service"], lane: DestinationId) =>
  circuits.append(lane, 0, [opened, reset], { ...initialState, generation: 2 }, null)

/** A circuit whose probe is under way. */
const probing = Effect.fnUntraced(function* (lane: DestinationId) {
  const history: ReadonlyArray<CircuitFact> = [
    opened,
    { type: "CircuitProbed", probe: newMessageId(), expiresAt: inMillis(60_000) }
  ]
  const after = stateOf(history.reduce(evolve, initial), 2)
  yield* (yield* Circuits).append(lane, 0, history, after, null)
})

describe("what a worker reports of a destination", () => {
  test("counts the failures since the last success", (lane) =>
    Effect.gen(function* () {
      const watch = watchCircuits(policy, () => Effect.void)
      for (const outcome of [down, down, delivered, down]) watch.observe(of(lane), outcome)
      yield* watch.flush
      expect((yield* state(lane)).failures).toBe(1)
      expect(yield* facts(lane)).toEqual([])
    }))

  test("opens its circuit at the threshold, over all reports", (lane) =>
    Effect.gen(function* () {
      const watch = watchCircuits(policy, () => Effect.void)
      for (let nth = 1; nth <= 3; nth++) {
        expect(yield* facts(lane)).toEqual([])
        watch.observe(of(lane), down)
        yield* watch.flush
      }
      expect(yield* facts(lane)).toMatchObject([{ type: "CircuitOpened", failures: 3 }])
    }))

  test("opens it for one answer that is enough, whatever succeeds beside it", (lane) =>
    Effect.gen(function* () {
      const watch = watchCircuits(policy, () => Effect.void)
      watch.observe(of(lane), outOfUse)
      watch.observe(of(lane), delivered)
      yield* watch.flush
      expect(yield* facts(lane)).toMatchObject([
        { type: "CircuitOpened", failures: 1, error: { code: "token_invalid" } }
      ])
    }))

  test("is what the newest generation showed, when what an older one shows comes later", (lane) =>
    Effect.gen(function* () {
      const circuits = yield* Circuits
      yield* openAndReset(circuits, lane)
      const watch = watchCircuits(policy, () => Effect.void)
      watch.observe(of(lane, 2), down)
      watch.observe(of(lane, 0), down)
      yield* watch.flush
      expect(yield* state(lane)).toMatchObject({ generation: 2, failures: 1 })
    }))

  test("opens no circuit that another has changed since", (lane) =>
    Effect.gen(function* () {
      const circuits = yield* Circuits
      const changing = {
        ...circuits,
        report: (...given: Parameters<typeof circuits.report>) =>
          Effect.tap(circuits.report(...given), () => openAndReset(circuits, lane))
      }
      const watch = watchCircuits(policy, () => Effect.void)
      watch.observe(of(lane), outOfUse)
      yield* watch.flush.pipe(Effect.provideService(Circuits, changing))
      expect(yield* facts(lane)).toEqual([opened, reset])
    }))

  test("keeps the place of a failure until that failure was reported, also when the reporter had nothing to do", (lane) =>
    Effect.gen(function* () {
      const circuits = yield* Circuits
      const asked = yield* Deferred.make<number>()
      const answers = yield* Deferred.make<void>()
      const slow: Circuits["Service"] = {
        ...circuits,
        report: (reports) =>
          Deferred.succeed(asked, reports[0]!.failures).pipe(
            Effect.andThen(Deferred.await(answers)),
            Effect.andThen(circuits.report(reports))
          )
      }
      const freed: Array<number> = []
      const watch = watchCircuits(
        policy,
        () => Effect.void,
        (_, failures) => freed.push(failures)
      )
      yield* Effect.forkScoped(Effect.provideService(watch.run, Circuits, slow))
      // It waits for something to report.
      yield* Effect.yieldNow
      watch.observe(of(lane), down)
      expect(yield* Deferred.await(asked)).toBe(1)
      yield* Effect.yieldNow
      expect(freed).toEqual([])
      yield* Deferred.succeed(answers, undefined)
      while (freed.length === 0) yield* Effect.yieldNow
      expect(freed).toEqual([1])
    }).pipe(Effect.scoped))

  test("is told to the worker too", (lane) =>
    Effect.gen(function* () {
      const told: Array<unknown> = []
      const watch = watchCircuits(policy, (destination, { status, failures }) =>
        Effect.sync(() => void told.push([destination, status, failures]))
      )
      watch.observe(of(lane), down)
      yield* watch.flush
      watch.observe(of(lane), outOfUse)
      yield* watch.flush
      expect(told).toEqual([
        [lane, "CLOSED", 1],
        [lane, "CLOSED", 2],
        [lane, "OPEN", 2]
      ])
    }))
})

describe("a report that the store took without an answer", () => {
  /** Of this many reports the answer is lost. */
  const losing = (circuits: Circuits["Service"], answers: number) => {
    let left = answers
    return {
      ...circuits,
      report: (...given: Parameters<typeof circuits.report>) =>
        Effect.flatMap(circuits.report(...given), (answer) =>
          left-- > 0 ? Effect.fail(new StoreUnavailable({ cause: "lost" })) : Effect.succeed(answer)
        )
    }
  }
  const flushTwice = Effect.fnUntraced(function* (observe: (watch: ReturnType<typeof watchCircuits>) => void) {
    const circuits = losing(yield* Circuits, 1)
    const watch = watchCircuits(policy, () => Effect.void)
    observe(watch)
    for (let nth = 0; nth < 2; nth++) {
      yield* Effect.provideService(watch.flush, Circuits, circuits)
    }
  })

  it.live("is not counted twice", () =>
    Effect.gen(function* () {
      const lane = newLane()
      yield* flushTwice((watch) => watch.observe(of(lane), down))
      expect((yield* state(lane)).failures).toBe(1)
    }).pipe(Effect.provide(MemoryPorts.layer))
  )

  it.live("is repeated where one answer is enough to open the circuit", () =>
    Effect.gen(function* () {
      const lane = newLane()
      yield* flushTwice((watch) => watch.observe(of(lane), outOfUse))
      expect((yield* facts(lane)).map(({ type }) => type)).toEqual(["CircuitOpened"])
    }).pipe(Effect.provide(MemoryPorts.layer))
  )

  it.live("is repeated of a probe", () =>
    Effect.gen(function* () {
      const lane = newLane()
      yield* probing(lane)
      yield* flushTwice((watch) => watch.observe(of(lane, 2, "probe"), delivered))
      expect((yield* facts(lane)).at(-1)?.type).toBe("CircuitClosed")
    }).pipe(Effect.provide(MemoryPorts.layer))
  )
})

describe("a probe", () => {
  test("that showed nothing settles nothing", (lane) =>
    Effect.gen(function* () {
      yield* probing(lane)
      const watch = watchCircuits(policy, () => Effect.void)
      watch.observe(of(lane, 2, "probe"), null)
      yield* watch.flush
      expect((yield* facts(lane)).at(-1)?.type).toBe("CircuitProbed")
    }))

  test("that succeeded closes no circuit when another message failed beside it", (lane) =>
    Effect.gen(function* () {
      yield* probing(lane)
      const watch = watchCircuits(policy, () => Effect.void)
      watch.observe(of(lane, 2, "probe"), delivered)
      watch.observe(of(lane, 2), down)
      yield* watch.flush
      expect((yield* facts(lane)).at(-1)?.type).toBe("CircuitReopened")
    }))
})
