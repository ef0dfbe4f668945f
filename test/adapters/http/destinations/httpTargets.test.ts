import { describe, expect, it } from "vitest"
import { field, start } from "../served.ts"

const { call, send, logged } = await start()
const targets = "/api/v1/http-targets"
const create = (body: object, org = "acme") => call("POST", targets, { body, org })
const url = "https://psp.example/charges"

describe("an HTTP target", () => {
  it("is made with what most need, and found again", async () => {
    const made = await create({ url })
    expect(made.status).toBe(201)
    expect(made.json).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      orgId: "acme",
      url,
      method: "POST",
      headers: {},
      bodyFields: {},
      secretNames: [],
      idempotency: "header",
      reconcile: null,
      retry: null,
      rateLimit: null,
      maxInFlight: 50,
      timeoutMs: 15_000,
      onDeadLetter: "skip",
      paused: false,
      state: "ACTIVE",
      disabledReason: null,
      version: 1,
      createdAt: expect.stringMatching(/Z$/),
      updatedAt: expect.stringMatching(/Z$/)
    })
    const path = `${targets}/${made.json["id"]}`
    expect(made.headers.get("location")).toBe(path)
    expect((await call("GET", path)).json).toEqual(made.json)
    expect((await call("GET", targets)).json["items"]).toContainEqual(made.json)
  })

  it("takes everything it can be told", async () => {
    const told = {
      url,
      method: "PUT",
      headers: { authorization: "{{token}}" },
      bodyFields: { key: "{{token}}" },
      idempotency: "none",
      reconcile: { url: "https://psp.example/charges/{messageId}" },
      retry: { strategy: "fixed", baseMs: 10 },
      rateLimit: { limit: 5, periodMs: 1000 },
      maxInFlight: 3,
      timeoutMs: 2000
    }
    const made = await create({ ...told, secrets: { token: "sk_1" } })
    expect(made.json).toMatchObject({ ...told, secretNames: ["token"] })
  })

  it("never shows a secret, in no answer and no log", async () => {
    const canary = "sk_live_canary"
    const made = await create({ url, secrets: { token: canary } })
    const path = `${targets}/${made.json["id"]}`
    const answers = [
      made,
      await call("GET", path),
      await call("GET", targets),
      await call("PATCH", path, { body: { secrets: { token: `${canary}2` } } }),
      await call("PATCH", path, { body: { secrets: { token: `forbidden ${canary}` } } }),
      await call("PATCH", path, { body: { secrets: { token: [canary] } } })
    ]
    expect(answers.map(({ status }) => status)).toEqual([201, 200, 200, 200, 400, 400])
    expect(answers.map(({ text }) => text).join()).not.toContain(canary)
    expect(logged.join()).not.toContain(canary)
  })

  it.each([
    ["no URL", {}, ["url"]],
    ["a URL the policy forbids", { url: "https://forbidden" }, ["url"]],
    ["a method that reads", { url, method: "GET" }, ["method"]],
    ["a header that names no secret", { url, headers: { a: "{{gone}}" }, secrets: { token: "1" } }, ["headers"]],
    ["a secret the policy forbids", { url, secrets: { token: "forbidden" } }, ["secrets.token"]],
    ["an unknown idempotency", { url, idempotency: "maybe" }, ["idempotency"]],
    ["a question with more than a URL", { url, reconcile: { url, method: "GET" } }, ["reconcile.method"]],
    ["bounds that are crossed", { url, maxInFlight: 0, timeoutMs: 60_000 }, ["maxInFlight", "timeoutMs"]],
    [
      "too many secrets",
      { url, secrets: Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`s${n}`, "1"])) },
      ["secrets"]
    ],
    ["a field that is none", { url, disabled: true }, ["disabled"]]
  ])("is refused by name: %s", async (_, body, wrong) => {
    const answer = await create(body)
    expect(answer.status).toBe(400)
    expect([...field(answer)].sort()).toEqual(wrong)
  })

  it("changes only what was named, and null puts a field back", async () => {
    const { id } = (await create({ url, method: "PUT", idempotency: "none", maxInFlight: 3 })).json
    const changed = await call("PATCH", `${targets}/${id}`, { body: { maxInFlight: 7, method: null } })
    expect(changed.status).toBe(200)
    expect(changed.json).toMatchObject({ url, method: "POST", idempotency: "none", maxInFlight: 7, version: 2 })
    const reset = await call("PATCH", `${targets}/${id}`, { body: { maxInFlight: null, idempotency: null } })
    expect(reset.json).toMatchObject({ maxInFlight: 50, idempotency: "header" })
    const keyed = await call("PATCH", `${targets}/${id}`, { body: { bodyFields: { kind: "charge" } } })
    expect(keyed.json).toMatchObject({ bodyFields: { kind: "charge" } })
    const bare = await call("PATCH", `${targets}/${id}`, { body: { bodyFields: null } })
    expect(bare.json).toMatchObject({ bodyFields: {} })
    expect(field(await call("PATCH", `${targets}/${id}`, { body: { url: "https://forbidden" } }))).toEqual(["url"])
  })

  it("keeps the secrets that a change does not name, and judges headers by those that are left", async () => {
    const { id } = (await create({ url, headers: { a: "{{one}}" }, secrets: { one: "1", two: "2" } })).json
    const change = (body: object) => call("PATCH", `${targets}/${id}`, { body })
    expect((await change({ secrets: { three: "3", two: null } })).json["secretNames"]).toEqual(["one", "three"])
    expect(field(await change({ secrets: { one: null } }))).toEqual(["headers"])
    expect(field(await change({ headers: { a: "{{two}}" } }))).toEqual(["headers"])
    const moved = await change({ headers: { a: "{{two}}" }, secrets: { one: null, two: "2" } })
    expect(moved.json).toMatchObject({ headers: { a: "{{two}}" }, secretNames: ["three", "two"] })
  })

  it("takes messages of the http channel, and of no other", async () => {
    const { id } = (await create({ url })).json
    expect((await send({ channel: "http", to: id, payloadJson: 1 })).json).toMatchObject({
      channel: "http",
      to: id,
      status: "QUEUED"
    })
    expect(field(await send({ channel: "webhook", to: id, payloadJson: 1 }))).toEqual(["to"])
  })

  it("is gone once it is removed", async () => {
    const { id } = (await create({ url })).json
    const removed = await call("DELETE", `${targets}/${id}`)
    expect([removed.status, removed.text]).toEqual([204, ""])
    expect((await call("GET", `${targets}/${id}`)).status).toBe(404)
    expect((await call("PATCH", `${targets}/${id}`, { body: {} })).status).toBe(404)
    expect((await call("DELETE", `${targets}/${id}`)).status).toBe(404)
    expect(field(await send({ channel: "http", to: id, payloadJson: 1 }))).toEqual(["to"])
  })
})
