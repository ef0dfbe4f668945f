/** Orgs over HTTP: only the operator sets them, limits answer 429, and a suspension stops every way in. */
import { randomUUID } from "node:crypto"
import { describe, expect, it } from "vitest"
import { field, start } from "../served.ts"

const { call, endpoint, send, project } = await start()
const newOrg = () => `org-${randomUUID()}`
const set = (org: string, body: object) => call("PUT", `/api/v1/orgs/${org}`, { body })

describe("orgs", () => {
  it("show what is set and counted, and forget what is not named", async () => {
    const org = newOrg()
    await endpoint(org)
    expect((await set(org, { name: "Acme Ltd", limits: { waiting: 5 } })).json).toMatchObject({
      ...{ id: org, name: "Acme Ltd", suspended: null, limits: { waiting: 5 }, destinations: 1 }
    })
    expect((await set(org, {})).json).toMatchObject({ name: null, limits: {} })
    expect((await call("GET", "/api/v1/orgs")).json["items"].map(({ id }: { id: string }) => id)).toContain(org)
    const { key } = (await call("POST", "/api/v1/api-keys", { body: { orgId: org, name: "ci" } })).json
    expect((await call("PUT", `/api/v1/orgs/${org}`, { key, body: {} })).status).toBe(403)
    expect((await call("GET", `/api/v1/orgs/${org}`, { key })).status).toBe(403)
    expect(field(await set(org, { limits: { waiting: -1 } }))).toEqual(["limits.waiting"])
    expect(field(await set(org, { limits: { messages: 1 } }))).toEqual(["limits.messages"])
    const audit = (await call("GET", "/api/v1/audit", { org })).json["items"]
    expect(Array.isArray(audit)).toBe(true)
  })

  it("have a retry policy, shown as what it is, for destinations that have none", async () => {
    const org = newOrg()
    const id = await endpoint(org)
    const config = async () => (await call("GET", `/api/v1/webhook-endpoints/${id}/retry-config`, { org })).json
    const standard = await config()
    const set1 = await set(org, { retry: { preset: "payments" } })
    expect(set1.json["retry"]).toEqual({
      ...{ strategy: "exponential", baseMs: 1000, factor: 2, capMs: 30_000, attemptsMax: 6 }
    })
    expect(await config()).toEqual(set1.json["retry"])
    const own = { strategy: "fixed", baseMs: 9 }
    await call("PUT", `/api/v1/webhook-endpoints/${id}/retry-config`, { org, body: own })
    expect(await config()).toEqual(own)
    await call("DELETE", `/api/v1/webhook-endpoints/${id}/retry-config`, { org })
    expect(await config()).toEqual(set1.json["retry"])
    const sent = await send({ channel: "webhook", to: id, payloadJson: 1 }, { org })
    const facts = await call("GET", `/api/v1/outbound/messages/${sent.json["id"]}/events`, { org })
    expect(facts.json["items"][0].data.retry).toEqual(set1.json["retry"])
    expect(field(await set(org, { retry: { strategy: "fixed" } }))).toEqual(["retry.baseMs"])
    expect(field(await set(org, { retry: { preset: "never" } }))).toEqual(["retry"])
    expect((await set(org, {})).json["retry"]).toBeNull()
    expect(await config()).toEqual(standard)
  })

  it("have days of their own for what ended, up to the operator's most", async () => {
    const org = newOrg()
    const kept = await set(org, { retention: { endedDays: 30, deadLetterDays: 1.5 } })
    expect(kept.json["retention"]).toEqual({ endedDays: 30, deadLetterDays: 1.5 })
    expect(field(await set(org, { retention: { endedDays: 0.5 } }))).toEqual(["retention.endedDays"])
    expect(field(await set(org, { retention: { deadLetterDays: 41 } }))).toEqual(["retention.deadLetterDays"])
    expect(field(await set(org, { retention: { days: 3 } }))).toEqual(["retention.days"])
    // A refusal changes nothing.
    expect((await call("GET", `/api/v1/orgs/${org}`)).json["retention"]).toEqual({ endedDays: 30, deadLetterDays: 1.5 })
    expect((await set(org, {})).json["retention"]).toEqual({})
  })

  it("are all listed together where the operator asks for *, and nowhere else", async () => {
    const [one, other] = [newOrg(), newOrg()]
    const sent: Array<string> = []
    for (const org of [one, other]) {
      const to = await endpoint(org)
      const request = { channel: "webhook", to, payloadJson: 1, correlationId: "of-all" }
      sent.push((await send(request, { org })).json["id"])
    }
    await project()
    const all = (path: string) => call("GET", `/api/v1${path}`, { org: "*" })
    const { items } = (await all("/outbound/messages?correlationId=of-all")).json
    expect(items.map(({ id, orgId }: { id: string; orgId: string }) => [id, orgId])).toEqual([
      [sent[1], other],
      [sent[0], one]
    ])
    const first = (await all("/outbound/messages?correlationId=of-all&limit=1")).json
    const next = `/outbound/messages?correlationId=of-all&limit=1&cursor=${first["nextCursor"]}`
    expect((await all(next)).json["items"][0].id).toBe(sent[0])
    // The cursor is no org's.
    expect((await call("GET", `/api/v1${next}`, { org: one })).status).toBe(400)
    expect((await all("/outbound/stats")).json["byStatus"].QUEUED).toBeGreaterThan(1)
    const orgsOf = (list: { items: ReadonlyArray<{ orgId: string }> }) => list.items.map(({ orgId }) => orgId)
    expect(orgsOf((await all("/destinations?limit=200")).json as never)).toEqual(expect.arrayContaining([one, other]))
    expect((await all("/dead-letters")).status).toBe(200)
    expect((await all("/outbound/messages?channel=http")).json["items"]).toEqual([])
    expect((await all("/outbound/messages?channel=webhook&correlationId=of-all")).json["items"]).toHaveLength(2)
    // Not without a name, not with a key of an org, and not where something could be changed or one thing be read.
    expect((await call("GET", "/api/v1/outbound/messages", { org: null })).status).toBe(400)
    const { key } = (await call("POST", "/api/v1/api-keys", { body: { orgId: one, name: "ci", scopes: ["admin"] } }))
      .json
    for (const path of ["/outbound/messages", "/outbound/stats", "/dead-letters", "/destinations"])
      expect((await call("GET", `/api/v1${path}`, { key, org: "*" })).status, path).toBe(403)
    expect((await call("GET", `/api/v1/outbound/messages/${sent[0]}`, { org: "*" })).status).toBe(400)
    expect((await call("POST", "/api/v1/destinations/pause", { org: "*" })).status).toBe(400)
    const replay = await call("POST", "/api/v1/dead-letters/replay", { org: "*", body: { filter: {} } })
    expect(replay.status).toBe(400)
    expect((await call("GET", "/api/v1/events", { org: "*" })).status).toBe(400)
  })

  it("beyond a limit get 429 with when to ask again, and nothing is stored", async () => {
    const org = newOrg()
    const to = await endpoint(org)
    await set(org, { limits: { acceptsPerSecond: 2, destinations: 1 } })
    const request = { channel: "webhook", to, payloadJson: 1 }
    const messages = Array.from({ length: 100 }, () => request)
    expect((await call("POST", "/api/v1/outbound/messages/batch", { org, body: { messages } })).status).toBe(200)
    const refused = await send(request, { org })
    expect(refused.status).toBe(429)
    expect(refused.json["type"]).toBe("urn:posthaste:problem:limit-reached")
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(10)
    const event = await call("POST", "/api/v1/events", { org, body: { eventType: "a.b", data: 1 } })
    expect(event.status).toBe(429)
    const another = await call("POST", "/api/v1/webhook-endpoints", { org, body: { url: "https://shop.example/2" } })
    expect(another.status).toBe(429)
    expect(another.headers.get("retry-after")).toBe("3600")
    // Others have limits of their own.
    const other = newOrg()
    expect((await send({ ...request, to: await endpoint(other) }, { org: other })).status).toBe(201)
  })

  it("that may accept nothing in a second are told to come back much later", async () => {
    const org = newOrg()
    const to = await endpoint(org)
    for (const limits of [{ acceptsPerSecond: 0 }, { bytesPerSecond: 0 }]) {
      await set(org, { limits })
      const refused = await send({ channel: "webhook", to, payloadJson: 1 }, { org })
      expect(refused.status, refused.text).toBe(429)
      expect(refused.headers.get("retry-after")).toBe("3600")
    }
  })

  it("are answered what they have asked for before, also at their limits", async () => {
    const org = newOrg()
    const to = await endpoint(org)
    const request = { channel: "webhook", to, payloadJson: 1 }
    const keyed = (key: string) => send(request, { org, headers: { "idempotency-key": key } })
    const publish = (key: string) =>
      call("POST", "/api/v1/events", {
        ...{ org, headers: { "idempotency-key": key }, body: { eventType: "a.b", data: 1 } }
      })
    const batch = (...keys: ReadonlyArray<string>) =>
      call("POST", "/api/v1/outbound/messages/batch", {
        ...{ org, body: { messages: keys.map((idempotencyKey) => ({ ...request, idempotencyKey })) } }
      })
    const replay = (body: object) => call("POST", "/api/v1/dead-letters/replay", { org, body: { filter: {}, ...body } })
    const first = await keyed("one")
    const event = await publish("two")
    const replayed = await replay({ idempotencyKey: "three" })
    expect([first.status, event.status, replayed.status]).toEqual([201, 201, 202])
    await set(org, { limits: { waiting: 0, replays: 1 } })
    const again = [await keyed("one"), await publish("two"), await replay({ idempotencyKey: "three" })]
    expect(again.map(({ status, json }) => [status, json["id"]])).toEqual([
      [200, first.json["id"]],
      [200, event.json["id"]],
      [202, replayed.json["id"]]
    ])
    expect((await batch("one", "one")).json["items"].map(({ status }: { status: number }) => status)).toEqual([
      200, 200
    ])
    const refused = [
      await send(request, { org }),
      await keyed("new"),
      await publish("new"),
      await batch("one", "new"),
      await replay({ idempotencyKey: "new" }),
      await replay({}),
      await call("POST", "/api/v1/outbound/messages/cancel", { org, body: { filter: {} } }),
      await call("POST", `/api/v1/webhook-endpoints/${to}/replay-missing`, {
        org,
        body: { since: "2026-01-01T00:00:00Z" }
      }),
      await call("POST", `/api/v1/webhook-endpoints/${to}/test`, { org }),
      await call("POST", `/api/v1/outbound/messages/${first.json["id"]}/resend`, { org })
    ]
    expect(refused.map(({ status }) => status)).toEqual(refused.map(() => 429))
    // Replays end by themselves. Where nothing may wait, no time makes room.
    expect(refused[4]!.headers.get("retry-after")).toBe("30")
    expect(refused[0]!.headers.get("retry-after")).toBe("3600")
    // Another request under a key of before is told that, and not about a limit.
    const other = await send({ ...request, payloadJson: 2 }, { org, headers: { "idempotency-key": "one" } })
    expect([other.status, other.json["type"]]).toEqual([409, "urn:posthaste:problem:idempotency-key-reused"])
  })

  it("that are suspended are told why, on every way in, and go on afterwards", async () => {
    const org = newOrg()
    const to = await endpoint(org)
    const request = { channel: "webhook", to, payloadJson: 1 }
    const before = await send(request, { org, headers: { "idempotency-key": "one" } })
    await set(org, { suspended: "unpaid since March" })
    const refused = await send(request, { org })
    expect(refused.status).toBe(403)
    expect(refused.json).toMatchObject({ type: "urn:posthaste:problem:org-suspended" })
    expect(refused.json["detail"]).toContain("unpaid since March")
    const event = await call("POST", "/api/v1/events", { org, body: { eventType: "a.b", data: 1 } })
    expect([event.status, event.json["type"]]).toEqual([403, "urn:posthaste:problem:org-suspended"])
    // What was accepted before stays accepted, and can be read.
    const again = await send(request, { org, headers: { "idempotency-key": "one" } })
    expect([again.status, again.json["id"]]).toEqual([200, before.json["id"]])
    expect((await call("GET", `/api/v1/outbound/messages/${before.json["id"]}`, { org })).status).toBe(200)
    await set(org, {})
    expect((await send(request, { org })).status).toBe(201)
  })
})
