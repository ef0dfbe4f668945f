import { describe, expect, it } from "vitest"
import { field, type Json, start } from "../served.ts"

const posthaste = await start()
const { call } = posthaste

const TYPES = "/api/v1/event-types"
const schema = {
  type: "object",
  properties: { order: { type: "integer" }, total: { type: "number", minimum: 0 } },
  required: ["order"]
}
const make = (org: string, type: object) => call("POST", TYPES, { org, body: type })
const publish = (org: string, event: object) => call("POST", "/api/v1/events", { org, body: event })

describe("the catalogue of event types", () => {
  it("refuses a number that no answer could show", async () => {
    for (const field of ["schema", "example"]) {
      const refused = await call("POST", TYPES, { org: "large", body: `{"name":"a","${field}":{"x":[1e400]}}` })
      expect(refused.status).toBe(422)
      expect(refused.json["errors"]).toEqual([{ field, reason: "must hold no number beyond 1.8e308" }])
    }
  })

  it("keeps a type with its schema and example, and shows it", async () => {
    const org = "crud"
    const made = await call("POST", TYPES, {
      org,
      body: `{"name":"order.paid","description":"An order was paid","schema":${JSON.stringify(schema)},"example":{"order":1}}`
    })
    expect(made.status).toBe(201)
    expect(made.headers.get("location")).toBe(`${TYPES}/order.paid`)
    expect(made.json).toMatchObject({
      ...{ name: "order.paid", orgId: org, description: "An order was paid", schema, example: { order: 1 } },
      ...{ enforce: false, archived: false, version: 1 }
    })
    expect((await call("GET", `${TYPES}/order.paid`, { org })).json).toEqual(made.json)
    expect((await call("GET", TYPES, { org })).json["items"]).toEqual([made.json])
    expect((await make(org, { name: "order.paid" })).status).toBe(409)
    expect((await call("GET", `${TYPES}/order.paid`, { org: "another" })).status).toBe(404)
  })

  it("gives a type another definition as a whole", async () => {
    const org = "change"
    await make(org, { name: "a", description: "d", schema, enforce: true })
    const changed = await call("PUT", `${TYPES}/a`, { org, body: { enforce: false } })
    expect(changed.json).toMatchObject({ description: null, schema: null, enforce: false, version: 2 })
    expect((await call("PUT", `${TYPES}/b`, { org, body: {} })).status).toBe(404)
    expect((await call("PUT", `${TYPES}/b`, { org: "another", body: {} })).status).toBe(404)
  })

  it("archives a type, which keeps its name and can be brought back", async () => {
    const org = "archive"
    await make(org, { name: "a" })
    expect((await call("DELETE", `${TYPES}/a`, { org })).status).toBe(204)
    expect((await call("DELETE", `${TYPES}/a`, { org })).status).toBe(404)
    expect((await call("GET", `${TYPES}/a`, { org })).json["archived"]).toBe(true)
    expect((await call("GET", TYPES, { org })).json["items"]).toEqual([])
    expect((await call("GET", `${TYPES}?archived=true`, { org })).json["items"]).toHaveLength(1)
    expect((await make(org, { name: "a" })).status).toBe(409)
    expect((await call("PUT", `${TYPES}/a`, { org, body: {} })).json["archived"]).toBe(false)
  })

  it("is on record: each change with who made it", async () => {
    const org = "audit"
    await make(org, { name: "a" })
    await call("PUT", `${TYPES}/a`, { org, body: { enforce: true } })
    await call("DELETE", `${TYPES}/a`, { org })
    await posthaste.project()
    const { items } = (await call("GET", "/api/v1/audit", { org })).json
    expect(
      items.map(({ operation, actor, subject, details }: Json) => [operation, actor, subject.type, details])
    ).toEqual([
      ["REMOVED", "operator", "event-type", { name: "a" }],
      ["UPDATED", "operator", "event-type", { name: "a" }],
      ["CREATED", "operator", "event-type", { name: "a" }]
    ])
  })

  it.each([
    ["a schema that is wrong", { schema: { properties: { n: { type: "strin" } } } }, "schema.properties.n.type"],
    ["a reference to elsewhere", { schema: { $ref: "https://x.example/s" } }, "schema.$ref"],
    ["an example that does not fit", { schema, example: { order: "1" } }, "example.order"]
  ])("refuses %s with its path, and stores nothing", async (_, definition, path) => {
    const org = "wrong"
    const refused = await make(org, { name: "a", ...definition })
    expect(refused.status).toBe(422)
    expect(field(refused)).toContain(path)
    expect((await call("GET", TYPES, { org })).json["items"]).toEqual([])
  })

  it.each([
    ["a wish for a name", { name: "order.*" }, "name"],
    ["a schema that is a text", { name: "a", schema: "{}" }, "schema"],
    ["an unknown field", { name: "a", enforced: true }, "enforced"]
  ])("refuses %s", async (_, type, path) => {
    const refused = await make("wrong", type)
    expect([refused.status, field(refused)]).toEqual([400, [path]])
  })
})

describe("an enforced catalogue", () => {
  const enforced = async (org: string) => {
    await make(org, { name: "order.paid", schema, enforce: true })
    await make(org, { name: "order.noted", schema, enforce: false })
  }

  it("refuses an event that does not fit, with the path of each fault, and stores nothing", async () => {
    const org = "fit"
    await enforced(org)
    const refused = await publish(org, { eventType: "order.paid", data: { order: "1", total: -1 } })
    expect(refused.status).toBe(422)
    expect(refused.json["type"]).toBe("urn:posthaste:problem:unfit-event")
    expect(field(refused).toSorted()).toEqual(["data.order", "data.total"])
    expect((await publish(org, { eventType: "order.paid", data: {} })).json["errors"]).toEqual([
      { field: "data.order", reason: "is required" }
    ])
    expect((await call("GET", "/api/v1/events", { org })).json["items"]).toEqual([])
    expect((await publish(org, { eventType: "order.paid", data: { order: 1 } })).status).toBe(201)
    // Where the type itself is not enforced its schema is a description.
    expect((await publish(org, { eventType: "order.noted", data: {} })).status).toBe(201)
  })

  it("refuses an event of an unknown or archived type by name", async () => {
    const org = "unknown"
    expect((await publish(org, { eventType: "order.payd", data: {} })).status).toBe(201)
    await enforced(org)
    const refused = await publish(org, { eventType: "order.payd", data: {} })
    expect([refused.status, field(refused)]).toEqual([422, ["eventType"]])
    expect(refused.text).toContain("order.payd")
    await call("DELETE", `${TYPES}/order.noted`, { org })
    expect((await publish(org, { eventType: "order.noted", data: {} })).status).toBe(422)
    const batch = await call("POST", "/api/v1/events/batch", {
      org,
      body: {
        events: [
          { eventType: "x", data: 1 },
          { eventType: "order.paid", data: { order: 1 } }
        ]
      }
    })
    expect(batch.json["items"].map(({ status }: Json) => status)).toEqual([422, 201])
    expect(batch.json["items"][0].problem.errors[0].field).toBe("events[0].eventType")
  })

  it("refuses an endpoint that wishes for a type that is not in it, by name", async () => {
    const org = "wishes"
    await enforced(org)
    const create = (eventTypes: ReadonlyArray<string> | null) =>
      call("POST", "/api/v1/webhook-endpoints", { org, body: { url: "https://shop.example", eventTypes } })
    const refused = await create(["order.paid", "order.payd", "invoice.*"])
    expect([refused.status, field(refused)]).toEqual([422, ["eventTypes[1]", "eventTypes[2]"]])
    expect(refused.text).toContain("order.payd")
    const made = await create(["order.paid", "order.*", "*"])
    expect(made.status).toBe(201)
    expect((await create(null)).status).toBe(201)
    const path = `/api/v1/webhook-endpoints/${made.json["id"]}`
    expect((await call("PATCH", path, { org, body: { eventTypes: ["nothing"] } })).status).toBe(422)
    expect((await call("PATCH", path, { org, body: { description: "d" } })).status).toBe(200)
  })

  it("answers a repeat of a published event as before, whatever it says by now", async () => {
    const org = "repeat"
    const event = { eventType: "x", data: { n: 1 } }
    const once = () => call("POST", "/api/v1/events", { org, body: event, headers: { "idempotency-key": "k" } })
    const first = await once()
    await enforced(org)
    expect([(await once()).status, (await once()).json]).toEqual([200, first.json])
  })
})
