import { describe, expect, it } from "vitest"
import { generateKey, isWellFormed } from "../../../../src/adapters/http/server/apiKey.ts"
import { delivered, started, succeeded } from "../../../domain/message/samples.ts"
import { field, start } from "../served.ts"

const { append, call, makeKey, project } = await start()
const keys = "/api/v1/api-keys"

describe("an API key", () => {
  it("is shown once, and works at once", async () => {
    const made = await call("POST", keys, { org: null, body: { orgId: "acme", name: "ci" } })
    expect(made.status).toBe(201)
    expect(Object.keys(made.json).sort()).toEqual([
      "createdAt",
      "expiresAt",
      "id",
      "key",
      "lastUsedAt",
      "limits",
      "name",
      "networks",
      "orgId",
      "prefix",
      "scopes"
    ])
    expect(made.json["key"].startsWith(made.json["prefix"])).toBe(true)
    expect(made.json["prefix"]).toHaveLength(12)
    expect(made.json["key"]).toMatch(/^ph_live_[A-Za-z0-9_-]{43}_[0-9A-Za-z]{6}$/)
    const listed = await call("GET", keys, { org: null })
    expect(listed.text).not.toContain(made.json["key"].slice(12))
    const { key: _, ...rest } = made.json
    expect(listed.json["items"]).toContainEqual(rest)
    expect((await call("GET", "/api/v1/outbound/stats", { key: made.json["key"], org: null })).status).toBe(200)
  })

  it("is refused once it is revoked", async () => {
    const key = await makeKey("revoked")
    const [{ id }] = (await call("GET", `${keys}?orgId=revoked`, { org: null })).json["items"]
    expect((await call("DELETE", `${keys}/${id}`, { org: null })).status).toBe(204)
    expect((await call("GET", "/api/v1/outbound/stats", { key, org: null })).status).toBe(401)
    expect((await call("DELETE", `${keys}/${id}`, { org: null })).status).toBe(404)
    expect((await call("DELETE", `${keys}/nonsense`, { org: null })).status).toBe(404)
  })

  it("is listed in pages, as everything is", async () => {
    for (let n = 0; n < 3; n++) await makeKey("paged")
    const names = async (query: string) => {
      const { json } = await call("GET", `${keys}?orgId=paged&${query}`, { org: null })
      return { count: json["items"].length as number, next: json["nextCursor"] as string | null }
    }
    const first = await names("limit=2")
    expect(first).toEqual({ count: 2, next: expect.any(String) })
    expect(await names(`limit=2&cursor=${first.next}`)).toEqual({ count: 1, next: null })
    expect((await call("GET", `${keys}?cursor=2`, { org: null })).status).toBe(400)
  })

  it("is shown with its last use", async () => {
    const key = await makeKey("lately")
    const listed = async () => (await call("GET", `${keys}?orgId=lately`, { org: null })).json["items"][0]
    expect((await listed())["lastUsedAt"]).toBeNull()
    await call("GET", "/api/v1/outbound/stats", { key, org: null })
    expect((await listed())["lastUsedAt"]).toMatch(/Z$/)
  })

  it("with the scope admin manages the keys of its org, and no other's", async () => {
    const body = { orgId: "managed", name: "chief", scopes: ["admin"] }
    const chief = { key: (await call("POST", keys, { org: null, body })).json["key"], org: null }
    const made = await call("POST", keys, { ...chief, body: { name: "sender", scopes: ["messages:send"] } })
    expect(made.json).toMatchObject({ orgId: "managed", scopes: ["messages:send"] })
    const other = await call("POST", keys, { ...chief, body: { orgId: "acme", name: "x" } })
    expect([other.status, field(other)]).toEqual([403, ["orgId"]])
    expect((await call("GET", `${keys}?orgId=acme`, chief)).status).toBe(403)
    const listed = (await call("GET", keys, chief)).json["items"]
    expect(listed.map(({ orgId }: { orgId: string }) => orgId)).toEqual(["managed", "managed"])
    await makeKey("acme")
    const theirs = (await call("GET", `${keys}?orgId=acme`, { org: null })).json["items"].at(-1)["id"]
    expect((await call("DELETE", `${keys}/${theirs}`, chief)).status).toBe(404)
    expect((await call("DELETE", `${keys}/${made.json["id"]}`, chief)).status).toBe(204)
  })

  it("makes none that may more than itself, and says in which field", async () => {
    const bounds = {
      expiresAt: "2100-01-01T00:00:00.000Z",
      networks: ["127.0.0.0/8"],
      limits: { acceptsPerSecond: 5 }
    }
    const made = await call("POST", keys, {
      org: null,
      body: { orgId: "narrow", name: "narrow", scopes: ["admin"], ...bounds }
    })
    expect(made.json).toMatchObject(bounds)
    const narrow = { key: made.json["key"], org: null }
    const make = (body: object) => call("POST", keys, { ...narrow, body: { name: "x", ...body } })
    const wide = await make({})
    expect(wide.status).toBe(403)
    expect(field(wide)).toEqual(["expiresAt", "networks", "limits.acceptsPerSecond"])
    const tooLate = await make({ ...bounds, expiresAt: "2100-01-01T00:00:01Z" })
    expect([tooLate.status, field(tooLate)]).toEqual([403, ["expiresAt"]])
    const same = await make({ ...bounds, scopes: ["admin"] })
    expect(same.status).toBe(201)
    // Nor does a chain of keys lead out.
    const grandchild = await call("POST", keys, { key: same.json["key"], org: null, body: { name: "y" } })
    expect(grandchild.status).toBe(403)
    expect((await call("GET", keys, narrow)).json["items"]).toHaveLength(2)
  })

  it("with limits of its own gets 429 beyond them, and other keys of the org do not", async () => {
    const keyWith = async (body: object) =>
      (await call("POST", keys, { org: null, body: { orgId: "limited", name: "x", ...body } })).json["key"]
    const [slow, quick] = [await keyWith({ limits: { acceptsPerSecond: 2 } }), await keyWith({})]
    const to = (
      await call("POST", "/api/v1/webhook-endpoints", { org: "limited", body: { url: "https://shop.example" } })
    ).json["id"]
    const messages = Array.from({ length: 100 }, () => ({ channel: "webhook", to, payloadJson: 1 }))
    const send = (key: string) =>
      call("POST", "/api/v1/outbound/messages/batch", { key, org: null, body: { messages } })
    expect((await send(slow)).status).toBe(200)
    const refused = await send(slow)
    expect(refused.status).toBe(429)
    expect(refused.json["type"]).toBe("urn:posthaste:problem:limit-reached")
    expect(refused.json["detail"]).toMatch(/^The limit acceptsPerSecond of this key is 2\. /)
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(10)
    const event = await call("POST", "/api/v1/events", { key: slow, org: null, body: { eventType: "a", data: 1 } })
    expect(event.status).toBe(429)
    expect((await send(quick)).status).toBe(200)
    expect((await send(quick)).status).toBe(200)
  })

  it("without the scope bodies:read shows no body and no answer", async () => {
    const to = (await call("POST", "/api/v1/webhook-endpoints", { body: { url: "https://shop.example" } })).json["id"]
    const { id } = (
      await call("POST", "/api/v1/outbound/messages", { body: { channel: "webhook", to, payloadJson: 1 } })
    ).json
    const event = (await call("POST", "/api/v1/events", { body: { eventType: "a", data: { secret: 1 } } })).json["id"]
    const keyOf = async (...scopes: ReadonlyArray<string>) => ({
      key: (await call("POST", keys, { org: null, body: { orgId: "acme", name: "x", scopes } })).json["key"],
      org: null
    })
    const [reader, seer] = [await keyOf("messages:read"), await keyOf("messages:read", "bodies:read")]
    expect((await call("GET", `/api/v1/outbound/messages/${id}/body`, reader)).status).toBe(403)
    expect((await call("GET", `/api/v1/outbound/messages/${id}/body`, seer)).text).toBe("1")
    const answer = "an answer that says who it was"
    await append(id, [started(1)])
    await append(id, [succeeded(1), delivered("response")], answer)
    const attempts = async (as: object) => (await call("GET", `/api/v1/outbound/messages/${id}/attempts`, as)).text
    expect(await attempts(seer)).toContain(answer)
    expect(await attempts(reader)).not.toContain(answer)
    expect((await call("GET", `/api/v1/events/${event}`, reader)).json["data"]).toBeNull()
    expect((await call("GET", `/api/v1/events/${event}`, seer)).json["data"]).toEqual({ secret: 1 })
    await project()
    const { items } = (await call("GET", "/api/v1/audit?operation=BODY_READ")).json
    expect(items.map(({ subject, details }: { subject: object; details: object }) => ({ subject, details }))).toEqual([
      { subject: { type: "event", id: event }, details: { address: "127.0.0.1" } },
      { subject: { type: "message", id }, details: { address: "127.0.0.1" } }
    ])
    expect(items[0]["actor"]).toMatch(/^key:/)
  })

  it("is the operator's to manage", async () => {
    const key = await makeKey("acme")
    for (const [method, path] of [
      ["POST", keys],
      ["GET", keys],
      ["DELETE", `${keys}/x`]
    ] as const) {
      expect((await call(method, path, { key, org: null })).status).toBe(403)
    }
  })

  it.each([
    ["an org's name that is none", { orgId: "no spaces", name: "x" }, ["orgId"]],
    ["no name", { orgId: "acme" }, ["name"]],
    ["a scope that is none", { orgId: "acme", name: "x", scopes: ["messages:sned"] }, ["scopes[0]"]],
    ["no scopes at all", { orgId: "acme", name: "x", scopes: [] }, ["scopes"]],
    ["a network that is none", { orgId: "acme", name: "x", networks: ["10.0.0.0/33"] }, ["networks[0]"]],
    ["a limit that is none", { orgId: "acme", name: "x", limits: { waiting: 1 } }, ["limits.waiting"]],
    ["a time that is over", { orgId: "acme", name: "x", expiresAt: "2001-01-01T00:00:00Z" }, ["expiresAt"]],
    ["no org", { name: "x" }, ["orgId"]],
    ["a field that is none", { orgId: "acme", name: "x", admin: true }, ["admin"]]
  ])("is not made from %s", async (_, body, wrong) => {
    const answer = await call("POST", keys, { org: null, body })
    expect(answer.status).toBe(400)
    expect(field(answer)).toEqual(wrong)
  })

  it("tells a slip of the pen from an unknown key", () => {
    const key = generateKey()
    expect(isWellFormed(key)).toBe(true)
    for (let at = 8; at < key.length; at++) {
      const other = key[at] === "A" ? "B" : "A"
      expect(isWellFormed(key.slice(0, at) + other + key.slice(at + 1)), `letter ${at}`).toBe(false)
    }
  })
})
