/** What every adapter of `Erasures` promises. `layer` gives an empty store to each test. */
import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, type Layer } from "effect"
import type { StoreUnavailable } from "../../../src/application/errors.ts"
import { Bodies } from "../../../src/application/ports/Bodies.ts"
import { type Erasure, Erasures } from "../../../src/application/ports/Erasures.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { MessageViews } from "../../../src/application/ports/MessageViews.ts"
import type { OrgId } from "../../../src/domain/ids.ts"
import { ended, projected } from "../replays/deadLetterSamples.ts"
import { newMessageId, newOrg, now, type StorePorts } from "../sample.ts"
import { refused } from "../written.ts"

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
        yield* erasures.close(job!)
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
        yield* open(orgId, "mine")
        const job = (yield* erasures.take(LEASE))!
        const found = yield* erasures.find(job, 10)
        expect(found).toEqual({ messages: [gone.id], events: [] })
        yield* erasures.erase(job, found.messages, found.events)
        expect(yield* erasures.find(job, 10)).toEqual({ messages: [], events: [] })
        expect((yield* erasures.get(orgId, job.id))!.messages).toBe(1)
        const store = yield* EventStore
        const dossierOf = (id: typeof gone.id) =>
          Effect.map(store.load(id), ({ facts }) => (facts[0]!.fact as { dossierId?: string }).dossierId)
        expect([yield* dossierOf(gone.id), yield* dossierOf(stays.id)]).toEqual([null, "yours"])
        expect(yield* (yield* Bodies).load(gone.id)).toBeNull()
        const { list } = yield* MessageViews
        const { items } = yield* list(orgId, {}, { cursor: null, limit: 10 })
        expect(new Map(items.map(({ id, dossierId, lastError }) => [id, [dossierId, lastError?.message]]))).toEqual(
          new Map([
            [gone.id, [null, "erased"]],
            [stays.id, ["yours", expect.not.stringMatching("erased")]]
          ])
        )
      })
    )
  })
}
