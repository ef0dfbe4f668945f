/** Who is told what, over the wire: the real product, an endpoint that goes down and comes back, and those who want to know. */
import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import pg from "pg"
import { describe, expect } from "vitest"
import { verify } from "../../src/adapters/channels/webhook/signature.ts"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { pagerDuty } from "../servers/pagerDuty.ts"
import { api, product } from "../servers/product.ts"
import { receiver } from "../servers/receiver.ts"
import { pause, until } from "../servers/until.ts"

const ROUTING_KEY = "0123456789abcdef0123456789ABCDEF"

const roles = { POSTHASTE_CIRCUIT_OPEN_MS: "500", POSTHASTE_LEASE_MS: "2000" }

/** So many processes that do everything, on one database. */
const posthaste = Effect.fnUntraced(function* (count: number) {
  const database = Redacted.value(yield* freshDatabase)
  const processes = Array.from({ length: count }, () => product(database, roles))
  const [first] = yield* Effect.all(processes, { concurrency: 2 })
  const client = new pg.Client({ connectionString: database })
  yield* Effect.acquireRelease(
    Effect.promise(() => client.connect()),
    () => Effect.promise(() => client.end())
  )
  const call = api(first!.url!, "acme")
  const make = async (path: string, body: object) => {
    const { status, body: made } = await call<{ id: string; secret: string }>("POST", path, body)
    expect(made).toMatchObject({ id: expect.any(String) })
    expect(status).toBe(201)
    return made
  }
  const send = (to: string, count: number, attemptsMax: number) =>
    call("POST", "/outbound/messages/batch", {
      messages: Array.from({ length: count }, () => ({
        channel: "webhook",
        to,
        payloadJson: { n: 1 },
        retry: { strategy: "fixed", baseMs: 50, attemptsMax, jitter: [1, 1] }
      }))
    })
  const rows = async (sql: string, values: ReadonlyArray<unknown> = []) =>
    (await client.query(sql, [...values])).rows as ReadonlyArray<Record<string, unknown>>
  return { call, make, send, rows, asOrg: (org: string) => api(first!.url!, org) }
})

const messagesTo = "select count(*)::int as n from posthaste.event where version = 1 and data ->> 'to' = $1"

describe("an endpoint that goes down and comes back", () => {
  it.live(
    "is told of once when its circuit opens and once when it closes, signed, and as one incident",
    () =>
      Effect.gen(function* () {
        let down = true
        const shop = yield* receiver(() => ({ status: down ? 503 : 200 }))
        const ops = yield* receiver(() => ({ status: 200 }))
        const duty = yield* pagerDuty
        const night = yield* receiver(() => ({ status: 200 }))
        const { make, send, rows, call } = yield* posthaste(2)
        yield* Effect.promise(async () => {
          const endpoint = await make("/webhook-endpoints", { url: shop.url })
          const webhook = await make("/alert-targets", { type: "webhook", url: ops.url, events: ["circuit"] })
          const pager = await make("/alert-targets", {
            type: "pagerduty",
            routingKey: ROUTING_KEY,
            url: duty.url,
            severity: "critical",
            events: ["circuit"]
          })
          await make("/alert-targets", { type: "webhook", url: night.url, events: ["oldestDue"], oldestDueSeconds: 1 })
          await send(endpoint.id, 20, 50)
          await until("the circuit's opening is told", () => ops.received.length === 1 && duty.events.length === 1)
          expect([...duty.open]).toEqual([`posthaste/acme/circuit/${endpoint.id}`])

          await until("the overdue backlog behind it is told", () => night.received.length === 1)

          down = false
          await until("its closing is told", () => ops.received.length === 2 && duty.events.length === 2)
          expect(duty.refused).toEqual([])
          expect(duty.events.map(({ event_action }) => event_action)).toEqual(["trigger", "resolve"])
          expect(new Set(duty.events.map(({ dedup_key }) => dedup_key)).size).toBe(1)
          expect([...duty.open]).toEqual([])
          expect(duty.events[0]).toMatchObject({
            routing_key: ROUTING_KEY,
            payload: { severity: "critical", source: new URL(shop.url).origin, class: "posthaste.circuit.opened" }
          })

          expect(ops.received.map(({ body }) => JSON.parse(body).type)).toEqual([
            "posthaste.circuit.opened",
            "posthaste.circuit.closed"
          ])
          await until("the end of the overdue backlog is told", () => night.received.length === 2)
          expect(night.received.map(({ body }) => JSON.parse(body).type)).toEqual([
            "posthaste.oldest_due.exceeded",
            "posthaste.oldest_due.recovered"
          ])
          for (const { headers, body } of ops.received) {
            const signed = {
              id: String(headers["webhook-id"]),
              timestamp: String(headers["webhook-timestamp"]),
              signature: String(headers["webhook-signature"])
            }
            expect(verify(Redacted.make(webhook.secret), signed, body, Date.now() / 1000)).toBe(true)
          }

          // Both processes followed the log; nothing came twice, and nothing holds the key in the open.
          expect((await rows(messagesTo, [pager.id]))[0]!["n"]).toBe(2)
          expect((await rows(messagesTo, [webhook.id]))[0]!["n"]).toBe(2)
          const stored = await rows(
            `select (select string_agg(data::text, '') from posthaste.event) || (select string_agg(body, '') from posthaste.message)
              || (select string_agg(t::text, '') from posthaste.destination t) as all`
          )
          expect(String(stored[0]!["all"])).toContain("posthaste.circuit.opened")
          expect(String(stored[0]!["all"])).not.toContain(ROUTING_KEY)
          const shown = await call("GET", `/alert-targets/${pager.id}`)
          expect(JSON.stringify(shown.body)).not.toContain(ROUTING_KEY)
        })
      }),
    600_000
  )
})

describe("an alert receiver that is down", () => {
  it.live(
    "gets what it is due and no more, and nobody is told about it, not even another org",
    () =>
      Effect.gen(function* () {
        const shop = yield* receiver(() => ({ status: 422 }))
        const dead = yield* receiver(() => ({ status: 500 }))
        const ops = yield* receiver(() => ({ status: 200 }))
        const elsewhere = yield* receiver(() => ({ status: 200 }))
        const { make, send, rows, call, asOrg } = yield* posthaste(1)
        yield* Effect.promise(async () => {
          await asOrg("globex")("POST", "/alert-targets", { type: "webhook", url: elsewhere.url, oldestDueSeconds: 1 })
          const endpoint = await make("/webhook-endpoints", { url: shop.url })
          const deaf = await make("/alert-targets", { type: "webhook", url: dead.url })
          const hearing = await make("/alert-targets", { type: "webhook", url: ops.url })
          // So that its alerts die too while we watch.
          await call("PUT", `/webhook-endpoints/${deaf.id}/retry-config`, {
            strategy: "fixed",
            baseMs: 10,
            attemptsMax: 2
          })
          await send(endpoint.id, 5, 3)
          await until("the dead letters are told of", () => ops.received.length >= 1)
          // From now on: messages of the endpoint are overdue for a moment on a busy machine, and that would be told rightly.
          for (const { id } of [deaf, hearing]) await call("PATCH", `/alert-targets/${id}`, { oldestDueSeconds: 1 })
          for (let n = 0; n < 4; n++) await call("POST", `/alert-targets/${deaf.id}/test`)
          const dying = `select count(*)::int as n from posthaste.event dead join posthaste.event first using (stream_id)
            where dead.name = 'MessageDeadLettered@1' and first.version = 1 and first.data ->> 'to' = $1`
          await until("alerts die", async () => Number((await rows(dying, [deaf.id]))[0]!["n"]) >= 2)
          const opened = "select count(*)::int as n from posthaste.event where stream = 'circuit-' || $1::text"
          await until("its circuit opens", async () => Number((await rows(opened, [deaf.id]))[0]!["n"]) > 0)
          // Longer than any step of those who watch, and than the overdue backlog that would be told.
          await pause(3_500)
          expect(ops.received.map(({ body }) => JSON.parse(body).type)).toEqual(["posthaste.dead_letter"])
          expect(elsewhere.received).toEqual([])
          expect((await rows(messagesTo, [hearing.id]))[0]!["n"]).toBe(1)
          // Its one alert, and four tests of two messages.
          expect((await rows(messagesTo, [deaf.id]))[0]!["n"]).toBe(9)
        })
      }),
    600_000
  )
})
