/** What happens to receipts between the answer to Meta and the streams of their messages. */
import { randomUUID } from "node:crypto"
import { it } from "@effect/vitest"
import { Duration, Effect, Layer, Logger, References } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import * as MetaReceipts from "../../../src/adapters/channels/whatsapp/MetaReceipts.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { ReceiptInbox } from "../../../src/application/ports/ReceiptInbox.ts"
import type { WhatsAppReceipts } from "../../../src/application/ports/WhatsAppReceipts.ts"
import { applyReceiptsOnce, forgetReceipts, TRIES_MAX } from "../../../src/application/receipts/applyReceipts.ts"
import type { AttemptOutcome } from "../../../src/domain/delivery/outcome.ts"
import type { MessageId } from "../../../src/domain/ids.ts"
import { viewOf } from "../../../src/domain/message/view.ts"
import { callbackData } from "../../../src/domain/whatsapp/callbackData.ts"
import {
  newLane,
  newOrg,
  opened,
  type Sample,
  type Step,
  type StorePorts,
  settled,
  started
} from "../../contracts/sample.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const orgId = newOrg()
const account = newLane()
const wamid = () => `wamid.${randomUUID()}`
const accepted = (providerMessageId: string): AttemptOutcome => ({
  ...{ type: "Accepted", status: 200, providerMessageId, delivered: false, durationMs: 3 }
})

const logged: Array<string> = []
const log = Logger.make(({ message }) => {
  logged.push([message].flat().map(String).join(" "))
})

type Needed = StorePorts | WhatsAppReceipts

/** On a fresh store; the log begins anew. */
const test = (rule: string, body: Effect.Effect<void, unknown, Needed>) =>
  it.effect(rule, () =>
    Effect.suspend(() => {
      logged.length = 0
      return body
    }).pipe(
      Effect.provide([Layer.merge(MemoryPorts.layer, MetaReceipts.layer(new Map())), Logger.layer([log])]),
      Effect.provideService(References.MinimumLogLevel, "Info")
    )
  )

const append = Effect.fnUntraced(function* (...steps: ReadonlyArray<Step>) {
  for (const { entry } of steps) expect((yield* (yield* EventStore).append([entry]))[0]!.type).toBe("Appended")
  return steps.at(-1)!.after
})

const underWay = Effect.fnUntraced(function* (org = orgId) {
  const first = opened({ channel: "whatsapp", orgId: org })
  return yield* append(first, started(first.after))
})
const taken = (message: Sample, name: string) => append(settled(message, accepted(name)))

const status = (id: string, said = "delivered", change: object = {}) => ({
  ...{ id, status: said, timestamp: "1750030073" },
  ...change
})
const ours = (messageId: MessageId) => ({ biz_opaque_callback_data: callbackData({ messageId, epoch: 1, attempt: 1 }) })

const arrive = (...statuses: ReadonlyArray<unknown>) =>
  Effect.flatMap(ReceiptInbox, ({ add }) => add(statuses.map((one) => ({ orgId, account, raw: JSON.stringify(one) }))))
const left = Effect.flatMap(ReceiptInbox, ({ count }) => count(orgId))
const nothing = { waiting: 0, parked: 0 }
const view = Effect.fnUntraced(function* ({ id }: Sample) {
  return viewOf(id, (yield* (yield* EventStore).load(id)).facts)!
})
const receiptsOf = Effect.fnUntraced(function* ({ id }: Sample) {
  const { facts } = yield* (yield* EventStore).load(id)
  return facts.flatMap(({ fact }) => (fact.type === "ReceiptRecorded" ? [fact.receipt] : []))
})

describe("receipts that arrived", () => {
  test(
    "are applied by our own data or by Meta's name, and are gone then",
    Effect.gen(function* () {
      const [one, other] = [yield* underWay(), yield* underWay()]
      const names = [wamid(), wamid()] as const
      yield* taken(one, names[0])
      yield* taken(other, names[1])
      yield* arrive(status(names[0], "delivered", ours(one.id)), status(names[1], "failed"))
      expect(yield* applyReceiptsOnce()).toBe(2)
      expect(yield* view(one)).toMatchObject({ status: "DELIVERED" })
      expect(yield* view(other)).toMatchObject({ status: "FAILED", lastError: { code: "whatsapp_failed" } })
      expect(yield* left).toEqual(nothing)
    })
  )

  test(
    "of one message are recorded each once, in the order they came",
    Effect.gen(function* () {
      const message = yield* underWay()
      const name = wamid()
      yield* taken(message, name)
      yield* arrive(status(name, "sent"), status(name, "read"), status(name, "delivered"), status(name, "read"))
      yield* applyReceiptsOnce()
      yield* arrive(status(name, "read"))
      yield* applyReceiptsOnce()
      expect(yield* receiptsOf(message)).toEqual(["sent", "read", "delivered"])
      expect(yield* left).toEqual(nothing)
    })
  )

  test(
    "that make no sense are skipped and told, and hurt no other",
    Effect.gen(function* () {
      const message = yield* underWay()
      const name = wamid()
      yield* taken(message, name)
      yield* arrive(null, [], status(name, "deleted"), status(name), { id: name })
      expect(yield* applyReceiptsOnce()).toBe(5)
      expect(yield* view(message)).toMatchObject({ status: "DELIVERED" })
      expect(yield* left).toEqual(nothing)
      expect(logged.filter((line) => line.includes("was skipped"))).toHaveLength(4)
      expect(logged.join("\n")).toContain('"deleted"')
    })
  )

  test(
    "of another org's message are skipped and told, and change nothing",
    Effect.gen(function* () {
      const theirs = yield* underWay(newOrg())
      const name = wamid()
      yield* taken(theirs, name)
      yield* arrive(status(name), status(wamid(), "failed", ours(theirs.id)))
      yield* applyReceiptsOnce()
      expect(yield* view(theirs)).toMatchObject({ status: "SENT" })
      expect(yield* left).toEqual(nothing)
      expect(logged.filter((line) => line.includes("another org's"))).toHaveLength(2)
    })
  )

  test(
    "before our own commit wait for it, and are then applied",
    Effect.gen(function* () {
      const message = yield* underWay()
      const name = wamid()
      yield* arrive(status(name, "delivered"))
      yield* applyReceiptsOnce()
      expect(yield* left).toEqual({ waiting: 1, parked: 0 })
      yield* taken(message, name)
      // It is looked for again after a second, and not before.
      expect(yield* applyReceiptsOnce()).toBe(0)
      yield* TestClock.adjust("1 second")
      expect(yield* applyReceiptsOnce()).toBe(1)
      expect(yield* view(message)).toMatchObject({ status: "DELIVERED" })
      expect(yield* left).toEqual(nothing)
    })
  )

  test(
    "whose message never comes are looked for ever less often for about an hour, parked, told, and forgotten after a week",
    Effect.gen(function* () {
      const name = wamid()
      yield* arrive(status(name))
      const lookFor = Effect.fnUntraced(function* (minutes: number) {
        let looks = 0
        for (let minute = 0; minute < minutes; minute++) {
          looks += yield* applyReceiptsOnce()
          yield* TestClock.adjust("1 minute")
        }
        return looks
      })
      expect(yield* lookFor(5)).toBeGreaterThan(3)
      expect(yield* lookFor(35)).toBeLessThan(8)
      expect(yield* left).toEqual({ waiting: 1, parked: 0 })
      yield* lookFor(40)
      expect(logged.filter((line) => line.includes(name) && line.includes(`after ${TRIES_MAX} looks`))).toHaveLength(1)
      expect(yield* left).toEqual({ waiting: 0, parked: 1 })
      yield* TestClock.adjust(Duration.days(8))
      yield* forgetReceipts.step
      expect(yield* left).toEqual(nothing)
    })
  )

  test(
    "are looked for again, and that is not counted, when the store does not answer",
    Effect.gen(function* () {
      const message = yield* underWay()
      const name = wamid()
      yield* taken(message, name)
      yield* arrive(status(name, "delivered", ours(message.id)))
      const store = yield* EventStore
      const down = Effect.fail(new StoreUnavailable({ cause: "down" }))
      for (let outage = 0; outage < 2 * TRIES_MAX; outage++) {
        yield* applyReceiptsOnce().pipe(Effect.provideService(EventStore, { ...store, load: () => down }))
        yield* TestClock.adjust("1 second")
      }
      expect(yield* left).toEqual({ waiting: 1, parked: 0 })
      yield* applyReceiptsOnce()
      expect(yield* view(message)).toMatchObject({ status: "DELIVERED" })
    })
  )

  test(
    "that a bug stands in the way of are parked, and hurt no other",
    Effect.gen(function* () {
      const [broken, fine] = [yield* underWay(), yield* underWay()]
      yield* arrive(status(wamid(), "sent", ours(broken.id)), status(wamid(), "sent", ours(fine.id)))
      const store = yield* EventStore
      const load = (id: MessageId) => (id === broken.id ? Effect.die("an impossible history") : store.load(id))
      yield* applyReceiptsOnce().pipe(Effect.provideService(EventStore, { ...store, load }))
      expect(yield* receiptsOf(fine)).toEqual(["sent"])
      expect(yield* left).toEqual({ waiting: 0, parked: 1 })
    })
  )

  test(
    "whose process dies before they are settled are applied by the next one, and recorded once",
    Effect.gen(function* () {
      const message = yield* underWay()
      yield* arrive(status(wamid(), "delivered", ours(message.id)))
      const inbox = yield* ReceiptInbox
      const dies = { ...inbox, settle: () => Effect.die("killed") }
      yield* Effect.exit(applyReceiptsOnce().pipe(Effect.provideService(ReceiptInbox, dies)))
      expect(yield* receiptsOf(message)).toEqual(["delivered"])
      expect(yield* left).toEqual({ waiting: 1, parked: 0 })
      expect(yield* applyReceiptsOnce()).toBe(0)
      yield* TestClock.adjust("30 seconds")
      expect(yield* applyReceiptsOnce()).toBe(1)
      expect(yield* receiptsOf(message)).toEqual(["delivered"])
      expect(yield* left).toEqual(nothing)
    })
  )
})
