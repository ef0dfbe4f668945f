/**
 * What operators see of running processes: counters that agree with the facts, also when a worker is killed; as many
 * series for many customers as for one; health in every process; an outage as two lines; and no secret anywhere.
 *
 * POSTHASTE_METRICS_SIZE sets the number of messages, POSTHASTE_METRICS_ENDPOINTS the number of endpoints.
 */

import type { AddressInfo } from "node:net"
import { connect, createServer, type Socket } from "node:net"
import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import pg from "pg"
import { describe, expect } from "vitest"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { api, operatorKey, type Product, product } from "../servers/product.ts"
import { type Sample, scrape, sumOf } from "../servers/prometheusText.ts"
import { receiver } from "../servers/receiver.ts"

const SIZE = Number(process.env["POSTHASTE_METRICS_SIZE"] ?? 600)
const ENDPOINTS = Number(process.env["POSTHASTE_METRICS_ENDPOINTS"] ?? 200)
const AT_ONCE = 100

const metricsUrl = ({ printed }: Product): string =>
  /"metrics and health are served","url":"(http:[^"]+)"/.exec(printed())![1]!

const scraped = { POSTHASTE_METRICS_PORT: "0", POSTHASTE_LOG_FORMAT: "json" }

const sql = async <Row extends object>(url: string, text: string): Promise<ReadonlyArray<Row>> => {
  const client = new pg.Client({ connectionString: url, options: "-c search_path=posthaste" })
  await client.connect()
  try {
    return (await client.query<Row>(text)).rows
  } finally {
    await client.end()
  }
}

/** How many facts of each name there are. */
const factsOf = async (url: string): Promise<Readonly<Record<string, number>>> =>
  Object.fromEntries(
    (await sql<{ name: string; count: string }>(url, "select name, count(*) from event group by name")).map(
      ({ name, count }) => [name.split("@")[0]!, Number(count)]
    )
  )

const endedOf = ({ MessageDelivered = 0, MessageFailed = 0, MessageDeadLettered = 0 }: Record<string, number>) =>
  MessageDelivered + MessageFailed + MessageDeadLettered

describe("counters", () => {
  it.live(
    "equal the facts over all processes, and a killed worker's are never too high",
    () =>
      Effect.gen(function* () {
        const url = Redacted.value(yield* freshDatabase)
        // By the number in the body: taken, failing once, refused for good, failing for ever.
        const far = yield* receiver(({ body }, nth) => {
          const kind = (JSON.parse(body) as { n: number }).n % 10
          const status = kind === 0 ? 418 : kind === 1 ? 503 : kind < 4 && nth === 1 ? 500 : 200
          return { status, afterMs: 20 }
        })
        const front = yield* product(url, { ...scraped, POSTHASTE_ROLES: "api,projector" })
        const settings = {
          ...scraped,
          POSTHASTE_ROLES: "worker",
          POSTHASTE_LEASE_MS: "2000",
          POSTHASTE_CONCURRENCY: "16"
        }
        const steady = yield* product(url, { ...settings, POSTHASTE_CIRCUIT_FAILURES: "1000000" })
        const doomed = yield* product(url, { ...settings, POSTHASTE_CIRCUIT_FAILURES: "1000000" })
        yield* Effect.promise(async () => {
          const call = api(front.url!, "acme")
          const retry = { strategy: "fixed", baseMs: 50, attemptsMax: 2 }
          const { id } = (await call<{ id: string }>("POST", "/webhook-endpoints", { url: far.url })).body
          const send = async (from: number) => {
            const messages = Array.from({ length: AT_ONCE }, (_, i) => ({
              ...{ channel: "webhook", to: id, retry, payloadJson: { n: from + i } }
            }))
            const { status } = await call("POST", "/outbound/messages/batch", { messages })
            expect(status).toBe(200)
          }
          await send(0)
          await expect.poll(() => far.received.length, { timeout: 120_000 }).toBeGreaterThan(20)
          const last = await scrape(metricsUrl(doomed))
          await doomed.kill()
          for (let sent = AT_ONCE; sent < SIZE; sent += AT_ONCE) await send(sent)
          expect((await call("POST", "/outbound/messages", { channel: "webhook" })).status).toBe(400)

          await expect
            .poll(async () => endedOf(await factsOf(url)), { timeout: 120_000 + SIZE * 20, interval: 300 })
            .toBe(SIZE)
          const facts = await factsOf(url)
          const living = [...(await scrape(metricsUrl(front))), ...(await scrape(metricsUrl(steady)))]
          const all: ReadonlyArray<Sample> = [...living, ...last]

          expect(sumOf(all, "posthaste_messages_accepted_total", { channel: "webhook", via: "http" })).toBe(SIZE)
          expect(sumOf(all, "posthaste_rejected_total", { via: "http", reason: "invalid" })).toBe(1)
          expect(sumOf(all, "posthaste_attempts_total", { outcome: "abandoned" })).toBe(facts["AttemptAbandoned"] ?? 0)
          const settled: Record<string, number> = {
            AttemptSucceeded: sumOf(all, "posthaste_attempts_total", { outcome: "succeeded" }),
            AttemptFailed: sumOf(all, "posthaste_attempts_total", { outcome: "failed" }),
            MessageDelivered: sumOf(all, "posthaste_delivery_latency_seconds_count"),
            MessageFailed: sumOf(all, "posthaste_dead_letters_total", { reason: "refused" }),
            MessageDeadLettered: sumOf(all, "posthaste_dead_letters_total", { reason: "attempts_used_up" })
          }
          // What the killed worker stored between its last scrape and its end is missing, and nothing else.
          const missing = Object.entries(settled).map(([name, counted]) => facts[name]! - counted)
          for (const one of missing) expect(one).toBeGreaterThanOrEqual(0)
          expect(missing.reduce((sum, one) => sum + one)).toBeLessThanOrEqual(AT_ONCE * 2)
          const before = sumOf(last, "posthaste_delivery_latency_seconds_count")
          expect(settled["MessageDelivered"]! - before).toBe(sumOf(living, "posthaste_delivery_latency_seconds_count"))
          expect(sumOf(living, "posthaste_in_flight")).toBe(0)
          expect(sumOf(living, "posthaste_append_duration_seconds_count")).toBeGreaterThan(0)
          expect(sumOf(living, "posthaste_http_requests_total", { status: "400" })).toBe(1)

          // Both show the figures of the installation, whichever of them read them.
          await expect
            .poll(
              async () => (await scrape(metricsUrl(steady))).find((one) => one.name === "posthaste_circuits")?.value,
              {
                timeout: 120_000
              }
            )
            .toBeDefined()
          for (const one of [front, steady]) {
            const lagging = async () =>
              (await scrape(metricsUrl(one)))
                .filter(({ name }) => name === "posthaste_projection_lag_seconds")
                .map(({ labels }) => labels["projection"])
            // A projection that has never stepped when the figures are read has no lag yet.
            await expect.poll(lagging, { timeout: 120_000 }).toEqual(expect.arrayContaining(["health", "messages"]))
            const samples = await scrape(metricsUrl(one))
            expect(sumOf(samples, "posthaste_store_up")).toBe(1)
            expect(Math.abs(sumOf(samples, "posthaste_clock_offset_seconds"))).toBeLessThan(5)
          }
        })
      }),
    360_000 + SIZE * 30
  )

  it.live(
    "are as many for many customers as for one, and hold none of their secrets or bodies; nor does the log",
    () =>
      Effect.gen(function* () {
        const url = Redacted.value(yield* freshDatabase)
        const mark = "MARKED"
        const far = yield* receiver((_, nth) => ({ status: nth === 1 ? 500 : 200, body: `${mark} answer` }))
        const all = yield* product(url, { ...scraped, POSTHASTE_LOG_LEVEL: "debug" })
        yield* Effect.promise(async () => {
          const orgs = Math.max(2, Math.round(ENDPOINTS / 40))
          const one = async (n: number) => {
            const call = api(all.url!, `org-${n % orgs}`)
            const endpoint = await call<{ id: string }>("POST", "/webhook-endpoints", {
              url: `${far.url}/${mark}/${n}?token=${mark}`,
              headers: { "x-token": `${mark}-header` }
            })
            expect(endpoint.status).toBe(201)
            if (n >= 40) return
            const sent = await call("POST", "/outbound/messages", {
              ...{ channel: "webhook", to: endpoint.body.id, eventType: `${mark}.event`, correlationId: mark },
              ...{ orderingKey: mark, metadata: { mark }, payloadJson: { mark } },
              retry: { strategy: "fixed", baseMs: 20, attemptsMax: 3 }
            })
            expect(sent.status).toBe(201)
          }
          for (let n = 0; n < ENDPOINTS; n += 20) await Promise.all(Array.from({ length: 20 }, (_, i) => one(n + i)))
          await expect.poll(async () => endedOf(await factsOf(url)), { timeout: 120_000 }).toBe(40)
          const call = api(all.url!, mark)
          expect((await call("GET", `/outbound/messages?${mark}=${mark}`)).status).toBe(400)
          expect((await call("POST", "/outbound/messages", { [mark]: mark })).status).toBe(400)
          expect((await fetch(`${all.url}/${mark}`)).status).toBe(404)

          const answer = await fetch(`${metricsUrl(all)}/metrics`, {
            headers: { accept: "application/openmetrics-text;version=1.0.0" }
          })
          expect(answer.headers.get("content-type")).toContain("application/openmetrics-text")
          const text = await answer.text()
          expect(text.endsWith("# EOF\n")).toBe(true)
          const series = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"))
          expect(series.length).toBeLessThan(1_500)
          expect(text).not.toContain(mark)
          // The log tells what is stored, a moment later.
          const told = (what: string) => () =>
            all
              .printed()
              .split("\n")
              .filter((line) => line.startsWith("{") && line.includes(what))
          await expect.poll(told("a message was delivered")).toHaveLength(40)
          expect(told("an attempt failed and will be made again")()).toHaveLength(40)
          expect(all.printed()).not.toContain(mark)
        })
      }),
    240_000 + ENDPOINTS * 50
  )

  it.live("are the operator's on the port of the API", () =>
    Effect.gen(function* () {
      const url = Redacted.value(yield* freshDatabase)
      const all = yield* product(url, {})
      yield* Effect.promise(async () => {
        const asked = async (headers: Record<string, string>) => (await fetch(`${all.url}/metrics`, { headers })).status
        expect(await asked({})).toBe(401)
        expect(await asked({ authorization: "Bearer ph_live_somebody_else" })).toBe(403)
        expect(await asked({ authorization: `Bearer ${operatorKey}` })).toBe(200)
      })
    })
  )
})

describe("an outage of the store", () => {
  it.live(
    "is seen in the health of a worker, and is two lines in its log",
    () =>
      Effect.gen(function* () {
        const url = yield* freshDatabase
        const between = yield* interruptible(new URL(Redacted.value(url)))
        const worker = yield* product(between.url, { ...scraped, POSTHASTE_ROLES: "worker" })
        yield* Effect.promise(async () => {
          const health = metricsUrl(worker)
          const ready = async () => {
            const response = await fetch(`${health}/readyz`)
            return { status: response.status, body: (await response.json()) as { parts: ReadonlyArray<object> } }
          }
          expect(await ready()).toMatchObject({ status: 200, body: { status: "ok", parts: [] } })
          between.cut()
          await expect.poll(async () => (await ready()).status, { timeout: 120_000 }).toBe(503)
          const away = await ready()
          expect(away.body.parts[0]).toEqual({
            part: expect.any(String),
            reason: "the store does not answer",
            since: expect.stringMatching(/^\d{4}-.*Z$/)
          })
          expect((await fetch(`${health}/healthz`)).status).toBe(200)
          await expect.poll(async () => sumOf(await scrape(health), "posthaste_store_up"), { timeout: 120_000 }).toBe(0)
          between.mend()
          await expect.poll(() => worker.printed(), { timeout: 120_000 }).toContain("the store answers again")
          expect((await ready()).status).toBe(200)
          const lines = worker
            .printed()
            .split("\n")
            .filter((line) => /^\{.*"level":"(warn|error)"|answers again/.test(line))
          expect(lines.map((line) => (JSON.parse(line) as { message: string }).message)).toEqual([
            expect.stringMatching(/^the store does not answer \(/),
            expect.stringMatching(/^the store answers again, \d+ s$/)
          ])
        })
      }),
    600_000
  )
})

/** A way to the database that a test can cut. */
const interruptible = (target: URL) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const open = new Set<Socket>()
      let isCut = false
      const server = createServer((near) => {
        if (isCut) return near.destroy()
        const far = connect(Number(target.port), target.hostname)
        for (const [one, other] of [
          [near, far],
          [far, near]
        ] as const) {
          open.add(one)
          one.on("error", () => other.destroy())
          one.on("close", () => {
            open.delete(one)
            other.destroy()
          })
          one.pipe(other)
        }
        return undefined
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      const url = new URL(target)
      url.hostname = "127.0.0.1"
      url.port = String((server.address() as AddressInfo).port)
      return {
        url: url.href,
        server,
        cut: () => {
          isCut = true
          for (const one of open) one.destroy()
        },
        mend: () => {
          isCut = false
        },
        end: () => {
          for (const one of open) one.destroy()
          server.close()
        }
      }
    }),
    ({ end }) => Effect.sync(end)
  )
