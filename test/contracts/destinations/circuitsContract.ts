/**
 * What every Circuits promises, together with the queue and the event store that obey it. `layer` gives an
 * empty store to each test. Silences and permits here last for as long as a busy machine may need to find them still there.
 */
import { describe, expect, it } from "@effect/vitest"
import { Clock, DateTime, Duration, Effect, type Layer, Result } from "effect"
import type { EndpointSettings } from "../../../src/adapters/channels/webhook/settings.ts"
import { Circuits, type Report } from "../../../src/application/ports/Circuits.ts"
import { Destinations } from "../../../src/application/ports/Destinations.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import type { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { type ClaimedMessage, Queue } from "../../../src/application/ports/Queue.ts"
import { type CircuitCommand, decide, evolve, replay } from "../../../src/domain/circuit/decider.ts"
import { circuitDefaults } from "../../../src/domain/circuit/policy.ts"
import { type CircuitState, initialState, stateOf } from "../../../src/domain/circuit/state.ts"
import type { DestinationId, OrgId } from "../../../src/domain/ids.ts"
import { asWorker, claimAll } from "../deliver/claims.ts"
import { inMillis, newLane, newOrg, opened, type StorePorts, started } from "../sample.ts"
import { circuitFacts, makeEndpoint, webhook } from "./samples.ts"

const OPEN_MS = 3_000
const TIMEOUT_MS = 2_000
/** Of an endpoint with that timeout. */
const PERMIT_MS = TIMEOUT_MS + 2_000

const seen = (destination: DestinationId, generation: number, what: Partial<Report> = {}): Report => ({
  destination,
  generation,
  succeeded: false,
  failures: 0,
  ...what
})

const policy = { ...circuitDefaults, openMs: OPEN_MS }

/** What the application does with a circuit: decide on its facts, append what was decided. */
const command = Effect.fnUntraced(function* (destination: DestinationId, make: (now: DateTime.Utc) => CircuitCommand) {
  const circuits = yield* Circuits
  const history = yield* circuitFacts(destination)
  const { circuit, generation, now } = yield* circuits.present(destination)
  // However much of the history a store reads for it.
  expect({ circuit, generation }).toEqual({ circuit: replay(history), generation: history.length })
  const facts = Result.getOrThrow(decide(circuit, make(now)))
  const after = stateOf(facts.reduce(evolve, circuit), generation + facts.length)
  return yield* circuits.append(destination, generation, facts, after, null)
})

const open = (destination: DestinationId) =>
  command(destination, (now) => ({ type: "CountFailures", failures: 5, error: null, now, policy, die: 0 }))
const settleProbe = (destination: DestinationId, succeeded: boolean) =>
  command(destination, (now) => ({ type: "SettleProbe", succeeded, error: null, now, policy, die: 0 }))
const hold = (destination: DestinationId) => command(destination, () => ({ type: "HoldCircuit", reason: "by hand" }))
const reset = (destination: DestinationId) => command(destination, () => ({ type: "ResetCircuit", reason: null }))

const types = (destination: DestinationId) =>
  Effect.map(circuitFacts(destination), (facts) => facts.map(({ type }) => type))

const state = Effect.fnUntraced(function* (destination: DestinationId) {
  return (yield* (yield* Circuits).states([destination]))[0]!
})

const put = Effect.fnUntraced(function* (destination: DestinationId, count: number) {
  const steps = Array.from({ length: count }, () => opened({ destination }))
  yield* (yield* EventStore).append(steps.map(({ entry }) => entry))
  return steps.map(({ after }) => after)
})

const endpoint = Effect.fnUntraced(function* (wishes: Partial<EndpointSettings> = {}) {
  const orgId = newOrg()
  const { id } = yield* makeEndpoint(orgId, { timeoutMs: TIMEOUT_MS, ...wishes })
  return { orgId, id }
})

export const circuitsContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer))

  describe(`${name} circuits`, () => {
    test(
      "are at rest until somebody writes",
      Effect.gen(function* () {
        const lane = newLane()
        expect(yield* types(lane)).toEqual([])
        expect(yield* state(lane)).toEqual(initialState)
        yield* put(lane, 1)
        expect(yield* state(lane)).toEqual(initialState)
      })
    )

    test(
      "give back their facts, and stand where the facts put them",
      Effect.gen(function* () {
        const circuits = yield* Circuits
        const [one, other] = [newLane(), newLane()]
        expect(yield* open(one)).toBe("Appended")
        const [fact] = yield* circuitFacts(one)
        const { now } = yield* circuits.present(one)
        expect(fact).toMatchObject({ type: "CircuitOpened", failures: 5, openings: 1 })
        expect(Math.abs(DateTime.toEpochMillis(now) - DateTime.toEpochMillis(inMillis(0)))).toBeLessThan(60_000)
        expect(yield* circuits.states([other, one])).toEqual([
          initialState,
          {
            status: "OPEN",
            generation: 1,
            failures: 5,
            blockedUntil: "until" in fact! && fact.until,
            inFlightMax: null
          }
        ])
      })
    )

    test(
      "let one of many who saw the same generation change them",
      Effect.gen(function* () {
        const circuits = yield* Circuits
        const lane = newLane()
        yield* put(lane, 1)
        const after: CircuitState = { ...initialState, status: "HELD", generation: 1 }
        const answers = yield* Effect.forEach(
          Array.from({ length: 12 }),
          (_, n) => circuits.append(lane, 0, [{ type: "CircuitHeld", reason: String(n) }], after, null),
          { concurrency: "unbounded" }
        )
        expect(answers.filter((answer) => answer === "Appended")).toHaveLength(1)
        expect(yield* types(lane)).toEqual(["CircuitHeld"])
        expect(yield* circuits.append(lane, 0, [{ type: "CircuitReset", reason: null }], initialState, null)).toBe(
          "VersionConflict"
        )
        expect(yield* state(lane)).toEqual(after)
      })
    )

    describe("a report", () => {
      test(
        "adds up failures in a row, whoever saw them, and forgets them with a success",
        Effect.gen(function* () {
          const circuits = yield* Circuits
          const lane = newLane()
          yield* put(lane, 1)
          const report = (what: Partial<Report>) =>
            Effect.map(circuits.report([seen(lane, 0, what)]), (answers) => answers.get(lane)?.failures)
          expect(yield* report({ failures: 3 })).toBe(3)
          expect(yield* report({ failures: 2 })).toBe(5)
          expect(yield* report({ failures: 1, succeeded: true })).toBe(1)
          expect(yield* report({ succeeded: true })).toBe(0)
          expect(yield* types(lane)).toEqual([])
        })
      )

      test(
        "of another generation changes nothing and is not answered",
        Effect.gen(function* () {
          const circuits = yield* Circuits
          const [closed, changed] = [newLane(), newLane()]
          yield* put(closed, 1)
          yield* open(changed)
          const answers = yield* circuits.report([
            seen(closed, 1, { failures: 9 }),
            seen(changed, 0, { failures: 9, succeeded: true })
          ])
          expect(answers.size).toBe(0)
          expect((yield* state(closed)).failures).toBe(0)
          expect((yield* state(changed)).failures).toBe(5)
        })
      )

      test(
        "of many destinations at once loses none, however many report",
        Effect.gen(function* () {
          const circuits = yield* Circuits
          const lanes = Array.from({ length: 6 }, newLane)
          for (const lane of lanes) yield* put(lane, 1)
          yield* Effect.forEach(
            Array.from({ length: 10 }),
            (_, n) => {
              const mine = n % 2 === 0 ? lanes : lanes.toReversed()
              return circuits.report(mine.map((lane) => seen(lane, 0, { failures: 1 })))
            },
            { concurrency: "unbounded" }
          )
          const counts = (yield* circuits.states(lanes)).map(({ failures }) => failures)
          expect(counts).toEqual(lanes.map(() => 10))
        })
      )

      test(
        "of a success doubles what a circuit that was just closed lets through, until nothing limits it",
        Effect.gen(function* () {
          const circuits = yield* Circuits
          const lane = newLane()
          yield* hold(lane)
          yield* reset(lane)
          const limits = [(yield* state(lane)).inFlightMax]
          for (let n = 0; n < 11; n++) {
            const answers = yield* circuits.report([seen(lane, 2, { succeeded: true })])
            limits.push(answers.get(lane)!.inFlightMax)
          }
          expect(limits).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, null, null])
        })
      )
    })

    describe("a lane", () => {
      test(
        "whose circuit is open hands out nothing, loses nothing and does not hold up the others",
        Effect.gen(function* () {
          const queue = yield* Queue
          const [shut, other] = [newLane(), newLane()]
          yield* put(shut, 3)
          yield* open(shut)
          const [message] = yield* put(other, 1)
          expect(yield* claimAll).toEqual([message!.id])
          expect(yield* claimAll).toEqual([])
          const next = yield* queue.nextDueAt
          expect(next).toEqual((yield* state(shut)).blockedUntil)
        })
      )

      test(
        "whose silence is over hands out one message, its probe, and writes that down",
        Effect.gen(function* () {
          const queue = yield* Queue
          const { id: lane } = yield* endpoint()
          yield* put(lane, 3)
          yield* open(lane)
          yield* Effect.sleep(`${OPEN_MS + 50} millis`)
          const claims = yield* Effect.forEach(["a", "b", "c", "d"], (worker) => queue.claim(asWorker(worker)), {
            concurrency: "unbounded"
          })
          const probes = claims.flatMap((claim) => claim?.messages ?? [])
          expect(probes).toHaveLength(1)
          expect(probes[0]!.terms).toEqual({
            generation: 2,
            circuitMode: "probe",
            startWithinMs: 1_000,
            isRateLimited: false,
            inFlightMax: 1
          })
          const [, probed] = yield* circuitFacts(lane)
          const { now } = yield* (yield* Circuits).present(lane)
          expect(probed).toMatchObject({ type: "CircuitProbed", probe: probes[0]!.messageId })
          const left =
            "expiresAt" in probed! ? DateTime.toEpochMillis(probed.expiresAt) - DateTime.toEpochMillis(now) : 0
          expect(left).toBeGreaterThan(0)
          expect(left).toBeLessThanOrEqual(PERMIT_MS)
          expect(yield* state(lane)).toMatchObject({ status: "HALF_OPEN", generation: 2 })
        })
      )

      test(
        "lets the next probe through when a permit has run out, and not before",
        Effect.gen(function* () {
          const queue = yield* Queue
          const { id: lane } = yield* endpoint()
          yield* put(lane, 2)
          yield* open(lane)
          yield* Effect.sleep(`${OPEN_MS + 50} millis`)
          const lost = yield* queue.claim(asWorker("lost"))
          yield* Effect.sleep(`${PERMIT_MS - 3_000} millis`)
          expect(yield* claimAll).toEqual([])
          yield* Effect.sleep("3 seconds")
          const next = yield* queue.claim(asWorker("next"))
          expect(next!.messages.map(({ terms }) => terms.generation)).toEqual([3])
          expect(next!.messages[0]!.messageId).not.toBe(lost!.messages[0]!.messageId)
          // What the lost one has to say comes too late.
          expect((yield* (yield* Circuits).report([seen(lane, 2, { succeeded: true })])).size).toBe(0)
        })
      )

      test(
        "whose probe succeeded hands out a little, and more with each success",
        Effect.gen(function* () {
          const queue = yield* Queue
          const circuits = yield* Circuits
          const lane = newLane()
          yield* put(lane, 20)
          yield* open(lane)
          yield* Effect.sleep(`${OPEN_MS + 50} millis`)
          yield* queue.claim(asWorker("w"))
          expect(yield* settleProbe(lane, true)).toBe("Appended")
          const first = yield* queue.claim(asWorker("w"))
          expect(first!.messages.map(({ terms }) => terms)).toEqual([
            { generation: 3, circuitMode: "watched", startWithinMs: null, isRateLimited: false, inFlightMax: 1 }
          ])
          yield* circuits.report([seen(lane, 3, { succeeded: true })])
          yield* circuits.report([seen(lane, 3, { succeeded: true })])
          expect((yield* queue.claim(asWorker("w")))!.messages).toHaveLength(4)
        })
      )

      test(
        "whose probe failed is silent for twice as long",
        Effect.gen(function* () {
          const queue = yield* Queue
          const lane = newLane()
          yield* put(lane, 2)
          yield* open(lane)
          yield* Effect.sleep(`${OPEN_MS + 50} millis`)
          yield* queue.claim(asWorker("w"))
          yield* settleProbe(lane, false)
          yield* Effect.sleep(`${OPEN_MS + 50} millis`)
          expect(yield* claimAll).toEqual([])
          yield* Effect.sleep(`${OPEN_MS} millis`)
          expect(yield* claimAll).toHaveLength(1)
        })
      )

      test(
        "that is held hands out nothing until it is reset",
        Effect.gen(function* () {
          const lane = newLane()
          yield* hold(lane)
          const [message] = yield* put(lane, 1)
          expect(yield* claimAll).toEqual([])
          expect(yield* (yield* Queue).nextDueAt).toBeNull()
          yield* reset(lane)
          expect(yield* claimAll).toEqual([message!.id])
        })
      )

      test(
        "says in its terms which outcomes are news: of a healthy one failures only",
        Effect.gen(function* () {
          const [healthy, counting] = [newLane(), newLane()]
          yield* put(healthy, 1)
          yield* put(counting, 1)
          yield* (yield* Circuits).report([seen(counting, 0, { failures: 1 })])
          const claim = yield* (yield* Queue).claim(asWorker("w"))
          const quiet = { generation: 0, startWithinMs: null, isRateLimited: false, inFlightMax: null }
          expect(new Map(claim!.messages.map(({ lane, terms }) => [lane, terms]))).toEqual(
            new Map([
              [healthy, { ...quiet, circuitMode: null }],
              [counting, { ...quiet, circuitMode: "watched" }]
            ])
          )
        })
      )
    })

    describe("the gate of an append", () => {
      test(
        "lets an attempt start under the generation its claim saw, and under no other",
        Effect.gen(function* () {
          const store = yield* EventStore
          const [lane, other] = [newLane(), newLane()]
          const samples = yield* put(lane, 3)
          const [elsewhere] = yield* put(other, 1)
          const gate = { lane, generation: 0 }
          const [first, ...rest] = samples.map((sample) => started(sample, { gate }).entry)
          expect(yield* store.append([first!])).toMatchObject([{ type: "Appended" }])
          yield* hold(lane)
          const results = yield* store.append([
            ...rest,
            started(elsewhere!, { gate: { lane: other, generation: 0 } }).entry
          ])
          expect(results.map(({ type }) => type)).toEqual(["GateClosed", "GateClosed", "Appended"])
          expect((yield* store.load(rest[0]!.messageId)).version).toBe(1)
          const now = started(samples[1]!, { gate: { lane, generation: 1 } }).entry
          expect(yield* store.append([now])).toMatchObject([{ type: "Appended" }])
        })
      )

      test(
        "is closed while the lane is paused",
        Effect.gen(function* () {
          const store = yield* EventStore
          const destinations = yield* Destinations
          const { orgId, id } = yield* endpoint()
          const [sample] = yield* put(id, 1)
          const entry = started(sample!, { gate: { lane: id, generation: 0 } }).entry
          yield* destinations.setPaused(webhook, orgId, id, true)
          expect(yield* store.append([entry])).toMatchObject([{ type: "GateClosed" }])
          yield* destinations.setPaused(webhook, orgId, id, false)
          expect(yield* store.append([entry])).toMatchObject([{ type: "Appended" }])
        })
      )
    })

    describe("an endpoint", () => {
      test(
        "that is paused keeps its backlog, and gives it out when it is resumed",
        Effect.gen(function* () {
          const destinations = yield* Destinations
          const { orgId, id } = yield* endpoint()
          expect((yield* destinations.setPaused(webhook, orgId, id, true))?.paused).toBe(true)
          const samples = yield* put(id, 3)
          expect(yield* claimAll).toEqual([])
          expect((yield* destinations.get(orgId, id))?.paused).toBe(true)
          expect((yield* destinations.setPaused(webhook, orgId, id, false))?.paused).toBe(false)
          expect((yield* claimAll).toSorted()).toEqual(samples.map((sample) => sample.id).toSorted())
        })
      )

      for (const [how, stop] of [
        [
          "paused, held and limited",
          (id: DestinationId, orgId: OrgId) =>
            Effect.gen(function* () {
              yield* (yield* Destinations).setPaused(webhook, orgId, id, true)
              yield* hold(id)
            })
        ],
        ["deferred", (id: DestinationId) => Effect.flatMap(Queue, (queue) => queue.deferLane(id, Duration.minutes(1)))]
      ] as const)
        test(
          `that is removed while it is ${how} holds back nothing that waits for it`,
          Effect.gen(function* () {
            const { orgId, id } = yield* endpoint({ rateLimit: { limit: 1, periodMs: 60_000 } })
            yield* put(id, 3)
            yield* stop(id, orgId)
            expect(yield* claimAll).toEqual([])
            yield* (yield* Destinations).remove(webhook, orgId, id)
            expect(yield* claimAll).toHaveLength(3)
            expect(yield* state(id)).toMatchObject({ status: "CLOSED" })
          })
        )

      test(
        "with a rate limit hands out no more than it, over all workers and whatever else they claim",
        Effect.gen(function* () {
          const queue = yield* Queue
          const { id } = yield* endpoint({ rateLimit: { limit: 20, periodMs: 1_000 } })
          const [free, watched] = [newLane(), newLane()]
          for (const lane of [free, id, watched]) yield* put(lane, 40)
          yield* (yield* Circuits).report([seen(watched, 0, { failures: 2 })])
          const began = yield* Clock.currentTimeMillis
          const handedOut: Array<ClaimedMessage> = []
          // As long as it takes to see a dozen: how long that is depends on the machine.
          while (handedOut.filter(({ lane }) => lane === id).length < 12) {
            const claims = yield* Effect.all(
              ["a", "b", "c"].map((worker) => queue.claim(asWorker(worker))),
              { concurrency: "unbounded" }
            )
            handedOut.push(...claims.flatMap((claim) => claim?.messages ?? []))
            const limited = handedOut.filter(({ lane }) => lane === id)
            const most = ((yield* Clock.currentTimeMillis) - began + 40) / 52.5 + 1
            expect(limited.length).toBeLessThanOrEqual(most)
            yield* Effect.sleep("40 millis")
          }
          const termsOf = (lane: DestinationId) =>
            new Set(
              handedOut
                .filter((message) => message.lane === lane)
                .map(({ terms: { circuitMode, isRateLimited } }) => `${circuitMode} ${isRateLimited}`)
            )
          expect([free, id, watched].map(termsOf)).toEqual(
            [["null false"], ["null true"], ["watched false"]].map((one) => new Set(one))
          )
        })
      )

      test(
        "with a rate limit says when it hands out the next one",
        Effect.gen(function* () {
          const { id } = yield* endpoint({ rateLimit: { limit: 1, periodMs: 60_000 } })
          yield* put(id, 2)
          const began = yield* Clock.currentTimeMillis
          expect(yield* claimAll).toHaveLength(1)
          const took = (yield* Clock.currentTimeMillis) - began
          expect(yield* claimAll).toEqual([])
          const opensAfter = DateTime.toEpochMillis((yield* (yield* Queue).nextDueAt)!) - began
          // The store's clock and this process's estimate of it differ by half a round trip.
          expect(opensAfter).toBeGreaterThan(60_000)
          expect(opensAfter).toBeLessThan(62_000 + took)
        })
      )

      for (const [how, rateLimit] of [
        ["changes", { limit: 100, periodMs: 1_000 }],
        ["is lifted", null]
      ] as const)
        test(
          `whose rate limit ${how} counts from then on, and under other settings as before`,
          Effect.gen(function* () {
            const destinations = yield* Destinations
            const { orgId, id } = yield* endpoint({ rateLimit: { limit: 1, periodMs: 3_600_000 } })
            yield* put(id, 4)
            expect(yield* claimAll).toHaveLength(1)
            yield* destinations.change(webhook, orgId, id, { settings: { description: "still limited" } })
            expect(yield* claimAll).toEqual([])
            yield* destinations.change(webhook, orgId, id, { settings: { rateLimit } })
            expect((yield* claimAll).length).toBeGreaterThan(0)
          })
        )

      test(
        "belongs to the org that made it, and one that nobody made to none",
        Effect.gen(function* () {
          const circuits = yield* Circuits
          const { orgId, id } = yield* endpoint({})
          expect(yield* circuits.orgOf(id)).toBe(orgId)
          expect(yield* circuits.orgOf(newLane())).toBeNull()
        })
      )
    })
  })
}
