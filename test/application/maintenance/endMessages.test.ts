/** Messages whose time is over end, whatever holds them back, and nothing is sent for it. */
import { it } from "@effect/vitest"
import { Duration, Effect, Layer, type Scope } from "effect"
import { describe, expect } from "vitest"
import { dispatch } from "../../../src/application/deliver/dispatch.ts"
import { Senders } from "../../../src/application/deliver/Senders.ts"
import { commandCircuit } from "../../../src/application/destinations/commandCircuit.ts"
import { LogReader } from "../../../src/application/log/LogReader.ts"
import { keepProjections } from "../../../src/application/log/projections/keepProjections.ts"
import { endMessages, endMessagesOnce } from "../../../src/application/maintenance/endMessages.ts"
import { Destinations } from "../../../src/application/ports/Destinations.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { type Stored, Telemetry, unwatched } from "../../../src/application/ports/Telemetry.ts"
import { Leadership, maintain } from "../../../src/application/processes/leader.ts"
import { outcomeOfStatus } from "../../../src/domain/delivery/classify.ts"
import type { DestinationId, MessageId } from "../../../src/domain/ids.ts"
import { replay } from "../../../src/domain/message/decider.ts"
import type { MessageFact, MessageQueued } from "../../../src/domain/message/facts.ts"
import { circuitFacts, makeEndpoint, webhook } from "../../contracts/destinations/samples.ts"
import { ended, projected } from "../../contracts/replays/deadLetterSamples.ts"
import { inMillis, newOrg, next, opened, type StorePorts } from "../../contracts/sample.ts"
import { refused } from "../../contracts/written.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"
import { simulateTime } from "../../simulatedTime.ts"

simulateTime()

const aged = (ageMaxMs: number) =>
  ({ strategy: "fixed", baseMs: 10, jitter: [1, 1], attemptsMax: 100, ageMaxMs }) as const

const put = Effect.fnUntraced(function* (destination: DestinationId, count: number, wishes: Partial<MessageQueued>) {
  const steps = Array.from({ length: count }, () => opened({ destination, dueAt: inMillis(0), ...wishes }))
  yield* (yield* EventStore).append(steps.map(({ entry }) => entry))
  return steps.map(({ after }) => after.id)
})

const statuses = Effect.fnUntraced(function* (ids: ReadonlyArray<MessageId>) {
  const streams = yield* (yield* EventStore).loadMany(ids)
  return ids.map((id) => replay(streams.get(id)!.facts.map(({ fact }) => fact)).status)
})

/** A worker, the projections and the loop that ends messages; the far side answers what `status` says. */
const withPosthaste = <A, E>(
  status: () => number,
  body: (
    sent: ReadonlyArray<string>,
    told: ReadonlyArray<ReadonlyArray<MessageFact>>
  ) => Effect.Effect<A, E, StorePorts | Senders | LogReader | Scope.Scope>
) => {
  const sent: Array<string> = []
  const told: Array<ReadonlyArray<MessageFact>> = []
  const channel = {
    send: ({ messageId }: { readonly messageId: string }) =>
      Effect.sync(() => {
        sent.push(messageId)
        return { outcome: outcomeOfStatus(status(), 1, null), responseBody: null }
      }),
    capacity: () => Effect.succeed(10),
    dedupes: () => Effect.succeed(true)
  }
  return Effect.scoped(Effect.andThen(everything(), body(sent, told))).pipe(
    Effect.provideService(Telemetry, {
      ...unwatched,
      stored: (_, facts) => told.push(facts),
      storedInBulk: (all) => told.push(...all.map(({ facts }) => facts))
    }),
    Effect.provideService(Senders, { webhook: channel }),
    Effect.provide(Layer.provideMerge(LogReader.layer, MemoryPorts.layer))
  )
}

const everything = Effect.fnUntraced(function* () {
  yield* Effect.forkScoped(keepProjections)
  yield* Effect.forkScoped(Effect.provide(maintain(endMessages), Leadership.always))
  yield* dispatch({
    worker: "w",
    concurrency: 8,
    lease: Duration.seconds(10),
    grace: Duration.seconds(1),
    circuit: { failuresMax: 3, openMs: 60_000, openMaxMs: 60_000 }
  })
})

describe("a message whose time is over", () => {
  it.live("ends behind a pause, as a dead letter by its age and as expired by its expiry", () =>
    withPosthaste(
      () => 200,
      Effect.fnUntraced(function* (sent, told) {
        const destinations = yield* Destinations
        const orgId = newOrg()
        const { id } = yield* makeEndpoint(orgId)
        yield* destinations.setPaused(webhook, orgId, id, true)
        const old = yield* put(id, 1_200, { retry: aged(2_000) })
        const expired = yield* put(id, 2, { expiresAt: inMillis(2_000) })
        const days = (count: number) => {
          const at = inMillis(-count * 86_400_000)
          return put(id, 1, { acceptedAt: at, dueAt: at })
        }
        const young = [...(yield* days(29.9)), ...(yield* days(30))]
        yield* Effect.sleep("1900 millis")
        expect(new Set(yield* statuses([...old, ...expired]))).toEqual(new Set(["QUEUED"]))
        yield* Effect.sleep("3 seconds")
        expect(new Set(yield* statuses(old))).toEqual(new Set(["DEAD_LETTER"]))
        expect(yield* statuses(expired)).toEqual(["EXPIRED", "EXPIRED"])
        expect(yield* statuses(young)).toEqual(["QUEUED", "DEAD_LETTER"])
        expect(sent).toEqual([])
        // One by one, or many at once: each is told of once.
        expect(told.map((facts) => facts.at(-1)!.type).toSorted()).toEqual([
          ...Array.from({ length: 1_201 }, () => "MessageDeadLettered"),
          ...["MessageExpired", "MessageExpired"]
        ])
      })
    )
  )

  it.live("ends behind an open circuit without taking its probe, so the first that can be sent goes at once", () =>
    withPosthaste(
      () => 200,
      Effect.fnUntraced(function* (sent) {
        const orgId = newOrg()
        const { id } = yield* makeEndpoint(orgId)
        yield* commandCircuit(orgId, id, { type: "HoldCircuit", reason: null })
        const old = yield* put(id, 120, { retry: aged(2_000) })
        yield* Effect.sleep("5 seconds")
        expect(new Set(yield* statuses(old))).toEqual(new Set(["DEAD_LETTER"]))
        const [valid] = yield* put(id, 1, {})
        yield* commandCircuit(orgId, id, { type: "ResetCircuit", reason: null })
        yield* Effect.sleep("200 millis")
        expect(sent).toEqual([valid])
        expect((yield* circuitFacts(id)).map(({ type }) => type)).toEqual(["CircuitHeld", "CircuitReset"])
      })
    )
  )

  it.live("ends in its line, and lets the next one go or blocks it, as its destination says", () =>
    withPosthaste(
      () => 200,
      Effect.fnUntraced(function* (sent) {
        const destinations = yield* Destinations
        const orgId = newOrg()
        for (const onDeadLetter of ["skip", "block"] as const) {
          const { id } = yield* makeEndpoint(orgId, { onDeadLetter })
          yield* destinations.setPaused(webhook, orgId, id, true)
          const [first, second] = yield* put(id, 2, { retry: aged(2_000), orderingKey: "a" })
          const [last] = yield* put(id, 1, { orderingKey: "a" })
          yield* Effect.sleep("5 seconds")
          expect(yield* statuses([first!, second!, last!])).toEqual(["DEAD_LETTER", "DEAD_LETTER", "QUEUED"])
          yield* destinations.setPaused(webhook, orgId, id, false)
          yield* Effect.sleep("2 seconds")
          expect(sent.includes(last!)).toBe(onDeadLetter === "skip")
        }
      })
    )
  )

  it.live("is not sent by a worker that claims it before it was looked for", () =>
    withPosthaste(
      () => 503,
      Effect.fnUntraced(function* (sent) {
        const { id } = yield* makeEndpoint(newOrg(), { rateLimit: { limit: 1, periodMs: 3_600_000 } })
        const ids = yield* put(id, 2, { retry: aged(1_000), dueAt: inMillis(-5_000), acceptedAt: inMillis(-5_000) })
        yield* Effect.sleep("3 seconds")
        expect(yield* statuses(ids)).toEqual(["DEAD_LETTER", "DEAD_LETTER"])
        expect(sent).toEqual([])
      })
    )
  )
})

describe("one look for messages whose time is over", () => {
  const long = () => ({ acceptedAt: inMillis(-5_000), dueAt: inMillis(-5_000), retry: aged(1_000) })

  /** What is told one by one, and what at once. */
  const looking = <A, E>(
    body: (
      single: ReadonlyArray<Stored>,
      inBulk: ReadonlyArray<ReadonlyArray<Stored>>
    ) => Effect.Effect<A, E, StorePorts>
  ) => {
    const single: Array<Stored> = []
    const inBulk: Array<ReadonlyArray<Stored>> = []
    return Effect.suspend(() => body(single, inBulk)).pipe(
      Effect.provideService(Telemetry, {
        ...unwatched,
        stored: (subject, facts) => single.push({ subject, facts }),
        storedInBulk: (all) => inBulk.push(all)
      }),
      Effect.provide(MemoryPorts.layer)
    )
  }

  it.live("ends them all, however many they are, and goes past those of which the list knows too little", () =>
    looking(
      Effect.fnUntraced(function* (single, inBulk) {
        const store = yield* EventStore
        const orgId = newOrg()
        const all = Array.from({ length: 1_100 }, () => opened({ orgId, ...long() }))
        yield* store.append(all.map(({ entry }) => entry))
        const dead = yield* ended(refused(), inMillis(0), { orgId, retry: aged(1_000) })
        const replayed = next(dead, { type: "ReplayMessage", now: inMillis(-5_000), reason: null })
        yield* store.append([replayed.entry])
        yield* projected([...all, replayed].map(({ after }) => after))
        // The list does not know yet that one was cancelled and one is gone.
        const [cancelled, gone] = all
        yield* store.append([next(cancelled!.after, { type: "CancelMessage", reason: null }).entry])
        const without = EventStore.of({
          ...store,
          loadMany: (ids) => store.loadMany(ids.filter((id) => id !== gone!.after.id))
        })
        const look = Effect.provideService(endMessagesOnce(), EventStore, without)
        expect(yield* look).toBe(1_099)
        expect(inBulk.map((told) => told.length)).toEqual([1_099])
        expect(inBulk[0]!.filter(({ subject }) => subject.epoch === 2).map(({ subject }) => subject.messageId)).toEqual(
          [dead.id]
        )
        // The list is as it was: nothing ends twice.
        expect(yield* look).toBe(0)
        expect([single, inBulk.length]).toEqual([[], 1])
      })
    )
  )

  it.live("leaves those that change all the time to the next one", () =>
    looking(
      Effect.fnUntraced(function* (single, inBulk) {
        const store = yield* EventStore
        const [one, two, three] = [opened(long()), opened(long()), opened(long())]
        yield* store.append([one, two, three].map(({ entry }) => entry))
        yield* projected([one.after])
        const overtaken = EventStore.of({
          ...store,
          append: (entries) => Effect.succeed(entries.map(() => ({ type: "VersionConflict" }) as const))
        })
        expect(yield* Effect.provideService(endMessagesOnce(), EventStore, overtaken)).toBe(0)
        expect(yield* endMessagesOnce()).toBe(1)
        expect([single.length, inBulk.length]).toEqual([1, 0])
        yield* projected([two.after, three.after])
        expect(yield* endMessagesOnce()).toBe(2)
        expect([single.length, inBulk.map((told) => told.length)]).toEqual([1, [2]])
      })
    )
  )
})
