import { describe, expect, it } from "vitest"
import { field, start } from "../served.ts"

const { call, bodyOf, logged } = await start()
const targets = "/api/v1/alert-targets"
const url = "https://ops.example/alerts"
const routingKey = "e93facc04764012d7bfb002500d5d1a6"
const create = (body: object, org = "acme") => call("POST", targets, { org, body })

describe("a webhook alert target", () => {
  it("is told of everything unless it says otherwise, and shows its secret once", async () => {
    const made = await create({ type: "webhook", url })
    expect(made.status).toBe(201)
    expect(made.headers.get("location")).toBe(`${targets}/${made.json["id"]}`)
    const { secret, ...shown } = made.json
    expect(secret).toBe("whsec_made-by-the-policy")
    expect(shown).toMatchObject({
      orgId: "acme",
      type: "webhook",
      url,
      events: ["circuit", "deadLetter", "disabled", "commandRefused", "broker"],
      oldestDueSeconds: null,
      severity: null,
      description: null
    })
    expect((await call("GET", `${targets}/${shown["id"]}`)).json).toEqual(shown)
    expect((await call("GET", targets)).json["items"]).toContainEqual(shown)
  })

  it("brings its own secret, and its limit asks for its event", async () => {
    const made = await create({
      type: "webhook",
      url,
      secret: "whsec_mine",
      oldestDueSeconds: 300,
      description: "night"
    })
    expect(made.json).toMatchObject({
      secret: "whsec_mine",
      events: ["circuit", "deadLetter", "disabled", "commandRefused", "broker", "oldestDue"],
      oldestDueSeconds: 300,
      description: "night"
    })
  })

  it("is a webhook endpoint that no event for all endpoints reaches", async () => {
    const { id } = (await create({ type: "webhook", url })).json
    const endpoint = await call("GET", `/api/v1/webhook-endpoints/${id}`)
    expect(endpoint.json).toMatchObject({ id, url })
    expect(endpoint.json["eventTypes"].every((type: string) => type.startsWith("posthaste."))).toBe(true)
  })
})

describe("a PagerDuty alert target", () => {
  it("goes to PagerDuty unless another address is given", async () => {
    const made = await create({ type: "pagerduty", routingKey })
    expect(made.status).toBe(201)
    expect(made.json).toMatchObject({
      type: "pagerduty",
      url: "https://events.pagerduty.com/v2/enqueue",
      severity: null
    })
    expect(made.json).not.toHaveProperty("secret")
    const eu = "https://events.eu.pagerduty.com/v2/enqueue"
    const other = await create({ type: "pagerduty", routingKey, url: eu, severity: "info" })
    expect(other.json).toMatchObject({ url: eu, severity: "info" })
    const path = `${targets}/${other.json["id"]}`
    // Another place must not learn the key from whoever moves it.
    const refused = await call("PATCH", path, { body: { url: null, severity: null } })
    expect([refused.status, field(refused)]).toEqual([422, ["routingKey"]])
    const back = await call("PATCH", path, { body: { url: null, severity: null, routingKey } })
    expect(back.json).toMatchObject({ url: "https://events.pagerduty.com/v2/enqueue", severity: null })
  })

  it("never shows its key, in no answer, no stored body and no log", async () => {
    const made = await create({ type: "pagerduty", routingKey })
    const path = `${targets}/${made.json["id"]}`
    const test = await call("POST", `${path}/test`)
    const answers = [
      made,
      test,
      await call("GET", path),
      await call("GET", targets),
      await call("GET", `/api/v1/http-targets/${made.json["id"]}`),
      await call("PATCH", path, { body: { routingKey } }),
      await call("PATCH", path, { body: { routingKey: `${routingKey}x` } }),
      await create({ type: "pagerduty", routingKey: `${routingKey}x` })
    ]
    expect(answers.map(({ status }) => status)).toEqual([201, 202, 200, 200, 200, 200, 400, 400])
    for (const id of test.json["messageIds"]) {
      const body = await bodyOf(id)
      expect(body).toContain("event_action")
      expect(body).not.toContain(routingKey)
    }
    expect(answers.map(({ text }) => text).join()).not.toContain(routingKey)
    expect(logged.join()).not.toContain(routingKey)
  })
})

describe("an alert target", () => {
  it.each([
    ["no type", { url }, ["type"]],
    ["a type there is not", { type: "pager", url }, ["type"]],
    ["a webhook without a URL", { type: "webhook" }, ["url"]],
    ["a webhook with a routing key", { type: "webhook", url, routingKey }, ["routingKey"]],
    ["a URL the policy forbids", { type: "webhook", url: "https://forbidden" }, ["url"]],
    ["a secret the policy forbids", { type: "webhook", url, secret: "mine" }, ["secret"]],
    ["PagerDuty without a key", { type: "pagerduty" }, ["routingKey"]],
    ["a key that can't be one", { type: "pagerduty", routingKey: "short" }, ["routingKey"]],
    ["PagerDuty at a forbidden address", { type: "pagerduty", routingKey, url: "https://forbidden" }, ["url"]],
    ["a severity there is not", { type: "pagerduty", routingKey, severity: "loud" }, ["severity"]],
    ["an event there is not", { type: "webhook", url, events: ["circuit", "weather"] }, ["events[1]"]],
    ["no events", { type: "webhook", url, events: [] }, ["events"]],
    ["an event twice", { type: "webhook", url, events: ["circuit", "circuit"] }, ["events"]],
    ["overdue backlog without a limit", { type: "webhook", url, events: ["oldestDue"] }, ["oldestDueSeconds"]],
    ["a limit without overdue backlog", { type: "webhook", url, events: ["circuit"], oldestDueSeconds: 5 }, ["events"]],
    ["a limit of nothing", { type: "webhook", url, oldestDueSeconds: 0 }, ["oldestDueSeconds"]],
    ["a field that is none", { type: "webhook", url, enabled: true }, ["enabled"]]
  ])("is refused by name: %s", async (_, body, wrong) => {
    const answer = await create(body)
    expect(answer.status).toBe(400)
    expect([...field(answer)].sort()).toEqual(wrong)
  })

  it("changes only what was named, and its limit switches its event", async () => {
    const { id } = (await create({ type: "webhook", url, events: ["circuit"] })).json
    const change = (body: object) => call("PATCH", `${targets}/${id}`, { body })
    expect((await change({ oldestDueSeconds: 60 })).json).toMatchObject({
      url,
      events: ["circuit", "oldestDue"],
      oldestDueSeconds: 60
    })
    expect((await change({ url: "https://new.example/a" })).json).toMatchObject({
      url: "https://new.example/a",
      oldestDueSeconds: 60
    })
    expect((await change({ oldestDueSeconds: null })).json).toMatchObject({
      events: ["circuit"],
      oldestDueSeconds: null
    })
    expect((await change({ events: null })).json).toMatchObject({
      events: ["circuit", "deadLetter", "disabled", "commandRefused", "broker"]
    })
    for (const [body, wrong] of [
      [{ url: "https://forbidden" }, "url"],
      [{ url: null }, "url"],
      [{ routingKey }, "routingKey"],
      [{ severity: "info" }, "severity"],
      [{ events: ["oldestDue"] }, "oldestDueSeconds"],
      [{ type: "pagerduty" }, "type"]
    ] as const) {
      const refused = await change(body)
      expect([refused.status, field(refused)]).toEqual([400, [wrong]])
    }
    expect((await call("GET", `${targets}/${id}`)).json).toMatchObject({
      url: "https://new.example/a",
      events: ["circuit", "deadLetter", "disabled", "commandRefused", "broker"]
    })
  })

  it("is tested by a trouble that is over at once", async () => {
    const { id } = (await create({ type: "webhook", url })).json
    const answer = await call("POST", `${targets}/${id}/test`)
    expect(answer.status).toBe(202)
    const bodies = []
    for (const message of answer.json["messageIds"]) bodies.push(JSON.parse((await bodyOf(message))!))
    expect(bodies.map(({ type, data }) => [type, data.action])).toEqual([
      ["posthaste.test", "trigger"],
      ["posthaste.test.ended", "resolve"]
    ])
    expect(bodies[0].data.subject).toBe(bodies[1].data.subject)
    const again = await call("POST", `${targets}/${id}/test`)
    expect(again.json["messageIds"]).not.toEqual(answer.json["messageIds"])
  })

  it.each([
    ["webhook", { type: "webhook", url }, "webhook-endpoints"],
    ["PagerDuty", { type: "pagerduty", routingKey }, "http-targets"]
  ])("of %s goes with its destination, whichever is removed", async (_, body, kind) => {
    const [first, second] = [(await create(body)).json["id"], (await create(body)).json["id"]]
    const removed = await call("DELETE", `${targets}/${first}`)
    expect([removed.status, removed.text]).toEqual([204, ""])
    expect((await call("GET", `/api/v1/${kind}/${first}`)).status).toBe(404)
    expect((await call("DELETE", `/api/v1/${kind}/${second}`)).status).toBe(204)
    for (const id of [first, second]) {
      expect((await call("GET", `${targets}/${id}`)).status).toBe(404)
      expect((await call("PATCH", `${targets}/${id}`, { body: {} })).status).toBe(404)
      expect((await call("POST", `${targets}/${id}/test`)).status).toBe(404)
      expect((await call("DELETE", `${targets}/${id}`)).status).toBe(404)
    }
  })

  it("is no endpoint that merely exists", async () => {
    const { id } = (await call("POST", "/api/v1/webhook-endpoints", { body: { url } })).json
    expect((await call("GET", `${targets}/${id}`)).status).toBe(404)
    expect((await call("DELETE", `${targets}/${id}`)).status).toBe(404)
    expect((await call("GET", `/api/v1/webhook-endpoints/${id}`)).status).toBe(200)
  })

  it("is listed page by page", async () => {
    const ids: Array<string> = []
    for (let n = 0; n < 5; n++) ids.push((await create({ type: "webhook", url }, "pager")).json["id"])
    const first = (await call("GET", `${targets}?limit=3`, { org: "pager" })).json
    const second = (await call("GET", `${targets}?limit=3&cursor=${first["nextCursor"]}`, { org: "pager" })).json
    const seen = [...first["items"], ...second["items"]].map((item: { id: string }) => item.id)
    expect(seen.sort()).toEqual(ids.sort())
    expect(second["nextCursor"]).toBeNull()
  })
})

describe("the alert targets of an org", () => {
  it("are twenty at most: each alert goes to all of them", async () => {
    const made: Array<string> = []
    for (let n = 0; n < 20; n++) made.push((await create({ type: "webhook", url }, "many")).json["id"])
    const refused = await create({ type: "pagerduty", routingKey }, "many")
    expect([refused.status, refused.json["type"]]).toEqual([429, expect.stringContaining("limit-reached")])
    expect(refused.headers.get("retry-after")).toBe("3600")
    expect((await call("DELETE", `${targets}/${made[0]}`, { org: "many" })).status).toBe(204)
    expect((await create({ type: "pagerduty", routingKey }, "many")).status).toBe(201)
  })
})
