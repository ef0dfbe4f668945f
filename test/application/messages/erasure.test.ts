import { describe, expect, it } from "@effect/vitest"
import { DateTime, Effect } from "effect"
import { entryOf } from "../../../src/application/entry.ts"
import { commandMessage, eraseMessage, replayEdited } from "../../../src/application/messages/commandMessage.ts"
import { Bodies } from "../../../src/application/ports/Bodies.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { MessageId, OrgId } from "../../../src/domain/ids.ts"
import { initial, replay } from "../../../src/domain/message/decider.ts"
import type { MessageFact } from "../../../src/domain/message/facts.ts"
import { endings, histories, lane, succeeded } from "../../domain/message/samples.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const acme = OrgId.make("acme")
const id = MessageId.make("0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a02")

const store = (history: ReadonlyArray<MessageFact>) =>
  Effect.gen(function* () {
    const { entry } = entryOf(id, initial, 0, history, yield* DateTime.now, {
      opening: { body: '{"secret":1}', idempotency: null },
      response: { epoch: 1, attempt: 1, body: "thanks", headers: null }
    })
    yield* (yield* EventStore).append([entry])
  })

const factsOf = Effect.map(
  Effect.flatMap(EventStore, (store) => store.load(id)),
  ({ facts }) => facts.map(({ fact }) => fact)
)

describe("an erasure", () => {
  for (const [status, history] of Object.entries(histories)) {
    it.effect(`takes body and answers of a message that is ${status}, and leaves its facts`, () =>
      Effect.gen(function* () {
        const bodies = yield* Bodies
        yield* store(history)
        const view = yield* eraseMessage(acme, id, "asked to")
        expect(view).toMatchObject({ status, bodyErased: true })
        expect(yield* bodies.load(id)).toBeNull()
        expect((yield* bodies.responses(id)).answers.size).toBe(0)
        expect(yield* factsOf).toEqual([...history, { type: "MessageBodyErased", reason: "asked to" }])
      }).pipe(Effect.provide(MemoryPorts.layer))
    )
  }

  it.effect("is done once, however often it is asked for", () =>
    Effect.gen(function* () {
      yield* store(endings.DELIVERED)
      const first = yield* eraseMessage(acme, id, null)
      expect(yield* eraseMessage(acme, id, "again")).toEqual(first)
      expect(yield* factsOf).toHaveLength(endings.DELIVERED.length + 1)
    }).pipe(Effect.provide(MemoryPorts.layer))
  )

  it.effect("also takes an answer that was written while it was under way", () =>
    Effect.gen(function* () {
      const bodies = yield* Bodies
      yield* store(histories.SENDING)
      const inner = yield* EventStore
      let late = true
      const overtaken: EventStore["Service"] = {
        ...inner,
        // The worker settles between the first removal and the fact.
        append: (entries) =>
          Effect.gen(function* () {
            if (late) {
              late = false
              const { entry } = entryOf(id, replay(histories.SENDING), 2, [succeeded(1)], yield* DateTime.now, {
                response: { epoch: 1, attempt: 1, body: "late", headers: null }
              })
              yield* inner.append([entry])
            }
            return yield* inner.append(entries)
          })
      }
      yield* eraseMessage(acme, id, null).pipe(Effect.provideService(EventStore, overtaken))
      expect((yield* bodies.responses(id)).answers.size).toBe(0)
      expect((yield* factsOf).map(({ type }) => type)).toContain("AttemptSucceeded")
    }).pipe(Effect.provide(MemoryPorts.layer))
  )

  it.effect("does not reach a message of another org", () =>
    Effect.gen(function* () {
      yield* store(endings.DELIVERED)
      const outcomes = [
        yield* Effect.flip(eraseMessage(OrgId.make("globex"), id, null)),
        yield* Effect.flip(eraseMessage(acme, MessageId.make(lane), null))
      ]
      expect(outcomes.map(({ _tag }) => _tag)).toEqual(["MessageNotFound", "MessageNotFound"])
      expect(yield* (yield* Bodies).load(id)).toBe('{"secret":1}')
    }).pipe(Effect.provide(MemoryPorts.layer))
  )
})

describe("a dead letter whose body was erased", () => {
  it.effect("is not replayed as it is", () =>
    Effect.gen(function* () {
      yield* store(endings.FAILED)
      yield* eraseMessage(acme, id, null)
      expect(yield* Effect.flip(commandMessage(acme, id, "ReplayMessage", null))).toMatchObject({
        _tag: "CommandRefused",
        status: "FAILED",
        allowed: ["DismissMessage"]
      })
    }).pipe(Effect.provide(MemoryPorts.layer))
  )

  it.effect("is replayed with another body, which the facts say", () =>
    Effect.gen(function* () {
      yield* store(endings.FAILED)
      yield* eraseMessage(acme, id, null)
      const view = yield* replayEdited(acme, id, '{"n": 1.10}', "corrected")
      expect(view).toMatchObject({ status: "QUEUED", epoch: 2, bodyErased: false })
      expect(yield* (yield* Bodies).load(id)).toBe('{"n": 1.10}')
      expect((yield* factsOf).at(-1)).toMatchObject({ type: "MessageReplayed", edited: true, reason: "corrected" })
    }).pipe(Effect.provide(MemoryPorts.layer))
  )
})

describe("a replay with another body", () => {
  it.effect("that the law refuses leaves the body as it was", () =>
    Effect.gen(function* () {
      yield* store(endings.DELIVERED)
      expect((yield* Effect.flip(replayEdited(acme, id, "{}", null)))._tag).toBe("CommandRefused")
      expect(yield* (yield* Bodies).load(id)).toBe('{"secret":1}')
    }).pipe(Effect.provide(MemoryPorts.layer))
  )
})
