/** A person hurries a message: it is due at once, wherever the process stops, and nobody has it twice. */
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Duration, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { hurryMessage } from "../../../src/application/messages/hurryMessage.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { type BatchId, Queue } from "../../../src/application/ports/Queue.ts"
import { asWorker } from "../../contracts/deliver/claims.ts"
import { newOrg, next, opened } from "../../contracts/sample.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const inAnHour = (now: DateTime.Utc) => DateTime.add(now, { hours: 1 })

/** A message that is due in an hour, and its org. */
const waiting = Effect.fnUntraced(function* (orderingKey: string | null = null, lane?: string) {
  const now = yield* DateTime.now
  const orgId = newOrg()
  const { entry, after } = opened({
    ...{ orgId, orderingKey, acceptedAt: now, dueAt: inAnHour(now) },
    ...(lane !== undefined && { destination: lane as never })
  })
  yield* (yield* EventStore).append([entry])
  return { orgId, id: after.id, sample: after }
})

describe("a message that is hurried", () => {
  it.effect("is due at once, and waits under that time alone", () =>
    Effect.gen(function* () {
      const { orgId, id } = yield* waiting()
      yield* TestClock.adjust("1 minute")
      const view = yield* hurryMessage(orgId, id)
      expect(view).toMatchObject({ status: "QUEUED", nextAttemptAt: yield* DateTime.now, attempts: 0 })
      const queue = yield* Queue
      // The claim of whoever hurried it is gone: nobody has a lease to take over.
      yield* TestClock.adjust("1 minute")
      expect(yield* queue.takeOver("w", Duration.minutes(1), 10)).toEqual([])
      const claim = yield* queue.claim(asWorker("w"))
      expect(claim!.messages.map(({ messageId }) => messageId)).toEqual([id])
      yield* queue.release(claim!.batch, [])
      expect(yield* queue.nextDueAt).toBeNull()
      // It is due: there is nothing left to hurry, and no second fact.
      expect(yield* hurryMessage(orgId, id)).toEqual(view)
    }).pipe(Effect.provide(MemoryPorts.layer))
  )

  it.effect("goes before no other of its ordering key", () =>
    Effect.gen(function* () {
      const first = yield* waiting("k")
      const now = yield* DateTime.now
      const behind = opened({
        ...{ orgId: first.orgId, orderingKey: "k", destination: first.sample.lane },
        ...{ acceptedAt: now, dueAt: inAnHour(now) }
      })
      yield* (yield* EventStore).append([behind.entry])
      expect((yield* Effect.flip(hurryMessage(first.orgId, behind.after.id)))._tag).toBe("NotInItsLane")
      expect((yield* hurryMessage(first.orgId, first.id)).status).toBe("QUEUED")
      const claim = yield* (yield* Queue).claim(asWorker("w"))
      expect(claim!.messages.map(({ messageId }) => messageId)).toEqual([first.id])
    }).pipe(Effect.provide(MemoryPorts.layer))
  )

  it.effect("that has ended or belongs to another org is refused", () =>
    Effect.gen(function* () {
      const { orgId, id, sample } = yield* waiting()
      expect((yield* Effect.flip(hurryMessage(newOrg(), id)))._tag).toBe("MessageNotFound")
      const { entry } = next(sample, { type: "CancelMessage", reason: null })
      yield* (yield* EventStore).append([entry])
      expect(yield* Effect.flip(hurryMessage(orgId, id))).toMatchObject({ _tag: "CommandRefused", status: "CANCELLED" })
    }).pipe(Effect.provide(MemoryPorts.layer))
  )

  it.effect("and changed at the same moment waits as before, and is hurried on what it has become", () =>
    Effect.gen(function* () {
      const { orgId, id, sample } = yield* waiting()
      const store = yield* EventStore
      let raced = false
      const racing = Layer.succeed(EventStore, {
        ...store,
        append: (entries) =>
          Effect.gen(function* () {
            if (!raced) {
              raced = true
              yield* store.append([next(sample, { type: "EraseBody", reason: null }).entry])
            }
            return yield* store.append(entries)
          })
      })
      const view = yield* Effect.provide(hurryMessage(orgId, id), racing)
      expect(view).toMatchObject({ bodyErased: true, version: 3 })
      const queue = yield* Queue
      const claim = yield* queue.claim(asWorker("w"))
      expect(claim!.messages).toMatchObject([{ messageId: id, version: 3 }])
      yield* queue.release(claim!.batch, [])
      expect(yield* queue.nextDueAt).toBeNull()
    }).pipe(Effect.provide(MemoryPorts.layer))
  )

  it.effect("by a process that ended before its fact is taken over as it was", () =>
    Effect.gen(function* () {
      const { orgId, id } = yield* waiting()
      const store = yield* EventStore
      const away = Layer.succeed(EventStore, {
        ...store,
        append: () => Effect.fail(new StoreUnavailable({ cause: new Error("away") }))
      })
      expect((yield* Effect.flip(Effect.provide(hurryMessage(orgId, id), away)))._tag).toBe("StoreUnavailable")
      const queue = yield* Queue
      expect((yield* Effect.flip(hurryMessage(orgId, id)))._tag).toBe("NotInItsLane")
      yield* TestClock.adjust("11 seconds")
      const [taken] = yield* queue.takeOver("w", Duration.minutes(1), 10)
      expect(taken!.messages.map(({ messageId }) => messageId)).toEqual([id])
      yield* queue.release(taken!.batch as BatchId, taken!.messages)
      expect((yield* hurryMessage(orgId, id)).status).toBe("QUEUED")
    }).pipe(Effect.provide(MemoryPorts.layer))
  )
})
