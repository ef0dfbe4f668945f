/**
 * A removed destination whose org keeps many messages from before the removal: they are looked through in stretches, because whom the
 * messages of some channels name says nothing about the destination.
 */
import { it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { describe, expect } from "vitest"
import * as PostgresPorts from "../../../../src/adapters/postgres/PostgresPorts.ts"
import { Destinations } from "../../../../src/application/ports/Destinations.ts"
import { Projections } from "../../../../src/application/ports/Projections.ts"
import * as UnusedChannels from "../../../../src/setup/channels.ts"
import { makeAccount, makeEndpoint, webhook, whatsapp } from "../../../contracts/destinations/samples.ts"
import { sweepDestinations } from "../../../contracts/retention/destinationLivesContract.ts"
import { inMillis, newOrg } from "../../../contracts/sample.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"
import { session } from "../../../servers/session.ts"

const later = inMillis(3_600_000)

const store = Effect.gen(function* () {
  const url = yield* freshDatabase
  const encryptionKey = Redacted.make(new Uint8Array(32).fill(7))
  const ports = yield* Layer.build(Layer.merge(PostgresPorts.layer({ url, encryptionKey }), UnusedChannels.unused))
  const client = yield* session(url)
  const query = (sql: string) => Effect.promise(async () => (await client.query<{ id: string }>(sql)).rows)
  /** Rows of the list alone: the others are of messages that are long in no queue. `nth` names whom. */
  const list = (orgId: string, count: number, nth: number, destination: string, generation = 1) =>
    query(`insert into message_view (generation, id, org_id, version, status, channel, recipient, created_at, ended_at, view)
      select ${generation}, md5('${orgId}' || n)::uuid, '${orgId}', 4, 'FAILED', 'whatsapp', '+' || n,
        now() - interval '2 days' + n * interval '1 second', now(),
        json_build_object('destination', case when n = ${nth} then '${destination}' else 'another' end)
      from generate_series(1, ${count}) n`)
  return { ports, query, list }
})

describe("a removed destination of an org with thousands of messages from before", () => {
  it.live("is forgotten once all of them were looked through and none names it", () =>
    Effect.gen(function* () {
      const { ports, query, list } = yield* store
      yield* Effect.gen(function* () {
        const destinations = yield* Destinations
        const orgId = newOrg()
        const [gone, named] = [yield* makeAccount(orgId), yield* makeAccount(orgId)]
        const other = yield* makeEndpoint(newOrg())
        yield* list(orgId, 2_500, 2_200, named.id)
        for (const { id } of [gone, named]) yield* destinations.remove(whatsapp, orgId, id)
        yield* destinations.remove(webhook, other.orgId, other.id)
        expect(yield* sweepDestinations(later)).toBe(2)
        expect([...(yield* destinations.among([gone.id, named.id, other.id])).keys()]).toEqual([named.id])

        // What names it is looked at again with each pass, and what was before it never again.
        expect(yield* sweepDestinations(later)).toBe(0)
        expect(yield* query("select destination as id from looked_through")).toEqual([{ id: named.id }])
        yield* query(`delete from message_view where id = md5('${orgId}2200')::uuid`)
        expect(yield* sweepDestinations(later)).toBe(1)
        expect(yield* query("select destination as id from looked_through")).toEqual([])
      }).pipe(Effect.provide(ports))
    })
  )

  it.live("is looked through again from the beginning in lists that were built anew", () =>
    Effect.gen(function* () {
      const { ports, query, list } = yield* store
      yield* Effect.gen(function* () {
        const orgId = newOrg()
        const named = yield* makeAccount(orgId)
        yield* list(orgId, 1_500, 1_400, named.id)
        yield* (yield* Destinations).remove(whatsapp, orgId, named.id)
        expect(yield* sweepDestinations(later)).toBe(0)
        yield* query("update projection set generation = 2 where name = 'messages'")
        // A message that the list owed, of long before.
        yield* list(orgId, 1_500, 3, named.id, 2)
        expect(yield* sweepDestinations(later)).toBe(0)
        expect((yield* (yield* Projections).runs).find(({ name }) => name === "messages")).toMatchObject({
          generation: 2
        })
        yield* query(`delete from message_view where generation = 2 and id = md5('${orgId}3')::uuid`)
        expect(yield* sweepDestinations(later)).toBe(1)
      }).pipe(Effect.provide(ports))
    })
  )
})
