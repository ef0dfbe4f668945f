import { Effect } from "effect"
import { beforeAll, describe, expect, it } from "vitest"
import type { EventStore } from "../../../../src/application/ports/EventStore.ts"
import { StoreUnavailable } from "../../../../src/application/ports/errors.ts"
import { type Answer, start } from "../served.ts"

/** What the store does with the next append: answers, does it but loses the answer, or does nothing. */
let mood: "well" | "loses its answer" | "is away" = "well"
const unavailable = Effect.fail(new StoreUnavailable({ cause: new Error("the connection to db-7 was lost") }))

const moody = (store: EventStore["Service"]): EventStore["Service"] => ({
  ...store,
  append: (entries) =>
    Effect.suspend(() => {
      if (mood === "is away") return unavailable
      // Both sides of the wire take their time, so that requests really overlap.
      const appended = store.append(entries).pipe(Effect.delay("5 millis"))
      return mood === "well" ? Effect.delay(appended, "5 millis") : Effect.andThen(appended, unavailable)
    }),
  load: (id) => Effect.suspend(() => (mood === "is away" ? unavailable : store.load(id)))
})

const posthaste = await start(moody)
const { call, send, project } = posthaste
let to: string
beforeAll(async () => {
  to = await posthaste.endpoint()
})

const request = (fields: object = {}) => ({ channel: "webhook", to, payloadJson: { order: 1 }, ...fields })
const withKey = (key: string, fields: object = {}, org = "acme") =>
  send(request(fields), { org, headers: { "idempotency-key": key } })

describe("an idempotency key", () => {
  it("makes the same request the same message", async () => {
    const first = await withKey("same")
    const again = await withKey("same")
    expect([first.status, again.status]).toEqual([201, 200])
    expect(again.json).toEqual(first.json)
  })

  it("answers with the message as it is by then", async () => {
    const first = await withKey("moved on")
    await call("POST", `/api/v1/outbound/messages/${first.json["id"]}/cancel`)
    expect((await withKey("moved on")).json).toMatchObject({ id: first.json["id"], status: "CANCELLED" })
  })

  it.each([
    ["payload", { payloadJson: { order: 2 } }],
    ["event type", { eventType: "x" }],
    ["delivery time", { deliverAt: "2100-01-01T00:00:00Z" }],
    ["retry policy", { retry: { strategy: "fixed", baseMs: 1 } }],
    ["metadata", { metadata: { a: "b" } }]
  ])("can't be used for another %s", async (what, fields) => {
    await withKey(what)
    const other = await withKey(what, fields)
    expect(other.status).toBe(409)
    expect(other.json["type"]).toBe("urn:posthaste:problem:idempotency-key-reused")
  })

  it("goes by the meaning of the payload: neither order, nor spaces, nor the spelling of a number count", async () => {
    const sendRaw = (raw: string) =>
      call("POST", "/api/v1/outbound/messages", {
        headers: { "idempotency-key": "meaning" },
        body: `{"channel":"webhook","to":"${to}","payloadJson":${raw}}`
      })
    expect((await sendRaw('{"n":1.0,"m":[]}')).status).toBe(201)
    expect((await sendRaw('{ "m": [], "n": 10e-1 }')).status).toBe(200)
    expect((await sendRaw('{"n":1.1,"m":[]}')).status).toBe(409)
  })

  it("does not mind the order of fields", async () => {
    const headers = { "idempotency-key": "order" }
    const retry = { strategy: "fixed", baseMs: 1, attemptsMax: 2 }
    const turned = { attemptsMax: 2, baseMs: 1, strategy: "fixed" }
    expect((await send({ ...request(), retry }, { headers })).status).toBe(201)
    expect((await send({ retry: turned, payloadJson: { order: 1 }, to, channel: "webhook" }, { headers })).status).toBe(
      200
    )
  })

  it("belongs to one org", async () => {
    const theirs = await posthaste.endpoint("globex")
    const mine = await withKey("shared")
    const other = await withKey("shared", { to: theirs }, "globex")
    expect(other.status).toBe(201)
    expect(other.json["id"]).not.toBe(mine.json["id"])
  })

  it("lets one of fifty racing requests in, and gives all of them its message", async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => withKey("race")))
    const statuses = answers.map(({ status }) => status).sort()
    expect(statuses).toEqual([...Array(49).fill(200), 201])
    expect(new Set(answers.map(({ json }) => json["id"])).size).toBe(1)
  })

  it("lets one of fifty racing different requests in, and refuses the others", async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, n) => withKey("race of others", { payloadJson: n }))
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(49).fill(409)])
  })

  it("makes it safe to ask again when the answer was lost", async () => {
    mood = "loses its answer"
    const lost = await withKey("lost")
    mood = "well"
    expect(lost.status).toBe(503)
    const again = await withKey("lost")
    const third = await withKey("lost")
    expect([again.status, third.status]).toEqual([200, 200])
    expect(third.json["id"]).toBe(again.json["id"])
    await project()
    const listed = (await call("GET", "/api/v1/outbound/messages?limit=200")).json["items"]
    expect(listed.filter((item: Answer["json"]) => item["id"] === again.json["id"])).toHaveLength(1)
  })

  it.each([
    ["empty", ""],
    ["too long", "k".repeat(256)],
    ["not printable ASCII", "schlüssel"],
    ["one of our own, which an alert may have", "posthaste:alert:endpoint-1:2"]
  ])("is refused by name when it is %s", async (_, key) => {
    const answer = await withKey(key)
    expect(answer.status).toBe(400)
    expect(answer.json["errors"][0].field).toBe("idempotency-key")
  })
})

describe("a store that does not answer", () => {
  it("is a 503 that says when to come back, and tells nothing about the store", async () => {
    mood = "is away"
    const answers = await Promise.all([
      withKey("away"),
      call("GET", `/api/v1/outbound/messages/${to}`),
      call("GET", "/readyz")
    ])
    mood = "well"
    for (const answer of answers) {
      expect(answer.status).toBe(503)
      expect(answer.headers.get("retry-after")).toBe("1")
      expect(answer.headers.get("content-type")).toBe("application/problem+json")
      expect(answer.text).not.toContain("db-7")
    }
    expect(posthaste.logged.join()).toContain("db-7")
    expect((await call("GET", "/readyz")).json).toMatchObject({ status: "ok" })
    expect((await withKey("away")).status).toBe(201)
  })
})
