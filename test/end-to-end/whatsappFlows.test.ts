/**
 * The three flows of a WhatsApp message, step by step: it is created, a worker sends it, Meta tells what became of it.
 * The real product on PostgreSQL; Meta is a stand-in.
 */
import { it } from "@effect/vitest"
import { Effect } from "effect"
import { describe, expect } from "vitest"
import { signatureOf } from "../../demo/meta/receipts.ts"
import type { Mood } from "../../demo/meta/StandInMeta.ts"
import { operatorKey } from "../servers/product.ts"
import { until } from "../servers/until.ts"
import { receiptsIn, typesOf, whatsApp } from "../servers/whatsApp.ts"

type World = Effect.Success<ReturnType<typeof whatsApp>>
interface Entry {
  readonly operation: string
  readonly subject: { readonly type: string; readonly id: string }
  readonly details: Readonly<Record<string, unknown>>
}

/** Operations on a message, oldest first, once there are as many as expected. */
const audited = async ({ call }: World, query: string, count: number) => {
  let entries: ReadonlyArray<Entry> = []
  await until(`${count} audit entries of ${query}`, async () => {
    entries = (await call<{ items: ReadonlyArray<Entry> }>("GET", `/audit?${query}`)).body.items.toReversed()
    return entries.length >= count
  })
  return entries
}
const operationsOf = (entries: ReadonlyArray<Entry>) => entries.map(({ operation }) => operation)

/** The dossier's timeline, oldest first, once it is as long as expected. */
const timeline = async ({ call }: World, dossierId: string, count: number) => {
  let types: ReadonlyArray<string> = []
  await until(`${count} activities of ${dossierId}`, async () => {
    const { body } = await call<{ items?: ReadonlyArray<{ type: string }> }>("GET", `/dossiers/${dossierId}/activity`)
    types = (body.items ?? []).map(({ type }) => type).toReversed()
    return types.length >= count
  })
  return types
}

const components = [{ type: "body", parameters: [{ type: "text", text: "4711" }] }]
const template = {
  ...{ channel: "whatsapp", to: "+49 151 12345678", templateCode: "order_paid" },
  payloadJson: { language: "en_US", components }
}

describe("the creation flow", () => {
  it.live("checks the key, then the consent, stores the message QUEUED, audits it and answers", () =>
    Effect.gen(function* () {
      // No worker: what is created stays as it was created.
      const world = yield* whatsApp({}, "api,projector")
      const { account, call, server } = world
      yield* Effect.promise(async () => {
        await account("1001")
        /** 1. The request, with X-Org-Id and Idempotency-Key. */
        const request = async (key: string, dossierId: string) => {
          const response = await fetch(`${server.url}/api/v1/outbound/messages`, {
            method: "POST",
            headers: {
              ...{ authorization: `Bearer ${operatorKey}`, "content-type": "application/json" },
              ...{ "x-org-id": "acme", "idempotency-key": key }
            },
            body: JSON.stringify({ ...template, dossierId })
          })
          return { status: response.status, body: (await response.json()) as Record<string, unknown> }
        }
        // 5. No consent: refused, and that is recorded on the dossier.
        expect((await request("key-1", "case-1")).status).toBe(403)
        const [blocked] = await audited(world, "operation=BLOCKED_BY_POLICY", 1)
        expect(blocked).toMatchObject({
          operation: "BLOCKED_BY_POLICY",
          subject: { type: "dossier", id: "case-1" },
          details: { to: "4915112345678" }
        })
        // 5. Consent granted.
        const consent = await call("PUT", "/dossiers/case-1/consents/whatsapp", { granted: true, source: "form 4" })
        expect(consent.status).toBe(200)
        // 6., 7., 9. Stored as QUEUED with no attempt made, and answered. The refusal did not use the key up.
        const created = await request("key-1", "case-1")
        expect(created.status).toBe(201)
        expect(created.body).toMatchObject({ status: "QUEUED", attempts: 0, attemptsMax: 6, dossierId: "case-1" })
        // 4. The same key: the same message.
        expect(await request("key-1", "case-1")).toEqual({ ...created, status: 200 })
        expect((await request("key-1", "case-2")).status).toBe(409)
        // 8. Audited, once.
        const { id } = created.body
        expect(operationsOf(await audited(world, `subject=message-${id}`, 1))).toEqual(["CREATED"])
        expect(await timeline(world, "case-1", 3)).toEqual(["MESSAGE_BLOCKED", "CONSENT_GRANTED", "MESSAGE_CREATED"])
      })
    })
  )
})

/** What Meta does with a message is in the last digit of its recipient. */
const mood = ({ to }: { readonly to: string }, earlier: number): Mood => {
  if (to.endsWith("1")) return earlier < 2 ? { type: "refuses", code: 131016 } : { type: "takes" }
  if (to.endsWith("2")) return { type: "refuses", code: 131026, details: "not on WhatsApp: 4915112345602" }
  return { type: "takes" }
}

describe("the worker flow", () => {
  it.live("sends what is due, and books a success, a failure to repeat and a failure for good", () =>
    Effect.gen(function* () {
      const world = yield* whatsApp({ mood })
      const { account, call, meta, message, reaches, send } = world
      yield* Effect.promise(async () => {
        await account("1001", { retry: { strategy: "schedule", waitsMs: [400, 60_000] } })
        await call("PUT", "/dossiers/case-1/consents/whatsapp", { granted: true, source: "form 4" })
        const to = (recipient: string) => send({ ...template, to: recipient, dossierId: "case-1" })

        // 1. – 10. Due at once, attempt 1 begun before anything is sent, Meta called.
        const taken = await to("4915112345600")
        // 11. SUCCESS: SENT, Meta's id kept, the attempt closed, audited, on the timeline.
        expect(typesOf(await reaches(taken, "SENT"))).toEqual(["MessageQueued", "AttemptStarted", "AttemptSucceeded"])
        expect(await message(taken)).toMatchObject({ providerMessageId: meta.sent[0]!.id, attempts: 1 })
        const attempts = await call<{ items: ReadonlyArray<object> }>("GET", `/outbound/messages/${taken}/attempts`)
        expect(attempts.body.items).toMatchObject([{ number: 1, outcome: "succeeded" }])
        expect(operationsOf(await audited(world, `subject=message-${taken}`, 2))).toEqual(["CREATED", "SENT"])

        // 11. FAILURE that may pass: QUEUED again, with the error and the time of the next attempt …
        const repeated = await to("4915112345601")
        const history = await reaches(repeated, "SENT")
        const timeOf = (type: string, from = 0) =>
          (history.slice(from).find((event) => event.type === type) as unknown as { at: string }).at
        const failedAt = timeOf("AttemptFailed")
        // As it was then: by now the next attempt was made.
        const failed = (await call<{ nextAttemptAt: string }>("GET", `/outbound/messages/${repeated}?at=${failedAt}`))
          .body
        expect(failed).toMatchObject({
          ...{ status: "QUEUED", attempts: 1 },
          lastError: { code: "whatsapp_131016", retryable: true }
        })
        // … 5. which is made when that time has come, and not before.
        expect(Date.parse(failed.nextAttemptAt) - Date.parse(failedAt)).toBeGreaterThanOrEqual(395)
        expect(Date.parse(timeOf("AttemptStarted", 3))).toBeGreaterThanOrEqual(Date.parse(failed.nextAttemptAt) - 5)
        expect((await message(repeated))["attempts"]).toBe(2)

        // 11. FAILURE for good: FAILED at once, with the error, audited, on the timeline.
        const refused = await to("4915112345602")
        await reaches(refused, "FAILED")
        expect(await message(refused)).toMatchObject({
          attempts: 1,
          nextAttemptAt: null,
          lastError: {
            code: "whatsapp_131026",
            message: expect.not.stringContaining("4915112345602"),
            retryable: false
          }
        })
        expect(operationsOf(await audited(world, `subject=message-${refused}`, 2))).toEqual(["CREATED", "FAILED"])
        const types = await timeline(world, "case-1", 7)
        expect(types.filter((type) => type === "MESSAGE_SENT")).toHaveLength(2)
        expect(types.at(-1)).toBe("MESSAGE_FAILED")
        const counted = async () => (await call<{ byStatus: object }>("GET", "/outbound/stats")).body.byStatus
        await expect.poll(counted).toMatchObject({ SENT: 2, FAILED: 1, QUEUED: 0, SENDING: 0 })
        expect(meta.sent).toHaveLength(2)
      })
    })
  )
})

describe("the webhook status flow", () => {
  it.live("proves, finds, checks and updates a message, and audits and tells each status", () =>
    Effect.gen(function* () {
      const world = yield* whatsApp()
      const { account, asOrg, call, events, inbound, message, meta, reaches, send, server, waiting } = world
      yield* Effect.promise(async () => {
        await account("1001")
        await account("2001", {}, "globex")
        await call("PUT", "/dossiers/case-1/consents/whatsapp", { granted: true, source: "form 4" })
        // Meta asks first whether this is us.
        expect(await Effect.runPromise(meta.subscribe("1001"))).toBe(true)

        const sent = async (n: number) => {
          const id = await send({ ...template, to: `491511234560${n}`, dossierId: "case-1" })
          await reaches(id, "SENT")
          return { id, ours: meta.sent.find(({ to }) => to === `491511234560${n}`)! }
        }
        const [first, second, third] = [await sent(1), await sent(2), await sent(3)]
        const tell = async (number: string, ...updates: ReadonlyArray<ReturnType<typeof meta.update>>) =>
          (await Effect.runPromise(meta.tell(number, updates))).status
        /** As if an earlier release, or another system, had sent it: found by Meta's name alone. */
        const nameless = (update: ReturnType<typeof meta.update>) => ({ ...update, callbackData: null })
        const settled = () => until("all receipts applied", async () => (await waiting()).waiting === 0)

        // 1. – 4. Signed with another secret, or not: 401 and nothing happens.
        const body = JSON.stringify({ entry: [{ changes: [{ value: { metadata: { phone_number_id: "1001" } } }] }] })
        for (const headers of [{}, { "x-hub-signature-256": signatureOf("wrong", body) }]) {
          expect((await fetch(inbound, { method: "POST", headers, body })).status).toBe(401)
        }
        // 5. – 9., 18. Each status is taken, answered 200 at once, and then found by Meta's id or by ours.
        expect(await tell("1001", meta.update(first.ours, "sent"), nameless(meta.update(second.ours, "sent")))).toBe(
          200
        )
        await settled()
        // 12., 14. sent → SENT
        expect([await message(first.id), await message(second.id)]).toMatchObject([
          { status: "SENT" },
          { status: "SENT" }
        ])
        // delivered → DELIVERED, read → DELIVERED
        expect(
          await tell("1001", meta.update(first.ours, "delivered"), nameless(meta.update(second.ours, "read")))
        ).toBe(200)
        await reaches(first.id, "DELIVERED")
        await reaches(second.id, "DELIVERED")
        // failed → FAILED, with the error
        expect(await tell("1001", meta.update(third.ours, "failed", 131049))).toBe(200)
        await reaches(third.id, "FAILED")
        expect(await message(third.id)).toMatchObject({ lastError: { code: "whatsapp_131049" } })
        // 10. Not found: it waits for its message, and hurts nothing.
        expect(await tell("1001", { ...nameless(meta.update(first.ours, "sent")), id: "wamid.nobody" })).toBe(200)
        await until("a receipt waits", async () => (await waiting()).waiting === 1)
        // 11. Another org's message: a warning, and nothing else.
        const theirs = await asOrg("globex")<{ items: unknown }>("GET", `/outbound/messages/${first.id}`)
        expect(theirs.status).toBe(404)
        expect(await tell("2001", meta.update(first.ours, "failed"))).toBe(200)
        await until("a warning", () => server.printed().includes("its message is another org's"))
        // 13. FAILED stays FAILED, DELIVERED is not downgraded; what was said is kept, and shown as a contradiction.
        expect(await tell("1001", meta.update(third.ours, "delivered"), meta.update(first.ours, "failed"))).toBe(200)
        await until("the contradictions", async () => receiptsIn(await events(first.id)).includes("failed"))
        await until("the contradictions", async () => receiptsIn(await events(third.id)).includes("delivered"))
        expect([await message(first.id), await message(third.id)]).toMatchObject([
          { status: "DELIVERED" },
          { status: "FAILED" }
        ])
        expect((await events(third.id)).at(-1)).toMatchObject({ data: { receipt: "delivered", contradicts: true } })
        // 16., 17. Audited, and on the timeline.
        const entries = await audited(world, `subject=message-${first.id}`, 5)
        expect(operationsOf(entries)).toEqual(["CREATED", "SENT", "UPDATED", "UPDATED", "UPDATED"])
        expect(entries.slice(2).map(({ details }) => details["receipt"])).toEqual(["sent", "delivered", "failed"])
        const types = await timeline(world, "case-1", 15)
        expect(types.filter((type) => type === "MESSAGE_STATUS_UPDATE")).toHaveLength(7)
        expect(types.filter((type) => type === "MESSAGE_FAILED")).toHaveLength(1)
      })
    })
  )
})
