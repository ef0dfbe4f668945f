/** A request for a replay does not wait for its set: nor does one that comes at the same time under the same key. */
import { it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import pg from "pg"
import { describe, expect } from "vitest"
import * as NodeFingerprint from "../../../../src/adapters/node/NodeFingerprint.ts"
import * as PostgresPorts from "../../../../src/adapters/postgres/PostgresPorts.ts"
import { replayOnce } from "../../../../src/application/replays/replayDeadLetters.ts"
import { readReplay, requestReplay } from "../../../../src/application/replays/replays.ts"
import * as Channels from "../../../../src/setup/channels.ts"
import { ended, projected } from "../../../contracts/replays/deadLetterSamples.ts"
import { newOrg, now } from "../../../contracts/sample.ts"
import { refused } from "../../../contracts/written.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"

const encryptionKey = Redacted.make(new Uint8Array(32).fill(7))

/** Whoever writes an item waits until the lock is free, as if the set were huge. */
const holdItems = `create function wait() returns trigger language plpgsql as
    'begin perform pg_advisory_xact_lock_shared(1); return new; end';
  create trigger wait before insert on replay_item for each row execute function wait();
  select pg_advisory_lock(1)`

describe("requests for a replay whose set can't be written yet", () => {
  it.live("are answered all the same, all with one replay, which is for each dead letter once", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const ports = PostgresPorts.layer({ url, encryptionKey }).pipe(Layer.merge(Channels.unused))
      yield* Effect.gen(function* () {
        const holder = yield* Effect.acquireRelease(
          Effect.promise(async () => {
            const client = new pg.Client(Redacted.value(url))
            await client.connect()
            await client.query("set search_path = posthaste")
            return client
          }),
          (client) => Effect.promise(() => client.end())
        )
        const orgId = newOrg()
        const dead = yield* Effect.forEach([1, 2, 3], () => ended(refused(), now(), { orgId }))
        yield* projected(dead)
        yield* Effect.promise(() => holder.query(holdItems))
        const request = requestReplay(orgId, { filter: {} }, { reason: null, idempotencyKey: "k" })
        const asked = yield* Effect.all([request, request, request], { concurrency: "unbounded" })
        expect(new Set(asked.map(({ id }) => id)).size).toBe(1)
        expect(asked.map(({ status }) => status)).toEqual(["RUNNING", "RUNNING", "RUNNING"])
        yield* Effect.promise(() => holder.query("select pg_advisory_unlock(1)"))
        const { id } = asked[0]!
        const read = readReplay(orgId, id)
        while ((yield* read).status !== "COMPLETED") yield* Effect.delay(replayOnce(), "20 millis")
        expect(yield* read).toMatchObject({ status: "COMPLETED", matched: 3, replayed: 3, skipped: 0 })
      }).pipe(Effect.scoped, Effect.provide(Layer.merge(ports, NodeFingerprint.layer)))
    })
  )
})
