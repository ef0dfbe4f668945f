import { describe, expect, it } from "vitest"
import { field, type Json, start } from "../served.ts"

const posthaste = await start()
const { call, endpoint, makeKey, project, send } = posthaste

const consentPath = (dossier: string, channel: string) => `/api/v1/dossiers/${dossier}/consents/${channel}`
const answer = (dossier: string, channel: string, granted: boolean, source = "form 4") =>
  call("PUT", consentPath(dossier, channel), { body: { granted, source } })
const consent = (dossier: string, channel: string) => call("GET", consentPath(dossier, channel))
const activity = async (dossier: string, query = "") => {
  await project()
  return call("GET", `/api/v1/dossiers/${dossier}/activity${query}`)
}
const typesOf = ({ json }: { json: Json }) => json["items"].map(({ type }: { type: string }) => type)
const auditOf = async (query: string) => {
  await project()
  return (await call("GET", `/api/v1/audit?${query}`)).json["items"]
}

const hook = await endpoint()
const number = (
  await call("POST", "/api/v1/whatsapp-accounts", {
    body: { phoneNumberId: "1055", accessToken: "t0ken", appSecret: "s3cret", verifyToken: "verify" }
  })
).json["phoneNumberId"]

let cases = 0
const newCase = () => `case-${++cases}`

const whatsapp = (dossierId: string, more = {}) => ({
  channel: "whatsapp",
  to: "+4915112345678",
  payloadJson: { text: "the body" },
  dossierId,
  correlationId: "order-9",
  ...more
})

describe("a consent", () => {
  it("is recorded with source, time and actor, and the same answer again changes nothing", async () => {
    const id = newCase()
    expect((await consent(id, "whatsapp")).status).toBe(404)
    const first = await answer(id, "whatsapp", true)
    expect(first.status).toBe(200)
    expect(first.json).toMatchObject({
      dossierId: id,
      channel: "whatsapp",
      granted: true,
      source: "form 4",
      actor: "operator"
    })
    expect(first.json["history"]).toHaveLength(1)
    expect((await answer(id, "whatsapp", true)).text).toBe(first.text)
    expect((await consent(id, "whatsapp")).text).toBe(first.text)
  })

  it("is told by the key that recorded it", async () => {
    const id = newCase()
    const key = await makeKey("acme")
    await call("PUT", consentPath(id, "whatsapp"), { key, org: null, body: { granted: true, source: "form" } })
    expect((await consent(id, "whatsapp")).json["actor"]).toMatch(/^key:[0-9a-f-]{36}$/)
  })

  it("keeps every answer, the newest first", async () => {
    const id = newCase()
    await answer(id, "whatsapp", true, "form")
    await answer(id, "whatsapp", false, "call")
    await answer(id, "whatsapp", true, "letter")
    const { json } = await consent(id, "whatsapp")
    expect(json).toMatchObject({ granted: true, source: "letter" })
    expect(json["history"].map(({ source, granted }: Json) => [source, granted])).toEqual([
      ["letter", true],
      ["call", false],
      ["form", true]
    ])
  })

  it("is withdrawn by DELETE once it was answered, and again without a word", async () => {
    const id = newCase()
    expect((await call("DELETE", consentPath(id, "whatsapp"))).status).toBe(404)
    await answer(id, "whatsapp", true)
    const withdrawn = await call("DELETE", consentPath(id, "whatsapp"))
    expect(withdrawn.status).toBe(200)
    expect(withdrawn.json).toMatchObject({ granted: false, source: "api" })
    expect((await call("DELETE", consentPath(id, "whatsapp"))).text).toBe(withdrawn.text)
  })

  it("is one channel's", async () => {
    const id = newCase()
    await answer(id, "whatsapp", true)
    expect((await consent(id, "webhook")).status).toBe(404)
  })

  it("can be of a dossier of any name, and only of a channel there is", async () => {
    const id = "Fall 17/ä:whatsapp %2F"
    const path = consentPath(encodeURIComponent(id), "whatsapp")
    expect((await call("PUT", path, { body: { granted: true, source: "form" } })).json["dossierId"]).toBe(id)
    expect((await call("GET", path)).json["dossierId"]).toBe(id)
    for (const [dossier, channel] of [
      [newCase(), "pigeon"],
      ["x".repeat(257), "whatsapp"],
      [encodeURIComponent("a\nb"), "whatsapp"]
    ] as const) {
      expect((await answer(dossier, channel, true)).status).toBe(404)
      expect((await consent(dossier, channel)).status).toBe(404)
    }
  })

  it.each([
    [{ granted: "yes", source: "form" }, ["granted"]],
    [{ granted: true }, ["source"]],
    [{ granted: true, source: "" }, ["source"]],
    [{ granted: true, source: "form", at: "now" }, ["at"]]
  ])("is refused when it is written wrongly: %j", async (body, fields) => {
    const refused = await call("PUT", consentPath(newCase(), "whatsapp"), { body })
    expect(refused.status).toBe(400)
    expect(field(refused)).toEqual(fields)
  })
})

describe("a message without the consent it needs", () => {
  it("is a 403 that says which, and stands in the audit and on the dossier's timeline", async () => {
    expect(number).toBe("1055")
    const id = newCase()
    const refused = await send(whatsapp(id))
    expect(refused.status).toBe(403)
    expect(refused.headers.get("content-type")).toBe("application/problem+json")
    expect(refused.json["type"]).toBe("urn:posthaste:problem:blocked-by-policy")
    expect(field(refused)).toEqual(["dossierId"])
    expect(typesOf(await activity(id))).toEqual(["MESSAGE_BLOCKED"])
    const entry = (await auditOf("operation=BLOCKED_BY_POLICY")).find(({ subject }: Json) => subject.id === id)
    expect(entry).toMatchObject({
      operation: "BLOCKED_BY_POLICY",
      subject: { type: "dossier", id },
      actor: "operator",
      details: { channel: "whatsapp", reason: "no consent" }
    })
    expect(JSON.stringify(entry)).not.toContain("the body")
  })

  it("is refused in its place of a batch, and the others are accepted", async () => {
    const [asked, free] = [newCase(), newCase()]
    await answer(asked, "whatsapp", true)
    const batch = await call("POST", "/api/v1/outbound/messages/batch", {
      body: {
        messages: [whatsapp(asked), whatsapp(free), { channel: "webhook", to: hook, payloadJson: 1, dossierId: free }]
      }
    })
    const items: ReadonlyArray<Json> = batch.json["items"]
    expect(items.map(({ status }) => status)).toEqual([201, 403, 201])
    expect(items[1]!["problem"].errors[0].field).toBe("messages[1].dossierId")
    expect(typesOf(await activity(free)).toSorted()).toEqual(["MESSAGE_BLOCKED", "MESSAGE_CREATED"])
  })
})

describe("a withdrawal", () => {
  it("cancels what waits, and says so wherever one looks", async () => {
    const id = newCase()
    await answer(id, "whatsapp", true)
    const { json } = await send(whatsapp(id, { deliverAt: "2100-01-01T00:00:00Z" }))
    await project()
    await answer(id, "whatsapp", false, "a call")
    const events = (await call("GET", `/api/v1/outbound/messages/${json["id"]}/events`)).json["items"]
    expect(events.at(-1)).toMatchObject({
      type: "MessageCancelled",
      data: { reason: `the consent of dossier ${id} to whatsapp was withdrawn` }
    })
    // What happened to two things in one millisecond has no order.
    expect(typesOf(await activity(id)).toSorted()).toEqual([
      "CONSENT_GRANTED",
      "CONSENT_WITHDRAWN",
      "MESSAGE_CANCELLED",
      "MESSAGE_CREATED"
    ])
    expect((await auditOf(`subject=message-${json["id"]}`)).map(({ operation }: Json) => operation)).toEqual([
      "CANCELLED",
      "CREATED"
    ])
  })
})

describe("a dossier's timeline", () => {
  it("is not there before anything happened", async () => {
    const nothing = await activity(newCase())
    expect(nothing.status).toBe(404)
    expect((await activity("x".repeat(300))).text).toBe(nothing.text)
  })

  it("comes newest first, in pages", async () => {
    const id = newCase()
    for (const source of ["a", "b", "c"]) await answer(id, "whatsapp", true, source)
    const first = await activity(id, "?limit=2")
    const rest = await activity(id, `?limit=2&cursor=${first.json["nextCursor"]}`)
    expect([...first.json["items"], ...rest.json["items"]].map(({ details }: Json) => details.source)).toEqual([
      "c",
      "b",
      "a"
    ])
    expect(rest.json["nextCursor"]).toBeNull()
    expect(field(await activity(id, "?cursor=x"))).toEqual(["cursor"])
  })
})

describe("the audit", () => {
  it("tells who changed what, by the names of what was set", async () => {
    const key = await makeKey("acme")
    const id = (
      await call("POST", "/api/v1/webhook-endpoints", {
        key,
        org: null,
        body: { url: "https://shop.example/?k=v4lue" }
      })
    ).json["id"]
    await call("PATCH", `/api/v1/webhook-endpoints/${id}`, {
      body: { url: "https://shop.example/?k=other", headers: { a: "v4lue" } }
    })
    await call("POST", `/api/v1/webhook-endpoints/${id}/pause`)
    await call("POST", `/api/v1/circuits/${id}/hold`, { body: { reason: "a hunch" } })
    await call("DELETE", `/api/v1/webhook-endpoints/${id}`)
    await project()
    const items: ReadonlyArray<Json> = (await call("GET", "/api/v1/audit?limit=200")).json["items"]
    const mine = items.filter(({ subject }) => subject.id === id)
    expect(mine.map(({ operation, actor }) => `${operation} ${actor?.replace(/:.*/, "")}`).toSorted()).toEqual([
      "CREATED key",
      "HELD operator",
      "PAUSED operator",
      "REMOVED operator",
      "UPDATED operator"
    ])
    expect(mine.find(({ operation }) => operation === "UPDATED")!["details"]).toEqual({ fields: ["headers", "url"] })
    expect(JSON.stringify(items)).not.toContain("v4lue")
    expect(JSON.stringify(items)).not.toContain("s3cret")
  })

  it("tells of keys, and never a key", async () => {
    const made = await call("POST", "/api/v1/api-keys", { org: null, body: { orgId: "acme", name: "for the audit" } })
    await call("DELETE", `/api/v1/api-keys/${made.json["id"]}`, { org: null })
    await project()
    const items: ReadonlyArray<Json> = (await call("GET", "/api/v1/audit?limit=200")).json["items"]
    const mine = items.filter(({ subject }) => subject.id === made.json["id"])
    expect(mine.map(({ operation, actor }) => [operation, actor])).toEqual([
      ["REVOKED", "operator"],
      ["CREATED", "operator"]
    ])
    expect(JSON.stringify(items)).not.toContain(made.json["key"])
  })

  it("tells by whom a message was sent and cancelled", async () => {
    const key = await makeKey("acme")
    const request = { channel: "webhook", to: hook, payloadJson: "the body", correlationId: "order-77" }
    const id = (await send({ ...request, deliverAt: "2100-01-01T00:00:00Z" }, { key, org: null })).json["id"]
    await call("POST", `/api/v1/outbound/messages/${id}/cancel`, { body: { reason: "a mistake" } })
    const items: ReadonlyArray<Json> = await auditOf(`subject=message-${id}`)
    expect(items).toMatchObject([
      { operation: "CANCELLED", actor: "operator", details: { reason: "a mistake" } },
      { operation: "CREATED", subject: { type: "message", id } }
    ])
    expect(items[1]!["actor"]).toMatch(/^key:/)
    expect(await auditOf(`actor=${items[1]!["actor"]}&subject=message-${id}`)).toEqual([items[1]])
    expect(JSON.stringify(items)).not.toContain("the body")
  })

  it("refuses filters it can't understand, and finds nothing for what can't be", async () => {
    expect(field(await call("GET", "/api/v1/audit?operation=STOLEN"))).toEqual(["operation"])
    expect(field(await call("GET", "/api/v1/audit?from=yesterday"))).toEqual(["from"])
    expect(field(await call("GET", "/api/v1/audit?who=me"))).toEqual(["who"])
    expect((await call("GET", "/api/v1/audit?subject=no-id")).json).toMatchObject({ items: [], nextCursor: null })
  })
})

describe("the counts", () => {
  it("are told for each channel that has messages, beside those of all", async () => {
    const id = newCase()
    await answer(id, "whatsapp", true)
    await send(whatsapp(id), { org: "acme" })
    await project()
    const { json } = await call("GET", "/api/v1/outbound/stats")
    expect(Object.keys(json["byChannel"])).toEqual(["webhook", "whatsapp"])
    for (const [status, count] of Object.entries(json["byStatus"])) {
      expect(json["byChannel"].webhook[status] + json["byChannel"].whatsapp[status]).toBe(count)
    }
    expect(json["byChannel"].whatsapp.QUEUED).toBeGreaterThan(0)
  })
})
