/** What every adapter of `Orgs` promises. Call it once per adapter, with a layer that gives an empty store. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { CommandedBy } from "../../../src/application/commandedBy.ts"
import { ApiKeys } from "../../../src/application/ports/ApiKeys.ts"
import { Destinations } from "../../../src/application/ports/Destinations.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import type { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { type OrgSettings, Orgs, unset } from "../../../src/application/ports/Orgs.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import type { RetryPolicy } from "../../../src/domain/delivery/retry.ts"
import { OrgId } from "../../../src/domain/ids.ts"
import { asWorker, claimAll } from "../deliver/claims.ts"
import { makeEndpoint, webhook } from "../destinations/samples.ts"
import { termsOf } from "../keys/terms.ts"
import { inMillis, newOrg, next, opened, type StorePorts } from "../sample.ts"

const retry: RetryPolicy = { strategy: "exponential", baseMs: 100, jitter: [0.5, 1] }
const suspended: OrgSettings = {
  name: "Acme Ltd",
  suspended: "unpaid",
  limits: { acceptsPerSecond: 5 },
  retry,
  retention: { endedDays: 1.5 }
}

export const orgsContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer))

  describe(`${name} orgs`, () => {
    test(
      "know what was set last, and nothing of an org that nobody set anything for",
      Effect.gen(function* () {
        const orgs = yield* Orgs
        const [one, other] = [newOrg(), newOrg()]
        expect(yield* orgs.get(one)).toEqual({
          ...{ id: one, ...unset, updatedAt: null },
          ...{ destinations: 0, waiting: 0, deadLetters: 0, replays: 0 }
        })
        yield* Effect.provideService(orgs.set(one, suspended), CommandedBy, "operator")
        expect(yield* orgs.settingsOf(one)).toEqual(suspended)
        expect(yield* orgs.settingsOf(other)).toEqual(unset)
        yield* orgs.set(one, { ...unset, limits: { waiting: 9, replays: 1 } })
        expect(yield* orgs.settingsOf(one)).toEqual({ ...unset, limits: { waiting: 9, replays: 1 } })
        expect(yield* orgs.get(one)).toMatchObject({ suspended: null, limits: { waiting: 9 }, retry: null })
        const facts = yield* (yield* Journals).load(`org-${one}`)
        expect(facts.map(({ name, version, actor }) => [name, version, actor])).toEqual([
          ["OrgChanged@1", 1, "operator"],
          ["OrgChanged@1", 2, null]
        ])
        expect(JSON.parse(facts[0]!.data)).toEqual({ orgId: one, ...suspended })
      })
    )

    test(
      "are listed by id: all that have settings, keys or destinations",
      Effect.gen(function* () {
        const orgs = yield* Orgs
        const ids = ["a", "b", "c", "d"].map((letter) => OrgId.make(`${letter}-${newOrg()}`))
        yield* orgs.set(ids[2]!, unset)
        yield* (yield* ApiKeys).create(ids[0]!, termsOf("ci"), "hash")
        yield* makeEndpoint(ids[1]!)
        const { id } = yield* makeEndpoint(ids[1]!)
        yield* (yield* Destinations).remove(webhook, ids[1]!, id)
        yield* makeEndpoint(ids[3]!)
        const first = yield* orgs.list({ cursor: null, limit: 3 })
        expect(first.items.map((org) => [org.id, org.destinations])).toEqual([
          [ids[0], 0],
          [ids[1], 1],
          [ids[2], 0]
        ])
        const rest = yield* orgs.list({ cursor: first.nextCursor, limit: 3 })
        expect([rest.items.map((org) => org.id), rest.nextCursor]).toEqual([[ids[3]], null])
      })
    )

    test(
      "hold back what waits while they are suspended, stop what was handed out, and lose nothing",
      Effect.gen(function* () {
        const orgs = yield* Orgs
        const store = yield* EventStore
        const queue = yield* Queue
        const [org, other] = [newOrg(), newOrg()]
        const mine = yield* makeEndpoint(org)
        const yours = yield* makeEndpoint(other)
        const to = (orgId: OrgId, destination: typeof mine.id) => opened({ orgId, channel: "webhook", destination })
        const held = to(org, mine.id)
        yield* store.append([held.entry])
        const { batch, messages } = (yield* queue.claim(asWorker("w")))!
        yield* orgs.set(org, suspended)
        // Handed out before, but not started: the gate is shut.
        const start = next(held.after, { type: "StartAttempt", now: inMillis(0) })
        const { generation } = messages[0]!.terms
        const gated = { ...start.entry, fence: batch, gate: { lane: mine.id, generation } }
        expect((yield* store.append([gated]))[0]!.type).toBe("GateClosed")
        yield* queue.putBack(batch, [held.after.id])
        const late = yield* makeEndpoint(org)
        const steps = [to(org, mine.id), to(org, late.id), to(other, yours.id)]
        yield* store.append(steps.map(({ entry }) => entry))
        expect(yield* claimAll).toEqual([steps[2]!.after.id])
        // Other changes of a destination do not let it go.
        yield* (yield* Destinations).setPaused(webhook, org, mine.id, true)
        yield* (yield* Destinations).setPaused(webhook, org, mine.id, false)
        expect(yield* claimAll).toEqual([])
        yield* orgs.set(org, unset)
        expect((yield* claimAll).toSorted()).toEqual(
          [held, steps[0]!, steps[1]!].map(({ after }) => after.id as string).toSorted()
        )
      })
    )

    test(
      "that let go leave paused what is paused",
      Effect.gen(function* () {
        const orgs = yield* Orgs
        const org = newOrg()
        const { id } = yield* makeEndpoint(org)
        yield* (yield* Destinations).setPaused(webhook, org, id, true)
        yield* orgs.set(org, suspended)
        yield* orgs.set(org, unset)
        yield* (yield* EventStore).append([opened({ orgId: org, channel: "webhook", destination: id }).entry])
        expect(yield* claimAll).toEqual([])
      })
    )
  })
}
