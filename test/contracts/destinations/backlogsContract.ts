/** What every Backlogs promises, together with the queue it counts. `layer` gives an empty store to each test. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { Backlogs } from "../../../src/application/ports/Backlogs.ts"
import { Destinations } from "../../../src/application/ports/Destinations.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import type { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import type { DestinationId, OrgId } from "../../../src/domain/ids.ts"
import { claimAll } from "../deliver/claims.ts"
import { inMillis, newOrg, opened, type StorePorts } from "../sample.ts"
import { makeEndpoint, webhook } from "./samples.ts"

const accept = Effect.fnUntraced(function* (
  orgId: OrgId,
  destination: DestinationId,
  dueIn: number,
  orderingKey: string | null = null
) {
  const { entry, after } = opened({ orgId, destination, dueAt: inMillis(dueIn), orderingKey })
  yield* (yield* EventStore).append([entry])
  return after
})

const all = { cursor: null, limit: 50 }

export const backlogsContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer), 20_000)

  describe(`${name} backlogs`, () => {
    test(
      "count what waits, in lanes and in lines, and since when the first is due",
      Effect.gen(function* () {
        const orgId = newOrg()
        const { id } = yield* makeEndpoint(orgId)
        const { of } = yield* Backlogs
        expect(yield* of(id)).toEqual({ waiting: 0, oldestDueAt: null, inFlight: 0 })
        const first = yield* accept(orgId, id, -5_000)
        yield* accept(orgId, id, -1_000, "a")
        yield* accept(orgId, id, -1_000, "a")
        yield* accept(orgId, id, 60_000)
        expect(yield* of(id)).toMatchObject({ waiting: 4, oldestDueAt: first.message.progress.dueAt, inFlight: 0 })
      })
    )

    test(
      "count what workers hold apart from what waits",
      Effect.gen(function* () {
        const orgId = newOrg()
        const { id } = yield* makeEndpoint(orgId)
        yield* accept(orgId, id, -1_000)
        yield* accept(orgId, id, 60_000)
        yield* claimAll
        expect(yield* (yield* Backlogs).of(id)).toMatchObject({ waiting: 1, inFlight: 1 })
      })
    )

    test(
      "list the destinations of all orgs in one order",
      Effect.gen(function* () {
        const [one, other] = [newOrg(), newOrg()]
        const [idle, few, many] = [
          (yield* makeEndpoint(one)).id,
          (yield* makeEndpoint(other)).id,
          (yield* makeEndpoint(one)).id
        ]
        yield* accept(other, few, -1_000)
        yield* accept(one, many, -2_000)
        yield* accept(one, many, -1_000)
        const { list } = yield* Backlogs
        const ids = (sort: "id" | "waiting") =>
          Effect.map(list(null, {}, sort, all), ({ items }) => items.map(({ destination }) => destination))
        expect(yield* ids("waiting")).toEqual([many, few, idle])
        expect(yield* ids("id")).toEqual([idle, few, many].toSorted())
        const { items, nextCursor } = yield* list(null, {}, "waiting", { cursor: null, limit: 1 })
        const next = yield* list(null, {}, "waiting", { cursor: nextCursor, limit: 5 })
        expect([...items, ...next.items].map(({ destination }) => destination)).toEqual([many, few, idle])
      })
    )

    test(
      "list an org's destinations by what waits, by age or by id, page by page",
      Effect.gen(function* () {
        const orgId = newOrg()
        const ids: Array<DestinationId> = []
        for (let n = 0; n < 4; n++) ids.push((yield* makeEndpoint(orgId)).id)
        yield* makeEndpoint(newOrg())
        const [idle, young, old, many] = ids as [DestinationId, DestinationId, DestinationId, DestinationId]
        yield* accept(orgId, young, -1_000)
        yield* accept(orgId, old, -9_000)
        yield* accept(orgId, many, -2_000)
        yield* accept(orgId, many, -1_000)
        const { list } = yield* Backlogs
        const listed = Effect.fnUntraced(function* (sort: "id" | "waiting" | "oldest") {
          const found: Array<DestinationId> = []
          let cursor: string | null = null
          do {
            const page: { items: ReadonlyArray<{ destination: DestinationId }>; nextCursor: string | null } =
              yield* list(orgId, {}, sort, { cursor, limit: 1 })
            found.push(...page.items.map(({ destination }) => destination))
            cursor = page.nextCursor
          } while (cursor !== null)
          return found
        })
        expect(yield* listed("id")).toEqual(ids.toSorted())
        expect(yield* listed("waiting")).toEqual([many, ...[young, old].toSorted(), idle])
        expect(yield* listed("oldest")).toEqual([old, many, young, idle])
      })
    )

    test(
      "list only those that were asked for, and no removed one",
      Effect.gen(function* () {
        const orgId = newOrg()
        const destinations = yield* Destinations
        const [a, b, c] = [yield* makeEndpoint(orgId), yield* makeEndpoint(orgId), yield* makeEndpoint(orgId)]
        yield* destinations.setPaused(webhook, orgId, a.id, true)
        yield* destinations.remove(webhook, orgId, c.id)
        yield* accept(orgId, b.id, -1_000)
        const { list } = yield* Backlogs
        const idsOf = (filter: Parameters<typeof list>[1]) =>
          Effect.map(list(orgId, filter, "id", all), ({ items }) => items.map(({ destination }) => destination))
        expect(yield* idsOf({})).toEqual([a.id, b.id].toSorted())
        expect(yield* idsOf({ paused: true })).toEqual([a.id])
        expect(yield* idsOf({ waiting: true })).toEqual([b.id])
        expect(yield* idsOf({ waiting: false })).toEqual([a.id])
        expect(yield* idsOf({ circuit: "CLOSED" })).toHaveLength(2)
        expect(yield* idsOf({ circuit: "OPEN" })).toEqual([])
        expect(yield* idsOf({ channel: "http" })).toEqual([])
      })
    )

    test(
      "say how many are due before a message, and who stands at the head of its line",
      Effect.gen(function* () {
        const orgId = newOrg()
        const { id } = yield* makeEndpoint(orgId)
        const head = yield* accept(orgId, id, -3_000, "a")
        const behind = yield* accept(orgId, id, -2_000, "a")
        const last = yield* accept(orgId, id, -1_000)
        const { turn } = yield* Backlogs
        const turnOf = (sample: typeof head) => turn(id, sample.id, sample.message.progress.dueAt!)
        expect(yield* turnOf(head)).toEqual({ head: null, ahead: 0 })
        expect((yield* turnOf(behind)).head).toBe(head.id)
        expect(yield* turnOf(last)).toEqual({ head: null, ahead: 1 })
      })
    )
  })
}
