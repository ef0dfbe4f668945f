/** What providers tell us later, on a memory store and with workers around it. */
import { randomUUID } from "node:crypto"
import { it } from "@effect/vitest"
import { DateTime, Deferred, Duration, Effect, type Scope } from "effect"
import { describe, expect } from "vitest"
import { dispatch } from "../../../src/application/deliver/dispatch.ts"
import { type Sender, Senders } from "../../../src/application/deliver/Senders.ts"
import { MessageBusy } from "../../../src/application/messages/commandMessage.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import type { Receipt } from "../../../src/application/ports/WhatsAppReceipts.ts"
import { recordReceipt } from "../../../src/application/receipts/recordReceipt.ts"
import type { AttemptOutcome } from "../../../src/domain/delivery/outcome.ts"
import type { MessageId } from "../../../src/domain/ids.ts"
import { viewOf } from "../../../src/domain/message/view.ts"
import { asWorker } from "../../contracts/deliver/claims.ts"
import {
  inMillis,
  newMessageId,
  newOrg,
  next,
  opened,
  type Sample,
  type Step,
  type StorePorts,
  settled,
  started,
  unreachable
} from "../../contracts/sample.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"
import { simulateTime } from "../../simulatedTime.ts"

simulateTime()

const wamid = () => `wamid.${randomUUID()}`
const accepted = (providerMessageId: string): AttemptOutcome => ({
  type: "Accepted",
  status: 200,
  providerMessageId,
  delivered: false,
  durationMs: 3
})
const doubtful = (reconcileAfterMs: number): AttemptOutcome => ({
  type: "Unknown",
  error: { code: "timeout", message: "no answer after the body was sent", retryable: true },
  status: null,
  reconcileAfterMs,
  durationMs: 3
})

const says = (receipt: Receipt["receipt"], about: Partial<Receipt>): Receipt => ({
  receipt,
  messageId: null,
  epoch: null,
  attempt: null,
  providerMessageId: null,
  reportedAt: inMillis(0),
  error: null,
  ...about
})

const append = Effect.fnUntraced(function* (...steps: ReadonlyArray<Step>) {
  const store = yield* EventStore
  for (const { entry } of steps) expect((yield* store.append([entry]))[0]?.type).toBe("Appended")
  return steps.at(-1)!.after
})
const orgId = newOrg()
const waiting = () => opened({ channel: "whatsapp", orgId })
/** Sent under this name, and no receipt yet. */
const sentAs = Effect.fnUntraced(function* (name: string, org = orgId) {
  const first = opened({ channel: "whatsapp", orgId: org })
  const start = started(first.after)
  return yield* append(first, start, settled(start.after, accepted(name)))
})
const view = Effect.fnUntraced(function* (id: MessageId) {
  return viewOf(id, (yield* (yield* EventStore).load(id)).facts)!
})
const types = Effect.fnUntraced(function* (id: MessageId) {
  return (yield* (yield* EventStore).load(id)).facts.map(({ fact }) => fact.type)
})

const onStore = <A, E>(body: Effect.Effect<A, E, StorePorts | Scope.Scope>) =>
  body.pipe(Effect.scoped, Effect.provide(MemoryPorts.layer))

/** A worker sending through `send`; answers how often it did. */
const working = Effect.fnUntraced(function* (send: Sender["send"]) {
  let sends = 0
  const channel: Sender = {
    send: (message) =>
      Effect.andThen(
        Effect.sync(() => sends++),
        send(message)
      ),
    capacity: () => Effect.succeed(4),
    dedupes: () => Effect.succeed(false)
  }
  yield* dispatch({
    worker: "worker",
    concurrency: 16,
    lease: Duration.seconds(10),
    grace: Duration.seconds(5)
  }).pipe(Effect.provideService(Senders, { whatsapp: channel }))
  return () => sends
})

const until = <R, E>(holds: Effect.Effect<boolean, E, R>) =>
  holds.pipe(
    Effect.tap((yes) => (yes ? Effect.void : Effect.sleep("3 millis"))),
    Effect.repeat({ until: (yes) => yes }),
    Effect.timeout("60 seconds")
  )

describe("a receipt", () => {
  it.live("finds its message by our own data that came back with it", () =>
    onStore(
      Effect.gen(function* () {
        const { id } = yield* sentAs(wamid())
        const receipt = says("delivered", { messageId: id, epoch: 1, attempt: 1, providerMessageId: wamid() })
        expect(yield* recordReceipt(orgId, receipt)).toBe("recorded")
        expect(yield* view(id)).toMatchObject({ status: "DELIVERED" })
      })
    )
  )

  it.live("finds its message by the provider's name for it, also where our own data names none of ours", () =>
    onStore(
      Effect.gen(function* () {
        for (const messageId of [null, newMessageId()]) {
          const name = wamid()
          const { id } = yield* sentAs(name)
          const read = says("read", { messageId, providerMessageId: name })
          expect(yield* recordReceipt(orgId, read)).toBe("recorded")
          expect(yield* view(id)).toMatchObject({
            status: "DELIVERED",
            providerMessageId: name,
            readAt: read.reportedAt
          })
        }
      })
    )
  )

  it.live("is recorded once, however often and at once it comes", () =>
    onStore(
      Effect.gen(function* () {
        const { id } = yield* sentAs(wamid())
        const receipt = says("delivered", { messageId: id })
        const answers = yield* Effect.forEach([1, 2, 3, 4, 5], () => recordReceipt(orgId, receipt), {
          concurrency: "unbounded"
        })
        expect(answers.toSorted()).toEqual(["recorded", "repeated", "repeated", "repeated", "repeated"])
        expect((yield* types(id)).filter((type) => type === "ReceiptRecorded")).toHaveLength(1)
      })
    )
  )

  it.live("is unknown when nothing is called that", () =>
    onStore(
      Effect.gen(function* () {
        for (const about of [{}, { messageId: newMessageId() }, { providerMessageId: wamid() }]) {
          expect(yield* recordReceipt(orgId, says("sent", about))).toBe("unknown")
        }
      })
    )
  )

  it.live("does nothing to another org's message", () =>
    onStore(
      Effect.gen(function* () {
        const name = wamid()
        const { id } = yield* sentAs(name, newOrg())
        for (const about of [{ messageId: id }, { providerMessageId: name }]) {
          expect(yield* recordReceipt(orgId, says("delivered", about))).toBe("foreign")
        }
        expect(yield* view(id)).toMatchObject({ status: "SENT" })
      })
    )
  )

  it.live("finds its own org's message where another org's is called the same", () =>
    onStore(
      Effect.gen(function* () {
        const name = wamid()
        const before = yield* sentAs(name, newOrg())
        const ours = yield* sentAs(name)
        const after = yield* sentAs(name, newOrg())
        expect(yield* recordReceipt(orgId, says("delivered", { providerMessageId: name }))).toBe("recorded")
        const seen = yield* Effect.forEach([before, ours, after], ({ id }) => view(id))
        expect(seen.map(({ status }) => status)).toEqual(["SENT", "DELIVERED", "SENT"])
      })
    )
  )

  it.live("looks again when somebody else was faster, and gives up rather than wait for ever", () =>
    onStore(
      Effect.gen(function* () {
        const store = yield* EventStore
        const raced = (times: number) => {
          let left = times
          return Effect.provideService(EventStore, {
            ...store,
            append: (entries) =>
              left-- > 0
                ? Effect.succeed(entries.map(() => ({ type: "VersionConflict" }) as const))
                : store.append(entries)
          })
        }
        const { id } = yield* sentAs(wamid())
        const receipt = says("delivered", { messageId: id })
        expect(yield* Effect.flip(raced(1_000)(recordReceipt(orgId, receipt)))).toBeInstanceOf(MessageBusy)
        expect(yield* raced(3)(recordReceipt(orgId, receipt))).toBe("recorded")
      })
    )
  )
})

describe("a receipt that is faster than our own commit", () => {
  it.live("ends in the same state, and nothing is sent twice", () =>
    onStore(
      Effect.gen(function* () {
        const name = wamid()
        const answer = yield* Deferred.make<AttemptOutcome>()
        const sends = yield* working(() =>
          Effect.map(Deferred.await(answer), (outcome) => ({ outcome, responseBody: null }))
        )
        const { id } = yield* append(waiting())
        yield* until(Effect.map(types(id), (all) => all.includes("AttemptStarted")))
        const about = { messageId: id, epoch: 1, attempt: 1, providerMessageId: name }
        expect(yield* recordReceipt(orgId, says("read", about))).toBe("recorded")
        expect(yield* recordReceipt(orgId, says("sent", about))).toBe("recorded")
        expect(yield* view(id)).toMatchObject({ status: "SENDING" })
        yield* Deferred.succeed(answer, accepted(name))
        yield* until(Effect.map(view(id), ({ status }) => status === "DELIVERED"))
        expect(yield* view(id)).toMatchObject({ attempts: 1, providerMessageId: name, contradicted: false })
        expect(sends()).toBe(1)
      })
    )
  )
})

describe("a receipt for a message whose answer we never saw", () => {
  const nobody: Sender["send"] = () => Effect.die("nothing is to be sent")

  /** Waits a while, to see that no worker touches it any more. */
  const staysSent = Effect.fnUntraced(function* ({ id }: Sample, name: string) {
    const sends = yield* working(nobody)
    yield* Effect.sleep("150 millis")
    expect(sends()).toBe(0)
    expect(yield* view(id)).toMatchObject({
      status: "DELIVERED",
      attempts: 1,
      providerMessageId: name,
      lastError: null
    })
  })

  it.live("settles an attempt in doubt at once, and gives it its name", () =>
    onStore(
      Effect.gen(function* () {
        const [first, name] = [waiting(), wamid()]
        const start = started(first.after)
        const doubted = yield* append(first, start, settled(start.after, doubtful(1)))
        const delivered = says("delivered", { messageId: doubted.id, epoch: 1, attempt: 1, providerMessageId: name })
        expect(yield* recordReceipt(orgId, delivered)).toBe("recorded")
        yield* staysSent(doubted, name)
      })
    )
  )

  it.live("keeps a message that waits for its next attempt from being sent again", () =>
    onStore(
      Effect.gen(function* () {
        const [first, name] = [waiting(), wamid()]
        const start = started(first.after)
        const failed = yield* append(first, start, settled(start.after, unreachable()))
        expect(yield* view(failed.id)).toMatchObject({ status: "QUEUED" })
        const read = says("read", { messageId: failed.id, epoch: 1, attempt: 1, providerMessageId: name })
        expect(yield* recordReceipt(orgId, read)).toBe("recorded")
        yield* staysSent(failed, name)
      })
    )
  )

  it.live("does so too when a worker has it in its hands already", () =>
    onStore(
      Effect.gen(function* () {
        const busy = yield* Deferred.make<void>()
        const { lane } = waiting().after
        const first = opened({ channel: "whatsapp", orgId, destination: lane })
        const start = started(first.after)
        // Due before it, two others are all that goes to a destination that has never answered: it is claimed with them and waits in the worker.
        const mates = Array.from({ length: 2 }, () =>
          opened({ channel: "whatsapp", orgId, destination: lane, dueAt: inMillis(-60_000) })
        )
        const { id } = yield* append(...mates, first, start, settled(start.after, unreachable()))
        const sends = yield* working(() =>
          Effect.as(Deferred.await(busy), { outcome: accepted(wamid()), responseBody: null })
        )
        yield* until(Effect.sync(() => sends() === 2))
        expect(yield* (yield* Queue).claim(asWorker("another"))).toBeNull()
        expect(yield* recordReceipt(orgId, says("delivered", { messageId: id }))).toBe("recorded")
        yield* Deferred.succeed(busy, undefined)
        yield* until(
          Effect.map(
            Effect.forEach(mates, ({ after }) => view(after.id)),
            (all) => all.every(({ status }) => status === "SENT")
          )
        )
        yield* Effect.sleep("50 millis")
        expect(sends()).toBe(2)
        expect(yield* view(id)).toMatchObject({ status: "DELIVERED", attempts: 1 })
      })
    )
  )

  it.live("of an earlier run does not settle the next", () =>
    onStore(
      Effect.gen(function* () {
        const first = waiting()
        const start = started(first.after)
        const lost = settled(start.after, { ...doubtful(1), reconcileAfterMs: null } as AttemptOutcome)
        const again = next(lost.after, { type: "ReplayMessage", now: DateTime.nowUnsafe(), reason: null })
        const { id } = yield* append(first, start, lost, again)
        const late = says("delivered", { messageId: id, epoch: 1, attempt: 1, providerMessageId: wamid() })
        expect(yield* recordReceipt(orgId, late)).toBe("recorded")
        expect(yield* view(id)).toMatchObject({ status: "QUEUED", epoch: 2, contradicted: true })
        const sends = yield* working(() => Effect.succeed({ outcome: accepted("wamid.second"), responseBody: null }))
        yield* until(Effect.map(view(id), ({ status }) => status === "SENT"))
        expect(sends()).toBe(1)
        expect(yield* recordReceipt(orgId, { ...late, receipt: "read" })).toBe("recorded")
        expect(yield* view(id)).toMatchObject({ status: "SENT", providerMessageId: "wamid.second", readAt: null })
      })
    )
  )
})
