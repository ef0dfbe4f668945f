import { describe, expect, it } from "vitest"
import { field, type Json, start } from "../served.ts"

const posthaste = await start()
const { call, endpoint, bodyOf, append } = posthaste

const EVENTS = "/api/v1/events"
const publish = (event: object, { org = "acme", key }: { readonly org?: string; readonly key?: string } = {}) =>
  call("POST", EVENTS, { org, body: event, headers: key === undefined ? {} : { "idempotency-key": key } })
const messagesOf = async (id: string, org = "acme") =>
  (await call("GET", `${EVENTS}/${id}/messages`, { org })).json["items"] as ReadonlyArray<Json>

describe("an event", () => {
  it("becomes a message for every endpoint that wants its type, each with the same bytes", async () => {
    const org = "fan-out"
    const all = await endpoint(org)
    const some = await endpoint(org, { eventTypes: ["order.*"] })
    await endpoint(org, { eventTypes: ["invoice.paid"] })
    const published = await call("POST", EVENTS, {
      org,
      body: `{"eventType":"order.paid","data":{"id": 12345678901234567890, "price":1.10},"correlationId":"c-1","metadata":{"a":"b"}}`
    })
    expect(published.status).toBe(201)
    const { id, createdAt } = published.json
    expect(published.headers.get("location")).toBe(`${EVENTS}/${id}`)
    expect(published.json).toEqual({
      ...{ id, orgId: org, eventType: "order.paid", matched: 2, dossierId: null, orderingKey: null },
      ...{ correlationId: "c-1", metadata: { a: "b" }, deliverAt: null, expiresAt: null, createdAt, bodyErased: false }
    })

    const messages = await messagesOf(id, org)
    expect(messages.map(({ to }) => to).toSorted()).toEqual([all, some].toSorted())
    for (const message of messages) {
      expect(message).toMatchObject({
        ...{ eventId: id, channel: "webhook", status: "QUEUED", eventType: "order.paid", correlationId: "c-1" },
        ...{ metadata: { a: "b" }, createdAt }
      })
      expect(await bodyOf(message["id"])).toBe(
        `{"type":"order.paid","timestamp":"${createdAt}","data":{"id": 12345678901234567890, "price":1.10}}`
      )
    }
  })

  it("gives its messages the trace of its request, and not what is no trace", async () => {
    const org = "traced"
    await endpoint(org)
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    const body = { eventType: "a", data: 1 }
    const traceOf = async (id: string) => {
      const [message] = await messagesOf(id, org)
      const facts = (await call("GET", `/api/v1/outbound/messages/${message!["id"]}/events`, { org })).json["items"]
      return (facts as ReadonlyArray<Json>)[0]!["data"]["traceparent"]
    }
    const one = await call("POST", EVENTS, { org, body, headers: { traceparent } })
    const batch = await call("POST", `${EVENTS}/batch`, { org, body: { events: [body] }, headers: { traceparent } })
    const none = await call("POST", EVENTS, { org, body, headers: { traceparent: "00-not-a-trace" } })
    expect(await traceOf(one.json["id"])).toBe(traceparent)
    expect(await traceOf(batch.json["items"][0].event.id)).toBe(traceparent)
    expect(await traceOf(none.json["id"])).toBeUndefined()
  })

  it("is shown with its data as it was written", async () => {
    const { json } = await call("POST", EVENTS, { org: "shown", body: `{"eventType":"a","data": [ 1.10 ,"é"] }` })
    const shown = await call("GET", `${EVENTS}/${json["id"]}`, { org: "shown" })
    expect(shown.status).toBe(200)
    expect(shown.headers.get("content-type")).toBe("application/json")
    expect(shown.text.endsWith(`,"data":[ 1.10 ,"é"]}`)).toBe(true)
    expect(shown.json).toEqual({ ...json, data: [1.1, "é"] })
  })

  it("that nobody wants is kept, and says so", async () => {
    const { status, json } = await publish({ eventType: "x", data: null }, { org: "lonely" })
    expect([status, json["matched"]]).toEqual([201, 0])
    const listed = await call("GET", EVENTS, { org: "lonely" })
    expect(listed.json["items"]).toEqual([json])
    expect(await messagesOf(json["id"], "lonely")).toEqual([])
  })

  it("is published once under its key", async () => {
    const org = "keys"
    await endpoint(org)
    const event = { eventType: "a", data: { n: 1 } }
    const first = await publish(event, { org, key: "k" })
    const again = await publish(event, { org, key: "k" })
    expect([first.status, again.status]).toEqual([201, 200])
    expect(again.json).toEqual(first.json)
    expect((await publish({ ...event, data: { n: 2 } }, { org, key: "k" })).status).toBe(409)
    expect((await publish({ ...event, eventType: "b" }, { org, key: "k" })).status).toBe(409)
    expect((await call("GET", EVENTS, { org })).json["items"]).toHaveLength(1)
    // Even when it would be refused today.
    const late = { eventType: "a", data: 1, expiresAt: "2000-01-01T00:00:00Z" }
    expect((await publish(late, { org, key: "other" })).status).toBe(400)
    // A message may use the same key.
    const to = await endpoint(org)
    const message = { channel: "webhook", to, payloadJson: 1 }
    expect((await posthaste.send(message, { org, headers: { "idempotency-key": "k" } })).status).toBe(201)
  })

  it("belongs to its org", async () => {
    const { json } = await publish({ eventType: "a", data: 1 }, { org: "mine" })
    for (const path of ["", "/messages"]) {
      expect((await call("GET", `${EVENTS}/${json["id"]}${path}`, { org: "theirs" })).status).toBe(404)
      expect((await call("GET", `${EVENTS}/no-id${path}`, { org: "mine" })).status).toBe(404)
    }
    expect((await call("POST", `${EVENTS}/${json["id"]}/erase`, { org: "theirs" })).status).toBe(404)
    expect((await call("GET", EVENTS, { org: "theirs" })).json["items"]).toEqual([])
    expect((await call("GET", `/api/v1/streams/event-${json["id"]}`, { org: "theirs" })).status).toBe(404)
    const stream = await call("GET", `/api/v1/streams/event-${json["id"]}`, { org: "mine" })
    expect(stream.json["items"]).toMatchObject([{ version: 1, type: "EventPublished" }])
  })

  it("waits until its time, expires, and keeps its place in a line, as a message does", async () => {
    const org = "times"
    await endpoint(org)
    const { json } = await publish(
      {
        ...{ eventType: "a", data: 1, orderingKey: "o", dossierId: "d" },
        ...{ deliverAt: "2100-01-01T00:00:00Z", expiresAt: "2101-01-01T00:00:00Z" }
      },
      { org }
    )
    expect(await messagesOf(json["id"], org)).toMatchObject([
      {
        ...{ orderingKey: "o", dossierId: "d" },
        ...{ deliverAt: "2100-01-01T00:00:00.000Z", expiresAt: "2101-01-01T00:00:00.000Z" }
      }
    ])
  })

  it("of a dossier that withdrew its consent is refused, and each message it would have become is on record", async () => {
    const org = "consent"
    const to = await endpoint(org)
    await call("PUT", "/api/v1/dossiers/d/consents/webhook", { org, body: { granted: false, source: "form" } })
    const refused = await publish({ eventType: "a", data: 1, dossierId: "d" }, { org })
    expect([refused.status, field(refused)]).toEqual([403, ["dossierId"]])
    expect((await call("GET", EVENTS, { org })).json["items"]).toEqual([])
    await posthaste.project()
    const audit = await call("GET", "/api/v1/audit?operation=BLOCKED_BY_POLICY", { org })
    expect(audit.json["items"]).toMatchObject([{ details: { to, eventType: "a" } }])
  })

  it.each([
    ["no type", { data: 1 }, ["eventType"]],
    ["no data", { eventType: "a" }, ["data"]],
    ["a wish for a type", { eventType: "order.*", data: 1 }, ["eventType"]],
    ["an unknown field", { eventType: "a", data: 1, payload: 1 }, ["payload"]],
    ["a time that has passed", { eventType: "a", data: 1, expiresAt: "2000-01-01T00:00:00Z" }, ["expiresAt"]]
  ])("with %s is refused by name", async (_, event, fields) => {
    const refused = await publish(event, { org: "refused" })
    expect([refused.status, field(refused)]).toEqual([400, fields])
    expect((await call("GET", EVENTS, { org: "refused" })).json["items"]).toEqual([])
  })
})

describe("a batch of events", () => {
  it("is answered in its order, each event on its own", async () => {
    const org = "batch"
    await endpoint(org)
    const answer = await call("POST", `${EVENTS}/batch`, {
      org,
      body: `{"events":[
        {"eventType":"a","data":1.10,"idempotencyKey":"1"},
        {"eventType":"","data":1},
        {"eventType":"a","data":1.10,"idempotencyKey":"1"},
        {"eventType":"a","data":2,"idempotencyKey":"1"},
        {"eventType":"b","data":{}}]}`
    })
    expect(answer.status).toBe(200)
    const items = answer.json["items"] as ReadonlyArray<Json>
    expect(items.map(({ status }) => status)).toEqual([201, 400, 200, 409, 201])
    expect(items[2]!["event"]).toEqual(items[0]!["event"])
    expect(items[1]!["problem"].errors[0].field).toBe("events[1].eventType")
    const [message] = await messagesOf(items[0]!["event"].id, org)
    expect(await bodyOf(message!["id"])).toContain('"data":1.10}')
  })

  it("is refused whole when it is none", async () => {
    for (const events of [[], {}, Array.from({ length: 1001 }, () => ({ eventType: "a", data: 1 }))]) {
      expect((await call("POST", `${EVENTS}/batch`, { body: { events } })).status).toBe(400)
    }
  })
})

describe("erasing", () => {
  const twoOf = async (org: string) => {
    await endpoint(org)
    await endpoint(org)
    const { json } = await publish({ eventType: "a", data: { secret: 1 } }, { org })
    const [one, other] = await messagesOf(json["id"], org)
    return { id: json["id"] as string, one: one!["id"] as string, other: other!["id"] as string }
  }

  it("one message leaves the body to the others", async () => {
    const { id, one, other } = await twoOf("erase-one")
    await call("POST", `/api/v1/outbound/messages/${one}/erase`, { org: "erase-one" })
    expect(await bodyOf(one)).toBeNull()
    expect(await bodyOf(other)).toContain("secret")
    expect((await call("GET", `${EVENTS}/${id}`, { org: "erase-one" })).json["data"]).toEqual({ secret: 1 })
  })

  it("an event takes the bodies of all its messages, and says so on each", async () => {
    const org = "erase-all"
    const { id, one, other } = await twoOf(org)
    const { type: _, ...failed } = { type: 0, attempt: 1, error: { code: "x", message: "x", retryable: false } }
    await append(
      one,
      [
        { type: "AttemptStarted", epoch: 1, attempt: 1 },
        { type: "AttemptFailed", ...failed, status: 400, durationMs: 1, retryAt: null },
        { type: "MessageFailed", by: "response", error: failed.error }
      ],
      "the answer repeats the secret"
    )
    const erased = await call("POST", `${EVENTS}/${id}/erase`, { org, body: { reason: "asked for" } })
    expect(erased.json).toMatchObject({ id, bodyErased: true })
    for (const message of [one, other]) {
      expect(await bodyOf(message)).toBeNull()
      const shown = await call("GET", `/api/v1/outbound/messages/${message}`, { org })
      expect(shown.json["bodyErased"]).toBe(true)
    }
    const attempts = await call("GET", `/api/v1/outbound/messages/${one}/attempts`, { org })
    expect(attempts.text).not.toContain("secret")
    expect((await call("GET", `${EVENTS}/${id}`, { org })).json).toMatchObject({ data: null, bodyErased: true })
    // Again it changes nothing.
    expect((await call("POST", `${EVENTS}/${id}/erase`, { org })).json).toEqual(erased.json)
    const stream = await call("GET", `/api/v1/streams/event-${id}`, { org })
    expect(stream.json["items"].map(({ type }: Json) => type)).toEqual(["EventPublished", "EventErased"])
  })
})

describe("the list of events", () => {
  it("comes in pages, newest first, as far as it is asked for", async () => {
    const org = "list"
    const ids: Array<string> = []
    for (const [eventType, correlationId] of [
      ["a", "1"],
      ["b", "1"],
      ["a", "2"]
    ]) {
      ids.unshift((await publish({ eventType, correlationId, data: 1 }, { org })).json["id"])
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    const read = async (query: string) => {
      const found: Array<string> = []
      for (let cursor = ""; ; ) {
        const page = await call("GET", `${EVENTS}?limit=1${query}${cursor}`, { org })
        found.push(...page.json["items"].map(({ id }: Json) => id))
        if (page.json["nextCursor"] === null) return found
        cursor = `&cursor=${page.json["nextCursor"]}`
      }
    }
    expect(await read("")).toEqual(ids)
    expect(await read("&eventType=a")).toEqual([ids[0], ids[2]])
    expect(await read("&correlationId=1&eventType=b")).toEqual([ids[1]])
    expect((await call("GET", `${EVENTS}?type=a`, { org })).status).toBe(400)
  })
})
