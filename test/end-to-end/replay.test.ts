/**
 * What is sent again in great numbers, over kills of the process that does it: the dead letters of a filter, of an endpoint
 * that recovers, and the events that an endpoint missed.
 */
import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import pg from "pg"
import { describe, expect } from "vitest"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { api, type Product, startProduct } from "../servers/product.ts"
import { type Answer, receiver } from "../servers/receiver.ts"
import { PATIENCE_MS } from "../servers/until.ts"

/** How many in all; `POSTHASTE_REPLAY_SIZE=50000` runs each at full size, with more kills. */
const asked = process.env["POSTHASTE_REPLAY_SIZE"]
const KILLS = asked === undefined ? 1 : 5
const AT_ONCE = 1_000
/** Far below what is possible, so that a slow machine does not fail it. */
const PER_SECOND = 200
const org = "acme"
const settings = { POSTHASTE_LEASE_MS: "2000" }
const since = "2026-01-01T00:00:00Z"

interface Replay {
  readonly id: string
  readonly status: string
  readonly searching: boolean
  readonly matched: number
  readonly replayed: number
  readonly skipped: number
}

type Call = ReturnType<typeof api>

/** What is there to be sent again, and how that is asked for. */
interface Way {
  readonly what: string
  readonly size: number
  /** Whether the receiver refuses what reaches it before the replay. */
  readonly refusing: boolean
  /** Makes it, and answers the path and the body of the request once there are so many. */
  readonly prepare: (call: Call, url: string, size: number) => Promise<{ path: string; body: object }>
  /** How far it is, as SQL. */
  readonly replayed: string
}

const until = async (what: string, patienceMs: number, done: () => Promise<boolean>, everyMs: number) => {
  const deadline = Date.now() + patienceMs
  while (!(await done())) {
    if (Date.now() > deadline) throw new Error(`waited in vain until ${what}`)
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
}

const patienceFor = (size: number) => PATIENCE_MS + (size / PER_SECOND) * 1_000

const inBatches = async (size: number, send: (count: number) => Promise<{ readonly status: number }>) => {
  for (let left = size; left > 0; left -= AT_ONCE) expect((await send(Math.min(left, AT_ONCE))).status).toBe(200)
}

const endpointAt = async (call: Call, url: string) =>
  (await call<{ id: string }>("POST", "/webhook-endpoints", { url })).body.id

const deadLettersAt = async (call: Call, url: string, size: number) => {
  const to = await endpointAt(call, url)
  const message = { channel: "webhook", to, payloadJson: { n: 1 } }
  await inBatches(size, (count) =>
    call("POST", "/outbound/messages/batch", { messages: Array.from({ length: count }, () => message) })
  )
  const preview = { filter: { to }, preview: true }
  const dead = async () => (await call<{ matched: number }>("POST", "/dead-letters/replay", preview)).body.matched
  await until("all are dead", patienceFor(size), async () => (await dead()) === size, 200)
  return to
}

const replayedMessages = "select count(*) from posthaste.event where name like 'MessageReplayed@%'"

const ways: ReadonlyArray<Way> = [
  {
    what: "a replay of dead letters",
    size: 1_500,
    refusing: true,
    prepare: async (call, url, size) => {
      const to = await deadLettersAt(call, url, size)
      return { path: "/dead-letters/replay", body: { filter: { to, errorCode: "http_400" } } }
    },
    replayed: replayedMessages
  },
  {
    what: "the recovery of an endpoint",
    size: 600,
    refusing: true,
    prepare: async (call, url, size) => {
      const to = await deadLettersAt(call, url, size)
      return { path: `/webhook-endpoints/${to}/recover`, body: { since, statuses: ["FAILED"] } }
    },
    replayed: replayedMessages
  },
  {
    what: "a replay of the events that an endpoint missed",
    size: 600,
    refusing: false,
    prepare: async (call, url, size) => {
      const event = { eventType: "order.paid", data: { n: 1 } }
      await inBatches(size, (count) =>
        call("POST", "/events/batch", { events: Array.from({ length: count }, () => event) })
      )
      return { path: `/webhook-endpoints/${await endpointAt(call, url)}/replay-missing`, body: { since } }
    },
    replayed: "select count(*) from posthaste.event where name like 'MessageQueued@%'"
  }
]

const begun = (url: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      let now: Product = await startProduct(url, settings)
      return {
        call: () => api(now.url!, org),
        killed: async () => {
          await now.kill()
          now = await startProduct(url, settings)
        },
        end: () => now.kill()
      }
    }),
    ({ end }) => Effect.promise(end)
  )

for (const { what, size: few, refusing, prepare, replayed: howFar } of ways) {
  const size = asked === undefined ? few : Number(asked)
  // At their small sizes they mostly wait, for leases and for processes: they wait together.
  const describeIt = asked === undefined ? describe.concurrent : describe
  describeIt(`${what}, ${size} in all, whose process is killed`, () => {
    it.live(
      "sends each exactly once more, however often it was asked for",
      () =>
        Effect.gen(function* () {
          const url = Redacted.value(yield* freshDatabase)
          let answer: Answer = { status: refusing ? 400 : 200 }
          const far = yield* receiver(() => answer)
          const product = yield* begun(url)
          const client = new pg.Client({ connectionString: url })
          yield* Effect.acquireRelease(
            Effect.promise(() => client.connect()),
            () => Effect.promise(() => client.end())
          )
          const count = async (sql: string) => Number((await client.query(sql)).rows[0].count)
          const replayed = () => count(howFar)
          const patience = patienceFor(size)

          yield* Effect.promise(async () => {
            const { path, body } = await prepare(product.call(), far.url, size)
            answer = { status: 200 }
            const request = { ...body, reason: "the endpoint is back", idempotencyKey: "once" }
            const ask = () => product.call()<Replay>("POST", path, request)
            const began = performance.now()
            const requests = await Promise.all([ask(), ask(), ask()])
            console.log(`${what}: answered after ${Math.round(performance.now() - began)} ms`)
            expect(requests.map(({ status }) => status)).toEqual([202, 202, 202])
            expect(new Set(requests.map(({ body }) => body.id)).size).toBe(1)
            const { id, matched, searching } = requests[0]!.body
            expect(searching ? size : matched).toBe(size)

            for (let kill = 1; kill <= KILLS; kill++) {
              await until(
                "it is far enough",
                patience,
                async () => (await replayed()) >= (size * kill) / (KILLS + 1),
                10
              )
              await product.killed()
              const atKill = await replayed()
              console.log(`${what}: killed, and ${atKill} of ${size} are replayed when it is back`)
            }
            const again = await ask()
            expect([again.status, again.body.id]).toEqual([202, id])
            const progress = async () => (await product.call()<Replay>("GET", `/replays/${id}`)).body
            await until("the replay is over", patience, async () => (await progress()).status === "COMPLETED", 100)
            expect(await progress()).toMatchObject({ searching: false, matched: size, replayed: size, skipped: 0 })
            const delivered = () =>
              count("select count(distinct stream_id) from posthaste.event where name = 'MessageDelivered@1'")
            await until("all are delivered", patience, async () => (await delivered()) === size, 200)
            expect(await replayed()).toBe(size)
            const streams = howFar.replace("count(*)", "count(distinct stream_id)")
            expect(await count(streams)).toBe(size)
            expect(await count("select count(*) from posthaste.replay")).toBe(1)
            expect(await count("select count(*) from posthaste.replay_item")).toBe(0)
            const left = () => product.call()<{ items: ReadonlyArray<unknown> }>("GET", "/dead-letters")
            await until("no dead letter is left", patience, async () => (await left()).body.items.length === 0, 200)
            // Every message reached its receiver under its own id: refused once where it was, taken at least once.
            expect(new Set(far.received.map(({ id }) => id)).size).toBe(size)
          })
        }),
      6 * patienceFor(size)
    )
  })
}
