import { describe, expect, it } from "vitest"
import { field, start } from "../served.ts"

const { call, endpoint, send, append, bodyOf } = await start()
const to = await endpoint()
const messages = "/api/v1/outbound/messages"
const payload = '{"n": 12345678901234567890, "p": 1.10}'
const accept = async (fields = ""): Promise<string> =>
  (await call("POST", messages, { body: `{"channel":"webhook","to":"${to}","payloadJson":${payload}${fields}}` })).json[
    "id"
  ]
const resend = (id: string, body?: unknown, headers: Record<string, string> = {}) =>
  call("POST", `${messages}/${id}/resend`, { headers, ...(body === undefined ? {} : { body }) })
const delivered = async (id: string) =>
  append(id, [
    { type: "AttemptStarted", epoch: 1, attempt: 1 },
    { type: "AttemptSucceeded", attempt: 1, status: 200, providerMessageId: null, durationMs: 1 },
    { type: "MessageDelivered", proof: "response" }
  ])

describe("a message that is sent again", () => {
  it("is a new message that names the old one, with its body and its details, whatever became of that", async () => {
    const id = await accept(',"eventType":"order.paid","correlationId":"c-1","metadata":{"order":"4711"}')
    await delivered(id)
    const answer = await resend(id)
    expect(answer).toMatchObject({
      status: 201,
      json: {
        status: "QUEUED",
        resendOf: id,
        to,
        eventType: "order.paid",
        correlationId: "c-1",
        metadata: { order: "4711" }
      }
    })
    expect(answer.headers.get("location")).toBe(`${messages}/${answer.json["id"]}`)
    expect(await bodyOf(answer.json["id"])).toBe(payload)
    expect((await call("GET", `${messages}/${id}`)).json).toMatchObject({ status: "DELIVERED", resendOf: null })
  })

  it("may go to another destination and with another body", async () => {
    const other = await endpoint()
    const answer = await resend(await accept(), `{"to": "${other}", "payloadJson": [1.50]}`)
    expect(answer.json).toMatchObject({ to: other, destination: other })
    expect(await bodyOf(answer.json["id"])).toBe("[1.50]")
    expect(field(await resend(await accept(), { to: "nowhere" }))).toEqual(["to"])
    expect(field(await resend(await accept(), { too: other }))).toEqual(["too"])
  })

  it("is one message for one idempotency key, and another for a key that was used otherwise is refused", async () => {
    const id = await accept()
    const key = { "idempotency-key": "again-1" }
    const first = await resend(id, undefined, key)
    expect(await resend(id, undefined, key)).toMatchObject({ status: 200, json: { id: first.json["id"] } })
    expect((await resend(await accept(), undefined, key)).status).toBe(409)
  })

  it("needs a body once its own is erased", async () => {
    const id = await accept()
    await call("POST", `${messages}/${id}/erase`)
    expect(await resend(id)).toMatchObject({ status: 410, json: { type: "urn:posthaste:problem:body-erased" } })
    expect((await resend(id, { payloadJson: 2 })).status).toBe(201)
  })
})

describe("the body of a message", () => {
  it("is answered byte for byte, and kept by no cache", async () => {
    const response = await call("GET", `${messages}/${await accept()}/body`)
    expect(response.text).toBe(payload)
    expect(response.headers.get("content-type")).toMatch(/^application\/json/)
    expect(response.headers.get("cache-control")).toBe("no-store")
  })

  it("is gone after it was erased", async () => {
    const id = (await send({ channel: "webhook", to, payloadJson: 1 })).json["id"]
    await call("POST", `${messages}/${id}/erase`)
    expect((await call("GET", `${messages}/${id}/body`)).status).toBe(410)
  })
})

describe("the list of messages", () => {
  it("takes each filter alone", async () => {
    const list = (query: string) => call("GET", `${messages}?${query}`)
    expect((await list("attempts=2&updatedAfter=2020-01-01T00:00:00Z")).status).toBe(200)
    expect((await list("attempts=2")).json["items"]).toEqual([])
    expect((await list("attempts=2&correlationId=c-1")).status).toBe(200)
    expect(field(await list("metadata=order"))).toEqual(["metadata"])
    expect(field(await list("attempts=0&status=QUEUED"))).toEqual(["attempts"])
    expect((await list("metadata=order%3D4711&idempotencyKey=again-1")).json["items"]).toEqual([])
  })
})
