/** Promises of every AuditTrail: what the facts of an org and of a dossier say. */
import { randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { Array as Arr, DateTime, Effect, type Layer, Redacted } from "effect"
import { CommandedBy } from "../../../src/application/commandedBy.ts"
import {
  commandConsent,
  consentJournals,
  consentOf,
  recordBlocked
} from "../../../src/application/consents/consents.ts"
import { commandCircuit } from "../../../src/application/destinations/commandCircuit.ts"
import { Archive } from "../../../src/application/ports/Archive.ts"
import { AuditTrail } from "../../../src/application/ports/AuditTrail.ts"
import { Destinations } from "../../../src/application/ports/Destinations.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import type { PageRequest, StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { MessageViews } from "../../../src/application/ports/MessageViews.ts"
import { Orgs, unset } from "../../../src/application/ports/Orgs.ts"
import type { ConsentOf } from "../../../src/domain/consent/consent.ts"
import type { AttemptOutcome } from "../../../src/domain/delivery/outcome.ts"
import { OrgId } from "../../../src/domain/ids.ts"
import { makeEndpoint, webhook } from "../destinations/samples.ts"
import { ended } from "../replays/deadLetterSamples.ts"
import {
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

type Ports = StorePorts

const taken: AttemptOutcome = {
  type: "Accepted",
  status: 200,
  providerMessageId: "wamid.1",
  delivered: false,
  durationMs: 3
}
const whole = { cursor: null, limit: 100 }

export const auditContract = <E>(name: string, layer: Layer.Layer<Ports, E>) => {
  const test = (rule: string, body: Effect.Effect<void, unknown, Ports>) =>
    it.live(rule, () => Effect.provide(body as Effect.Effect<void, StoreUnavailable, Ports>, layer), 300_000)

  const entriesOf = (orgId: OrgId, filter = {}) =>
    Effect.flatMap(AuditTrail, (trail) => Effect.map(trail.list(orgId, filter, whole), ({ items }) => items))
  const operationsOf = (orgId: OrgId, filter = {}) =>
    Effect.map(entriesOf(orgId, filter), (items) => items.map(({ operation }) => operation))
  const timelineOf = (orgId: OrgId, dossierId: string) =>
    Effect.map(pageOfTimeline(orgId, dossierId, whole), ({ items }) => items.map((item) => item.activity))
  const pageOfTimeline = Effect.fnUntraced(function* (orgId: OrgId, dossierId: string, page: PageRequest) {
    return yield* (yield* AuditTrail).timeline(orgId, dossierId, yield* consentJournals(orgId, dossierId), page)
  })

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
    yield* store.append([
      { ...next(dead, { type: "ReplayMessage", now: now(), reason: "fixed" }).entry, actor: "key:k2" }
    ])
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

  const told = ["BLOCKED_BY_POLICY", "CONSENT_GRANTED", "CONSENT_WITHDRAWN", "CREATED", "HELD", "REPLAYED", "UPDATED"]

  describe(`${name} audit`, () => {
    test(
      "has an entry for each thing that was done, with who did it, and no secret or body",
      Effect.gen(function* () {
        const orgId = newOrg()
        const { dead, endpoint } = yield* Effect.provideService(life(orgId, "case-17"), CommandedBy, "operator")
        const entries = yield* entriesOf(orgId)
        expect(entries.map(({ operation }) => operation).toSorted()).toEqual(told)
        expect(JSON.stringify(entries)).not.toContain("s3cret")
        expect(new Set(entries.map(({ id }) => id)).size).toBe(entries.length)
        const of = (operation: string, id: string) =>
          entries.find((entry) => entry.operation === operation && entry.subject.id === id)
        expect(of("REPLAYED", dead)).toMatchObject({
          orgId,
          subject: { type: "message", id: dead },
          actor: "key:k2",
          // The reason may name a person and stands beside the fact.
          details: { epoch: 2, edited: false }
        })
        expect(of("UPDATED", endpoint)).toMatchObject({
          subject: { type: "endpoint", id: endpoint },
          actor: "operator",
          details: { fields: ["description"] }
        })
        expect(of("HELD", endpoint)).toMatchObject({ subject: { type: "circuit" }, actor: "operator" })
        expect(of("BLOCKED_BY_POLICY", "case-17")).toMatchObject({
          subject: { type: "dossier" },
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
          expect(yield* entriesOf(orgId)).toMatchObject([
            { operation: "UPDATED", subject: { type: "org", id: orgId }, actor: "operator" }
          ])
        }
      })
    )

    test(
      "is found by each of its filters, and by them together",
      Effect.gen(function* () {
        const orgId = newOrg()
        const { message, dead, endpoint } = yield* Effect.provideService(
          life(orgId, "case-17"),
          CommandedBy,
          "operator"
        )
        expect(yield* operationsOf(orgId, { operation: "FAILED" })).toEqual([])
        expect(yield* operationsOf(orgId, { operation: "BLOCKED_BY_POLICY" })).toEqual(["BLOCKED_BY_POLICY"])
        expect(yield* operationsOf(orgId, { actor: "key:k2" })).toEqual(["REPLAYED"])
        const subject = `message-${message}`
        expect(yield* operationsOf(orgId, { subject })).toEqual(["UPDATED", "SENT", "CREATED"])
        expect(yield* operationsOf(orgId, { subject, operation: "SENT" })).toEqual(["SENT"])
        expect(yield* operationsOf(newOrg(), { subject })).toEqual([])
        // Its facts tell times that may be a millisecond apart the wrong way round: they were taken in another order.
        const all = yield* operationsOf(orgId, { subject: `message-${dead}` })
        expect(all.toSorted()).toEqual(["CREATED", "FAILED", "REPLAYED"])
        expect((yield* operationsOf(orgId, { subject: `endpoint-${endpoint}` })).toSorted()).toEqual([
          "CREATED",
          "UPDATED"
        ])
        expect(yield* operationsOf(newOrg(), { subject: `endpoint-${endpoint}` })).toEqual([])
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
  })

  describe(`${name} timelines`, () => {
    test(
      "tell what happened to a dossier, newest first, and of no other",
      Effect.gen(function* () {
        const orgId = newOrg()
        const { message } = yield* life(orgId, "case-17")
        yield* life(orgId, "case-18")
        yield* life(newOrg(), "case-17")
        expect((yield* timelineOf(orgId, "case-17")).toSorted()).toEqual([
          "CONSENT_GRANTED",
          "CONSENT_WITHDRAWN",
          "MESSAGE_BLOCKED",
          "MESSAGE_CREATED",
          "MESSAGE_SENT",
          "MESSAGE_STATUS_UPDATE"
        ])
        const { items } = yield* pageOfTimeline(orgId, "case-17", whole)
        expect(items.find((item) => item.activity === "MESSAGE_SENT")).toMatchObject({
          messageId: message,
          channel: "whatsapp"
        })
        const times = items.map(({ at }) => DateTime.toEpochMillis(at))
        expect(times).toEqual(times.toSorted((a, b) => b - a))
        const first = yield* pageOfTimeline(orgId, "case-17", { cursor: null, limit: 4 })
        const rest = yield* pageOfTimeline(orgId, "case-17", { cursor: first.nextCursor, limit: 4 })
        expect([...first.items, ...rest.items]).toEqual(items)
        expect(rest.nextCursor).toBeNull()
        expect(yield* timelineOf(orgId, "nothing")).toEqual([])
      })
    )

    test(
      "list the same of facts that were moved from another store, and the same withdrawals are open",
      Effect.gen(function* () {
        const orgId = newOrg()
        const asked = Effect.gen(function* () {
          const items = (yield* entriesOf(orgId)).filter(({ operation }) => operation !== "HELD")
          return { items, open: yield* (yield* Journals).openWithdrawals(10) }
        })
        yield* Effect.provideService(life(orgId, "case-17"), CommandedBy, "operator")
        const { facts: written } = yield* (yield* EventStore).extent
        const facts = yield* readLogUntil(({ length }) => length >= written)
        const before = yield* asked
        expect([before.items.length, before.open.length]).toEqual([told.length - 1, 1])
        const moved = Effect.gen(function* () {
          const { restore } = yield* Archive
          for (const some of Arr.chunksOf(facts, 4)) yield* restore(some)
          return yield* asked
        })
        expect(yield* Effect.provide(moved, layer, { local: true })).toEqual(before)
      })
    )

    test(
      "know the messages of a dossier and channel, and which withdrawals are open",
      Effect.gen(function* () {
        const views = yield* MessageViews
        const open = Effect.flatMap(Journals, ({ openWithdrawals }) =>
          Effect.map(openWithdrawals(10), Arr.map(consentOf))
        )
        const { of, message } = yield* life(newOrg(), "case-17")
        const other = opened({ ...of, id: newMessageId() })
        yield* (yield* EventStore).append([other.entry])
        expect(yield* open).toEqual([of])
        const both = [message, other.after.id].toSorted()
        expect(yield* views.ofDossier(of, null, 10)).toEqual(both)
        expect(yield* views.ofDossier(of, null, 1)).toEqual(both.slice(0, 1))
        expect(yield* views.ofDossier(of, both[0]!, 10)).toEqual(both.slice(1))
        expect(yield* views.ofDossier({ ...of, channel: "http" }, null, 10)).toEqual([])
        yield* commandConsent(of, { type: "ApplyWithdrawal", cancelled: 1 })
        expect(yield* open).toEqual([])
        yield* commandConsent(of, { type: "GrantConsent", source: randomUUID() })
        yield* commandConsent(of, { type: "WithdrawConsent", source: "letter" })
        expect(yield* open).toEqual([of])
      })
    )
  })
}
