/** Who is told of which fact, and how often: on a memory store with nothing replaced, its log written by the domain itself. */
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Duration, Effect, Layer, Redacted, Result } from "effect"
import { TestClock } from "effect/testing"
import * as PagerDutyAlerts from "../../../src/adapters/channels/pagerduty/PagerDutyAlerts.ts"
import * as WebhookAlerts from "../../../src/adapters/channels/webhook/WebhookAlerts.ts"
import { alertOnFactsOnce } from "../../../src/application/alerts/alertOnFacts.ts"
import { LogReader } from "../../../src/application/log/LogReader.ts"
import { type Remembered, watchConditionsOnce } from "../../../src/application/maintenance/watchConditions.ts"
import { AlertFormats } from "../../../src/application/ports/AlertFormats.ts"
import { Bodies } from "../../../src/application/ports/Bodies.ts"
import { Circuits } from "../../../src/application/ports/Circuits.ts"
import { type Alerting, Destinations } from "../../../src/application/ports/Destinations.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { Followers } from "../../../src/application/ports/Followers.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { Processes } from "../../../src/application/ports/Processes.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import { evolve } from "../../../src/domain/circuit/decider.ts"
import type { CircuitFact } from "../../../src/domain/circuit/facts.ts"
import { stateOf } from "../../../src/domain/circuit/state.ts"
import { journalOfCommand, toRecorded } from "../../../src/domain/command/facts.ts"
import { journalOf } from "../../../src/domain/condition/facts.ts"
import { type DestinationId, OrgId } from "../../../src/domain/ids.ts"
import { fromRecorded } from "../../../src/domain/message/recorded.ts"
import { makeEndpoint, makeTarget, webhook } from "../../contracts/destinations/samples.ts"
import { newMessageId, opened, settled, started } from "../../contracts/sample.ts"
import * as Fingerprints from "../../model/Fingerprints.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const acme = OrgId.make("acme")
const globex = OrgId.make("globex")

const layer = LogReader.layer.pipe(
  Layer.provideMerge(MemoryPorts.layer),
  Layer.provideMerge(Fingerprints.layer),
  Layer.provideMerge(Layer.succeed(AlertFormats, { webhook: WebhookAlerts.format, pagerduty: PagerDutyAlerts.format }))
)
type Ports = Layer.Success<typeof layer>

/** Every history begins at this time, by the clock of the test. */
const BEGIN = Date.parse("2026-03-01T10:00:00Z")
const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, Ports>) =>
  it.effect(rule, () => TestClock.setTime(BEGIN).pipe(Effect.andThen(body), Effect.provide(layer)))

// ---------------------------------------------------------------------------------------- who and about what

const endpoint = Effect.fnUntraced(function* (orgId = acme, url = "https://shop.example/hook?key=1") {
  return (yield* makeEndpoint(orgId, { url })).id
})

const everything: Alerting = {
  type: "webhook",
  events: ["circuit", "deadLetter", "oldestDue"],
  oldestDueSeconds: 60,
  severity: null,
  description: null
}
const webhookTarget = Effect.fnUntraced(function* (orgId = acme, change: Partial<Alerting> = {}) {
  const alerting = { ...everything, ...change }
  return (yield* makeEndpoint(orgId, { url: "https://ops.example" }, { alerting })).id
})
const commandTarget = (orgId = acme) => webhookTarget(orgId, { events: ["commandRefused", "broker"] })
const pagerDutyTarget = Effect.gen(function* () {
  const { settingsOf, secret, url } = PagerDutyAlerts.format
  const secrets = { [secret.name]: Redacted.make("k".repeat(32)) }
  const alerting = { ...everything, type: "pagerduty" } as const
  return (yield* makeTarget(acme, settingsOf(url!, null) as object, { secrets, alerting })).id
})

// ------------------------------------------------------------------------------------------- what happens

/** As a process that has just begun to lead. */
const lookAtConditions = Effect.suspend(() => watchConditionsOnce(new Map()))

const circuit = Effect.fnUntraced(function* (destination: DestinationId, ...facts: ReadonlyArray<CircuitFact>) {
  const circuits = yield* Circuits
  const { circuit: before, generation } = yield* circuits.present(destination)
  const after = stateOf(facts.reduce(evolve, before), generation + facts.length)
  expect(yield* circuits.append(destination, generation, facts, after, null)).toBe("Appended")
})
const until = DateTime.makeUnsafe(BEGIN)
const opens: CircuitFact = { type: "CircuitOpened", failures: 5, until, openings: 1, error: null }
const probes: CircuitFact = {
  type: "CircuitProbed",
  probe: newMessageId(),
  expiresAt: DateTime.add(until, { seconds: 1 })
}
const closes: CircuitFact = { type: "CircuitClosed" }
const holds: CircuitFact = { type: "CircuitHeld", reason: null }
const resets: CircuitFact = { type: "CircuitReset", reason: null }

const refused = {
  type: "Refused",
  error: { code: "http_410", message: "answered 410", retryable: false },
  status: 410,
  durationMs: 3
} as const

/** A message that dies now. */
const death = Effect.fnUntraced(function* (destination: DestinationId, orgId = acme) {
  const at = yield* DateTime.now
  const queued = opened({ orgId, destination, to: destination })
  const attempt = started(queued.after)
  const end = settled(attempt.after, refused)
  for (const { entry } of [queued, attempt, end]) yield* (yield* EventStore).append([{ ...entry, at }])
  return queued.after.id
})

const waiting = Effect.fnUntraced(function* (destination: DestinationId) {
  yield* (yield* EventStore).append([opened({ orgId: acme, destination, dueAt: yield* DateTime.now }).entry])
})

// ------------------------------------------------------------------------------------------- what is told

/** Everything there is to read. The reader takes what it found a moment ago for the end. */
const follow = Effect.andThen(
  TestClock.adjust("50 millis"),
  Effect.repeat(Effect.suspend(alertOnFactsOnce), { while: (found) => found })
)

interface Told {
  readonly type: string
  readonly data: { readonly subject: string; readonly details: Record<string, unknown> }
}

/** The bodies of all messages to a target, in the order they were accepted. */
const bodiesTo = Effect.fnUntraced(function* (target: DestinationId) {
  const found: Array<string> = []
  for (const logged of yield* (yield* EventStore).readAll(null, 10_000)) {
    if (logged.messageId === null || logged.version !== 1) continue
    const fact = Result.getOrThrow(fromRecorded(logged))
    if (fact.type === "MessageQueued" && fact.to === target) {
      found.push((yield* (yield* Bodies).load(logged.messageId))!)
    }
  }
  return found
})
const told = (target: DestinationId) =>
  Effect.map(bodiesTo(target), (bodies) => bodies.map((body) => JSON.parse(body) as Told))
const typesTold = (target: DestinationId) => Effect.map(told(target), (all) => all.map(({ type }) => type))

const OPENED = "posthaste.circuit.opened"
const CLOSED = "posthaste.circuit.closed"
const DEAD = "posthaste.dead_letter"
const EXCEEDED = "posthaste.oldest_due.exceeded"
const RECOVERED = "posthaste.oldest_due.recovered"

describe("a circuit", () => {
  test(
    "is told of when it opens and when it closes, once each, under one subject",
    Effect.gen(function* () {
      const [target, pager, shop] = [yield* webhookTarget(), yield* pagerDutyTarget, yield* endpoint()]
      yield* circuit(shop, opens)
      yield* follow
      yield* circuit(shop, probes, closes)
      yield* follow
      yield* follow
      expect(yield* typesTold(target)).toEqual([OPENED, CLOSED])
      const [first, second] = yield* told(target)
      expect(first!.data.subject).toBe(second!.data.subject)
      expect(JSON.stringify(first)).not.toContain("key=1")
      const events = (yield* bodiesTo(pager)).map((body) => JSON.parse(body))
      expect(events.map(({ event_action, dedup_key }) => [event_action, dedup_key])).toEqual([
        ["trigger", first!.data.subject],
        ["resolve", first!.data.subject]
      ])
    })
  )

  test(
    "is told of in the order it happened: its alerts stand in one line",
    Effect.gen(function* () {
      const [target, shop] = [yield* webhookTarget(), yield* endpoint()]
      yield* circuit(shop, opens, probes, closes)
      yield* follow
      const facts = (yield* (yield* EventStore).readAll(null, 100)).filter(({ messageId }) => messageId !== null)
      const keys = facts.map((logged) => {
        const fact = Result.getOrThrow(fromRecorded(logged))
        return fact.type === "MessageQueued" && fact.to === target ? fact.orderingKey : null
      })
      expect(keys).toEqual([`posthaste/acme/circuit/${shop}`, `posthaste/acme/circuit/${shop}`])
    })
  )

  test(
    "is told of as closed when it is reset after it had opened, and not when it was only held",
    Effect.gen(function* () {
      const [target, shop, other] = [yield* webhookTarget(), yield* endpoint(), yield* endpoint()]
      yield* circuit(shop, opens, holds, resets, holds, resets)
      yield* circuit(other, holds, resets)
      yield* follow
      expect(yield* typesTold(target)).toEqual([OPENED, CLOSED])
    })
  )

  test(
    "is told of as closed when its destination is removed",
    Effect.gen(function* () {
      const [target, shop] = [yield* webhookTarget(), yield* endpoint()]
      yield* circuit(shop, opens)
      yield* (yield* Destinations).remove(webhook, acme, shop)
      yield* follow
      expect(yield* typesTold(target)).toEqual([OPENED, CLOSED])
    })
  )
})

describe("a target", () => {
  test(
    "hears of its own org, and of what it asked for",
    Effect.gen(function* () {
      const [circuits, deaths] = [
        yield* webhookTarget(acme, { events: ["circuit"] }),
        yield* webhookTarget(acme, { events: ["deadLetter"] })
      ]
      const foreign = yield* webhookTarget(globex)
      const shop = yield* endpoint()
      yield* circuit(shop, opens)
      yield* death(shop)
      yield* follow
      expect(yield* typesTold(circuits)).toEqual([OPENED])
      expect(yield* typesTold(deaths)).toEqual([DEAD])
      expect(yield* typesTold(foreign)).toEqual([])
    })
  )

  test(
    "hears nothing of what happened before it was made",
    Effect.gen(function* () {
      const shop = yield* endpoint()
      yield* circuit(shop, opens)
      yield* follow
      yield* TestClock.adjust("1 second")
      const first = yield* webhookTarget()
      yield* TestClock.adjust("1 second")
      yield* circuit(shop, probes, closes)
      yield* TestClock.adjust("1 second")
      const second = yield* webhookTarget()
      yield* follow
      expect(yield* typesTold(first)).toEqual([CLOSED])
      expect(yield* typesTold(second)).toEqual([])
    })
  )

  test(
    "hears of what happens while it is being noticed",
    Effect.gen(function* () {
      const shop = yield* endpoint()
      yield* webhookTarget()
      yield* follow
      const real = yield* Destinations
      let made: DestinationId | null = null
      const busy = {
        ...real,
        // Somebody makes a target and trouble begins, right after everybody was asked for.
        alertTargets: Effect.gen(function* () {
          const all = yield* real.alertTargets
          if (made === null) {
            made = yield* newTarget
            yield* newTrouble
            yield* TestClock.adjust("50 millis")
          }
          return all
        })
      }
      const ports = yield* Effect.context<Ports>()
      const newTarget = Effect.provide(webhookTarget(), ports)
      const newTrouble = Effect.orDie(Effect.provide(circuit(shop, opens), ports))
      yield* circuit(yield* endpoint(), opens)
      yield* Effect.provideService(follow, Destinations, busy)
      expect(yield* typesTold(made!)).toEqual([OPENED])
    })
  )

  test(
    "costs nothing while there is none: the log is passed by",
    Effect.gen(function* () {
      const facts = Array.from({ length: 2_500 }, () => ({ name: "Noted@1", data: "{}" }))
      yield* (yield* Journals).append("note-1", 0, facts, yield* DateTime.now, null)
      expect(yield* alertOnFactsOnce()).toBe(true)
      expect(yield* alertOnFactsOnce()).toBe(true)
      yield* TestClock.adjust("50 millis")
      expect(yield* alertOnFactsOnce()).toBe(false)
    })
  )

  test(
    "is not missed by those who passed everything by while there was none",
    Effect.gen(function* () {
      const shop = yield* endpoint()
      yield* circuit(shop, opens, probes, closes)
      yield* follow
      const { position } = yield* Followers
      expect(yield* position("alerts")).toBe((yield* (yield* EventStore).extent).head)
      const target = yield* webhookTarget()
      yield* circuit(shop, opens)
      yield* follow
      expect(yield* typesTold(target)).toEqual([OPENED])
    })
  )
})

describe("dead letters of a destination", () => {
  test(
    "are told of by the first, then not for an hour of their own time, each destination by itself",
    Effect.gen(function* () {
      const [target, shop, other] = [yield* webhookTarget(), yield* endpoint(), yield* endpoint()]
      const first = yield* death(shop)
      yield* death(shop)
      const elsewhere = yield* death(other)
      yield* TestClock.adjust("59 minutes")
      yield* death(shop)
      yield* TestClock.adjust("1 minute")
      const second = yield* death(shop)
      yield* TestClock.adjust("59 minutes")
      yield* death(shop)
      yield* follow
      expect((yield* told(target)).map(({ data }) => data.details["messageId"])).toEqual([first, elsewhere, second])
    })
  )

  test(
    "are told of the same way however the reading is cut, and by whom",
    Effect.gen(function* () {
      const [target, shop] = [yield* webhookTarget(), yield* endpoint()]
      const first = yield* death(shop)
      yield* follow
      yield* TestClock.adjust("30 minutes")
      yield* death(shop)
      yield* follow
      yield* TestClock.adjust("30 minutes")
      const second = yield* death(shop)
      yield* Effect.all([follow, follow, follow], { concurrency: 3 })
      yield* TestClock.adjust("30 minutes")
      yield* death(shop)
      yield* follow
      expect((yield* told(target)).map(({ data }) => data.details["messageId"])).toEqual([first, second])
    })
  )

  test(
    "are told of to each target by itself",
    Effect.gen(function* () {
      const [early, shop] = [yield* webhookTarget(), yield* endpoint()]
      yield* death(shop)
      yield* TestClock.adjust("10 minutes")
      const late = yield* webhookTarget()
      yield* death(shop)
      yield* follow
      expect(yield* typesTold(early)).toEqual([DEAD])
      expect(yield* typesTold(late)).toEqual([DEAD])
    })
  )

  test(
    "are not told of when it was removed",
    Effect.gen(function* () {
      const [target, shop] = [yield* webhookTarget(), yield* endpoint()]
      yield* (yield* Destinations).remove(webhook, acme, shop)
      yield* death(shop)
      yield* follow
      expect(yield* typesTold(target)).toEqual([])
    })
  )
})

describe("refused commands of an org", () => {
  const refuse = Effect.fnUntraced(function* (orgId = acme, detail = "The field to is wrong.") {
    const id = newMessageId()
    const fact = { type: "CommandRefused", orgId, command: "SendMessage", key: null } as const
    const recorded = toRecorded({ ...fact, problem: "urn:posthaste:problem:invalid-fields", status: 400, detail })
    yield* (yield* Journals).append(journalOfCommand(id), 0, [recorded], yield* DateTime.now, "sql")
    return id
  })

  test(
    "are told of by the first, then not for an hour, to those who want to hear of them",
    Effect.gen(function* () {
      const [target, foreign] = [yield* commandTarget(), yield* commandTarget(globex)]
      const deaf = yield* webhookTarget()
      const first = yield* refuse()
      yield* refuse()
      yield* follow
      yield* TestClock.adjust("59 minutes")
      yield* refuse()
      yield* follow
      yield* TestClock.adjust("1 minute")
      const second = yield* refuse()
      yield* follow
      const all = yield* told(target)
      expect(all.map(({ type, data }) => [type, data.details["commandId"]])).toEqual([
        ["posthaste.command.refused", first],
        ["posthaste.command.refused", second]
      ])
      expect(all[0]!.data.details).toMatchObject({
        command: "SendMessage",
        status: 400,
        detail: "The field to is wrong."
      })
      expect(yield* typesTold(foreign)).toEqual([])
      expect(yield* typesTold(deaf)).toEqual([])
    })
  )
})

describe("the broker", () => {
  const look = Effect.andThen(lookAtConditions, follow)
  const report = (id: string, brokerAway: boolean) =>
    Effect.flatMap(Processes, ({ beat }) =>
      beat({ id, host: "shop", pid: 1, roles: ["relay"], version: "1", broker: true, brokerAway, clockOffsetMs: null })
    )
  const AWAY = "posthaste.broker.away"
  const BACK = "posthaste.broker.back"

  test(
    "is told of when it has been away for ten seconds and when it is back, once each, under one subject",
    Effect.gen(function* () {
      const target = yield* commandTarget()
      const deaf = yield* webhookTarget()
      yield* report("a", true)
      yield* TestClock.adjust("9 seconds")
      yield* look
      expect(yield* typesTold(target)).toEqual([])
      yield* TestClock.adjust("1 second")
      yield* Effect.all([look, look, look], { concurrency: 3 })
      yield* look
      expect(yield* typesTold(target)).toEqual([AWAY])
      yield* report("a", false)
      yield* look
      yield* look
      const all = yield* told(target)
      expect(all.map(({ type }) => type)).toEqual([AWAY, BACK])
      expect(all[0]!.data.subject).toBe(all[1]!.data.subject)
      expect(yield* typesTold(deaf)).toEqual([])
    })
  )

  test(
    "is neither lost nor back when the process that told of it is gone",
    Effect.gen(function* () {
      const target = yield* commandTarget()
      yield* report("a", true)
      yield* TestClock.adjust("15 seconds")
      yield* look
      yield* TestClock.adjust("1 minute")
      yield* look
      expect(yield* typesTold(target)).toEqual([AWAY])
      yield* report("b", false)
      yield* look
      expect(yield* typesTold(target)).toEqual([AWAY, BACK])
    })
  )
})

describe("an alert", () => {
  test(
    "is one message, also when whoever raised it crashed before it was noted",
    Effect.gen(function* () {
      const [target, shop] = [yield* webhookTarget(), yield* endpoint()]
      yield* circuit(shop, opens)
      yield* death(shop)
      const real = yield* Followers
      const away = new StoreUnavailable({ cause: new Error("away") })
      const crashes = Effect.provideService(alertOnFactsOnce(), Followers, {
        ...real,
        advance: () => Effect.fail(away)
      })
      yield* TestClock.adjust("50 millis")
      expect(yield* Effect.result(crashes)).toEqual(Result.fail(away))
      expect(yield* typesTold(target)).toEqual([OPENED, DEAD])
      yield* follow
      expect(yield* typesTold(target)).toEqual([OPENED, DEAD])
    })
  )

  test(
    "is one message, also when its destination moved between the crash and the next try",
    Effect.gen(function* () {
      const [target, shop] = [yield* webhookTarget(), yield* endpoint()]
      yield* circuit(shop, opens)
      const real = yield* Followers
      yield* TestClock.adjust("50 millis")
      yield* Effect.provideService(alertOnFactsOnce(), Followers, { ...real, advance: () => Effect.succeed(false) })
      expect(yield* typesTold(target)).toEqual([OPENED])
      yield* (yield* Destinations).change(webhook, acme, shop, { settings: { url: "https://moved.example" } })
      yield* follow
      expect(yield* typesTold(target)).toEqual([OPENED])
    })
  )

  test(
    "is one message, however many follow the log",
    Effect.gen(function* () {
      const [target, shop] = [yield* webhookTarget(), yield* endpoint()]
      yield* circuit(shop, opens)
      yield* death(shop)
      yield* TestClock.adjust("50 millis")
      // Three who stood at the same place before any of them moved on.
      const real = yield* Followers
      const before = yield* real.position("alerts")
      const stood = { ...real, position: () => Effect.succeed(before) }
      for (let n = 0; n < 3; n++) yield* Effect.provideService(alertOnFactsOnce(), Followers, stood)
      expect(yield* typesTold(target)).toEqual([OPENED, DEAD])
      expect(yield* real.position("alerts")).not.toBe(before)
    })
  )

  test(
    "is never about an alert: neither in its org nor in another, nor after its target was removed",
    Effect.gen(function* () {
      const [watcher, foreign] = [yield* webhookTarget(), yield* webhookTarget(globex)]
      const [sick, sickElsewhere] = [yield* webhookTarget(), yield* webhookTarget(globex)]
      const removed = yield* webhookTarget()
      yield* (yield* Destinations).remove(webhook, acme, removed)
      for (const [id, orgId] of [
        [sick, acme],
        [sickElsewhere, globex],
        [removed, acme],
        [watcher, acme]
      ] as const) {
        yield* circuit(id, opens)
        yield* death(id, orgId)
        yield* circuit(id, probes, closes)
      }
      yield* waiting(sick)
      yield* TestClock.adjust("10 minutes")
      yield* lookAtConditions
      yield* follow
      for (const id of [sick, sickElsewhere, removed, watcher, foreign]) {
        expect((yield* typesTold(id)).filter((type) => type?.startsWith("posthaste."))).toEqual([])
      }
    })
  )

  test(
    "is not raised again, and not about what is long past, when the log is read from its beginning",
    Effect.gen(function* () {
      const [target, shop, other] = [yield* webhookTarget(), yield* endpoint(), yield* endpoint()]
      yield* circuit(shop, opens)
      yield* TestClock.adjust("25 hours")
      yield* circuit(other, opens)
      yield* follow
      const first = yield* told(target)
      expect(first.map(({ data }) => data.subject)).toEqual([`posthaste/acme/circuit/${other}`])
      const fresh = { ...(yield* Followers), position: () => Effect.succeed(null), advance: () => Effect.succeed(true) }
      yield* TestClock.adjust("50 millis")
      yield* Effect.provideService(alertOnFactsOnce(), Followers, fresh)
      expect(yield* told(target)).toEqual(first)
    })
  )

  test(
    "that can't be sent holds up no other",
    Effect.gen(function* () {
      const [target, shop] = [yield* webhookTarget(), yield* endpoint()]
      const gone = yield* webhookTarget()
      yield* circuit(shop, opens)
      const targets = yield* (yield* Destinations).alertTargets
      yield* (yield* Destinations).remove(webhook, acme, gone)
      const stale = { ...(yield* Destinations), alertTargets: Effect.succeed(targets) }
      yield* Effect.provideService(follow, Destinations, stale)
      expect(yield* typesTold(target)).toEqual([OPENED])
      expect(yield* typesTold(gone)).toEqual([])
    })
  )
})

describe("an old backlog", () => {
  const lookAndFollow = Effect.andThen(
    lookAtConditions,
    Effect.suspend(() => follow)
  )
  const history = (target: DestinationId) =>
    Effect.flatMap(Journals, ({ load }) =>
      Effect.map(load(journalOf("oldestDue", target)), (facts) => facts.map(({ name }) => name))
    )

  test(
    "is told of once until it has recovered, and again after that",
    Effect.gen(function* () {
      const [target, shop] = [yield* webhookTarget(), yield* endpoint()]
      const { setPaused } = yield* Destinations
      yield* setPaused(webhook, acme, shop, true)
      yield* waiting(shop)
      yield* TestClock.adjust("60 seconds")
      yield* lookAndFollow
      expect(yield* typesTold(target)).toEqual([])
      yield* TestClock.adjust("1 second")
      for (let n = 0; n < 3; n++) yield* lookAndFollow
      expect(yield* typesTold(target)).toEqual([EXCEEDED])
      yield* setPaused(webhook, acme, shop, false)
      const request = {
        worker: "w",
        limit: 100,
        perLane: 100,
        room: new Map(),
        fullOrgs: new Set<never>(),
        lease: Duration.minutes(1)
      }
      yield* (yield* Queue).claim(request)
      for (let n = 0; n < 3; n++) yield* lookAndFollow
      expect(yield* typesTold(target)).toEqual([EXCEEDED, RECOVERED])
      yield* waiting(yield* endpoint())
      yield* TestClock.adjust("2 minutes")
      yield* lookAndFollow
      expect(yield* typesTold(target)).toEqual([EXCEEDED, RECOVERED, EXCEEDED])
    })
  )

  test(
    "is noted once, however many look, and told of although whoever noted it is gone",
    Effect.gen(function* () {
      const [target, shop] = [yield* webhookTarget(), yield* endpoint()]
      yield* waiting(shop)
      yield* TestClock.adjust("2 minutes")
      yield* Effect.all([lookAtConditions, lookAtConditions, lookAtConditions], { concurrency: 3 })
      expect(yield* history(target)).toEqual(["ConditionBegan@1"])
      yield* follow
      expect(yield* typesTold(target)).toEqual([EXCEEDED])
    })
  )

  test(
    "is told of rightly by a process that leads again and remembers what another one changed",
    Effect.gen(function* () {
      const [target, shop] = [yield* webhookTarget(), yield* endpoint()]
      const remembered: Remembered = new Map()
      yield* watchConditionsOnce(remembered)
      yield* waiting(shop)
      yield* TestClock.adjust("2 minutes")
      yield* lookAtConditions
      for (let n = 0; n < 3; n++) yield* watchConditionsOnce(remembered)
      expect(yield* history(target)).toEqual(["ConditionBegan@1"])
    })
  )

  test(
    "is looked for without reading more of a target's journal than its last fact",
    Effect.gen(function* () {
      const [target, shop] = [yield* webhookTarget(), yield* endpoint()]
      yield* waiting(shop)
      yield* TestClock.adjust("2 minutes")
      const journals = yield* Journals
      const unread = Journals.of({ ...journals, load: () => Effect.die("the whole journal was read") })
      for (const expected of [["ConditionBegan@1"], ["ConditionBegan@1"]]) {
        yield* Effect.provideService(lookAtConditions, Journals, unread)
        expect(yield* history(target)).toEqual(expected)
      }
    })
  )

  test(
    "is judged by each target's own limit, and of its own org",
    Effect.gen(function* () {
      const patient = yield* webhookTarget(acme, { oldestDueSeconds: 3_600 })
      const [target, foreign] = [yield* webhookTarget(), yield* webhookTarget(globex)]
      yield* waiting(yield* endpoint())
      yield* TestClock.adjust("2 minutes")
      yield* lookAndFollow
      expect(yield* typesTold(target)).toEqual([EXCEEDED])
      expect(yield* typesTold(patient)).toEqual([])
      expect(yield* typesTold(foreign)).toEqual([])
    })
  )

  test(
    "is over when its target does not ask for it any more",
    Effect.gen(function* () {
      const target = yield* webhookTarget()
      yield* waiting(yield* endpoint())
      yield* TestClock.adjust("2 minutes")
      yield* lookAndFollow
      yield* (yield* Destinations).change(webhook, acme, target, {
        alerting: { events: ["circuit"], oldestDueSeconds: null }
      })
      yield* lookAndFollow
      yield* lookAndFollow
      expect(yield* typesTold(target)).toEqual([EXCEEDED, RECOVERED])
    })
  )
})
