import { describe, expect, it } from "vitest"
import { deadLettered, failed, refusedForGood, started } from "../../../domain/message/samples.ts"
import { field, type Json, start } from "../served.ts"

const posthaste = await start()
const { call, project } = posthaste
const endpoints = "/api/v1/webhook-endpoints"

describe("the test of a webhook endpoint", () => {
  it("is a message like every other, which says that it is a test", async () => {
    const id = await posthaste.endpoint()
    const sent = await call("POST", `${endpoints}/${id}/test`, { body: { eventType: "order.paid" } })
    expect(sent.status).toBe(202)
    expect(sent.json).toMatchObject({
      ...{ channel: "webhook", to: id, status: "QUEUED", eventType: "order.paid", test: true }
    })
    expect((await call("GET", sent.headers.get("location")!)).json).toMatchObject({ test: true })
    const again = await call("POST", `${sent.headers.get("location")}/resend`)
    expect(again.json).toMatchObject({ resendOf: sent.json["id"], test: true })
    expect((await posthaste.send({ channel: "webhook", to: id, payloadJson: 1 })).json["test"]).toBe(false)
    expect(sent.headers.get("location")).toBe(`/api/v1/outbound/messages/${sent.json["id"]}`)
    expect(JSON.parse((await posthaste.bodyOf(sent.json["id"]))!)).toMatchObject({ type: "order.paid", test: true })
    const plain = await call("POST", `${endpoints}/${id}/test`)
    expect([plain.status, plain.json["eventType"]]).toEqual([202, "posthaste.test"])
  })

  it("says what the example of its type says", async () => {
    const id = await posthaste.endpoint()
    await call("POST", "/api/v1/event-types", { body: { name: "order.weighed", example: { kg: 1.5 } } })
    const sent = await call("POST", `${endpoints}/${id}/test`, { body: { eventType: "order.weighed" } })
    expect(await posthaste.bodyOf(sent.json["id"])).toMatch(
      /^\{"type":"order\.weighed",.*"test":true,"data":\{"kg":1\.5\}\}$/
    )
  })

  it("is not for another org's endpoint, nor for a misspelt request", async () => {
    const id = await posthaste.endpoint()
    expect((await call("POST", `${endpoints}/${id}/test`, { org: "other" })).status).toBe(404)
    const wrong = await call("POST", `${endpoints}/${id}/test`, { body: { type: "order.paid" } })
    expect([wrong.status, field(wrong)]).toEqual([400, ["type"]])
  })
})

describe("the events that a webhook endpoint missed", () => {
  it("are sent by a replay, if it wants them now", async () => {
    const org = "late"
    const publish = async (eventType: string) =>
      (await call("POST", "/api/v1/events", { org, body: { eventType, data: 1 } })).json["id"] as string
    const events = [await publish("order.paid"), await publish("order.sent"), await publish("user.left")]
    const made = await call("POST", endpoints, {
      org,
      body: { url: "https://receiver.example/hook", eventTypes: ["order.*"] }
    })
    const id = made.json["id"]
    const since = new Date(Date.now() - 60_000).toISOString()
    const replayMissing = (body: Json, at = org) => call("POST", `${endpoints}/${id}/replay-missing`, { org: at, body })
    const asked = await replayMissing({ since, idempotencyKey: "k" })
    expect(asked.status).toBe(202)
    expect(asked.json).toMatchObject({ matched: 2, missed: { to: id, since }, filter: null, ids: null })
    expect((await replayMissing({ since, idempotencyKey: "k" })).json["id"]).toBe(asked.json["id"])
    expect((await replayMissing({ since: "2026-01-01T00:00:00Z", idempotencyKey: "k" })).status).toBe(409)
    const read = await call("GET", asked.headers.get("location")!, { org })
    expect(read.json).toMatchObject({ id: asked.json["id"], matched: 2, missed: { to: id, since } })
    expect((await replayMissing({ since: new Date(Date.now() + 60_000).toISOString() })).json["matched"]).toBe(0)
    expect(events).toHaveLength(3)
    expect(field(await replayMissing({}))).toEqual(["since"])
    expect((await replayMissing({ since }, "other")).status).toBe(404)
  })
})

describe("the recovery of a webhook endpoint", () => {
  it("replays what ended badly there in that time, by status where that is asked, and nothing else", async () => {
    const [id, other] = [await posthaste.endpoint(), await posthaste.endpoint()]
    const dead = async (to: string, ending: "FAILED" | "DEAD_LETTER") => {
      const { json } = await posthaste.send({ channel: "webhook", to, payloadJson: 1 })
      const last = ending === "FAILED" ? refusedForGood("response") : deadLettered()
      await posthaste.append(json["id"], [started(1), failed(1, null), last])
      return json["id"] as string
    }
    const since = new Date(Date.now() - 60_000).toISOString()
    for (const ending of ["FAILED", "FAILED", "DEAD_LETTER"] as const) await dead(id, ending)
    await dead(other, "FAILED")
    await project()
    const recover = (body: Json) => call("POST", `${endpoints}/${id}/recover`, { body })
    const all = await recover({ since })
    expect(all.status).toBe(202)
    expect(all.json).toMatchObject({ matched: 3, filter: { to: id, channel: "webhook", after: since } })
    const read = await call("GET", all.headers.get("location")!)
    expect(read.json).toMatchObject({ id: all.json["id"], matched: 3 })
    expect((await recover({ since, statuses: ["DEAD_LETTER"] })).json["matched"]).toBe(1)
    expect((await recover({ since, until: since })).json["matched"]).toBe(0)
    expect((await recover({ since: new Date(Date.now() + 60_000).toISOString() })).json["matched"]).toBe(0)
  })

  it("needs to know since when, and takes only what it knows", async () => {
    const id = await posthaste.endpoint()
    const wrong = async (body: Json) => field(await call("POST", `${endpoints}/${id}/recover`, { body }))
    expect(await wrong({})).toEqual(["since"])
    expect(await wrong({ since: "yesterday", statuses: ["DELIVERED"] })).toEqual(["since", "statuses[0]"])
    const body = { since: "2026-01-01T00:00:00Z" }
    expect((await call("POST", `${endpoints}/${id}/recover`, { org: "other", body })).status).toBe(404)
  })
})
