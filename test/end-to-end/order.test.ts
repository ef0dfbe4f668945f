import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import pg from "pg"
import { describe, expect } from "vitest"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { api, product, startProduct } from "../servers/product.ts"
import { receiver } from "../servers/receiver.ts"
import { PATIENCE_MS, until } from "../servers/until.ts"

const MESSAGES = 5_000
const KEYS = 50
const WORKERS = 3

/** Of what was received under one key: the numbers in the order they first succeeded. */
const firstSuccesses = (successes: ReadonlyArray<{ key: string; n: number }>) => {
  const order = new Map<string, Array<number>>()
  for (const { key, n } of successes) {
    const seen = order.get(key) ?? []
    if (!seen.includes(n)) seen.push(n)
    order.set(key, seen)
  }
  return order
}

describe("messages with an ordering key", () => {
  it.live(
    "arrive in the order they were accepted, while attempts fail and a worker is killed",
    () =>
      Effect.gen(function* () {
        const url = Redacted.value(yield* freshDatabase)
        const successes: Array<{ key: string; n: number }> = []
        let failures = 0
        let afterMs = 2
        const far = yield* receiver(({ body }) => {
          if (Math.random() < 0.2) {
            failures += 1
            return { status: 503, afterMs }
          }
          successes.push(JSON.parse(body))
          return { status: 200, afterMs }
        })
        const call = api((yield* product(url, { POSTHASTE_ROLES: "api" })).url!, "acme")

        yield* Effect.promise(async () => {
          const endpoint = await call<{ id: string }>("POST", "/webhook-endpoints", { url: far.url, maxInFlight: 100 })
          const messages = Array.from({ length: MESSAGES }, (_, n) => ({
            channel: "webhook",
            to: endpoint.body.id,
            orderingKey: `key ${n % KEYS}`,
            payloadJson: { key: `key ${n % KEYS}`, n },
            retry: { strategy: "fixed", baseMs: 5, jitter: [1, 1], attemptsMax: 100 }
          }))
          const settings = {
            POSTHASTE_ROLES: "worker",
            POSTHASTE_LEASE_MS: "1000",
            // One attempt in five fails: that is not what this test is about.
            POSTHASTE_CIRCUIT_FAILURES: "1000000"
          }
          const workers = await Promise.all(Array.from({ length: WORKERS }, () => startProduct(url, settings)))
          for (let from = 0; from < MESSAGES; from += 1_000) {
            const answer = await call<{ items: ReadonlyArray<{ status: number }> }>(
              "POST",
              "/outbound/messages/batch",
              {
                messages: messages.slice(from, from + 1_000)
              }
            )
            expect(answer.body.items.every(({ status }) => status === 201)).toBe(true)
          }
          while (successes.length < MESSAGES / 3) await new Promise((resolve) => setTimeout(resolve, 5))
          const client = new pg.Client({ connectionString: url })
          // A database that goes away at the end is no failure of this test.
          client.on("error", () => {})
          await client.connect()
          const count = async (sql: string) => Number((await client.query(sql)).rows[0].count)
          // Answers come so late now that whoever holds messages has requests under way; it is the one to go.
          afterMs = 300
          await new Promise((resolve) => setTimeout(resolve, 150))
          const { rows } = await client.query(
            "select split_part(worker, '-', -2) as process from posthaste.claim order by cardinality(messages) desc limit 1"
          )
          const victim = workers.find(({ process }) => String(process.pid) === rows[0].process)!
          const before = successes.length
          await victim.kill()
          afterMs = 2

          const delivered = () => count("select count(*) from posthaste.event where name = 'MessageDelivered@1'")
          const deadline = Date.now() + 2 * PATIENCE_MS
          while ((await delivered()) < MESSAGES && Date.now() < deadline) {
            await new Promise((resolve) => setTimeout(resolve, 50))
          }
          const abandoned = await count("select count(*) from posthaste.event where name = 'AttemptAbandoned@1'")
          console.log(
            `${MESSAGES} messages, ${KEYS} keys: ${await delivered()} delivered, ${failures} attempts failed, ` +
              `${abandoned} abandoned by the worker killed after ${before}, ${successes.length} received well`
          )
          expect(await delivered()).toBe(MESSAGES)
          expect(abandoned).toBeGreaterThan(0)
          const order = firstSuccesses(successes)
          expect(order.size).toBe(KEYS)
          for (const [key, seen] of order) {
            expect(seen, key).toEqual(
              Array.from({ length: MESSAGES / KEYS }, (_, i) => Number(key.slice(4)) + i * KEYS)
            )
          }
          await until("empty lines", async () => (await count("select count(*) from posthaste.line_entry")) === 0)
          expect(await count("select count(*) from posthaste.ready")).toBe(0)
          for (const worker of workers) if (worker !== victim) expect(await worker.stop()).toBe(0)
          await client.end()
        })
      }),
    600_000
  )
})
