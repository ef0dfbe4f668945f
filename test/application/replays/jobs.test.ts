/** What a replay is besides: a job that dismisses dead letters, sends them elsewhere, or cancels what waits. */
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Effect, Layer, Logger, References, Result } from "effect"
import { TestClock } from "effect/testing"
import { acceptMessages } from "../../../src/application/accept/acceptMessage.ts"
import { entryOf } from "../../../src/application/entry.ts"
import { LogReader } from "../../../src/application/log/LogReader.ts"
import { projectOnce } from "../../../src/application/log/projections/keepProjections.ts"
import { commandMessage } from "../../../src/application/messages/commandMessage.ts"
import { readMessage } from "../../../src/application/messages/readMessage.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { MessageViews } from "../../../src/application/ports/MessageViews.ts"
import { listDeadLetters } from "../../../src/application/replays/deadLetters.ts"
import { replayOnce } from "../../../src/application/replays/replayDeadLetters.ts"
import { readReplay, requestReplay } from "../../../src/application/replays/replays.ts"
import type { MessageId } from "../../../src/domain/ids.ts"
import { replay } from "../../../src/domain/message/decider.ts"
import type { MessageFact } from "../../../src/domain/message/facts.ts"
import type { ReplaySelection } from "../../../src/domain/replay/facts.ts"
import { makeEndpoint } from "../../contracts/destinations/samples.ts"
import { newOrg } from "../../contracts/sample.ts"
import { delivered, failed, refusedForGood, started, succeeded } from "../../domain/message/samples.ts"
import * as Fingerprints from "../../model/Fingerprints.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const layer = Layer.provideMerge(LogReader.layer, Layer.merge(MemoryPorts.layer, Fingerprints.layer))
const test = (rule: string, body: Effect.Effect<void, unknown, Layer.Success<typeof layer>>) =>
  it.effect(rule, () => Effect.provide(body, layer))

const project = Effect.gen(function* () {
  while ((yield* projectOnce()) > 0) {}
})

/** Works until nothing wants work any more. */
const work = Effect.gen(function* () {
  for (let idle = 0; idle < 3; ) {
    const worked = yield* replayOnce().pipe(Effect.catchTag("StoreUnavailable", () => Effect.succeed(false)))
    idle = worked ? 0 : idle + 1
    yield* TestClock.adjust("11 seconds")
  }
  yield* project
})

const accept = Effect.fnUntraced(function* (orgId: ReturnType<typeof newOrg>, to: string, count: number) {
  const request = {
    ...{ channel: "webhook", to, eventType: null, templateCode: null, dossierId: null, orderingKey: null },
    ...{ correlationId: null, metadata: null, deliverAt: null, expiresAt: null, retry: null },
    ...{ body: '{"n":1}', idempotencyKey: null }
  }
  const accepted = yield* acceptMessages(
    orgId,
    Array.from({ length: count }, () => request)
  )
  return accepted.map((each) => (each.type === "Accepted" ? each.message.id : null)!)
})

const append = Effect.fnUntraced(function* (id: MessageId, facts: ReadonlyArray<MessageFact>) {
  const events = yield* EventStore
  const { version, facts: history } = yield* events.load(id)
  const before = replay(history.map(({ fact }) => fact))
  yield* events.append([entryOf(id, before, version, facts, yield* DateTime.now).entry])
})

const dying = [started(1), failed(1, null), refusedForGood("response")]
const plain = { reason: "why", idempotencyKey: null }

/** Some dead letters, some that wait, of one endpoint; and another endpoint. */
const desk = Effect.fnUntraced(function* (dead: number, waiting: number) {
  yield* TestClock.setTime(DateTime.toEpochMillis(DateTime.makeUnsafe("2026-01-01T12:00:00Z")))
  const orgId = newOrg()
  const [to, other] = [(yield* makeEndpoint(orgId)).id, (yield* makeEndpoint(orgId)).id]
  const deadIds = yield* accept(orgId, to, dead)
  for (const id of deadIds) yield* append(id, dying)
  const waitingIds = yield* accept(orgId, to, waiting)
  yield* project
  yield* TestClock.adjust("1 second")
  const statuses = (ids: ReadonlyArray<MessageId>) =>
    Effect.forEach(ids, (id) => Effect.map(readMessage(orgId, id, null), ({ status }) => status))
  const list = Effect.map(listDeadLetters(orgId, {}, { cursor: null, limit: 200 }), ({ items }) => items.length)
  const job = (selection: ReplaySelection) => requestReplay(orgId, selection, plain)
  return { orgId, to, other, deadIds, waitingIds, statuses, list, job }
})

describe("a job", () => {
  test(
    "dismisses dead letters, which can still be replayed by whoever names them",
    Effect.gen(function* () {
      const { orgId, deadIds, statuses, list, job } = yield* desk(3, 1)
      const asked = yield* job({ filter: {}, dismiss: true })
      const lines: Array<readonly [string, unknown]> = []
      const log = Logger.make(({ message, fiber }) => {
        lines.push([String(message), fiber.getRef(References.CurrentLogAnnotations)["count"]])
      })
      yield* Effect.provide(work, Logger.layer([log]))
      expect(lines).toEqual([["a job that dismisses dead letters has ended: completed", 3]])
      expect(yield* readReplay(orgId, asked.id)).toMatchObject({ matched: 3, replayed: 3, skipped: 0, outcome: null })
      expect(yield* statuses(deadIds)).toEqual(["FAILED", "FAILED", "FAILED"])
      expect(yield* list).toBe(0)
      expect(yield* job({ filter: {} })).toMatchObject({ matched: 0, status: "COMPLETED" })
      const again = yield* job({ filter: { dismissed: true } })
      yield* work
      expect(yield* readReplay(orgId, again.id)).toMatchObject({ replayed: 3 })
      expect(yield* statuses(deadIds)).toEqual(["QUEUED", "QUEUED", "QUEUED"])
    })
  )

  test(
    "cancels what waited when it was asked for, and nothing that came later or is under way",
    Effect.gen(function* () {
      const { orgId, to, other, deadIds, waitingIds, statuses, job } = yield* desk(1, 4)
      const elsewhere = yield* accept(orgId, other, 1)
      yield* project
      const asked = yield* job({ waiting: { to } })
      expect(asked).toMatchObject({ matched: 4 })
      yield* append(waitingIds[0]!, [started(1)])
      const late = yield* accept(orgId, to, 1)
      yield* work
      expect(yield* readReplay(orgId, asked.id)).toMatchObject({ status: "COMPLETED", replayed: 3, skipped: 1 })
      expect(yield* statuses([...waitingIds, ...deadIds, ...elsewhere, ...late])).toEqual([
        ...["SENDING", "CANCELLED", "CANCELLED", "CANCELLED", "FAILED", "QUEUED", "QUEUED"]
      ])
      const { facts } = yield* (yield* EventStore).load(waitingIds[1]!)
      expect(facts.at(-1)!.fact).toEqual({ type: "MessageCancelled", reason: "why" })
    })
  )

  test(
    "sends dead letters to another destination, each as one new message, and dismisses the old ones",
    Effect.gen(function* () {
      const { orgId, other, deadIds, list, job } = yield* desk(3, 0)
      const asked = yield* job({ filter: {}, sendTo: other })
      yield* work
      const done = yield* readReplay(orgId, asked.id)
      expect(done).toMatchObject({ replayed: 3, skipped: 0, outcome: { waiting: 3, arrived: 0, failed: 0 } })
      expect(yield* list).toBe(0)
      const { facts } = yield* (yield* EventStore).load(deadIds[0]!)
      const last = facts.at(-1)!.fact
      expect(last.type === "MessageDismissed" && last.reason).toMatch(new RegExp(`^sent to ${other} as .+: why$`))
    })
  )

  for (const [what, selection] of [
    ["dismisses", { filter: {}, dismiss: true }],
    ["sends elsewhere", { filter: {}, sendTo: "other" }],
    ["cancels", { waiting: {} }]
  ] as const) {
    test(
      `that ${what} does a stretch again after a crash, and each message of it once`,
      Effect.gen(function* () {
        const { orgId, other, deadIds, waitingIds, job } = yield* desk(2, 2)
        const asked = yield* job(
          ("sendTo" in selection ? { ...selection, sendTo: other } : selection) as ReplaySelection
        )
        const journals = yield* Journals
        let crashes = 1
        const crashing = Layer.succeed(Journals, {
          ...journals,
          append: (...args) =>
            args[2].some(({ name }) => name.startsWith("ReplayAdvanced")) && crashes-- > 0
              ? Effect.fail(new StoreUnavailable({ cause: new Error("crashed") }))
              : journals.append(...args)
        })
        yield* Effect.provide(work, crashing)
        expect(crashes).toBeLessThan(1)
        expect(yield* readReplay(orgId, asked.id)).toMatchObject({ status: "COMPLETED", skipped: 0, replayed: 2 })
        const endings = yield* Effect.forEach([...deadIds, ...waitingIds], (id) =>
          Effect.map(
            Effect.flatMap(EventStore, ({ load }) => load(id)),
            ({ facts }) =>
              facts.filter(({ fact }) => fact.type === "MessageDismissed" || fact.type === "MessageCancelled")
          )
        )
        expect(endings.map(({ length }) => length)).toEqual(what === "cancels" ? [0, 0, 1, 1] : [1, 1, 0, 0])
        const elsewhere = yield* (yield* MessageViews).list(orgId, { to: other }, { cursor: null, limit: 10 })
        expect(elsewhere.items).toHaveLength(what === "sends elsewhere" ? 2 : 0)
      })
    )
  }

  for (const [what, selection] of [
    ["dismisses", { filter: {}, dismiss: true }],
    ["sends elsewhere", { filter: {}, sendTo: "other" }]
  ] as const) {
    test(
      `that ${what} leaves alone what was replayed since, and died once more`,
      Effect.gen(function* () {
        const { orgId, other, deadIds, list, job } = yield* desk(2, 0)
        const asked = yield* job(
          ("sendTo" in selection ? { ...selection, sendTo: other } : selection) as ReplaySelection
        )
        expect(asked.matched).toBe(2)
        yield* commandMessage(orgId, deadIds[0]!, "ReplayMessage", null)
        const again = { ...started(1), epoch: 2 } as MessageFact
        yield* append(deadIds[0]!, [again, failed(1, null), refusedForGood("response")])
        yield* work
        expect(yield* readReplay(orgId, asked.id)).toMatchObject({ status: "COMPLETED", replayed: 1, skipped: 1 })
        expect(yield* list).toBe(1)
        const { facts } = yield* (yield* EventStore).load(deadIds[0]!)
        expect(facts.at(-1)!.fact.type).toBe("MessageFailed")
      })
    )
  }
})

describe("the outcome of a replay", () => {
  test(
    "counts what became since of the messages whose present run it opened",
    Effect.gen(function* () {
      const { orgId, deadIds, job } = yield* desk(4, 0)
      const asked = yield* job({ filter: {} })
      yield* work
      const outcome = Effect.map(readReplay(orgId, asked.id), (view) => view.outcome)
      expect(yield* outcome).toEqual({ arrived: 0, sent: 0, failed: 0, waiting: 4, ended: 0 })
      const again = { ...started(1), epoch: 2 } as MessageFact
      yield* append(deadIds[0]!, [again, succeeded(1), delivered("response")])
      yield* append(deadIds[1]!, [again, failed(1, null), refusedForGood("response")])
      yield* commandMessage(orgId, deadIds[2]!, "CancelMessage", null)
      yield* project
      expect(yield* outcome).toEqual({ arrived: 1, sent: 0, failed: 1, waiting: 1, ended: 1 })
      expect(Result.isSuccess(yield* Effect.result(commandMessage(orgId, deadIds[1]!, "ReplayMessage", null)))).toBe(
        true
      )
      yield* project
      expect(yield* outcome).toMatchObject({ failed: 0, waiting: 1 })
    })
  )
})
