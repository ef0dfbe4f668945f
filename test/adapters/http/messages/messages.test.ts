import { DateTime } from "effect"
import { beforeAll, describe, expect, it } from "vitest"
import {
  deadLettered,
  delivered,
  failed,
  gone,
  noonPlus,
  refusedForGood,
  started,
  succeeded
} from "../../../domain/message/samples.ts"
import { type Answer, field, start } from "../served.ts"

const posthaste = await start()
const { call, send, append, bodyOf, project } = posthaste
let to: string
beforeAll(async () => {
  to = await posthaste.endpoint()
})

const messages = "/api/v1/outbound/messages"
const request = (fields: object = {}) => ({ channel: "webhook", to, payloadJson: { order: 1 }, ...fields })
const accepted = async (fields: object = {}): Promise<string> => {
  const answer = await send(request(fields))
  expect(answer.status).toBe(201)
  return answer.json["id"]
}
const get = (id: string, rest = "") => call("GET", `${messages}/${id}${rest}`)

const shape = [
  "id",
  "orgId",
  "channel",
  "to",
  "destination",
  "routingKey",
  "resendOf",
  "test",
  "status",
  "epoch",
  "attempts",
  "attemptsMax",
  "nextAttemptAt",
  "lastError",
  "providerMessageId",
  "eventType",
  "templateCode",
  "dossierId",
  "orderingKey",
  "correlationId",
  "metadata",
  "deliverAt",
  "expiresAt",
  "endsAt",
  "createdAt",
  "updatedAt",
  "lastAttemptAt",
  "endedAt",
  "deliveredAt",
  "readAt",
  "bodyErased",
  "contradicted",
  "dismissed",
  "eventId"
]

describe("a message that is sent", () => {
  it("is answered with 201 and the message, waiting", async () => {
    const answer = await send(
      request({
        eventType: "order.paid",
        dossierId: "D-1",
        orderingKey: "o",
        correlationId: "c",
        templateCode: "t",
        metadata: { source: "shop" },
        deliverAt: "2100-01-01T00:00:00.000Z",
        expiresAt: "2100-01-02T00:00:00.000Z"
      })
    )
    expect(answer.status).toBe(201)
    expect(Object.keys(answer.json)).toEqual(shape)
    expect(answer.json).toMatchObject({
      orgId: "acme",
      channel: "webhook",
      to,
      status: "QUEUED",
      epoch: 1,
      attempts: 0,
      attemptsMax: 6,
      lastError: null,
      eventType: "order.paid",
      dossierId: "D-1",
      orderingKey: "o",
      correlationId: "c",
      templateCode: "t",
      metadata: { source: "shop" },
      deliverAt: "2100-01-01T00:00:00.000Z",
      expiresAt: "2100-01-02T00:00:00.000Z",
      lastAttemptAt: null,
      endedAt: null,
      deliveredAt: null,
      readAt: null,
      bodyErased: false,
      dismissed: false,
      contradicted: false
    })
    expect(answer.json["id"]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(answer.json["createdAt"]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect(answer.headers.get("location")).toBe(`${messages}/${answer.json["id"]}`)
    expect((await get(answer.json["id"])).json).toEqual(answer.json)
  })

  it.each([
    ["digits", "12345678901234567890"],
    ["trailing zeros", "1.10"],
    ["escapes and order of keys", '{"b":"\\u00e9 \\ud83d\\ude00 \\u0000","a":1e2}'],
    ["white space", '{ "a" : [ 1 ,\n 2 ] }'],
    ["a second key of one name", '{"a":1,"a":2}'],
    ["characters as they were typed", '"ü 🎉"'],
    ["null", "null"],
    ["prototype keys", '{"__proto__":{"admin":true},"constructor":1}']
  ])("keeps its payload byte for byte: %s", async (_, raw) => {
    const answer = await call("POST", messages, {
      body: `{"payloadJson":0,"channel":"webhook", "payloadJson" : ${raw} ,"to":"${to}"}`
    })
    expect(answer.status).toBe(201)
    expect(await bodyOf(answer.json["id"])).toBe(raw)
  })

  it("waits until deliverAt, and does not jump the queue by a time that has passed", async () => {
    const later = await send(request({ deliverAt: "2100-01-01T00:00:00+01:00", expiresAt: "2100-01-02T00:00:00Z" }))
    expect(later.json["nextAttemptAt"]).toBe("2099-12-31T23:00:00.000Z")
    const past = await send(request({ deliverAt: "2000-01-01T00:00:00Z" }))
    expect(past.json["nextAttemptAt"]).toBe(past.json["createdAt"])
  })

  it("is retried as it says itself, else as its endpoint says, else as webhooks are", async () => {
    const own = await send(request({ retry: { strategy: "fixed", baseMs: 5, attemptsMax: 9 } }))
    expect(own.json["attemptsMax"]).toBe(9)
    const patient = await posthaste.endpoint("acme", { retry: { strategy: "schedule", waitsMs: [1, 2] } })
    expect((await send(request({ to: patient }))).json["attemptsMax"]).toBe(3)
    const both = await send(request({ to: patient, retry: { strategy: "fixed", baseMs: 5, attemptsMax: 9 } }))
    expect(both.json["attemptsMax"]).toBe(9)
    expect((await send(request())).json["attemptsMax"]).toBe(6)
  })

  it("takes null for a field that may be left out", async () => {
    const nulls = { eventType: null, metadata: null, retry: null, deliverAt: null, expiresAt: null, orderingKey: null }
    await accepted(nulls)
  })

  it("keeps its metadata, whatever the names", async () => {
    const id = await accepted({ metadata: JSON.parse('{"__proto__":"a","constructor":"b"}') })
    const { data } = (await get(id, "/events")).json["items"][0]
    expect(Object.entries(data["metadata"])).toEqual([
      ["__proto__", "a"],
      ["constructor", "b"]
    ])
  })
})

describe("a request that is wrong", () => {
  it.each([
    ["a channel that is not built in", { channel: "amqp" }, ["channel"]],
    ["an endpoint that is not there", { to: "0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01" }, ["to"]],
    ["a destination that is no id", { to: "https://shop.example" }, ["to"]],
    ["an expiry that has passed", { expiresAt: "2000-01-01T00:00:00Z" }, ["expiresAt"]],
    [
      "an expiry before the delivery",
      { deliverAt: "2100-01-02T00:00:00Z", expiresAt: "2100-01-01T00:00:00Z" },
      ["expiresAt"]
    ],
    ["a time without a zone", { deliverAt: "2100-01-01T00:00:00" }, ["deliverAt"]],
    ["a time that is none", { deliverAt: "2100-13-01T00:00:00Z" }, ["deliverAt"]],
    ["an unknown field", { payload: 1, prority: 2 }, ["payload", "prority"]],
    ["an unknown channel", { channel: "pigeon" }, ["channel"]],
    ["a wait that is negative", { retry: { strategy: "schedule", waitsMs: [1, -1] } }, ["retry.waitsMs[1]"]],
    ["a retry without a strategy", { retry: { baseMs: 1 } }, ["retry"]],
    ["a header's worth of line breaks", { eventType: "a\r\nx: y", correlationId: "é" }, ["eventType", "correlationId"]],
    ["NUL and half a surrogate pair", { orderingKey: "a\0", dossierId: "\ud800" }, ["dossierId", "orderingKey"]],
    ["metadata that is not text", { metadata: { a: 1 } }, ["metadata.a"]]
  ])("is refused by name: %s", async (_, fields, wrong) => {
    const answer = await send(request(fields))
    expect(answer.status).toBe(400)
    expect(answer.headers.get("content-type")).toBe("application/problem+json")
    expect([...field(answer)].sort()).toEqual([...wrong].sort())
  })

  it("names every field at once", async () => {
    expect([...field(await send({ to: "", deliverAt: 5, extra: 1 }))].sort()).toEqual([
      "channel",
      "deliverAt",
      "extra",
      "payloadJson",
      "to"
    ])
  })

  it("leaves nothing behind", async () => {
    const before = await count()
    await send(request({ channel: "http" }))
    expect(await count()).toBe(before)
  })
})

const count = async (): Promise<number> => {
  await project()
  const { byStatus } = (await call("GET", "/api/v1/outbound/stats")).json
  return Object.values(byStatus as Record<string, number>).reduce((a, b) => a + b, 0)
}

describe("a batch", () => {
  it("answers each entry on its own and in its place", async () => {
    const batch = {
      messages: [
        request({ correlationId: "first" }),
        request({ to: "nowhere" }),
        { channel: "webhook" },
        7,
        request({ correlationId: "last", idempotencyKey: "batch-1" }),
        request({ correlationId: "last", idempotencyKey: "batch-1" }),
        request({ correlationId: "other", idempotencyKey: "batch-1" })
      ]
    }
    const answer = await call("POST", `${messages}/batch`, { body: batch })
    expect(answer.status).toBe(200)
    const items = answer.json["items"]
    expect(items.map((item: Answer) => item.status)).toEqual([201, 400, 400, 400, 201, 200, 409])
    expect(Object.keys(items[0].message)).toEqual(shape)
    expect(items[0].message.correlationId).toBe("first")
    expect(items[1].problem.errors.map((error: { field: string }) => error.field)).toEqual(["messages[1].to"])
    expect(items[2].problem.errors.map((error: { field: string }) => error.field)).toEqual([
      "messages[2].to",
      "messages[2].payloadJson"
    ])
    expect(items[3].problem.errors).toEqual([{ field: "messages[3]", reason: "must be an object" }])
    expect(items[5].message.id).toBe(items[4].message.id)
    expect(items[6].problem.type).toBe("urn:posthaste:problem:idempotency-key-reused")
  })

  it("keeps the bytes of every payload and the order of its entries", async () => {
    const raws = ["1.0", '{"a":[1,2,{"b":"]}"}]}', '"\\u0041"', "12345678901234567890"]
    const entries = raws.map((raw) => `{"channel":"webhook","to":"${to}","payloadJson":${raw}}`)
    const answer = await call("POST", `${messages}/batch`, { body: `{ "messages" : [ ${entries.join(" ,\n")} ] }` })
    const ids: ReadonlyArray<string> = answer.json["items"].map(
      (item: Answer & { message: { id: string } }) => item.message.id
    )
    expect(await Promise.all(ids.map(bodyOf))).toEqual(raws)
    expect([...ids].sort()).toEqual(ids)
  })

  it.each([
    ["no list", { messages: {} }, "messages"],
    ["an empty list", { messages: [] }, "messages"],
    ["1,001 entries", { messages: Array(1001).fill(1) }, "messages"],
    ["an unknown field", { messages: [1], dryRun: true }, "dryRun"]
  ])("is refused as a whole for %s", async (_, body, name) => {
    const answer = await call("POST", `${messages}/batch`, { body })
    expect(answer.status).toBe(400)
    expect(field(answer)).toEqual([name])
  })

  it("takes 1,000 entries", async () => {
    const answer = await call("POST", `${messages}/batch`, { body: { messages: Array(1000).fill(request()) } })
    expect(answer.json["items"].filter((item: Answer) => item.status === 201)).toHaveLength(1000)
  })
})

describe("the history of a message", () => {
  it("shows every fact with the status after it, and every attempt with its response", async () => {
    const id = await accepted()
    await append(id, [started(1)])
    await append(id, [failed(1, noonPlus(1000))], "try later")
    await append(id, [started(2)])
    await append(id, [succeeded(2), delivered("response")], "thanks")

    const events = (await get(id, "/events")).json
    expect(events["nextCursor"]).toBeNull()
    expect(
      events["items"].map(({ version, type, status }: Record<string, unknown>) => [version, type, status])
    ).toEqual([
      [1, "MessageQueued", "QUEUED"],
      [2, "AttemptStarted", "SENDING"],
      [3, "AttemptFailed", "QUEUED"],
      [4, "AttemptStarted", "SENDING"],
      [5, "AttemptSucceeded", "SENT"],
      [6, "MessageDelivered", "DELIVERED"]
    ])
    expect(Object.keys(events["items"][2])).toEqual(["version", "type", "at", "data", "status"])
    expect(events["items"][2].data).toMatchObject({ attempt: 1, status: 503, retryAt: "2026-01-01T12:00:01.000Z" })

    const attempts = (await get(id, "/attempts")).json["items"]
    expect(attempts.map(({ startedAt: _, endedAt: __, ...rest }: Record<string, unknown>) => rest)).toEqual([
      {
        number: 1,
        epoch: 1,
        outcome: "failed",
        error: { code: "http_503", message: "503 Service Unavailable", retryable: true },
        request: null,
        response: { status: 503, headers: null, body: "try later" },
        timing: null
      },
      {
        number: 2,
        epoch: 1,
        outcome: "succeeded",
        error: null,
        request: null,
        response: { status: 200, headers: null, body: "thanks" },
        timing: null
      }
    ])

    const stream = (await call("GET", `/api/v1/streams/message-${id}`)).json["items"]
    expect(stream[1]).toMatchObject({
      version: 2,
      name: "AttemptStarted@1",
      type: "AttemptStarted",
      data: { epoch: 1, attempt: 1 }
    })
    expect(stream).toHaveLength(6)
  })

  it("comes in pages, whose cursors lead nowhere else", async () => {
    const id = await accepted()
    await append(id, [started(1)])
    await append(id, [failed(1, noonPlus(1000))], "try later")
    await append(id, [started(2)])
    await append(id, [succeeded(2), delivered("response")], "thanks")
    const history = `/api/v1/outbound/messages/${id}`
    const paged = async (path: string) => {
      const pages: Array<ReadonlyArray<Record<string, unknown>>> = []
      let cursor: string | null = null
      do {
        const { json, status } = await call("GET", `${path}?limit=4${cursor === null ? "" : `&cursor=${cursor}`}`)
        expect(status).toBe(200)
        pages.push(json["items"])
        cursor = json["nextCursor"]
      } while (cursor !== null)
      return pages
    }
    for (const path of [`${history}/events`, `/api/v1/streams/message-${id}`]) {
      const pages = await paged(path)
      expect(pages.map((items) => items.map(({ version }) => version))).toEqual([
        [1, 2, 3, 4],
        [5, 6]
      ])
    }
    const held = await posthaste.endpoint()
    for (const verb of ["hold", "reset", "hold", "reset", "hold"])
      expect((await call("POST", `/api/v1/circuits/${held}/${verb}`)).status).toBe(200)
    expect((await paged(`/api/v1/streams/circuit-${held}`)).map(({ length }) => length)).toEqual([4, 1])
    expect((await call("GET", `${history}/attempts?limit=1`)).json["items"]).toHaveLength(1)
    const { nextCursor } = (await call("GET", `${history}/attempts?limit=1`)).json as { nextCursor: string }
    expect((await call("GET", `${history}/attempts?cursor=${nextCursor}`)).json["items"]).toMatchObject([{ number: 2 }])
    for (const wrong of [`events?cursor=${nextCursor}`, "events?limit=0", "events?limit=1001"])
      expect((await call("GET", `${history}/${wrong}`)).status, wrong).toBe(400)
  })

  it("can be asked for the message as it was", async () => {
    const id = await accepted()
    await new Promise((resolve) => setTimeout(resolve, 5))
    await append(id, [started(1)])
    await append(id, [succeeded(1), delivered("response")])
    const facts = (await get(id, "/events")).json["items"]
    expect((await get(id)).json["status"]).toBe("DELIVERED")
    expect((await get(id, `?at=${facts[0].at}`)).json["status"]).toBe("QUEUED")
    expect((await get(id, "?at=2001-01-01T00:00:00Z")).status).toBe(404)
  })
})

describe("a dead letter that is dismissed", () => {
  it("leaves the list unless it is asked for, and stays what it is", async () => {
    const id = await accepted()
    await append(id, [started(1), failed(1, null), refusedForGood("response")])
    const list = async (query = "") => {
      const answer = await call("GET", `/api/v1/dead-letters?limit=200${query}`)
      return answer.json["items"].map((each: { id: string }) => each.id)
    }
    await project()
    expect(await list()).toContain(id)
    const dismissed = await call("POST", `${messages}/${id}/dismiss`, { body: { reason: "seen" } })
    expect(dismissed.json).toMatchObject({ id, status: "FAILED", dismissed: true })
    await project()
    expect(await list()).not.toContain(id)
    expect(await list("&dismissed=true")).toContain(id)
    expect((await call("GET", "/api/v1/dead-letters?dismissed=perhaps")).status).toBe(400)
  })
})

describe("a command", () => {
  it("cancels a message that waits, and says why a second time is too late", async () => {
    const id = await accepted()
    const cancelled = await call("POST", `${messages}/${id}/cancel`, { body: { reason: "changed our mind" } })
    expect(cancelled.status).toBe(200)
    expect(cancelled.json).toMatchObject({ id, status: "CANCELLED", nextAttemptAt: null })
    expect((await get(id, "/events")).json["items"][1].data).toEqual({ reason: "changed our mind" })
    const again = await call("POST", `${messages}/${id}/cancel`)
    expect(again.status).toBe(409)
    expect(again.json["detail"]).toBe("The message is CANCELLED; it takes no command now.")
  })

  it("replays a message that ended badly, once", async () => {
    const id = await accepted({ retry: { strategy: "fixed", baseMs: 0, attemptsMax: 1 } })
    await append(id, [started(1)])
    await append(id, [failed(1, null), deadLettered()])
    const replayed = await call("POST", `${messages}/${id}/replay`)
    expect(replayed.status).toBe(200)
    expect(replayed.json).toMatchObject({ id, status: "QUEUED", epoch: 2, attempts: 0 })
    const again = await call("POST", `${messages}/${id}/replay`)
    expect(again.status).toBe(409)
    expect(again.json["detail"]).toBe("The message is QUEUED; allowed now: cancel.")
  })

  it("names what is allowed instead", async () => {
    const id = await accepted()
    await append(id, [started(1)])
    await append(id, [failed(1, null, { error: gone, status: 410 }), refusedForGood("response")])
    const refused = await call("POST", `${messages}/${id}/cancel`, { body: {} })
    expect(refused.status).toBe(409)
    expect(refused.json["detail"]).toBe("The message is FAILED; allowed now: replay, dismiss.")
  })

  it("refuses a field it does not know", async () => {
    expect(field(await call("POST", `${messages}/${await accepted()}/cancel`, { body: { why: "x" } }))).toEqual(["why"])
  })
})

describe("the list of messages", () => {
  it("is paged, newest first, each message once", async () => {
    const org = "lister"
    const mine = await posthaste.endpoint(org)
    const sent: Array<string> = []
    for (let n = 0; n < 7; n++) sent.push((await send(request({ to: mine }), { org })).json["id"])
    await project()
    const seen: Array<string> = []
    let cursor: string | null = null
    do {
      const query: string = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`
      const page = (await call("GET", `${messages}?limit=3${query}`, { org })).json
      expect(page["items"].length).toBeLessThanOrEqual(3)
      if (page["items"].length > 0) expect(Object.keys(page["items"][0])).toEqual(shape)
      seen.push(...page["items"].map((item: { id: string }) => item.id))
      cursor = page["nextCursor"]
    } while (cursor !== null)
    expect([...seen].sort()).toEqual([...sent].sort())
    const times = (await call("GET", messages, { org })).json["items"].map(
      (item: { createdAt: string }) => item.createdAt
    )
    expect(times).toEqual([...times].sort().reverse())
  })

  it("shows what every filter asks for", async () => {
    const org = "filterer"
    const mine = await posthaste.endpoint(org)
    const wanted = (await send(request({ to: mine, eventType: "a", dossierId: "D", correlationId: "C" }), { org })).json
    const other = await posthaste.endpoint(org)
    await new Promise((resolve) => setTimeout(resolve, 5))
    const later = (await send(request({ to: other, eventType: "b" }), { org })).json
    await append(later["id"], [{ type: "MessageCancelled", reason: null }])
    await project()
    const ids = async (query: string) =>
      (await call("GET", `${messages}?${query}`, { org })).json["items"].map((item: { id: string }) => item.id)
    for (const query of [
      "status=QUEUED",
      `to=${mine}`,
      "eventType=a",
      "dossierId=D",
      "correlationId=C",
      `createdBefore=${later["createdAt"]}`,
      "channel=webhook&status=QUEUED"
    ]) {
      expect(await ids(query), query).toEqual([wanted["id"]])
    }
    expect(await ids(`createdAfter=${wanted["createdAt"]}`)).toEqual([later["id"]])
    expect(await ids("channel=http")).toEqual([])
  })

  it.each([
    ["limit=0", "limit"],
    ["limit=201", "limit"],
    ["limit=ten", "limit"],
    ["limit=1&limit=2", "limit"],
    ["cursor=nonsense", "cursor"],
    ["cursor=", "cursor"],
    ["status=LOST", "status"],
    ["staus=QUEUED", "staus"],
    ["createdAfter=yesterday", "createdAfter"],
    ["createdAfter=0000-01-01T00:00:00Z", "createdAfter"],
    ["to=%00", "to"],
    ["dossierId=", "dossierId"]
  ])("refuses %s by name", async (query, name) => {
    const answer = await call("GET", `${messages}?${query}`)
    expect(answer.status).toBe(400)
    expect(field(answer)).toEqual([name])
  })
})

describe("the stats", () => {
  it("count the org's messages by status, and tell how late the latest is", async () => {
    const org = "counter"
    const mine = await posthaste.endpoint(org)
    const first = (await send(request({ to: mine }), { org })).json
    const second = (await send(request({ to: mine }), { org })).json
    await append(second["id"], [{ type: "MessageCancelled", reason: null }])
    await project()
    await new Promise((resolve) => setTimeout(resolve, 5))
    const counts = {
      QUEUED: 1,
      SENDING: 0,
      SENT: 0,
      DELIVERED: 0,
      FAILED: 0,
      DEAD_LETTER: 0,
      CANCELLED: 1,
      EXPIRED: 0
    }
    expect((await call("GET", "/api/v1/outbound/stats", { org })).json).toMatchObject({
      byStatus: counts,
      byChannel: { webhook: counts },
      oldestDueAt: first["nextAttemptAt"],
      receipts: { waiting: 0, parked: 0 }
    })
    expect(DateTime.isDateTime(DateTime.makeUnsafe(first["nextAttemptAt"]))).toBe(true)
  })
})
