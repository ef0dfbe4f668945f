import { describe, expect, it } from "vitest"
import { field, start } from "../served.ts"

const { call, endpoint, send, append, startWorker } = await start()
const to = await endpoint()
const accept = async (fields: object = {}): Promise<string> =>
  (await send({ channel: "webhook", to, payloadJson: 1, ...fields })).json["id"]
const explain = (id: string, query = "", org = "acme") =>
  call("GET", `/api/v1/outbound/messages/${id}/explanation${query}`, { org })

describe("the explanation of a message", () => {
  it("says first of all that no process sends messages, until one does", async () => {
    const id = await accept()
    await startWorker(["api", "projector"])
    expect((await explain(id)).json).toMatchObject({ reason: "NO_WORKER", waitsFor: "worker", unknown: [] })
    await startWorker()
    expect((await explain(id)).json["reason"]).toBe("DUE")
  })

  it("says where it is, why, and what a person can do, with the request for each", async () => {
    const id = await accept()
    expect(await explain(id)).toMatchObject({
      status: 200,
      json: { id, status: "QUEUED", reason: "DUE", also: [], before: null, ahead: 1, next: "attempt 1 of 6" }
    })
    await call("POST", `/api/v1/webhook-endpoints/${to}/pause`, { body: { reason: "they move" } })
    await call("POST", `/api/v1/circuits/${to}/hold`, { body: { reason: "maintenance" } })
    const held = await explain(id)
    expect(held.json).toMatchObject({
      reason: "PAUSED",
      says: expect.stringContaining("paused by operator (they move)"),
      also: [{ reason: "CIRCUIT_HELD", says: expect.stringContaining("held by hand: maintenance") }]
    })
    for (const { action, method, path } of held.json["actions"]) {
      if (action !== "cancel") expect((await call(method, path)).status).toBe(200)
    }
    expect((await explain(id)).json["reason"]).toBe("DUE")
  })

  it("tells pauses and circuits of an earlier time, and what it does not know of it", async () => {
    const id = await accept()
    await call("POST", `/api/v1/webhook-endpoints/${to}/pause`)
    const during = new Date().toISOString()
    await new Promise((resolve) => setTimeout(resolve, 5))
    await call("POST", `/api/v1/webhook-endpoints/${to}/resume`)
    expect((await explain(id)).json["reason"]).toBe("DUE")
    expect((await explain(id, `?at=${during}`)).json).toMatchObject({
      at: during,
      reason: "PAUSED",
      ahead: null,
      unknown: ["workers", "queue", "rateLimit"]
    })
    expect((await explain(id, "?at=2020-01-01T00:00:00Z")).status).toBe(404)
  })

  it("tells of an earlier time nothing that came after it: no fact, no pause, no circuit", async () => {
    const place = await endpoint()
    const id = await accept({ to: place })
    await new Promise((resolve) => setTimeout(resolve, 5))
    const before = new Date().toISOString()
    await new Promise((resolve) => setTimeout(resolve, 5))
    await call("POST", `/api/v1/webhook-endpoints/${place}/pause`)
    await call("POST", `/api/v1/circuits/${place}/hold`, { body: {} })
    expect((await explain(id)).json).toMatchObject({ reason: "PAUSED", also: [{ reason: "CIRCUIT_HELD" }] })
    expect((await explain(id, `?at=${before}`)).json).toMatchObject({ status: "QUEUED", reason: "DUE", also: [] })
    await append(id, [{ type: "AttemptStarted", epoch: 1, attempt: 1 }])
    expect((await explain(id)).json).toMatchObject({ status: "SENDING", reason: "UNDER_WAY" })
    expect((await explain(id, `?at=${before}`)).json).toMatchObject({ status: "QUEUED", reason: "DUE", also: [] })
  })

  it("says that the org is suspended, since when and why, now and of an earlier time", async () => {
    const org = "suspended"
    const place = await endpoint(org)
    const { id } = (await send({ channel: "webhook", to: place, payloadJson: 1 }, { org })).json as { id: string }
    const set = (body: object) => call("PUT", `/api/v1/orgs/${org}`, { body })
    expect((await explain(id, "", org)).json["reason"]).toBe("DUE")
    await set({ suspended: "unpaid" })
    const { since } = (await explain(id, "", org)).json as { since: string }
    await new Promise((resolve) => setTimeout(resolve, 5))
    await set({ suspended: "unpaid since March", name: "Later" })
    const suspended = { reason: "ORG_SUSPENDED", waitsFor: "operator", since, also: [] }
    expect((await explain(id, "", org)).json).toMatchObject({
      ...suspended,
      says: expect.stringContaining("(unpaid since March)")
    })
    await set({})
    expect((await explain(id, "", org)).json["reason"]).toBe("DUE")
    expect((await explain(id, `?at=${since}`, org)).json).toMatchObject({
      ...suspended,
      says: expect.stringContaining("(unpaid)")
    })
  })

  it("names no pause of a destination that was removed", async () => {
    const place = await endpoint()
    const id = await accept({ to: place })
    await call("POST", `/api/v1/webhook-endpoints/${place}/pause`)
    expect((await explain(id)).json["reason"]).toBe("PAUSED")
    expect((await call("DELETE", `/api/v1/webhook-endpoints/${place}`)).status).toBeLessThan(300)
    expect((await explain(id)).json["reason"]).toBe("DUE")
  })

  it("names the message that goes first", async () => {
    const line = await endpoint()
    const head = await accept({ to: line, orderingKey: "a" })
    const behind = await accept({ to: line, orderingKey: "a" })
    expect((await explain(behind)).json).toMatchObject({
      reason: "BEHIND_ANOTHER",
      before: { id: head, status: "QUEUED" }
    })
    await append(head, [{ type: "AttemptStarted", epoch: 1, attempt: 1 }])
    expect((await explain(behind)).json["before"]).toEqual({ id: head, status: "SENDING" })
  })

  it("of another org's message is not found", async () => {
    expect((await explain(await accept(), "", "other")).status).toBe(404)
    expect((await explain("no-id")).status).toBe(404)
  })
})

describe("a parameter that a route does not have", () => {
  it.each([
    ["GET", "explanation?att=2020-01-01T00:00:00Z", "att"],
    ["GET", "events?limt=5", "limt"],
    ["GET", "attempts?a=1&b=2", "a"],
    ["POST", "cancel?reason=x", "reason"]
  ])("is refused by name: %s …/%s", async (method, rest, name) => {
    const id = await accept()
    const answer = await call(method, `/api/v1/outbound/messages/${id}/${rest}`)
    expect(answer.status).toBe(400)
    expect(field(answer)).toContain(name)
    expect((await explain(id)).json["status"]).toBe("QUEUED")
  })

  it("is refused by every route of the API, with parameters of its own or without", async () => {
    const { paths } = (await call("GET", "/openapi.json")).json
    const ours = Object.entries(paths as Record<string, object>).filter(([path]) => path.startsWith("/api/"))
    expect(ours.length).toBeGreaterThan(30)
    for (const [path, operations] of ours) {
      if (path.includes("/webhooks/whatsapp/")) continue
      for (const method of Object.keys(operations)) {
        const at = path.replaceAll(/\{\w+\}/g, "0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a99")
        const answer = await call(method.toUpperCase(), `${at}?unheard=1`, { body: method === "get" ? undefined : {} })
        expect([path, answer.status, answer.text.includes("unheard")]).toEqual([path, 400, true])
      }
    }
  })
})
