/**
 * What every AuditTrail and Timelines promises, and that the projections into them say what the facts say: over the
 * store's own log, in any pieces, after a rebuild and after messages were forgotten.
 */

import { randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Effect, Layer, Redacted } from "effect"
import { CommandedBy } from "../../../src/application/commandedBy.ts"
import { commandConsent, recordBlocked } from "../../../src/application/consents/consents.ts"
import { commandCircuit } from "../../../src/application/destinations/commandCircuit.ts"
import type { StoreUnavailable } from "../../../src/application/errors.ts"
import { LogReader } from "../../../src/application/log/LogReader.ts"
import { activity, audit } from "../../../src/application/log/projections/audit.ts"
import { AuditTrail } from "../../../src/application/ports/AuditTrail.ts"
import { Destinations } from "../../../src/application/ports/Destinations.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { Orgs, unset } from "../../../src/application/ports/Orgs.ts"
import { Projections, type Run } from "../../../src/application/ports/Projections.ts"
import { Replays } from "../../../src/application/ports/Replays.ts"
import { Retention } from "../../../src/application/ports/Retention.ts"
import { Timelines } from "../../../src/application/ports/Timelines.ts"
import * as Access from "../../../src/domain/access/facts.ts"
import * as Command from "../../../src/domain/command/facts.ts"
import type { ConsentOf } from "../../../src/domain/consent/consent.ts"
import * as Consented from "../../../src/domain/consent/facts.ts"
import type { AttemptOutcome } from "../../../src/domain/delivery/outcome.ts"
import { DestinationId, OrgId } from "../../../src/domain/ids.ts"
import * as Replayed from "../../../src/domain/replay/facts.ts"
import { makeEndpoint, webhook } from "../destinations/samples.ts"
import { ended, projected as inLists } from "../replays/deadLetterSamples.ts"
import { listed } from "../replays/openings.ts"
import {
  delivered,
  endedBefore,
  inMillis,
  newMessageId,
  newOrg,
  next,
  now,
  opened,
  readLogUntil,
  type StorePorts,
  settled,
  started
} from "../sample.ts"
import { refused } from "../written.ts"

type Ports = StorePorts | Projections

const taken: AttemptOutcome = {
  type: "Accepted",
  status: 200,
  providerMessageId: "wamid.1",
  delivered: false,
  durationMs: 3
}
const whole = { cursor: null, limit: 100 }
const both = [audit, activity] as const

export const auditContract = <E>(name: string, layer: Layer.Layer<Ports, E>) => {
  const test = (rule: string, body: Effect.Effect<void, unknown, Ports | LogReader>) =>
    it.live(
      rule,
      () =>
        Effect.provide(
          body as Effect.Effect<void, StoreUnavailable, Ports | LogReader>,
          Layer.provideMerge(LogReader.layer, layer)
        ),
      300_000
    )

  /** The log with everything in it that was written. */
  const wholeLog = Effect.gen(function* () {
    const { facts: written } = yield* (yield* EventStore).extent
    return yield* readLogUntil((facts) => facts.length >= written)
  })

  /** Takes a run on to the end of the log, so many facts at a time. */
  const follow = Effect.fnUntraced(function* (projection: (typeof both)[number], run: Run, atOnce: number) {
    const store = yield* EventStore
    yield* wholeLog
    for (let from = run.position; ; ) {
      const facts = yield* store.readAll(from, atOnce)
      if (facts.length === 0) return
      const to = facts.at(-1)!.position
      const step = { generation: run.generation, from, to, facts: facts.length }
      expect(yield* (yield* projection.project(facts))(step)).toBe(true)
      // Whoever comes second with the same step writes nothing.
      expect(yield* (yield* projection.project(facts))(step)).toBe(false)
      from = to
    }
  })

  const runsOf = Effect.fnUntraced(function* (name: string) {
    const runs = (yield* (yield* Projections).runs).filter((run) => run.name === name)
    return { live: runs.find(({ live }) => live) ?? null, build: runs.find(({ live }) => !live) ?? null }
  })

  const projected = Effect.fnUntraced(function* (atOnce = 1_000) {
    for (const projection of both) {
      const { live } = yield* runsOf(projection.name)
      const run = live ?? (yield* (yield* Projections).build(projection.name, 1, 0))
      yield* follow(projection, run, atOnce)
    }
  })

  const rebuilt = Effect.fnUntraced(function* (atOnce: number) {
    const projections = yield* Projections
    for (const projection of both) {
      const build = yield* projections.build(projection.name, 1, 0)
      yield* follow(projection, build, atOnce)
      expect(yield* projections.swap(projection.name, build.generation)).toBe(true)
    }
  })

  const entriesOf = (orgId: OrgId, filter = {}) =>
    Effect.flatMap(AuditTrail, (trail) => Effect.map(trail.list(orgId, filter, whole), ({ items }) => items))
  const operationsOf = (orgId: OrgId, filter = {}) =>
    Effect.map(entriesOf(orgId, filter), (items) => items.map(({ operation }) => operation))
  const timelineOf = (orgId: OrgId, dossierId: string) =>
    Effect.flatMap(Timelines, (timelines) =>
      Effect.map(timelines.list(orgId, dossierId, whole), ({ items }) => items.map((item) => item.activity))
    )

  /** A second of an org's life: one of everything that is told. */
  const life = Effect.fnUntraced(function* (orgId: OrgId, dossierId: string) {
    const store = yield* EventStore
    const endpoint = yield* makeEndpoint(
      orgId,
      { url: "https://shop.example/hook?key=s3cret", headers: { authorization: "s3cret" } },
      { secrets: { secret: Redacted.make("s3cret") } }
    )
    yield* (yield* Destinations).change(webhook, orgId, endpoint.id, { settings: { description: "s3cret" } })
    yield* commandCircuit(orgId, endpoint.id, { type: "HoldCircuit", reason: "a hunch" })
    const of: ConsentOf = { orgId, dossierId, channel: "whatsapp" }
    yield* commandConsent(of, { type: "GrantConsent", source: "form" })
    const common = { orgId, dossierId, correlationId: "order-9", body: '"s3cret"' }
    const well = opened({ ...common, channel: "whatsapp" })
    yield* store.append([{ ...well.entry, actor: "key:k1" }])
    const start = started(well.after)
    yield* store.append([start.entry])
    const sent = settled(start.after, taken)
    yield* store.append([sent.entry])
    const receipt = next(sent.after, {
      type: "RecordReceipt",
      receipt: "delivered",
      providerMessageId: "wamid.1",
      epoch: null,
      attempt: null,
      reportedAt: now(),
      error: null
    })
    yield* store.append([receipt.entry])
    const dead = yield* ended(refused(), now(), { orgId })
    yield* store.append([next(dead, { type: "ReplayMessage", now: now(), reason: "fixed" }).entry])
    yield* commandConsent(of, { type: "WithdrawConsent", source: "call" })
    const { channel, to } = { channel: "whatsapp", to: "4915112345678" } as const
    const none = { eventType: null, templateCode: null }
    yield* recordBlocked([
      {
        type: "MessageBlocked",
        orgId,
        dossierId,
        channel,
        to,
        ...none,
        correlationId: "c",
        reason: "consent withdrawn"
      }
    ])
    return { message: well.after.id, dead: dead.id, endpoint: endpoint.id, of }
  })

  const told = [
    "BLOCKED_BY_POLICY",
    "CONSENT_GRANTED",
    "CONSENT_WITHDRAWN",
    "CREATED",
    "CREATED",
    "CREATED",
    "FAILED",
    "HELD",
    "REPLAYED",
    "SENT",
    "UPDATED",
    "UPDATED"
  ]

  describe(`${name} audit`, () => {
    test(
      "has an entry for each thing that was done, with who did it, and no secret or body",
      Effect.gen(function* () {
        const orgId = newOrg()
        const { message, endpoint } = yield* Effect.provideService(life(orgId, "case-17"), CommandedBy, "operator")
        yield* projected()
        const entries = yield* entriesOf(orgId)
        expect(entries.map(({ operation }) => operation).toSorted()).toEqual(told)
        expect(JSON.stringify(entries)).not.toContain("s3cret")
        expect(new Set(entries.map(({ id }) => id)).size).toBe(entries.length)
        const of = (operation: string, id: string) =>
          entries.find((entry) => entry.operation === operation && entry.subject.id === id)
        expect(of("CREATED", message)).toMatchObject({
          orgId,
          subject: { type: "message", id: message },
          actor: "key:k1",
          channel: "whatsapp",
          correlationId: "order-9",
          dossierId: "case-17"
        })
        expect(of("SENT", message)).toMatchObject({
          actor: null,
          details: { attempt: 1, providerMessageId: "wamid.1" }
        })
        expect(of("UPDATED", message)).toMatchObject({ details: { receipt: "delivered" } })
        expect(of("UPDATED", endpoint)).toMatchObject({
          subject: { type: "endpoint", id: endpoint },
          actor: "operator",
          channel: "webhook",
          details: { fields: ["description"] }
        })
        expect(of("HELD", endpoint)).toMatchObject({ subject: { type: "circuit" }, actor: "operator" })
        expect(of("BLOCKED_BY_POLICY", "case-17")).toMatchObject({
          subject: { type: "dossier" },
          correlationId: "c",
          actor: "operator"
        })
      })
    )

    test(
      "has an entry for each change of an org, whatever the operator called it, also where nothing else is written with it",
      Effect.gen(function* () {
        for (const orgId of [randomUUID().slice(0, 8), randomUUID(), `team-${randomUUID()}`].map((id) =>
          OrgId.make(id)
        )) {
          yield* Effect.provideService(
            Effect.flatMap(Orgs, (orgs) => orgs.set(orgId, { ...unset, suspended: "unpaid" })),
            CommandedBy,
            "operator"
          )
          yield* projected()
          expect(yield* entriesOf(orgId)).toMatchObject([
            { operation: "UPDATED", subject: { type: "org", id: orgId }, actor: "operator", channel: null }
          ])
        }
      })
    )

    test(
      "is found by each of its filters, and by them together",
      Effect.gen(function* () {
        const orgId = newOrg()
        const { message, dead } = yield* Effect.provideService(life(orgId, "case-17"), CommandedBy, "operator")
        yield* projected()
        expect(yield* operationsOf(orgId, { operation: "FAILED" })).toEqual(["FAILED"])
        expect(yield* operationsOf(orgId, { operation: "BLOCKED_BY_POLICY" })).toEqual(["BLOCKED_BY_POLICY"])
        expect(yield* operationsOf(orgId, { actor: "key:k1" })).toEqual(["CREATED"])
        expect(yield* operationsOf(orgId, { correlationId: "order-9" })).toEqual(["UPDATED", "SENT", "CREATED"])
        expect(yield* operationsOf(orgId, { messageId: message })).toEqual(["UPDATED", "SENT", "CREATED"])
        // Its facts tell times that may be a millisecond apart the wrong way round: they were taken in another order.
        expect((yield* operationsOf(orgId, { messageId: dead })).toSorted()).toEqual(["CREATED", "FAILED", "REPLAYED"])
        expect((yield* operationsOf(orgId, { dossierId: "case-17" })).toSorted()).toEqual([
          "BLOCKED_BY_POLICY",
          "CONSENT_GRANTED",
          "CONSENT_WITHDRAWN",
          "CREATED",
          "SENT",
          "UPDATED"
        ])
        expect(yield* operationsOf(orgId, { channel: "whatsapp", operation: "SENT" })).toEqual(["SENT"])
        expect(yield* operationsOf(orgId, { channel: "http" })).toEqual([])
        expect(yield* operationsOf(orgId, { from: inMillis(60_000) })).toEqual([])
        expect(yield* operationsOf(orgId, { to: inMillis(-60_000) })).toEqual([])
        expect(yield* operationsOf(orgId, { from: inMillis(-60_000), to: inMillis(60_000) })).toHaveLength(told.length)
        const at = (yield* entriesOf(orgId, { operation: "HELD" }))[0]!.at
        expect(yield* operationsOf(orgId, { operation: "HELD", from: at })).toEqual(["HELD"])
        expect(yield* operationsOf(orgId, { operation: "HELD", to: at })).toEqual([])
      })
    )

    test(
      "comes newest first, page by page, each entry once",
      Effect.gen(function* () {
        const orgId = newOrg()
        yield* life(orgId, "case-17")
        yield* projected()
        const trail = yield* AuditTrail
        const all = yield* entriesOf(orgId)
        const times = all.map(({ at }) => DateTime.toEpochMillis(at))
        expect(times).toEqual(times.toSorted((a, b) => b - a))
        const paged = []
        let cursor: string | null = null
        do {
          const page: Effect.Success<ReturnType<typeof trail.list>> = yield* trail.list(orgId, {}, { cursor, limit: 5 })
          expect(page.items.length).toBeLessThanOrEqual(5)
          paged.push(...page.items)
          cursor = page.nextCursor
        } while (cursor !== null)
        expect(paged).toEqual(all)
      })
    )

    test(
      "is the same whatever pieces the log comes in, after a rebuild, and for each org its own",
      Effect.gen(function* () {
        const orgs = Array.from({ length: 3 }, newOrg)
        for (const orgId of orgs) yield* life(orgId, "case-17")
        yield* projected(7)
        const seen = Effect.all(
          orgs.map((orgId) =>
            Effect.all([entriesOf(orgId), Effect.flatMap(Timelines, (t) => t.list(orgId, "case-17", whole))])
          )
        )
        const before = yield* seen
        for (const [entries] of before) expect(entries).toHaveLength(told.length)
        yield* rebuilt(1_000)
        expect(yield* seen).toEqual(before)
        // What was left behind is cleared, and what is live stays.
        for (const projection of both) {
          expect(yield* projection.clear(1_000)).toBeGreaterThan(0)
          expect(yield* projection.clear(1_000)).toBe(0)
        }
        expect(yield* seen).toEqual(before)
      })
    )

    test(
      "forgets a message with its stream, and a step that was being made does not bring it back",
      Effect.gen(function* () {
        const orgId = newOrg()
        const old = yield* ended(delivered, inMillis(-7_200_000), {
          orgId,
          dossierId: "case-17",
          acceptedAt: inMillis(-7_200_000)
        })
        const facts = yield* wholeLog
        yield* projected()
        // Retention finds what is old in the lists.
        yield* inLists([old])
        expect((yield* operationsOf(orgId, { messageId: old.id })).toSorted()).toEqual(["CREATED", "SENT"])
        let from: string | null = null
        let removed = 0
        do {
          const sweep: Effect.Success<ReturnType<Retention["Service"]["sweep"]>> = yield* (yield* Retention).sweep(
            endedBefore(inMillis(-3_600_000)),
            from,
            100
          )
          removed += sweep!.removed
          from = sweep!.next
        } while (from !== null)
        expect(removed).toBe(1)
        expect(yield* operationsOf(orgId)).toEqual([])
        expect(yield* timelineOf(orgId, "case-17")).toEqual([])
        // Read before it was forgotten, written after.
        for (const projection of both) {
          const { live } = yield* runsOf(projection.name)
          const to = live!.position!
          yield* (yield* projection.project(facts))({ generation: live!.generation, from: to, to, facts: facts.length })
        }
        expect(yield* operationsOf(orgId)).toEqual([])
        expect(yield* timelineOf(orgId, "case-17")).toEqual([])
      })
    )

    test(
      "forgets deeds with their journals, and of replays those that have ended",
      Effect.gen(function* () {
        const orgId = newOrg()
        const journals = yield* Journals
        const replays = yield* Replays
        const [long, short] = [inMillis(-7_200_000), inMillis(-60_000)]
        const seen = (at: DateTime.Utc) => {
          const id = randomUUID()
          const fact = { type: "BodyRead", orgId, subject: "message", id, address: null } as const
          return journals.append(`access-${id}`, 0, [Access.toRecorded(fact)], at, null)
        }
        const blocked = (at: DateTime.Utc) => {
          const about = { channel: "whatsapp", to: "4915112345678", eventType: null, templateCode: null } as const
          const why = { correlationId: null, reason: "no consent" } as const
          const fact = { type: "MessageBlocked", orgId, dossierId: "case-17", ...about, ...why } as const
          return journals.append(`blocked-${randomUUID()}`, 0, [Consented.toRecorded(fact)], at, null)
        }
        const replay = Effect.fnUntraced(function* (requestedAt: DateTime.Utc) {
          const opening = listed(orgId, 1, { requestedAt })
          yield* replays.open(opening)
          const { selection, reason } = opening
          const fact = { type: "ReplayRequested", orgId, selection, reason, matched: 1, requestedAt } as const
          yield* journals.append(`replay-${opening.id}`, 0, [Replayed.toRecorded(fact)], requestedAt, null)
          return opening.id
        })
        const refusedCommand = (at: DateTime.Utc) => {
          const about = { command: "SendMessage", key: null, problem: "validation", status: 422, detail: "no" } as const
          const fact = { type: "CommandRefused", orgId, ...about } as const
          return journals.append(`command-${randomUUID()}`, 0, [Command.toRecorded(fact)], at, null)
        }
        for (const at of [long, long, short]) {
          yield* seen(at)
          yield* blocked(at)
          yield* refusedCommand(at)
        }
        const [over, running, young] = [yield* replay(long), yield* replay(long), yield* replay(short)]
        // However many facts it has, it is one deed.
        const completed = Replayed.toRecorded({ type: "ReplayCompleted" })
        yield* journals.append(`replay-${over}`, 1, [completed], long, null)
        yield* replays.close(over)
        yield* replays.close(young)
        yield* commandCircuit(orgId, DestinationId.make(randomUUID()), { type: "HoldCircuit", reason: "a hunch" })
        yield* projected()
        const before = yield* operationsOf(orgId)
        let from: string | null = null
        let removed = 0
        do {
          const sweep: Effect.Success<ReturnType<Retention["Service"]["sweepDeeds"]>> =
            yield* (yield* Retention).sweepDeeds(inMillis(-3_600_000), from, 2)
          removed += sweep!.removed
          from = sweep!.next
        } while (from !== null)
        expect(removed).toBe(7)
        expect(yield* replays.get(orgId, over)).toBeNull()
        expect(yield* journals.load(`replay-${over}`)).toEqual([])
        for (const id of [running, young]) {
          expect(yield* replays.get(orgId, id)).toMatchObject({ id })
          expect(yield* journals.load(`replay-${id}`)).toHaveLength(1)
        }
        const after = yield* operationsOf(orgId)
        const count = (all: ReadonlyArray<string>, operation: string) => all.filter((one) => one === operation).length
        expect([count(before, "BODY_READ"), count(after, "BODY_READ")]).toEqual([3, 1])
        expect([count(before, "BLOCKED_BY_POLICY"), count(after, "BLOCKED_BY_POLICY")]).toEqual([3, 1])
        expect(yield* timelineOf(orgId, "case-17")).toHaveLength(1)
        expect(before.length - after.length).toBe(5)
      })
    )
  })

  describe(`${name} timelines`, () => {
    test(
      "tell what happened to a dossier, newest first, and of no other",
      Effect.gen(function* () {
        const orgId = newOrg()
        const { message } = yield* life(orgId, "case-17")
        yield* life(orgId, "case-18")
        yield* life(newOrg(), "case-17")
        yield* projected()
        expect((yield* timelineOf(orgId, "case-17")).toSorted()).toEqual([
          "CONSENT_GRANTED",
          "CONSENT_WITHDRAWN",
          "MESSAGE_BLOCKED",
          "MESSAGE_CREATED",
          "MESSAGE_SENT",
          "MESSAGE_STATUS_UPDATE"
        ])
        const timelines = yield* Timelines
        const { items } = yield* timelines.list(orgId, "case-17", whole)
        expect(items.find((item) => item.activity === "MESSAGE_SENT")).toMatchObject({ messageId: message, orgId })
        const times = items.map(({ at }) => DateTime.toEpochMillis(at))
        expect(times).toEqual(times.toSorted((a, b) => b - a))
        const first = yield* timelines.list(orgId, "case-17", { cursor: null, limit: 4 })
        const rest = yield* timelines.list(orgId, "case-17", { cursor: first.nextCursor, limit: 4 })
        expect([...first.items, ...rest.items]).toEqual(items)
        expect(rest.nextCursor).toBeNull()
        expect(yield* timelineOf(orgId, "nothing")).toEqual([])
      })
    )

    test(
      "know the messages of a dossier and channel, and which withdrawals are open",
      Effect.gen(function* () {
        const timelines = yield* Timelines
        const { of, message } = yield* life(newOrg(), "case-17")
        const other = opened({ ...of, id: newMessageId() })
        yield* (yield* EventStore).append([other.entry])
        expect(yield* timelines.openWithdrawals(10)).toEqual([])
        yield* projected()
        expect(yield* timelines.openWithdrawals(10)).toEqual([of])
        const both = [message, other.after.id].toSorted()
        expect(yield* timelines.messages(of, null, 10)).toEqual(both)
        expect(yield* timelines.messages(of, null, 1)).toEqual(both.slice(0, 1))
        expect(yield* timelines.messages(of, both[0]!, 10)).toEqual(both.slice(1))
        expect(yield* timelines.messages({ ...of, channel: "http" }, null, 10)).toEqual([])
        yield* commandConsent(of, { type: "ApplyWithdrawal", cancelled: 1 })
        yield* projected()
        expect(yield* timelines.openWithdrawals(10)).toEqual([])
        yield* commandConsent(of, { type: "GrantConsent", source: randomUUID() })
        yield* commandConsent(of, { type: "WithdrawConsent", source: "letter" })
        yield* projected(1)
        expect(yield* timelines.openWithdrawals(10)).toEqual([of])
        yield* rebuilt(2)
        expect(yield* timelines.openWithdrawals(10)).toEqual([of])
      })
    )
  })
}
