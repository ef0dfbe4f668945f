import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import pg from "pg"
import { describe, expect } from "vitest"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { api, product, startProduct } from "../servers/product.ts"
import { receiver } from "../servers/receiver.ts"

/** How many dead letters; `POSTHASTE_REPLAY_SIZE=100000` runs it at full size. */
const SIZE = Number(process.env["POSTHASTE_REPLAY_SIZE"] ?? 3_000)
const AT_ONCE = 1_000
/** Far below what is possible, so that a slow machine does not fail it. */
const PER_SECOND = 200
const PATIENCE_MS = 60_000 + (SIZE / PER_SECOND) * 1_000
const org = "acme"
const settings = { POSTHASTE_LEASE_MS: "2000" }

interface Replay {
  readonly id: string
  readonly status: string
  readonly matched: number
  readonly replayed: number
  readonly skipped: number
}

const until = async (what: string, done: () => Promise<boolean>, everyMs: number) => {
  const deadline = Date.now() + PATIENCE_MS
  while (!(await done())) {
    if (Date.now() > deadline) throw new Error(`waited in vain until ${what}`)
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
}

describe(`a replay of ${SIZE} dead letters whose process is killed half-way`, () => {
  it.live(
    "gives each exactly one new epoch and delivers it, however often it was asked for",
    () =>
      Effect.gen(function* () {
        const url = Redacted.value(yield* freshDatabase)
        let healed = false
        const far = yield* receiver(() => ({ status: healed ? 200 : 400 }))
        const first = yield* Effect.promise(() => startProduct(url, settings))
        yield* Effect.addFinalizer(() =>
          Effect.promise(async () => (first.process.exitCode ?? first.process.signalCode) === null && first.kill())
        )
        const call = api(first.url!, org)
        const client = new pg.Client({ connectionString: url })
        yield* Effect.acquireRelease(
          Effect.promise(() => client.connect()),
          () => Effect.promise(() => client.end())
        )
        const count = async (sql: string) => Number((await client.query(sql)).rows[0].count)
        const replayed = () => count("select count(*) from posthaste.event where name like 'MessageReplayed@%'")

        const asked = yield* Effect.promise(async () => {
          const endpoint = await call<{ id: string }>("POST", "/webhook-endpoints", { url: far.url })
          const message = { channel: "webhook", to: endpoint.body.id, payloadJson: { n: 1 } }
          for (let left = SIZE; left > 0; left -= AT_ONCE) {
            const messages = Array.from({ length: Math.min(left, AT_ONCE) }, () => message)
            expect((await call("POST", "/outbound/messages/batch", { messages })).status).toBe(200)
          }
          const filter = { to: endpoint.body.id, errorCode: "http_400" }
          const preview = () => call<{ matched: number }>("POST", "/dead-letters/replay", { filter, preview: true })
          await until("all are dead", async () => (await preview()).body.matched === SIZE, 200)
          healed = true
          const request = { filter, reason: "the endpoint is back", idempotencyKey: "once" }
          const requests = await Promise.all([1, 2, 3].map(() => call<Replay>("POST", "/dead-letters/replay", request)))
          expect(requests.map(({ status }) => status)).toEqual([202, 202, 202])
          expect(new Set(requests.map(({ body }) => body.id)).size).toBe(1)
          expect(requests[0]!.body.matched).toBe(SIZE)
          return { id: requests[0]!.body.id, request }
        })

        yield* Effect.promise(async () => {
          await until("half is replayed", async () => (await replayed()) >= SIZE / 2, 10)
          await first.kill()
          const atKill = await replayed()
          // Otherwise this test would prove nothing.
          expect(atKill).toBeLessThan(SIZE)
          console.log(`killed with ${atKill} of ${SIZE} replayed`)
        })

        const second = yield* product(url, settings)
        yield* Effect.promise(async () => {
          const call = api(second.url!, org)
          const again = await call<Replay>("POST", "/dead-letters/replay", asked.request)
          expect([again.status, again.body.id]).toEqual([202, asked.id])
          const progress = async () => (await call<Replay>("GET", `/replays/${asked.id}`)).body
          await until("the replay is over", async () => (await progress()).status === "COMPLETED", 100)
          expect(await progress()).toMatchObject({ matched: SIZE, replayed: SIZE, skipped: 0 })
          const delivered = () =>
            count("select count(distinct stream_id) from posthaste.event where name = 'MessageDelivered@1'")
          await until("all are delivered", async () => (await delivered()) === SIZE, 200)
          expect(await replayed()).toBe(SIZE)
          expect(
            await count(
              "select count(distinct stream_id) from posthaste.event where name like 'MessageReplayed@%' and data ->> 'epoch' = '2'"
            )
          ).toBe(SIZE)
          expect(await count("select count(*) from posthaste.replay")).toBe(1)
          expect(await count("select count(*) from posthaste.replay_item")).toBe(0)
          await until(
            "no dead letter is left to see",
            async () => (await call<{ items: ReadonlyArray<unknown> }>("GET", "/dead-letters")).body.items.length === 0,
            200
          )
          // Every message reached its receiver under its own id: refused once, taken at least once.
          expect(new Set(far.received.map(({ id }) => id)).size).toBe(SIZE)
        })
      }),
    4 * PATIENCE_MS
  )
})
