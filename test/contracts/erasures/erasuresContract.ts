/** What every adapter of `Erasures` promises. `layer` gives an empty store to each test. */

import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, type Layer } from "effect"
import { listMessages } from "../../../src/application/messages/listMessages.ts"
import { Bodies } from "../../../src/application/ports/Bodies.ts"
import { type Erasure, Erasures } from "../../../src/application/ports/Erasures.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import type { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { ReceiptInbox } from "../../../src/application/ports/ReceiptInbox.ts"
import { Replays } from "../../../src/application/ports/Replays.ts"
import { loadReplay } from "../../../src/application/replays/replays.ts"
import type { ErasureField } from "../../../src/domain/erasure/facts.ts"
import type { OrgId, ReplayId } from "../../../src/domain/ids.ts"
import { type ReplaySelection, toRecorded as replayFact } from "../../../src/domain/replay/facts.ts"
import { ended, projected } from "../replays/deadLetterSamples.ts"
import { listed } from "../replays/openings.ts"
import { newLane, newMessageId, newOrg, next, now, type StorePorts } from "../sample.ts"
import { refused, write } from "../written.ts"

const LEASE = Duration.seconds(30)

export const erasuresContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer))

  const open = Effect.fnUntraced(function* (orgId: OrgId, sought: string) {
    const opened = yield* (yield* Erasures).open({
      ...{ id: newMessageId(), orgId, by: "dossierId", reason: null },
      sought: [sought]
    })
    return opened as Erasure
  })

  describe(`${name} erasures`, () => {
    test(
      "are found by their org, and forget with their end whom they were about",
      Effect.gen(function* () {
        const erasures = yield* Erasures
        const [orgId, other] = [newOrg(), newOrg()]
        const erasure = yield* open(orgId, "case-of-somebody")
        expect(erasure).toMatchObject({ orgId, by: "dossierId", messages: 0, events: 0, endedAt: null })
        expect(yield* erasures.get(orgId, erasure.id)).toEqual(erasure)
        expect(yield* erasures.get(other, erasure.id)).toBeNull()
        expect((yield* erasures.list(orgId, { cursor: null, limit: 10 })).items).toEqual([erasure])
        const job = yield* erasures.take(LEASE)
        expect(job).toMatchObject({ id: erasure.id, sought: ["case-of-somebody"] })
        expect(yield* erasures.take(LEASE)).toBeNull()
        yield* erasures.back(erasure.id, Duration.zero)
        expect(yield* erasures.take(LEASE)).toMatchObject({ id: erasure.id })
        expect(yield* erasures.close(job!)).toBe(true)
        expect(yield* erasures.take(LEASE)).toBeNull()
        expect((yield* erasures.get(orgId, erasure.id))!.endedAt).not.toBeNull()
      })
    )

    test(
      "replace what facts and lists say, and find nothing afterwards",
      Effect.gen(function* () {
        const erasures = yield* Erasures
        const orgId = newOrg()
        const gone = yield* ended(refused(), now(), { orgId, dossierId: "mine" })
        const stays = yield* ended(refused(), now(), { orgId, dossierId: "yours" })
        yield* projected([gone, stays])
        const dismissal = next(gone, { type: "DismissMessage", reason: null })
        yield* write({ ...dismissal, entry: { ...dismissal.entry, actor: "amqp:dismiss-somebody" } })
        yield* open(orgId, "mine")
        const job = (yield* erasures.take(LEASE))!
        const found = yield* erasures.find(job, 10)
        expect(found).toEqual({ messages: [gone.id], events: [] })
        expect(yield* erasures.erase(job, found.messages, found.events)).toBe(true)
        expect(yield* erasures.find(job, 10)).toEqual({ messages: [], events: [] })
        expect((yield* erasures.get(orgId, job.id))!.messages).toBe(1)
        const store = yield* EventStore
        const dossierOf = (id: typeof gone.id) =>
          Effect.map(store.load(id), ({ facts }) => (facts[0]!.fact as { dossierId?: string }).dossierId)
        expect([yield* dossierOf(gone.id), yield* dossierOf(stays.id)]).toEqual([null, "yours"])
        // A command over a broker was known by its key.
        expect((yield* store.load(gone.id)).facts.at(-1)!.actor).toBe("amqp")
        expect(yield* (yield* Bodies).load(gone.id)).toBeNull()
        const { items } = yield* listMessages(orgId, {}, { cursor: null, limit: 10 })
        expect(new Map(items.map(({ id, dossierId, lastError }) => [id, [dossierId, lastError?.message]]))).toEqual(
          new Map([
            [gone.id, [null, "erased"]],
            [stays.id, ["yours", expect.not.stringMatching("erased")]]
          ])
        )
      })
    )

    test(
      "take receipts that wait and name the person or the message, and no other org's",
      Effect.gen(function* () {
        const { add, claim } = yield* ReceiptInbox
        const erasures = yield* Erasures
        const [orgId, other, account, to] = [newOrg(), newOrg(), newLane(), "4915177700017"]
        const outcome = {
          type: "Accepted",
          status: 200,
          providerMessageId: "wamid.mine",
          delivered: true,
          durationMs: 3
        } as const
        const gone = yield* ended(outcome, now(), { orgId, channel: "whatsapp", to, dossierId: "mine" })
        const gives = (raw: object, org = orgId) => ({ orgId: org, account, raw: JSON.stringify(raw) })
        const kept = [
          gives({ id: "wamid.yours", recipient_id: "4930222" }),
          gives({ recipient_id: to, of: other }, other)
        ]
        yield* add([gives({ id: "wamid.mine" }), gives({ errors: [{ title: `+${to} is no number` }] }), ...kept])
        yield* open(orgId, "mine")
        const job = (yield* erasures.take(LEASE))!
        expect(yield* erasures.erase(job, [gone.id], [])).toBe(true)
        expect((yield* claim(10, LEASE)).map(({ raw }) => raw).toSorted()).toEqual(
          kept.map(({ raw }) => raw).toSorted()
        )
      })
    )

    test(
      "wait for jobs that are for the person, and let them forget it once they have begun",
      Effect.gen(function* () {
        const erasures = yield* Erasures
        const replays = yield* Replays
        const orgId = newOrg()
        const gone = yield* ended(refused(), now(), { orgId, dossierId: "mine", correlationId: "of-somebody" })
        const stays = yield* ended(refused(), now(), { orgId, correlationId: "of-another" })
        yield* projected([gone, stays])
        const jobFor = Effect.fnUntraced(function* (selection: ReplaySelection) {
          const opening = listed(orgId, 0, { selection, set: { items: [] }, reason: "somebody called" })
          return (yield* replays.open(opening)).job
        })
        const own = yield* Effect.forEach(
          [
            { waiting: { correlationId: "of-somebody" } },
            { ids: [gone.id, stays.id] },
            { filter: { to: "4915177700017" } }
          ],
          jobFor
        )
        const others = yield* Effect.forEach(
          [{ waiting: { correlationId: "of-another" } }, { ids: [stays.id] }],
          jobFor
        )
        const close = Effect.fnUntraced(function* (by: ErasureField, sought: string) {
          yield* erasures.open({ id: newMessageId(), orgId, by, reason: null, sought: [sought] })
          const job = (yield* erasures.take(LEASE))!
          const { messages, events } = yield* erasures.find(job, 10)
          const isErased = messages.length === 0 || (yield* erasures.erase(job, messages, events))
          const isClosed = isErased && (yield* erasures.close(job))
          yield* erasures.back(job.id, Duration.zero)
          return isClosed
        })
        const saidOf = (id: ReplayId) =>
          Effect.gen(function* () {
            const { selection, reason } = (yield* replays.get(orgId, id))!
            const [first] = yield* (yield* Journals).load(`replay-${id}`)
            return JSON.stringify([selection, reason, first === undefined ? null : JSON.parse(first.data)])
          })

        yield* loadReplay(own[0]!)
        expect(yield* close("dossierId", "mine")).toBe(false)
        expect(yield* saidOf(own[0]!.id)).toContain("of-somebody")
        yield* Effect.forEach([...own.slice(0, 2), ...others], loadReplay)
        const journals = yield* Journals
        // Commanded over a broker, where a command is known by its key.
        const called = { type: "ReplayCancelled", reason: "somebody called" } as const
        for (const { id } of [own[0]!, others[0]!]) {
          const version = (yield* journals.last(`replay-${id}`))!.version
          const facts = [replayFact(called)]
          expect(yield* journals.append(`replay-${id}`, version, facts, now(), "amqp:of-somebody")).toBe("Appended")
        }
        const actorOf = (id: ReplayId) => Effect.map(journals.last(`replay-${id}`), (fact) => fact!.actor)
        const before = yield* Effect.forEach(others, ({ id }) => saidOf(id))
        const job = (yield* erasures.take(LEASE))!
        expect(yield* erasures.erase(job, [gone.id], [])).toBe(true)
        expect(yield* erasures.close(job)).toBe(true)
        for (const { id } of own.slice(0, 2)) expect(yield* saidOf(id)).not.toMatch(/somebody/)
        expect([yield* actorOf(own[0]!.id), yield* actorOf(others[0]!.id)]).toEqual(["amqp", "amqp:of-somebody"])
        expect(yield* saidOf(own[2]!.id)).toMatch("4915177700017")

        // By what is sought, also where there is no message.
        expect(yield* close("recipient", "4915177700017")).toBe(false)
        yield* loadReplay(own[2]!)
        const again = (yield* erasures.take(LEASE))!
        expect(yield* erasures.close(again)).toBe(true)
        expect(yield* saidOf(own[2]!.id)).not.toMatch(/somebody|4915177700017/)
        // It can be read, and the jobs of others are as they were.
        expect((yield* loadReplay((yield* replays.get(orgId, own[2]!.id))!)).job.selection).toEqual({
          filter: { to: "erased" }
        })
        expect(yield* Effect.forEach(others, ({ id }) => saidOf(id))).toEqual(before)
      })
    )
  })
}
