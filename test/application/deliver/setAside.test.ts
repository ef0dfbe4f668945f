/** One stream that can't be processed holds up nothing but itself. */
import { it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { describe, expect } from "vitest"
import { dispatch } from "../../../src/application/deliver/dispatch.ts"
import { mendMessages } from "../../../src/application/deliver/mendMessages.ts"
import { recover } from "../../../src/application/deliver/recover.ts"
import { repairDefaults, repairQueue } from "../../../src/application/deliver/repairQueue.ts"
import { Senders } from "../../../src/application/deliver/Senders.ts"
import { StoreUnavailable } from "../../../src/application/errors.ts"
import { LogReader } from "../../../src/application/log/LogReader.ts"
import { projectOnce } from "../../../src/application/log/projections/keepProjections.ts"
import { Archive } from "../../../src/application/ports/Archive.ts"
import { type AppendResult, EventStore } from "../../../src/application/ports/EventStore.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import { PAUSES_MS, SetAside } from "../../../src/application/ports/SetAside.ts"
import { Telemetry, unwatched } from "../../../src/application/ports/Telemetry.ts"
import type { MessageQueued } from "../../../src/domain/message/facts.ts"
import { asWorker } from "../../contracts/deliver/claims.ts"
import { delivered, newLane, opened, settled, started } from "../../contracts/sample.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"
import { simulateTime } from "../../simulatedTime.ts"

simulateTime()

const channel = {
  send: () => Effect.never,
  capacity: () => Effect.succeed(1),
  dedupes: () => Effect.succeed(true)
}

/** What another worker left behind: messages with an open attempt, in one batch that ran out. */
const abandoned = Effect.gen(function* () {
  const store = yield* EventStore
  const queue = yield* Queue
  const destination = newLane()
  const messages = [0, 1, 2].map(() => opened({ destination }))
  yield* store.append(messages.map(({ entry }) => entry))
  const lease = Duration.millis(1)
  const claim = yield* queue.claim({
    worker: "gone",
    limit: 9,
    perLane: 9,
    room: new Map(),
    fullOrgs: new Set<never>(),
    lease
  })
  expect(claim!.messages).toHaveLength(3)
  yield* store.append(messages.map(({ after }) => started(after, { fence: claim!.batch }).entry))
  yield* Effect.sleep("20 millis")
  return messages.map(({ after }) => after.id)
})

describe("a stream that can't be processed", () => {
  it.live.each(["unreadable", "impossible"])("does not keep its batch from being recovered (%s)", (kind) =>
    Effect.gen(function* () {
      const [before, broken, behind] = yield* abandoned
      const store = yield* EventStore
      const seen: EventStore["Service"] = {
        ...store,
        loadMany: (ids) =>
          Effect.map(store.loadMany(ids), (streams) => {
            const stream = streams.get(broken!)
            if (stream === undefined) return streams
            if (kind === "unreadable") throw new Error("no release wrote this fact")
            // A history that begins in the middle.
            return new Map([...streams, [broken!, { ...stream, facts: stream.facts.slice(1) }]])
          })
      }
      const recovered = recover("another", Duration.minutes(1)).pipe(Effect.provideService(EventStore, seen))
      expect(yield* recovered).toBe(1)
      const last = Effect.fnUntraced(function* (id: typeof before) {
        return (yield* store.load(id!)).facts.at(-1)!.fact.type
      })
      expect(yield* Effect.forEach([before, broken, behind], last)).toEqual([
        "AttemptAbandoned",
        "AttemptStarted",
        "AttemptAbandoned"
      ])
      const queue = yield* Queue
      const setAside = yield* SetAside
      // Nothing is held any more, and the broken one is in no lane.
      expect(yield* queue.takeOver("census", Duration.minutes(1), 9)).toEqual([])
      expect([...(yield* setAside.find([before!, broken!, behind!])).keys()]).toEqual([broken])
      expect(yield* recover("another", Duration.minutes(1))).toBe(0)
      // Its stream is right by now: it is recovered like the others.
      yield* setAside.tryAgain([broken!])
      yield* Effect.forkScoped(repairQueue({ ...repairDefaults, holder: "one" }))
      yield* Effect.sleep("2 seconds")
      expect((yield* setAside.find([broken!])).size).toBe(0)
      expect(yield* recover("another", Duration.minutes(1))).toBe(1)
      expect(yield* last(broken)).toBe("AttemptAbandoned")
    }).pipe(Effect.scoped, Effect.provideService(Senders, { webhook: channel }), Effect.provide(MemoryPorts.layer))
  )
})

const minute = Duration.minutes(1)

describe("a message that Posthaste fails on", () => {
  it.live("is set aside, tried again by itself, and delivered once nothing is wrong any more", () =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const setAside = yield* SetAside
      const [broken, other] = [opened(), opened()]
      let isBroken = true
      const seen: EventStore["Service"] = {
        ...store,
        append: (entries) =>
          isBroken && entries.some(({ messageId, expected }) => messageId === broken.after.id && expected > 0)
            ? Effect.die(new Error("a bug"))
            : store.append(entries)
      }
      const sending = { ...channel, send: () => Effect.succeed({ outcome: delivered, responseBody: null }) }
      yield* store.append([broken.entry, other.entry])
      const settings = { worker: "w", concurrency: 4, lease: minute, grace: Duration.seconds(1) }
      yield* dispatch(settings).pipe(
        Effect.provideService(EventStore, seen),
        Effect.provideService(Senders, { webhook: sending })
      )
      yield* Effect.forkScoped(repairQueue({ ...repairDefaults, holder: "w" }))
      yield* Effect.sleep("30 seconds")
      const typesOf = (step: typeof broken) =>
        Effect.map(store.load(step.after.id), ({ facts }) => facts.map(({ fact }) => fact.type))
      expect((yield* typesOf(other)).at(-1)).toBe("MessageDelivered")
      expect((yield* setAside.find([broken.after.id])).get(broken.after.id)).toMatchObject({
        ...{ orgId: (broken.entry.facts[0] as MessageQueued).orgId, lane: broken.after.lane },
        ...{ reason: "failed", detail: "Error: a bug", tries: 1 }
      })
      yield* Effect.sleep("2 minutes")
      expect((yield* setAside.find([broken.after.id])).get(broken.after.id)!.tries).toBe(2)
      isBroken = false
      yield* Effect.sleep("10 minutes")
      expect((yield* typesOf(broken)).at(-1)).toBe("MessageDelivered")
      expect((yield* setAside.list({ cursor: null, limit: 9 })).items).toEqual([])
    }).pipe(Effect.scoped, Effect.provide(MemoryPorts.layer))
  )
})

describe("a message that is set aside although somebody processes it", () => {
  it.live("is listed no longer within minutes of its delivery, whatever its next try", () =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const queue = yield* Queue
      const setAside = yield* SetAside
      const { after, entry } = opened()
      yield* store.append([entry])
      const batch = (yield* queue.claim(asWorker("w")))!.batch
      const begun = started(after, { fence: batch })
      yield* store.append([begun.entry])
      // A process of another release could not read it, again and again: it is tried in four hours.
      const about = {
        messageId: after.id,
        orgId: null,
        lane: after.lane,
        reason: "unreadable",
        detail: "version 1"
      } as const
      for (const _ of PAUSES_MS) yield* setAside.put(null, [{ ...about, version: 2 }])
      yield* Effect.forkScoped(repairQueue({ ...repairDefaults, holder: "one" }))
      yield* Effect.sleep("5 minutes")
      expect((yield* setAside.find([after.id])).size).toBe(1)
      yield* store.append([settled(begun.after, delivered, { fence: batch }).entry])
      yield* queue.release(batch, [])
      yield* Effect.sleep("3 minutes")
      expect((yield* setAside.list({ cursor: null, limit: 9 })).items).toEqual([])
    }).pipe(Effect.scoped, Effect.provide(MemoryPorts.layer))
  )
})

describe("a message that can't be read", () => {
  it.live("is set aside, but not when the names of its facts say that it has ended", () =>
    Effect.gen(function* () {
      const archive = yield* Archive
      const [open, ended] = [opened(), opened()]
      const begun = started(ended.after)
      const entries = [open.entry, ended.entry, begun.entry, settled(begun.after, delivered).entry]
      for (const entry of entries) yield* (yield* EventStore).append([entry])
      const unheard: Archive["Service"] = {
        ...archive,
        streams: (names) =>
          Effect.map(
            archive.streams(names),
            (streams) =>
              new Map(
                [...streams].map(([name, [first, ...rest]]) => [name, [{ ...first!, name: "Unheard@1" }, ...rest]])
              )
          )
      }
      const ids = [open.after.id, ended.after.id]
      yield* mendMessages(ids).pipe(Effect.provideService(Archive, unheard))
      expect([...(yield* (yield* SetAside).find(ids)).keys()]).toEqual([open.after.id])
    }).pipe(Effect.provide(MemoryPorts.layer))
  )
})

describe("a worker that is stopped", () => {
  it.live("starts nothing any more that it sets aside, however late its append comes", () =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const setAside = yield* SetAside
      const { after, entry } = opened()
      /** The start of its attempt, on the way to a store that has not done it when the worker is asked to stop. */
      let late: Parameters<EventStore["Service"]["append"]>[0] | null = null
      let came: ReadonlyArray<AppendResult> | null = null
      const seen: EventStore["Service"] = {
        ...store,
        append: (entries) => {
          late = entries
          return Effect.never
        },
        loadMany: () => Effect.die(new Error("no release wrote this fact"))
      }
      const losing: SetAside["Service"] = {
        ...setAside,
        put: Effect.fnUntraced(function* (batch, messages) {
          yield* setAside.put(batch, messages)
          if (came !== null) return
          came = yield* store.append(late!)
          return yield* new StoreUnavailable({ cause: "the answer was lost" })
        })
      }
      yield* store.append([entry])
      yield* Effect.scoped(
        Effect.andThen(
          dispatch({ worker: "w", concurrency: 1, lease: minute, grace: Duration.millis(10) }),
          Effect.sleep("100 millis")
        )
      ).pipe(
        Effect.provideService(EventStore, seen),
        Effect.provideService(SetAside, losing),
        Effect.provideService(Senders, { webhook: channel })
      )
      expect(came).toEqual([{ type: "FenceLost" }])
      expect((yield* setAside.find([after.id])).size).toBe(1)
      expect((yield* store.load(after.id)).version).toBe(1)
    }).pipe(Effect.provide(MemoryPorts.layer))
  )
})

describe("a message that is in no place of the queue", () => {
  it.live("is put back within minutes, and what moves meanwhile is never touched", () =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const queue = yield* Queue
      const repaired: Array<readonly [string, number]> = []
      const telemetry = { ...unwatched, repaired: (kind: string, count: number) => void repaired.push([kind, count]) }
      const steps = Array.from({ length: 20 }, () => opened())
      yield* store.append(steps.map(({ entry }) => entry))
      yield* Effect.provide(projectAll, LogReader.layer)
      const lease = minute
      const claim = yield* queue.claim({
        worker: "w",
        limit: 9,
        perLane: 9,
        room: new Map(),
        fullOrgs: new Set<never>(),
        lease
      })
      yield* queue.release(claim!.batch, [])
      const lost = claim!.messages.map(({ messageId }) => messageId)
      const held = yield* queue.claim({
        worker: "w",
        limit: 9,
        perLane: 9,
        room: new Map(),
        fullOrgs: new Set<never>(),
        lease: Duration.hours(1)
      })
      yield* Effect.forkScoped(
        repairQueue({ ...repairDefaults, holder: "w" }).pipe(Effect.provideService(Telemetry, telemetry))
      )
      yield* Effect.sleep("3 minutes")
      expect(repaired).toEqual([["message", lost.length]])
      const next = yield* queue.claim({
        worker: "w",
        limit: 99,
        perLane: 99,
        room: new Map(),
        fullOrgs: new Set<never>(),
        lease
      })
      const waiting = steps
        .map(({ after }) => after.id)
        .filter((id) => held!.messages.every((one) => one.messageId !== id))
      expect(next!.messages.map(({ messageId }) => messageId).toSorted()).toEqual(waiting.toSorted())
    }).pipe(Effect.scoped, Effect.provide(MemoryPorts.layer))
  )
})

const projectAll = Effect.gen(function* () {
  while ((yield* projectOnce()) > 0) {}
})
