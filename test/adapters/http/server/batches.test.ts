/** Batches are judged as a whole before anything of them is accepted, and then entry by entry. */
import { describe, expect, it } from "vitest"
import { field, start } from "../served.ts"

const { call, endpoint, logged } = await start()
const to = await endpoint()
const path = "/api/v1/outbound/messages/batch"
const entry = { channel: "webhook", to, payloadJson: 1 }
const statuses = (items: ReadonlyArray<{ status: number }>) => items.map(({ status }) => status)

describe("a batch", () => {
  it("of many bytes is answered like any other", async () => {
    const messages = Array.from({ length: 3 }, (_, n) => ({ ...entry, payloadJson: "x".repeat(200_000 + n) }))
    expect(statuses((await call("POST", path, { body: { messages } })).json["items"])).toEqual([201, 201, 201])
    const events = messages.map(({ payloadJson }) => ({ eventType: "a.b", data: payloadJson }))
    const published = await call("POST", "/api/v1/events/batch", { body: { events } })
    expect(statuses(published.json["items"])).toEqual([201, 201, 201])
  })

  it("of several hundred is answered in the order of its entries", async () => {
    const messages = Array.from({ length: 210 }, (_, n) =>
      n % 3 === 0 ? { ...entry, chanel: "webhook" } : { ...entry, correlationId: `number ${n}` }
    )
    const { items } = (await call("POST", path, { body: { messages } })).json
    expect(
      items.map((item: never) => item["message"]?.["correlationId"] ?? item["problem"]?.["errors"]?.[0]?.["field"])
    ).toEqual(messages.map((_, n) => (n % 3 === 0 ? `messages[${n}].chanel` : `number ${n}`)))
  })

  it("refuses an entry that is too large to be a request of its own, and takes the others", async () => {
    const body = { messages: [entry, { ...entry, payloadJson: "x".repeat(256 * 1024) }, entry] }
    const { items } = (await call("POST", path, { body })).json
    expect(statuses(items)).toEqual([201, 413, 201])
    expect(items[1].problem.type).toBe("urn:posthaste:problem:too-large")
  })

  it.each([
    [`{"messages":[{"channel":"webhook"},{"channel"`, "The body is not valid JSON"],
    [`{"messages":[1,{"channel":}]}`, "The body is not valid JSON"],
    [`{"messages":[1,]}`, "The body is not valid JSON"],
    [`{"messages":[${"[".repeat(99)}${"]".repeat(99)}]}`, "at most 100 deep"]
  ])("that is no JSON is refused as a whole: %#", async (body, detail) => {
    const answer = await call("POST", path, { body })
    expect([answer.status, answer.json["detail"]]).toEqual([400, expect.stringContaining(detail)])
  })

  it("that is not JSON in its last entry has nothing of it accepted", async () => {
    const good = JSON.stringify({ ...entry, idempotencyKey: "of the broken batch" })
    expect((await call("POST", path, { body: `{"messages":[${good},{]}` })).status).toBe(400)
    expect(statuses((await call("POST", path, { body: `{"messages":[${good}]}` })).json["items"])).toEqual([201])
  })

  it("names what else is wrong with it", async () => {
    expect(field(await call("POST", path, { body: { messages: [], more: [1, 2] } }))).toEqual(["more", "messages"])
    expect(field(await call("POST", path, { body: { messages: {} } }))).toEqual(["messages"])
    expect(field(await call("POST", path, { body: [entry] }))).toEqual(["body"])
    const tooMany = await call("POST", path, { body: { messages: Array(1_001).fill(entry) } })
    expect(tooMany.json["errors"]).toEqual([{ field: "messages", reason: "must have at most 1000 items, not 1001" }])
    // Of two with one name the last counts.
    const twice = `{"messages":[1,2],"messages":[${JSON.stringify(entry)}]}`
    expect(statuses((await call("POST", path, { body: twice })).json["items"])).toEqual([201])
    expect(logged).toEqual([])
  })

  it("of more than a mebibyte is refused, and says what the limit is", async () => {
    const messages = Array(5).fill({ ...entry, payloadJson: "x".repeat(220_000) })
    const answer = await call("POST", path, { body: { messages } })
    expect([answer.status, answer.json["detail"]]).toEqual([413, "The limit is 1048576 bytes."])
  })

  it("of a thousand lets another org's request pass", async () => {
    const theirs = await endpoint("other")
    const order: Array<string> = []
    const batch = call("POST", path, { body: { messages: Array(1_000).fill(entry) } }).then(() => order.push("batch"))
    const other = call("POST", "/api/v1/outbound/messages", { org: "other", body: { ...entry, to: theirs } }).then(
      ({ status }) => order.push(`other ${status}`)
    )
    await Promise.all([batch, other])
    expect(order).toEqual(["other 201", "batch"])
  })
})
