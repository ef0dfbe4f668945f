import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import pg from "pg"
import { describe, expect } from "vitest"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { api, product, startProduct } from "../servers/product.ts"
import { receiver } from "../servers/receiver.ts"
import { PATIENCE_MS, pause } from "../servers/until.ts"

const KILLS = 20
const LEASE_MS = 1_000
/** So much waits at most: more than a worker holds, so that a kill always meets messages under way. */
const BACKLOG = 1_000
const org = "acme"

describe("a worker that is killed twenty times under load", () => {
  it.live(
    "loses nothing, leaves nothing stuck, and repeats only under the same webhook-id",
    () =>
      Effect.gen(function* () {
        const url = Redacted.value(yield* freshDatabase)
        // Answers slowly enough that a kill always meets requests under way.
        const far = yield* receiver(() => ({ status: 200, afterMs: 20 }))
        const server = yield* product(url, { POSTHASTE_ROLES: "api" })
        const call = api(server.url!, org)

        yield* Effect.promise(async () => {
          const endpoint = await call<{ id: string }>("POST", "/webhook-endpoints", { url: far.url })
          const accepted = new Set<string>()
          let killing = true
          const message = {
            channel: "webhook",
            to: endpoint.body.id,
            payloadJson: { n: 1 },
            retry: { strategy: "fixed", baseMs: 100, attemptsMax: 100 }
          }
          const load = (async () => {
            while (killing) {
              // A slow machine would be given more and more that is left to the survivor.
              if (accepted.size > far.received.length + BACKLOG) {
                await pause(20)
                continue
              }
              const { body } = await call<{ items: ReadonlyArray<{ status: number; message: { id: string } }> }>(
                "POST",
                "/outbound/messages/batch",
                { messages: Array.from({ length: 20 }, () => message) }
              )
              for (const item of body.items) if (item.status === 201) accepted.add(item.message.id)
              await pause(20)
            }
          })()

          const settings = { POSTHASTE_ROLES: "worker", POSTHASTE_LEASE_MS: String(LEASE_MS) }
          for (let kill = 1; kill <= KILLS; kill++) {
            const before = far.received.length
            const worker = await startProduct(url, settings)
            while (far.received.length < before + 50) await pause(5)
            await worker.kill()
          }
          killing = false
          await load

          const survivor = await startProduct(url, settings)
          const client = new pg.Client({ connectionString: url })
          await client.connect()
          const count = async (sql: string) => Number((await client.query(sql)).rows[0].count)
          const delivered = () =>
            count("select count(distinct stream_id) from posthaste.event where name = 'MessageDelivered@1'")
          const deadline = Date.now() + PATIENCE_MS
          while ((await delivered()) < accepted.size && Date.now() < deadline) {
            await pause(100)
          }
          const settled = await delivered()
          expect(await survivor.stop()).toBe(0)

          const ids = new Set(far.received.map(({ id }) => id))
          const abandoned = await count("select count(*) from posthaste.event where name = 'AttemptAbandoned@1'")
          console.log(
            `${KILLS} kills: ${accepted.size} accepted, ${ids.size} received, ${settled} settled, ` +
              `${far.received.length - ids.size} duplicates, ${abandoned} attempts abandoned`
          )
          expect([...accepted].filter((id) => !ids.has(id))).toEqual([])
          expect([...ids].filter((id) => !accepted.has(id))).toEqual([])
          expect(settled).toBe(accepted.size)
          // Every kill met work: otherwise this test would prove nothing.
          expect(abandoned).toBeGreaterThanOrEqual(KILLS)
          expect(await count("select count(*) from posthaste.claim")).toBe(0)
          expect(await count("select count(*) from posthaste.ready")).toBe(0)
          await client.end()
        })
      }),
    600_000
  )
})
