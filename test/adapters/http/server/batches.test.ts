/** Batches are read, accepted and answered in pieces, and judged as a whole before anything of them is accepted. */
import { describe, expect, it } from "vitest"
import { acceptedTogether } from "../../../../src/adapters/http/server/batches.ts"
import { AT_ONCE } from "../../../../src/application/pieces.ts"
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

  it("of several pieces is answered in the order of its entries", async () => {
    const messages = Array.from({ length: 4 * AT_ONCE + 10 }, (_, n) =>
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
    [`{"messages":[{"channel":"webhook"},{"channel"`, "The body is not valid JSON: it ends within a list."],
    [
      `{"messages":[1,{"channel":}]}`,
      "messages[1] is not valid JSON: it ends too early or holds something that is not JSON."
    ],
    [`{"messages":[1,]}`, "messages[1] is not valid JSON: it is empty."],
    [`{"messages":[1}`, "The body is not valid JSON outside of its entries."],
    [`{"messages":[${"[".repeat(99)}${"]".repeat(99)}]}`, "at most 100 deep"],
    [`["${"x".repeat(70_000)}"]`, "at most 65536 bytes outside of the list messages"]
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

  it("has so many of its entries accepted together, and few where they are large", () => {
    const pieces = (...bytes: ReadonlyArray<number>) =>
      acceptedTogether(bytes.map((bytes) => ({ asked: null, bytes }))).map(({ length }) => length)
    expect(pieces(...Array(230).fill(100))).toEqual([100, 100, 30])
    expect(pieces(200_000, 200_000, 50, 100_000, 100_000, 262_144, 1)).toEqual([1, 2, 2, 1, 1])
    expect(pieces()).toEqual([])
  })

  it("of a thousand leaves another org's request its turn", async () => {
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
