/** Who gets a place in a worker when others hang: every org, and every lane that answers, whatever the other lanes do. */
import { it } from "@effect/vitest"
import { DateTime, Duration, Effect, type Scope } from "effect"
import { describe, expect } from "vitest"
import { dispatch } from "../../../src/application/deliver/dispatch.ts"
import { Senders } from "../../../src/application/deliver/Senders.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import type { DestinationId, OrgId } from "../../../src/domain/ids.ts"
import { delivered, inMillis, newLane, newOrg, opened, type StorePorts, unreachable } from "../../contracts/sample.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"
import { simulateTime } from "../../simulatedTime.ts"

simulateTime()

const HANGS_MS = 28_000
const PLACES = 64

const now = () => DateTime.toEpochMillis(inMillis(0))

interface Sent {
  readonly lane: DestinationId
  readonly at: number
}

/** One worker. A lane takes as long as `takesMs` says when its message is sent. */
const withWorker = <A, E>(
  takesMs: (lane: DestinationId) => number,
  body: (sent: ReadonlyArray<Sent>) => Effect.Effect<A, E, StorePorts | Senders | Scope.Scope>,
  failsAfterwards: (lane: DestinationId) => boolean = () => false
) => {
  const sent: Array<Sent> = []
  const channel = {
    send: ({ destination }: { readonly destination: DestinationId }) =>
      Effect.suspend(() => {
        sent.push({ lane: destination, at: now() })
        const outcome = failsAfterwards(destination) ? { ...unreachable(), status: null } : delivered
        return Effect.as(Effect.sleep(takesMs(destination)), { outcome, responseBody: null })
      }),
    capacity: () => Effect.succeed(50),
    dedupes: () => Effect.succeed(true)
  }
  const worker = dispatch({
    worker: "worker",
    concurrency: PLACES,
    lease: Duration.seconds(10),
    grace: Duration.seconds(5)
  })
  return Effect.scoped(Effect.andThen(worker, body(sent))).pipe(
    Effect.provideService(Senders, { webhook: channel }),
    Effect.provide(MemoryPorts.layer)
  )
}

const put = Effect.fnUntraced(function* (orgId: OrgId, lanes: ReadonlyArray<DestinationId>, each: number) {
  const retry = { strategy: "fixed", baseMs: 1, attemptsMax: 1 } as const
  const steps = lanes.flatMap((destination) =>
    Array.from({ length: each }, () => opened({ orgId, destination, dueAt: inMillis(-1), retry }))
  )
  yield* (yield* EventStore).append(steps.map(({ entry }) => entry))
})

const newLanes = (count: number) => Array.from({ length: count }, newLane)

/** How long after it was put in the next message of the lane is sent. */
const waited = Effect.fnUntraced(function* (sent: ReadonlyArray<Sent>, orgId: OrgId, lane: DestinationId) {
  const before = sent.filter((request) => request.lane === lane).length
  const from = now()
  yield* put(orgId, [lane], 1)
  while (sent.filter((request) => request.lane === lane).length === before) yield* Effect.sleep("5 millis")
  return sent.findLast((request) => request.lane === lane)!.at - from
})

describe("a healthy destination", () => {
  for (const [many, lanes, each] of [
    ["twelve destinations", 12, 100],
    ["two hundred destinations", 200, 3]
  ] as const) {
    it.live(`of another org gets its place at once while ${many} of one org hang`, () => {
      const hanging = new Set(newLanes(lanes))
      return withWorker(
        (lane) => (hanging.has(lane) ? HANGS_MS : 5),
        (sent) =>
          Effect.gen(function* () {
            yield* put(newOrg(), [...hanging], each)
            for (const after of [100, 1_500, 10_000]) {
              yield* Effect.sleep(after)
              expect(yield* waited(sent, newOrg(), newLane())).toBeLessThan(100)
            }
          })
      )
    })
  }

  it.live("of the org itself gets its place at once when it is new and one of its destinations hangs", () => {
    const hanging = newLane()
    return withWorker(
      (lane) => (lane === hanging ? HANGS_MS : 5),
      (sent) =>
        Effect.gen(function* () {
          const org = newOrg()
          yield* put(org, [hanging], 200)
          for (const after of [100, 1_500, 10_000]) {
            yield* Effect.sleep(after)
            expect(yield* waited(sent, org, newLane())).toBeLessThan(100)
          }
        })
    )
  })

  it.live("of another org gets its place at once when two hundred destinations were quick before they hang", () => {
    const turning = new Set(newLanes(200))
    const from = now()
    return withWorker(
      (lane) => (turning.has(lane) && now() - from > 3_000 ? HANGS_MS : 5),
      (sent) =>
        Effect.gen(function* () {
          const org = newOrg()
          yield* put(org, [...turning], 2)
          yield* Effect.sleep(5_000)
          yield* put(org, [...turning], 3)
          for (const after of [100, 1_500, 10_000]) {
            yield* Effect.sleep(after)
            expect(yield* waited(sent, newOrg(), newLane())).toBeLessThan(100)
          }
        })
    )
  })

  it.live("of the same org gets its place at once when it is known to be quick", () => {
    const hanging = new Set(newLanes(200))
    const org = newOrg()
    const healthy = newLane()
    return withWorker(
      (lane) => (hanging.has(lane) ? HANGS_MS : 5),
      (sent) =>
        Effect.gen(function* () {
          yield* waited(sent, org, healthy)
          yield* put(org, [...hanging], 3)
          for (const after of [100, 1_500, 10_000]) {
            yield* Effect.sleep(after)
            expect(yield* waited(sent, org, healthy)).toBeLessThan(100)
          }
        })
    )
  })
})

describe("beside a hundred destinations of its org that hang, with eight messages each", () => {
  /** How long each message of two minutes waited, sent to a destination of its own choice twice a second. */
  const waits = (laneOf: (nth: number) => DestinationId, isKnown: boolean) => {
    const hanging = new Set(newLanes(100))
    const org = newOrg()
    return withWorker(
      (lane) => (hanging.has(lane) ? 15_000 : 5),
      (sent) =>
        Effect.gen(function* () {
          if (isKnown) yield* waited(sent, org, laneOf(0))
          yield* put(org, [...hanging], 8)
          const found: Array<number> = []
          for (let nth = 0; nth < 240; nth++) {
            yield* Effect.sleep("500 millis")
            found.push(yield* waited(sent, org, laneOf(nth)))
          }
          return found.toSorted((a, b) => a - b)[Math.floor(found.length * 0.95)]!
        }),
      (lane) => hanging.has(lane)
    )
  }

  it.live("a new destination waits half a second at most, of a hundred 95", () =>
    Effect.map(waits(newLane, false), (p95) => expect(p95).toBeLessThanOrEqual(500))
  )

  it.live("a destination that is known waits half a second at most, of a hundred 95", () => {
    const known = newLane()
    return Effect.map(
      waits(() => known, true),
      (p95) => expect(p95).toBeLessThanOrEqual(500)
    )
  })
})

describe("an org with a large backlog", () => {
  it.live("holds up no other, however many lanes it has and however quick they are", () => {
    const other = newLane()
    return withWorker(
      () => 20,
      (sent) =>
        Effect.gen(function* () {
          yield* put(newOrg(), newLanes(400), 20)
          yield* Effect.sleep(200)
          expect(yield* waited(sent, newOrg(), other)).toBeLessThan(100)
          // It still has most of its messages before it.
          expect(sent.length).toBeLessThan(4_000)
        })
    )
  })
})
