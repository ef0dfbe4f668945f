/** The set of a replay is found step by step: no request waits for it, and no step counts that began before another one ended the search. */
import { it } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted } from "effect"
import type pg from "pg"
import { describe, expect } from "vitest"
import { Replays } from "../../../../src/application/ports/Replays.ts"
import { replayOnce } from "../../../../src/application/replays/replayDeadLetters.ts"
import { readReplay, requestReplay } from "../../../../src/application/replays/replays.ts"
import type { OrgId, ReplayId } from "../../../../src/domain/ids.ts"
import * as Channels from "../../../../src/setup/channels.ts"
import * as PostgresPorts from "../../../../src/setup/postgresPorts.ts"
import { ended, projected } from "../../../contracts/replays/deadLetterSamples.ts"
import { listed } from "../../../contracts/replays/openings.ts"
import { newOrg, now } from "../../../contracts/sample.ts"
import { refused } from "../../../contracts/written.ts"
import * as Fingerprints from "../../../model/Fingerprints.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"
import { session } from "../../../servers/session.ts"

const encryptionKey = Redacted.make(new Uint8Array(32).fill(7))

/** Whoever writes an item waits until the lock is free, as if the set were huge. */
const holdItems = `create function wait() returns trigger language plpgsql as
    'begin perform pg_advisory_xact_lock_shared(1); return new; end';
  create trigger wait before insert on replay_item for each row execute function wait();
  select pg_advisory_lock(1)`

/** In a database of its own, with a connection of the test's own. */
const withHolder = <A, E, R>(test: (holder: pg.Client) => Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const url = yield* freshDatabase
    const ports = PostgresPorts.layer({ url, encryptionKey }).pipe(Layer.merge(Channels.unused))
    return yield* Effect.flatMap(session(url), test).pipe(
      Effect.scoped,
      Effect.provide(Layer.merge(ports, Fingerprints.layer))
    )
  })

const threeDead = (orgId: OrgId) =>
  Effect.gen(function* () {
    const dead = yield* Effect.forEach([1, 2, 3], () => ended(refused(), now(), { orgId }))
    yield* projected(dead)
  })

const completed = (orgId: OrgId, id: ReplayId) =>
  Effect.gen(function* () {
    const read = readReplay(orgId, id)
    while ((yield* read).status !== "COMPLETED") yield* Effect.delay(replayOnce(), "20 millis")
    return yield* read
  })

describe("requests for a replay whose set can't be written yet", () => {
  it.live("are answered all the same, all with one replay, which is for each dead letter once", () =>
    withHolder((holder) =>
      Effect.gen(function* () {
        const orgId = newOrg()
        yield* threeDead(orgId)
        yield* Effect.promise(() => holder.query(holdItems))
        const request = requestReplay(orgId, { filter: {} }, { reason: null, idempotencyKey: "k" })
        const asked = yield* Effect.all([request, request, request], { concurrency: "unbounded" })
        expect(new Set(asked.map(({ id }) => id)).size).toBe(1)
        expect(asked.map(({ status }) => status)).toEqual(["RUNNING", "RUNNING", "RUNNING"])
        yield* Effect.promise(() => holder.query("select pg_advisory_unlock(1)"))
        expect(yield* completed(orgId, asked[0]!.id)).toMatchObject({ matched: 3, replayed: 3, skipped: 0 })
      })
    )
  )
})

describe("a step of a search", () => {
  it.live("takes nothing when another one ended the search while it looked", () =>
    withHolder((holder) =>
      Effect.gen(function* () {
        const replays = yield* Replays
        const orgId = newOrg()
        yield* threeDead(orgId)
        const { job } = yield* replays.open(listed(orgId, 0, { selection: { filter: {} }, set: { filter: {} } }))
        const pid = yield* Effect.promise(async () => {
          await holder.query("begin")
          await holder.query("update replay_search set searching = false where replay_id = $1", [job.id])
          const { rows } = await holder.query("select pg_backend_pid() as pid")
          return rows[0].pid
        })
        const step = yield* Effect.forkChild(replays.search(job, 2))
        yield* Effect.promise(async () => {
          const waits = "select from pg_stat_activity where $1::int = any (pg_blocking_pids(pid))"
          await expect.poll(async () => (await holder.query(waits, [pid])).rowCount).toBe(1)
          await holder.query("commit")
        })
        expect(yield* Fiber.join(step)).toMatchObject({ matched: 0, searching: false })
        expect(yield* replays.items(job.id, 0, 100)).toEqual([])
      })
    )
  )
})
