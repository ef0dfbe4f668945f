import { describe, expect, it } from "@effect/vitest"
import { DateTime, Effect, Result } from "effect"
import { CommandedBy } from "../../../src/application/commandedBy.ts"
import { entryOf } from "../../../src/application/entry.ts"
import { commandMessage } from "../../../src/application/messages/commandMessage.ts"
import { readMessage } from "../../../src/application/messages/readMessage.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { Telemetry, unwatched } from "../../../src/application/ports/Telemetry.ts"
import { MessageId, OrgId } from "../../../src/domain/ids.ts"
import { initial, replay } from "../../../src/domain/message/decider.ts"
import type { MessageFact } from "../../../src/domain/message/facts.ts"
import { endings, failed, histories, lane, noonPlus, queued, started } from "../../domain/message/samples.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const acme = OrgId.make("acme")
const id = MessageId.make("0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a02")

const store = (history: ReadonlyArray<MessageFact>) =>
  Effect.gen(function* () {
    const { entry } = entryOf(id, initial, 0, history, yield* DateTime.now, {
      opening: { body: "{}", idempotency: null }
    })
    expect(yield* (yield* EventStore).append([entry])).toEqual([{ type: "Appended", version: history.length }])
  })

/** A store in front of which `intrude` appends first, as often as it has something to append. */
const overtakenBy = (intrusions: ReadonlyArray<ReadonlyArray<MessageFact>>) =>
  Effect.map(EventStore, (inner): EventStore["Service"] => {
    const left = [...intrusions]
    return {
      ...inner,
      append: (entries) =>
        Effect.gen(function* () {
          const facts = left.shift()
          if (facts !== undefined) {
            const { version, facts: history } = yield* inner.load(id)
            const { entry } = entryOf(id, replay(history.map(({ fact }) => fact)), version, facts, yield* DateTime.now)
            yield* inner.append([entry])
          }
          return yield* inner.append(entries)
        })
    }
  })

describe("a command", () => {
  it.effect("takes a waiting message out of the queue when it cancels it", () =>
    Effect.gen(function* () {
      yield* store([queued()])
      const view = yield* commandMessage(acme, id, "CancelMessage", "no longer wanted")
      expect(view.status).toBe("CANCELLED")
      const { facts } = yield* (yield* EventStore).load(id)
      expect(facts.at(-1)!.fact).toEqual({ type: "MessageCancelled", reason: "no longer wanted" })
      expect(yield* readMessage(acme, id, null)).toEqual(view)
    }).pipe(Effect.provide(MemoryPorts.layer))
  )

  it.effect("is told with who gave it, once it is stored and never when it is refused", () =>
    Effect.gen(function* () {
      yield* store([queued()])
      const told: Array<readonly [string | null | undefined, ReadonlyArray<string>]> = []
      const cancel = commandMessage(acme, id, "CancelMessage", null).pipe(
        Effect.provideService(CommandedBy, "key:7"),
        Effect.provideService(Telemetry, {
          ...unwatched,
          stored: ({ by }, facts) => told.push([by, facts.map(({ type }) => type)])
        })
      )
      yield* cancel
      expect(Result.isFailure(yield* Effect.result(cancel))).toBe(true)
      expect(told).toEqual([["key:7", ["MessageCancelled"]]])
    }).pipe(Effect.provide(MemoryPorts.layer))
  )

  it.effect("opens the next epoch when it replays", () =>
    Effect.gen(function* () {
      yield* store(endings.FAILED)
      const view = yield* commandMessage(acme, id, "ReplayMessage", null)
      expect(view).toMatchObject({ status: "QUEUED", epoch: 2, attempts: 0 })
    }).pipe(Effect.provide(MemoryPorts.layer))
  )

  for (const [status, history] of Object.entries(histories)) {
    for (const command of ["CancelMessage", "ReplayMessage", "DismissMessage"] as const) {
      const isDead = status === "FAILED" || status === "DEAD_LETTER"
      const allowed: ReadonlyArray<string> =
        status === "QUEUED" ? ["HurryMessage", "CancelMessage"] : isDead ? ["ReplayMessage", "DismissMessage"] : []
      const isAllowed = allowed.includes(command)
      it.effect(`${command} in ${status} is ${isAllowed ? "done" : "refused, naming what is allowed"}`, () =>
        Effect.gen(function* () {
          yield* store(history)
          const outcome = yield* Effect.result(commandMessage(acme, id, command, null))
          if (isAllowed) {
            expect(Result.isSuccess(outcome)).toBe(true)
          } else {
            expect(Result.isFailure(outcome) && outcome.failure).toMatchObject({
              _tag: "CommandRefused",
              status,
              allowed
            })
            expect((yield* (yield* EventStore).load(id)).version).toBe(history.length)
          }
        }).pipe(Effect.provide(MemoryPorts.layer))
      )
    }
  }

  it.effect("decides again on what it finds when somebody was faster", () =>
    Effect.gen(function* () {
      yield* store([queued()])
      const overtaken = yield* overtakenBy([[started(1), failed(1, noonPlus(1))], [started(2)]])
      const outcome = yield* Effect.result(
        commandMessage(acme, id, "CancelMessage", null).pipe(Effect.provideService(EventStore, overtaken))
      )
      expect(Result.isFailure(outcome) && outcome.failure).toMatchObject({ _tag: "CommandRefused", status: "SENDING" })
    }).pipe(Effect.provide(MemoryPorts.layer))
  )

  it.effect("gives up after five more tries, having done nothing", () =>
    Effect.gen(function* () {
      const patient = queued({ retry: { strategy: "fixed", baseMs: 1, attemptsMax: 100 } })
      const round = (attempt: number) => [started(attempt), failed(attempt, noonPlus(attempt))]
      yield* store([patient])
      const busy = yield* overtakenBy([1, 2, 3, 4, 5, 6].map(round))
      const cancel = commandMessage(acme, id, "CancelMessage", null)
      const outcome = yield* Effect.result(cancel.pipe(Effect.provideService(EventStore, busy)))
      expect(Result.isFailure(outcome) && outcome.failure._tag).toBe("MessageBusy")
      expect((yield* readMessage(acme, id, null)).status).toBe("QUEUED")
      const almost = yield* overtakenBy([7, 8, 9, 10, 11].map(round))
      expect((yield* cancel.pipe(Effect.provideService(EventStore, almost))).status).toBe("CANCELLED")
    }).pipe(Effect.provide(MemoryPorts.layer))
  )

  it.effect("does not find a message of another org, nor one that never was", () =>
    Effect.gen(function* () {
      yield* store([queued()])
      const outcomes = [
        yield* Effect.flip(commandMessage(OrgId.make("globex"), id, "CancelMessage", null)),
        yield* Effect.flip(commandMessage(acme, MessageId.make(lane), "CancelMessage", null))
      ]
      expect(outcomes.map(({ _tag }) => _tag)).toEqual(["MessageNotFound", "MessageNotFound"])
      expect((yield* (yield* EventStore).load(id)).version).toBe(1)
    }).pipe(Effect.provide(MemoryPorts.layer))
  )
})
