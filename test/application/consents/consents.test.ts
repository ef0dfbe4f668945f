import { it } from "@effect/vitest"
import { Duration, Effect, Layer, Ref, type Scope } from "effect"
import { describe, expect } from "vitest"
import { acceptMessages, type MessageRequest } from "../../../src/application/accept/acceptMessage.ts"
import { CommandedBy } from "../../../src/application/commandedBy.ts"
import { commandConsent, readConsent } from "../../../src/application/consents/consents.ts"
import { dispatch } from "../../../src/application/deliver/dispatch.ts"
import { Senders } from "../../../src/application/deliver/Senders.ts"
import { LogReader } from "../../../src/application/log/LogReader.ts"
import { projectOnce } from "../../../src/application/log/projections/keepProjections.ts"
import { applyWithdrawalsOnce, cancelWaiting } from "../../../src/application/messages/applyWithdrawals.ts"
import { commandMessage } from "../../../src/application/messages/commandMessage.ts"
import type { OutboundMessage } from "../../../src/application/ports/Channels.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { Fingerprint } from "../../../src/application/ports/Fingerprint.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { MessageViews } from "../../../src/application/ports/MessageViews.ts"
import type { ConsentOf } from "../../../src/domain/consent/consent.ts"
import type { AttemptOutcome } from "../../../src/domain/delivery/outcome.ts"
import { type ChannelName, type MessageId, OrgId } from "../../../src/domain/ids.ts"
import { partsOf } from "../../../src/domain/recorded.ts"
import { makeAccount, makeEndpoint } from "../../contracts/destinations/samples.ts"
import { delivered, inMillis, type StorePorts, unreachable } from "../../contracts/sample.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"
import { simulateTime } from "../../simulatedTime.ts"

simulateTime()

const acme = OrgId.make("acme")

type Ports = StorePorts | Fingerprint | LogReader

const store = Layer.provideMerge(
  LogReader.layer,
  Layer.merge(MemoryPorts.layer, Layer.succeed(Fingerprint, { of: (text) => text, line: (text) => text }))
)

/** An org with a webhook endpoint, to which messages may be sent, and a WhatsApp account. */
const organized = Effect.gen(function* () {
  const { id } = yield* makeEndpoint(acme)
  yield* makeAccount(acme)
  return { webhook: id, whatsapp: "+4915112345678", http: id } as Record<ChannelName, string>
})

const test = (
  rule: string,
  body: (to: Record<ChannelName, string>) => Effect.Effect<void, unknown, Ports | Scope.Scope>
) => it.live(rule, () => Effect.scoped(Effect.flatMap(organized, body)).pipe(Effect.provide(store)))

const request = (to: Record<ChannelName, string>, channel: ChannelName, change: Partial<MessageRequest> = {}) => ({
  channel,
  to: to[channel]!,
  eventType: null,
  templateCode: null,
  dossierId: "case-17",
  orderingKey: null,
  correlationId: "order-9",
  metadata: null,
  deliverAt: null,
  expiresAt: null,
  retry: { strategy: "fixed", baseMs: 10, jitter: [1, 1] } as const,
  body: channel === "whatsapp" ? '{"text":"hello"}' : "{}",
  idempotencyKey: null,
  ...change
})

const consentTo = (channel: ChannelName): ConsentOf => ({ orgId: acme, dossierId: "case-17", channel })
const grant = (channel: ChannelName) => commandConsent(consentTo(channel), { type: "GrantConsent", source: "form" })
const withdraw = (channel: ChannelName) =>
  commandConsent(consentTo(channel), { type: "WithdrawConsent", source: "call" })

const accept = Effect.fnUntraced(function* (...requests: ReadonlyArray<MessageRequest>) {
  return yield* acceptMessages(acme, requests)
})

/** The id of a message that must be accepted. */
const accepted = Effect.fnUntraced(function* (one: MessageRequest) {
  const [answer] = yield* accept(one)
  if (answer?.type !== "Accepted") throw new Error(`it was ${answer?.type}`)
  return answer.message.id
})

const historyOf = Effect.fnUntraced(function* (id: MessageId) {
  return (yield* (yield* EventStore).load(id)).facts.map(({ fact }) => fact)
})
const typesOf = (id: MessageId) => Effect.map(historyOf(id), (facts) => facts.map(({ type }) => type))

const until = Effect.fnUntraced(function* (id: MessageId, type: string) {
  while ((yield* typesOf(id)).at(-1) !== type) yield* Effect.sleep("5 millis")
  return yield* typesOf(id)
})

/** What stands in the log about messages that were turned away. */
const blockedFacts = Effect.gen(function* () {
  const facts = yield* (yield* EventStore).readAll(null, 1_000)
  return facts.flatMap(({ name, data, forgettable = null, stream, actor }) =>
    name === "MessageBlocked@1" ? [{ ...partsOf({ data, forgettable }), stream, actor }] : []
  )
})

const project = Effect.gen(function* () {
  while ((yield* projectOnce()) > 0) {}
})

/** A worker whose far side answers so. */
const worker = Effect.fnUntraced(function* (far: (message: OutboundMessage) => Effect.Effect<AttemptOutcome>) {
  const sent: Array<string> = []
  const channel = {
    send: (message: OutboundMessage) => {
      sent.push(message.messageId)
      return Effect.map(far(message), (outcome) => ({ outcome, responseBody: null }))
    },
    capacity: () => Effect.succeed(5),
    dedupes: () => Effect.succeed(true)
  }
  yield* dispatch({
    worker: "worker",
    concurrency: 8,
    lease: Duration.seconds(10),
    grace: Duration.seconds(5)
  }).pipe(Effect.provideService(Senders, { webhook: channel, whatsapp: channel }))
  return sent
})
const succeed = () => Effect.succeed(delivered)

describe("a consent that was answered often", () => {
  const answers = 1_200

  /** How many facts of journals `work` reads. */
  const factsRead = Effect.fnUntraced(function* <A, E, R>(work: Effect.Effect<A, E, R>) {
    const journals = yield* Journals
    let read = 0
    const count = (facts: number) =>
      Effect.sync(() => {
        read += facts
      })
    const counting = Journals.of({
      ...journals,
      load: (journal, part) => Effect.tap(journals.load(journal, part), ({ length }) => count(length)),
      last: (journal) => Effect.tap(journals.last(journal), () => count(1))
    })
    yield* Effect.provideService(work, Journals, counting)
    return read
  })

  const answeredOften = Effect.forEach(
    Array.from({ length: answers }, (_, n) => n),
    (n) => commandConsent(consentTo("webhook"), { type: "GrantConsent", source: `form ${n}` }),
    { discard: true }
  )

  test("costs a message, another answer and a withdrawal no more than any other", (to) =>
    Effect.gen(function* () {
      yield* answeredOften
      expect(yield* factsRead(accept(request(to, "webhook")))).toBe(1)
      expect(yield* factsRead(grant("webhook"))).toBe(1)
      yield* withdraw("webhook")
      yield* project
      yield* applyWithdrawalsOnce()
      expect(yield* factsRead(accept(request(to, "webhook")))).toBe(3)
      expect((yield* accept(request(to, "webhook")))[0]).toMatchObject({
        type: "Blocked",
        fact: { reason: "consent withdrawn" }
      })
      // The withdrawal that was applied is known with its source: saying it again is no news, and a grant is.
      yield* withdraw("webhook")
      expect((yield* readConsent(consentTo("webhook"))).answers.at(-1)).toMatchObject({ source: "call" })
      yield* grant("webhook")
      expect((yield* accept(request(to, "webhook")))[0]).toMatchObject({ type: "Accepted" })
    }))

  test("shows the last thousand answers", () =>
    Effect.gen(function* () {
      yield* answeredOften
      const shown = (yield* readConsent(consentTo("webhook"))).answers.map(({ source }) => source)
      expect([shown.length, shown[0], shown.at(-1)]).toEqual([1_000, "form 200", "form 1199"])
    }))
})

describe("a message of a dossier", () => {
  test("is accepted on a channel to a person once the consent is there, and not before", (to) =>
    Effect.gen(function* () {
      expect((yield* accept(request(to, "whatsapp")))[0]).toMatchObject({
        type: "Blocked",
        fact: { reason: "no consent", channel: "whatsapp", dossierId: "case-17" }
      })
      yield* grant("whatsapp")
      yield* accepted(request(to, "whatsapp"))
      yield* withdraw("whatsapp")
      expect((yield* accept(request(to, "whatsapp")))[0]).toMatchObject({
        type: "Blocked",
        fact: { reason: "consent withdrawn" }
      })
    }))

  test("is accepted on a channel to a system until somebody objects, on that channel", (to) =>
    Effect.gen(function* () {
      yield* accepted(request(to, "webhook"))
      yield* withdraw("whatsapp")
      yield* accepted(request(to, "webhook"))
      yield* withdraw("webhook")
      expect((yield* accept(request(to, "webhook")))[0]).toMatchObject({ type: "Blocked" })
      yield* accepted(request(to, "webhook", { dossierId: "case-18" }))
      yield* accepted(request(to, "webhook", { dossierId: null }))
    }))

  test("needs the consent of its own org", (to) =>
    Effect.gen(function* () {
      yield* commandConsent(
        { ...consentTo("whatsapp"), orgId: OrgId.make("globex") },
        { type: "GrantConsent", source: "form" }
      )
      expect((yield* accept(request(to, "whatsapp")))[0]!.type).toBe("Blocked")
    }))

  test("that names nobody asks nobody, on any channel", (to) =>
    Effect.gen(function* () {
      yield* accepted(request(to, "whatsapp", { dossierId: null }))
    }))

  test("that is blocked leaves a fact with who asked for it, one append for all of a request", (to) =>
    Effect.gen(function* () {
      const answers = yield* Effect.provideService(
        accept(
          request(to, "whatsapp"),
          request(to, "webhook"),
          request(to, "whatsapp", { dossierId: "case-18", templateCode: null, eventType: "reminder" }),
          request(to, "whatsapp", { to: "nobody" })
        ),
        CommandedBy,
        "key:k1"
      )
      expect(answers.map(({ type }) => type)).toEqual(["Blocked", "Accepted", "Blocked", "Refused"])
      const facts = yield* blockedFacts
      expect(facts).toMatchObject([
        { orgId: "acme", dossierId: "case-17", to: "4915112345678", correlationId: "order-9", actor: "key:k1" },
        { dossierId: "case-18", eventType: "reminder", reason: "no consent" }
      ])
      expect(new Set(facts.map(({ stream }) => stream)).size).toBe(1)
    }))

  test("that was accepted is answered again under its key, whatever the consent says now", (to) =>
    Effect.gen(function* () {
      yield* grant("whatsapp")
      const keyed = request(to, "whatsapp", { idempotencyKey: "k" })
      const id = yield* accepted(keyed)
      yield* withdraw("whatsapp")
      expect((yield* accept(keyed))[0]).toMatchObject({ type: "AlreadyAccepted", message: { id } })
      expect(yield* blockedFacts).toEqual([])
    }))

  test("is not accepted while nobody can say what the consent is", (to) =>
    Effect.gen(function* () {
      const journals = yield* Journals
      const silent = () => new StoreUnavailable({ cause: "away" })
      const away = { ...journals, load: silent, last: silent }
      const failure = yield* Effect.flip(Effect.provideService(accept(request(to, "webhook")), Journals, away))
      expect(failure._tag).toBe("StoreUnavailable")
      yield* Effect.provideService(accepted(request(to, "webhook", { dossierId: null })), Journals, away)
    }))
})

describe("an attempt", () => {
  test("does not start when the consent was withdrawn after its message was accepted", (to) =>
    Effect.gen(function* () {
      yield* grant("whatsapp")
      const person = yield* accepted(request(to, "whatsapp", { deliverAt: inMillis(150) }))
      const system = yield* accepted(request(to, "webhook", { deliverAt: inMillis(150) }))
      const free = yield* accepted(request(to, "webhook", { dossierId: null, deliverAt: inMillis(150) }))
      const sent = yield* worker(succeed)
      // Only the fact, as if whoever writes it died before it cancelled anything.
      yield* withdraw("whatsapp")
      yield* withdraw("webhook")
      expect(yield* until(person, "MessageCancelled")).toEqual(["MessageQueued", "MessageCancelled"])
      expect(yield* until(system, "MessageCancelled")).toEqual(["MessageQueued", "MessageCancelled"])
      yield* until(free, "MessageDelivered")
      expect(sent).toEqual([free])
      expect((yield* historyOf(person)).at(-1)).toMatchObject({
        reason: "the consent of dossier case-17 to whatsapp was withdrawn"
      })
    }))

  test("is not made again when the consent was withdrawn while the first was under way", (to) =>
    Effect.gen(function* () {
      yield* grant("whatsapp")
      const answer = yield* Ref.make(false)
      const sent = yield* worker(() =>
        Effect.gen(function* () {
          while (!(yield* Ref.get(answer))) yield* Effect.sleep("5 millis")
          return unreachable()
        })
      )
      const id = yield* accepted(request(to, "whatsapp"))
      yield* until(id, "AttemptStarted")
      yield* withdraw("whatsapp")
      yield* Ref.set(answer, true)
      expect(yield* until(id, "MessageCancelled")).toEqual([
        "MessageQueued",
        "AttemptStarted",
        "AttemptFailed",
        "MessageCancelled"
      ])
      expect(sent).toEqual([id])
    }))

  test("of a replay needs the consent too", (to) =>
    Effect.gen(function* () {
      const refuse = unreachable()
      const sent = yield* worker(() => Effect.succeed(refuse))
      const id = yield* accepted(
        request(to, "webhook", { retry: { strategy: "fixed", baseMs: 1, attemptsMax: 1, jitter: [1, 1] } })
      )
      yield* until(id, "MessageDeadLettered")
      yield* withdraw("webhook")
      yield* commandMessage(acme, id, "ReplayMessage", null)
      yield* until(id, "MessageCancelled")
      expect(sent).toHaveLength(1)
    }))

  test("waits while nobody can say what the consent is", (to) =>
    Effect.gen(function* () {
      const journals = yield* Journals
      let isAway = true
      const away = Journals.of({
        ...journals,
        load: (...of) => (isAway ? new StoreUnavailable({ cause: "away" }) : journals.load(...of)),
        last: (name) => (isAway ? new StoreUnavailable({ cause: "away" }) : journals.last(name))
      })
      yield* grant("whatsapp")
      const id = yield* accepted(request(to, "whatsapp"))
      const sent = yield* Effect.provideService(worker(succeed), Journals, away)
      yield* Effect.sleep("150 millis")
      expect(sent).toEqual([])
      isAway = false
      yield* until(id, "MessageDelivered")
    }))
})

describe("a withdrawal", () => {
  test("cancels what waits of its dossier and channel, and nothing else", (to) =>
    Effect.gen(function* () {
      yield* grant("whatsapp")
      const later = { deliverAt: inMillis(3_600_000) }
      const mine = [yield* accepted(request(to, "whatsapp", later)), yield* accepted(request(to, "whatsapp", later))]
      const others = [
        yield* accepted(request(to, "webhook", later)),
        yield* accepted(request(to, "whatsapp", { ...later, dossierId: null }))
      ]
      yield* project
      yield* Effect.provideService(withdraw("whatsapp"), CommandedBy, "key:k1")
      expect(yield* applyWithdrawalsOnce()).toBe(1)
      for (const id of mine) expect(yield* typesOf(id)).toEqual(["MessageQueued", "MessageCancelled"])
      for (const id of others) expect(yield* typesOf(id)).toEqual(["MessageQueued"])
      // In the name of who withdrew it.
      const log = yield* (yield* EventStore).readAll(null, 1_000)
      expect(log.filter(({ name }) => name === "MessageCancelled@1").map(({ actor }) => actor)).toEqual([
        "key:k1",
        "key:k1"
      ])
      expect(
        log.filter(({ name }) => name === "WithdrawalApplied@1").map(({ data }) => JSON.parse(data))
      ).toMatchObject([{ cancelled: 2 }])
      yield* project
      expect(yield* applyWithdrawalsOnce()).toBe(0)
    }))

  test("that was cut off half-way is completed by whoever comes next", (to) =>
    Effect.gen(function* () {
      yield* grant("whatsapp")
      const later = { deliverAt: inMillis(3_600_000) }
      const ids: Array<MessageId> = []
      for (let n = 0; n < 20; n++) ids.push(yield* accepted(request(to, "whatsapp", later)))
      yield* withdraw("whatsapp")
      yield* project
      const inner = yield* EventStore
      let left = 7
      const dying = EventStore.of({
        ...inner,
        append: (entries) =>
          Effect.suspend(() => (left-- > 0 ? inner.append(entries) : new StoreUnavailable({ cause: "it crashed" })))
      })
      yield* Effect.flip(Effect.provideService(applyWithdrawalsOnce(), EventStore, dying))
      const cancelled = Effect.map(
        Effect.forEach(ids, typesOf),
        (all) => all.filter((types) => types.includes("MessageCancelled")).length
      )
      expect(yield* cancelled).toBe(7)
      expect(yield* applyWithdrawalsOnce()).toBe(1)
      expect(yield* cancelled).toBe(20)
    }))

  test("is not applied any more once the consent was granted again", (to) =>
    Effect.gen(function* () {
      yield* grant("whatsapp")
      const id = yield* accepted(request(to, "whatsapp", { deliverAt: inMillis(3_600_000) }))
      yield* withdraw("whatsapp")
      yield* project
      yield* grant("whatsapp")
      yield* applyWithdrawalsOnce()
      expect(yield* typesOf(id)).toEqual(["MessageQueued"])
    }))

  test("that was answered anew while it was applied stays open for those that came between", (to) =>
    Effect.gen(function* () {
      const later = { deliverAt: inMillis(3_600_000) }
      yield* withdraw("webhook")
      yield* project
      const between: Array<MessageId> = []
      const inner = yield* MessageViews
      const slow = MessageViews.of({
        ...inner,
        ofDossier: (...asked) =>
          Effect.gen(function* () {
            const ids = yield* inner.ofDossier(...asked)
            if (between.length > 0) return ids
            yield* grant("webhook")
            between.push(yield* accepted(request(to, "webhook", later)))
            yield* withdraw("webhook")
            return ids
          }).pipe(Effect.provide(services), Effect.orDie)
      })
      const services = yield* Effect.context<Ports>()
      yield* Effect.provideService(applyWithdrawalsOnce(), MessageViews, slow)
      expect(yield* typesOf(between[0]!)).toEqual(["MessageQueued"])
      yield* project
      expect(yield* applyWithdrawalsOnce()).toBe(1)
      expect(yield* typesOf(between[0]!)).toEqual(["MessageQueued", "MessageCancelled"])
    }))

  test("leaves alone what was sent, and what it comes too late for", (to) =>
    Effect.gen(function* () {
      yield* grant("whatsapp")
      yield* worker(succeed)
      const id = yield* accepted(request(to, "whatsapp"))
      const before = yield* until(id, "MessageDelivered")
      yield* withdraw("whatsapp")
      yield* project
      expect(yield* cancelWaiting(consentTo("whatsapp"))).toBe(0)
      expect(yield* typesOf(id)).toEqual(before)
    }))
})

describe("the answers to a consent", () => {
  test("are kept with source, time and who wrote them, oldest first", () =>
    Effect.gen(function* () {
      expect((yield* readConsent(consentTo("whatsapp"))).answers).toEqual([])
      yield* Effect.provideService(grant("whatsapp"), CommandedBy, "operator")
      yield* grant("whatsapp")
      yield* withdraw("whatsapp")
      yield* commandConsent(consentTo("whatsapp"), { type: "ApplyWithdrawal", cancelled: 0 })
      const { answers } = yield* readConsent(consentTo("whatsapp"))
      expect(answers).toMatchObject([
        { granted: true, source: "form", actor: "operator" },
        { granted: false, source: "call", actor: null }
      ])
    }))

  test("are all there when many answer at once", () =>
    Effect.gen(function* () {
      yield* Effect.all(
        Array.from({ length: 8 }, (_, n) =>
          commandConsent(consentTo("whatsapp"), { type: "GrantConsent", source: `form ${n}` })
        ),
        { concurrency: "unbounded" }
      )
      const { answers } = yield* readConsent(consentTo("whatsapp"))
      expect(answers.map(({ source }) => source).toSorted()).toEqual(Array.from({ length: 8 }, (_, n) => `form ${n}`))
    }))
})
