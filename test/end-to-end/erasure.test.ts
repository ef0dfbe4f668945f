/**
 * The erasure of a person: nothing of them is left in any row of any table, nor in any event of EventStoreDB, and the histories are
 * whole.
 */
import { hash } from "node:crypto"
import { it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import pg from "pg"
import { describe, expect } from "vitest"
import { posthaste } from "../servers/commandLine.ts"
import { dumpOf } from "../servers/dump.ts"
import { eventStore, type StandIn } from "../servers/eventStore.ts"
import { operatorKey } from "../servers/product.ts"
import { isIn, spellingsOf } from "../servers/spellings.ts"
import { until } from "../servers/until.ts"
import { whatsApp } from "../servers/whatsApp.ts"

const PHONE = "4915177700017"
/** A second number of theirs, which takes nothing. */
const REFUSED = "4915100000009"
/** All that says who it was. */
const marks = [PHONE, "Erikalotte", "mustermann", REFUSED]

const spellings = marks.flatMap(spellingsOf)
/** Whoever guesses a mark could check the guess by one of these. */
const hashes = marks.flatMap((mark) =>
  ["md5", "sha1", "sha256"].flatMap((way) => [hash(way, mark, "hex"), hash(way, mark, "base64")])
)
const tracesIn = (text: string) => text.split("\n").filter((row) => isIn(row, spellings))

/** Everything that was ever written there, an event a line: it may be read for as long as nobody scavenges. */
const writtenIn = (streams: StandIn): string =>
  streams.log.all
    .map(({ stream, data, metadata }) => [stream, ...[data, metadata].map((bytes) => Buffer.from(bytes))].join(" "))
    .join("\n")

const sql = async (database: string, text: string, values: ReadonlyArray<unknown> = []) => {
  const client = new pg.Client({ connectionString: database })
  await client.connect()
  const { rows } = await client.query(text, [...values])
  await client.end()
  return rows
}

/** All facts, by their place. */
const factsOf = async (database: string): Promise<ReadonlyMap<string, string>> => {
  const rows = await sql(
    database,
    "select stream_id || ' ' || version as place, concat_ws(' ', name, at, actor, data) as fact from posthaste.event"
  )
  return new Map(rows.map(({ place, fact }) => [place, fact]))
}

const erased = (streams: Effect.Effect<StandIn, never, Scope.Scope> | null) =>
  Effect.gen(function* () {
    const elsewhere = streams === null ? null : yield* streams
    const settings: Record<string, string> = elsewhere === null ? {} : { EVENTSTORE_URL: elsewhere.url }
    const { account, call, database, message, reaches, send, server } = yield* whatsApp(
      {
        mood: ({ to }) => (to === REFUSED ? { type: "refuses", code: 131026 } : { type: "takes" })
      },
      "api,worker,projector,relay",
      settings
    )
    const onStore = posthaste({
      ...{ DATABASE_URL: database, POSTHASTE_ENCRYPTION_KEY: Buffer.alloc(32, 5).toString("base64") },
      ...settings
    })
    yield* Effect.promise(async () => {
      await account("1001")
      const details = {
        metadata: { customer: "mustermann" },
        correlationId: "of-mustermann",
        orderingKey: "mustermann",
        payloadJson: { text: "Dear Erikalotte" }
      }
      const hook = (
        await call<{ id: string }>("POST", "/webhook-endpoints", {
          url: "https://shop.example/hook",
          eventTypes: ["a"]
        })
      ).body.id
      await call("POST", `/webhook-endpoints/${hook}/pause`, {})
      const sent = await send({ ...details, to: PHONE })
      await reaches(sent, "SENT", "DELIVERED")
      const refused = await send({ ...details, orderingKey: "mustermann-2", to: REFUSED })
      await reaches(refused, "FAILED")
      const dismissed = await call("POST", `/outbound/messages/${refused}/dismiss`, { reason: "Erikalotte called" })
      expect(dismissed.status).toBe(200)
      const waits = await send({ ...details, to: PHONE, deliverAt: "2100-01-01T00:00:00Z" })
      const hooked = (
        await call<{ id: string }>("POST", "/outbound/messages", { ...details, channel: "webhook", to: hook })
      ).body.id
      const event = (
        await call<{ id: string; matched: number }>("POST", "/events", {
          ...{
            eventType: "a",
            data: { name: "Erikalotte" },
            metadata: { customer: "mustermann" },
            correlationId: "of-mustermann"
          }
        })
      ).body
      expect(event.matched).toBe(1)
      // Nobody wants this one, so it becomes no message.
      const unwanted = { eventType: "b", data: { name: "Erikalotte" }, metadata: { customer: "mustermann" } }
      expect((await call("POST", "/events", unwanted)).status).toBe(201)
      // Refused without consent: it has no stream.
      const blocked = await call("POST", "/outbound/messages", {
        ...details,
        ...{ channel: "whatsapp", to: PHONE, dossierId: "case-17" }
      })
      expect(blocked.status).toBe(403)
      // Jobs over a set of messages name whom they look for, and a person says why.
      const job = async (path: string, request: object) => {
        const { status, body } = await call<{ id: string }>("POST", path, request)
        expect(status).toBe(202)
        await until("the end of the job", async () => {
          const { status } = (await call<{ status: string }>("GET", `/replays/${body.id}`)).body
          return status === "COMPLETED"
        })
        return body.id
      }
      const dead = { to: REFUSED, dismissed: true }
      const isListed = async () =>
        (await call<{ matched: number }>("POST", "/dead-letters/replay", { filter: dead, preview: true })).body
          .matched === 1
      await until("the dismissal is listed", isListed)
      const replayed = await job("/dead-letters/replay", {
        filter: dead,
        reason: "Erikalotte says so",
        idempotencyKey: "for-mustermann"
      })
      await reaches(refused, "FAILED")
      const jobs = [
        replayed,
        await job("/outbound/messages/cancel", {
          filter: { correlationId: "of-mustermann" },
          reason: "of Erikalotte's"
        }),
        await job("/dead-letters/dismiss", { filter: { to: REFUSED } })
      ]
      // A command of a transaction that is refused, by what it says of the person: its row, its fact and its alert.
      const alerted = await call("POST", "/alert-targets", {
        ...{ type: "webhook", url: "https://alerts.example/", events: ["commandRefused", "deadLetter", "circuit"] }
      })
      expect(alerted.status).toBe(201)
      for (const more of [
        { to: "Erikalotte", mustermann: 1 },
        { to: PHONE, expiresAt: "Erikalotte" }
      ]) {
        const request = { channel: "whatsapp", ...details, ...more }
        await sql(database, "select posthaste.send('acme', $1, $2)", [JSON.stringify(request), `mustermann-${more.to}`])
      }
      const refusals = async () =>
        (await sql(database, "select 1 from posthaste.event where name like 'CommandRefused@%'")).length
      const alerts = async () =>
        (await sql(database, "select 1 from posthaste.idempotency where key like 'posthaste:alert:command-%'")).length
      await until("the refusals and the alert of the first", async () => {
        return (await refusals()) === 2 && (await alerts()) === 1
      })
      const other = await send({
        to: "4915199999999",
        metadata: { customer: "somebody" },
        payloadJson: { text: "Dear Kim" }
      })
      await reaches(other, "SENT", "DELIVERED")
      const listed = async () =>
        (await call<{ items: ReadonlyArray<unknown> }>("GET", "/outbound/messages?metadata=customer%3Dmustermann")).body
          .items
      await until("the lists", async () => (await listed()).length === 5)
      expect(tracesIn(await dumpOf(database)).length).toBeGreaterThan(10)
      const before = await factsOf(database)

      const erase = async (person: object) => {
        const { status, body } = await call<{ id: string; status: string }>("POST", "/erasures", person)
        expect([status, body.status]).toEqual([202, "RUNNING"])
        expect(JSON.stringify(body)).not.toMatch(/mustermann|Erikalotte|4915177700017/i)
        let found = body as Record<string, unknown>
        await until("the end of the erasure", async () => {
          found = (await call("GET", `/erasures/${body.id}`)).body
          return found["status"] === "COMPLETED"
        })
        return found
      }
      expect(await erase({ metadata: { customer: "mustermann" } })).toMatchObject({
        by: "metadata",
        // With the alert.
        messages: 6,
        events: 2
      })
      expect(await erase({ recipient: "+49 151 77700017" })).toMatchObject({ by: "recipient", messages: 0 })
      const left = await dumpOf(database)
      expect(tracesIn(left)).toEqual([])
      expect(hashes.filter((each) => left.includes(each))).toEqual([])
      // No fact was changed, and none is gone.
      const after = await factsOf(database)
      expect([...before].filter(([place, fact]) => after.get(place) !== fact)).toEqual([])
      if (elsewhere !== null) {
        const written = writtenIn(elsewhere)
        expect(elsewhere.log.all.length).toBeGreaterThan(20)
        expect(tracesIn(written)).toEqual([])
        expect(hashes.filter((each) => written.includes(each))).toEqual([])
      }
      // The jobs are over as they were, whomever they were for.
      for (const id of jobs) expect((await call("GET", `/replays/${id}`)).body).toMatchObject({ status: "COMPLETED" })

      // Of all of them the shape stays.
      expect((await message(sent)) as object).toMatchObject({
        to: "erased",
        metadata: null,
        bodyErased: true,
        providerMessageId: null
      })
      expect((await message(waits)) as object).toMatchObject({ status: "CANCELLED", to: "erased" })
      expect((await message(refused)) as object).toMatchObject({ status: "FAILED", lastError: { message: "erased" } })
      expect((await message(hooked)) as object).toMatchObject({ status: "CANCELLED", to: hook })
      expect((await message(other)) as object).toMatchObject({ to: "4915199999999", bodyErased: false })
      type Audit = { readonly items: ReadonlyArray<{ operation: string; subject: { type: string } }> }
      const audited = async () => {
        const { items } = (await call<Audit>("GET", "/audit?limit=200")).body
        return items.filter(({ subject }) => subject.type === "erasure").map(({ operation }) => operation)
      }
      await expect.poll(audited).toEqual(["ERASED", "CREATED", "ERASED", "CREATED"])

      // What is made anew from the facts agrees with them, and has nothing of them either.
      const operator = { authorization: `Bearer ${operatorKey}` }
      for (const name of ["messages"]) {
        const path = `${server.url}/api/v1/projections/${name}`
        expect((await fetch(`${path}/rebuild`, { method: "POST", headers: operator })).status).toBe(202)
        await until(
          `the rows of ${name}`,
          async () => ((await (await fetch(path, { headers: operator })).json()) as { build: unknown }).build === null
        )
      }
      expect(tracesIn(await dumpOf(database))).toEqual([])
      const verified = await onStore(["streams", "verify"])
      expect([verified.code, verified.out, verified.err]).toEqual([
        0,
        expect.stringContaining("no violation"),
        expect.anything()
      ])
      const exported = await onStore(["export", "--with-bodies"])
      expect(exported.out).toContain(other)
      // Who was not erased is read as ever.
      expect(exported.out).toContain("4915199999999")
      expect(tracesIn(server.printed())).toEqual([])
      expect(tracesIn(exported.out)).toEqual([])
    })
  })

const rule = "leaves nothing of them, keeps everybody else, and every history is one that the law allows"

describe("the erasure of a person", () => {
  it.live(rule, () => erased(null))
  it.live(`with streams in EventStoreDB ${rule}`, () => erased(eventStore()))
})
