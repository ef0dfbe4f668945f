import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { Orgs, unset } from "../../../../src/application/ports/Orgs.ts"
import { OrgId } from "../../../../src/domain/ids.ts"
import { selfSigned } from "../../channels/net/certificate.ts"
import { field, type Json, start } from "../served.ts"

const { call, makeKey, project, run } = await start()
const endpoints = "/api/v1/webhook-endpoints"
const create = (body: object) => call("POST", endpoints, { body })

describe("a webhook endpoint", () => {
  it("shows its secret in the answer that made it, and never again", async () => {
    const made = await create({ url: "https://shop.example/hook" })
    expect(made.status).toBe(201)
    const { secret, ...rest } = made.json
    expect(secret).toBe("whsec_made-by-the-policy")
    expect(rest).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      orgId: "acme",
      url: "https://shop.example/hook",
      eventTypes: null,
      description: null,
      signature: "standard",
      retry: null,
      rateLimit: null,
      maxInFlight: 50,
      timeoutMs: 15_000,
      onDeadLetter: "skip",
      headers: {},
      disableAfterMs: 432_000_000,
      caCertificate: null,
      clientCertificate: null,
      publicKey: null,
      paused: false,
      state: "ACTIVE",
      disabledReason: null,
      version: 1,
      createdAt: expect.stringMatching(/Z$/),
      updatedAt: expect.stringMatching(/Z$/)
    })
    expect(made.headers.get("location")).toBe(`${endpoints}/${rest["id"]}`)
    const read = await call("GET", `${endpoints}/${rest["id"]}`)
    expect(read.json).toEqual(rest)
    const listed = await call("GET", endpoints)
    expect(listed.json["items"]).toContainEqual(rest)
    expect(read.text + listed.text).not.toContain("whsec_")
  })

  it("can have a client certificate, whose key nobody sees again, and an authority of its own", async () => {
    const [ours, other] = [selfSigned("posthaste.example"), selfSigned("other.example")]
    const url = "https://shop.example/mutual"
    const make = (body: Json) => call("POST", endpoints, { body: { url, ...body } })
    const made = await make({ caCertificate: other.cert, clientCertificate: ours.cert + ours.key })
    expect(made.status).toBe(201)
    expect(made.json).toMatchObject({ caCertificate: other.cert, clientCertificate: ours.cert })
    const path = `${endpoints}/${made.json["id"]}`
    const read = await call("GET", path)
    expect(made.text + read.text).not.toContain("PRIVATE KEY")
    const faultsOf = async (body: Json) => field(await make(body))
    expect(await faultsOf({ clientCertificate: ours.cert })).toEqual(["clientCertificate"])
    expect(await faultsOf({ clientCertificate: ours.cert + other.key })).toEqual(["clientCertificate"])
    expect(await faultsOf({ clientCertificate: ours.key, caCertificate: "x" })).toEqual(
      expect.arrayContaining(["caCertificate", "clientCertificate"])
    )
    const patch = (body: Json) => call("PATCH", path, { body })
    expect((await patch({ clientCertificate: ours.cert, description: "same" })).status).toBe(200)
    expect(field(await patch({ clientCertificate: other.cert }))).toContain("clientCertificate")
    const renewed = await patch({ clientCertificate: other.cert + other.key })
    expect(renewed.json).toMatchObject({ clientCertificate: other.cert })
    const removed = await patch({ clientCertificate: null, caCertificate: null })
    expect(removed.json).toMatchObject({ clientCertificate: null, caCertificate: null })
    expect(field(await patch({ clientCertificate: other.cert }))).toContain("clientCertificate")
  })

  it("takes everything it can be told", async () => {
    const told = {
      url: "https://shop.example/all",
      eventTypes: ["order.paid", "order.*"],
      description: "all of it",
      signature: "legacy",
      retry: {
        strategy: "exponential",
        baseMs: 100,
        capMs: 1000,
        factor: 3,
        attemptsMax: 4,
        ageMaxMs: 5000,
        jitter: [0.5, 1]
      },
      rateLimit: { limit: 10, periodMs: 1000 },
      maxInFlight: 3,
      timeoutMs: 2000,
      headers: { "x-tenant": "5" }
    }
    const made = await create({ ...told, secret: "whsec_mine" })
    // The value of a header may be a credential.
    expect(made.json).toMatchObject({ ...told, headers: { "x-tenant": "***" }, secret: "whsec_mine" })
  })

  it.each([
    ["no URL", {}, ["url"]],
    ["a URL the policy forbids", { url: "https://forbidden" }, ["url"]],
    ["headers the policy forbids", { url: "https://x", headers: { forbidden: "1" } }, ["headers"]],
    ["a secret the policy forbids", { url: "https://x", secret: "short" }, ["secret"]],
    ["a header that is no text", { url: "https://x", headers: { a: 1 } }, ["headers.a"]],
    ["bounds that are crossed", { url: "https://x", maxInFlight: 0, timeoutMs: 60_000 }, ["maxInFlight", "timeoutMs"]],
    ["half a rate limit", { url: "https://x", rateLimit: { limit: 1 } }, ["rateLimit.periodMs"]],
    ["an unknown signature", { url: "https://x", signature: "none" }, ["signature"]],
    ["a field that is none", { url: "https://x", disabled: true }, ["disabled"]]
  ])("is refused by name: %s", async (_, body, wrong) => {
    const answer = await create(body)
    expect(answer.status).toBe(400)
    expect([...field(answer)].sort()).toEqual(wrong)
  })

  it("changes only what was named, and null puts a field back", async () => {
    const { id } = (await create({ url: "https://a", description: "d", maxInFlight: 3, eventTypes: ["x"] })).json
    const changed = await call("PATCH", `${endpoints}/${id}`, { body: { maxInFlight: 7, description: null } })
    expect(changed.status).toBe(200)
    expect(changed.json).toMatchObject({
      url: "https://a",
      description: null,
      maxInFlight: 7,
      eventTypes: ["x"],
      version: 2
    })
    const reset = await call("PATCH", `${endpoints}/${id}`, { body: { maxInFlight: null, eventTypes: null } })
    expect(reset.json).toMatchObject({ maxInFlight: 50, eventTypes: null })
    const refused = await call("PATCH", `${endpoints}/${id}`, { body: { url: "https://forbidden", secret: "x" } })
    expect(field(refused)).toEqual(["secret"])
    expect(field(await call("PATCH", `${endpoints}/${id}`, { body: { url: "https://forbidden" } }))).toEqual(["url"])
  })

  it("is gone once it is removed", async () => {
    const { id } = (await create({ url: "https://a" })).json
    const removed = await call("DELETE", `${endpoints}/${id}`)
    expect([removed.status, removed.text]).toEqual([204, ""])
    expect((await call("GET", `${endpoints}/${id}`)).status).toBe(404)
    expect((await call("DELETE", `${endpoints}/${id}`)).status).toBe(404)
    const sent = await call("POST", "/api/v1/outbound/messages", {
      body: { channel: "webhook", to: id, payloadJson: 1 }
    })
    expect(field(sent)).toEqual(["to"])
  })
})

describe("a retry policy", () => {
  it.each([
    ["no strategy", { waitsMs: [1] }, ["body"]],
    ["no waits", { strategy: "schedule", waitsMs: [] }, ["waitsMs"]],
    ["a wait of a text", { strategy: "schedule", waitsMs: [1, "2"] }, ["waitsMs[1]"]],
    ["fields of another strategy", { strategy: "fixed", baseMs: 1, waitsMs: [1] }, ["waitsMs"]],
    ["a range the wrong way round", { strategy: "fixed", baseMs: 1, jitter: [2, 1] }, ["jitter"]],
    ["too many attempts", { strategy: "fixed", baseMs: 1, attemptsMax: 101 }, ["attemptsMax"]]
  ])("is refused by name: %s", async (_, body, wrong) => {
    const { id } = (await create({ url: "https://a" })).json
    const answer = await call("PUT", `${endpoints}/${id}/retry-config`, { body })
    expect(answer.status).toBe(400)
    expect(field(answer)).toEqual(wrong)
  })

  const preset = ["preset", "names a whole policy: nothing may stand beside it"]
  const DAY = 86_400_000
  it.each([
    ["a preset and a strategy", { preset: "patient", strategy: "fixed", baseMs: 1 }, preset],
    ["a preset and a field of a strategy", { preset: "patient", attemptsMax: 3 }, preset],
    ["a preset that is none, and a strategy", { preset: "none", strategy: "schedule", waitsMs: [1] }, preset],
    [
      "an age of nothing",
      { strategy: "fixed", baseMs: 1, ageMaxMs: 0 },
      ["ageMaxMs", "must be 1000 or more: a message would be too old before it is sent"]
    ],
    [
      "an age before the first retry",
      { strategy: "schedule", waitsMs: [60_000], ageMaxMs: 59_999 },
      ["ageMaxMs", "must leave time for a retry: the first comes after 60000 ms or more"]
    ],
    [
      "a longest wait that is shorter than the first",
      { strategy: "linear", baseMs: 60_000, capMs: 30_000 },
      ["capMs", "must not be less than baseMs: no wait would be longer than 30000 ms"]
    ],
    [
      "a first wait that is longer than the longest by default",
      { strategy: "fixed", baseMs: DAY + 1 },
      ["capMs", `must not be less than baseMs: no wait would be longer than ${DAY} ms`]
    ],
    [
      "waits that grow from nothing",
      { strategy: "exponential", baseMs: 0 },
      ["baseMs", "must be above 0: waits that are exponential grow from it"]
    ],
    [
      "a factor that leaves no wait",
      { strategy: "fixed", baseMs: 1, jitter: [0, 0] },
      ["jitter", "must leave a wait: its second factor must be above 0"]
    ]
  ])("that contradicts itself is refused with one reason: %s", async (_, body, [wrong, reason]) => {
    const { id } = (await create({ url: "https://a" })).json
    const answer = await call("PUT", `${endpoints}/${id}/retry-config`, { body })
    expect([answer.status, answer.json["errors"]]).toEqual([400, [{ field: wrong, reason }]])
    const within = await create({ url: "https://a", retry: body, maxInFlight: 0 })
    expect(field(within).toSorted()).toEqual(["maxInFlight", `retry.${wrong}`])
  })

  it.each([
    { strategy: "fixed", baseMs: 0 },
    { strategy: "fixed", baseMs: 2 * DAY, capMs: 2 * DAY },
    { strategy: "schedule", waitsMs: [0, 60_000], ageMaxMs: 1_000 },
    { strategy: "schedule", waitsMs: [60_000], attemptsMax: 1, ageMaxMs: 1_000 },
    { strategy: "fixed", baseMs: 60_000, jitter: [0.5, 1], ageMaxMs: 30_000 }
  ])("that can be meant is taken: %j", async (body) => {
    const { id } = (await create({ url: "https://a" })).json
    expect(await call("PUT", `${endpoints}/${id}/retry-config`, { body })).toMatchObject({ status: 200, json: body })
  })

  it("that was stored when it was not refused yet is shown and used as it is", async () => {
    const retry = { strategy: "exponential", baseMs: 0, ageMaxMs: 0 } as const
    await run(Effect.flatMap(Orgs, ({ set }) => set(OrgId.make("of-before"), { ...unset, retry })))
    const { id } = (await call("POST", endpoints, { org: "of-before", body: { url: "https://a" } })).json
    expect((await call("GET", `${endpoints}/${id}/retry-config`, { org: "of-before" })).json).toEqual(retry)
    expect((await call("GET", "/api/v1/orgs/of-before", { org: null })).json).toMatchObject({ retry })
  })
})

describe("the secret of a webhook endpoint", () => {
  const org = "rotating"
  const made = async () =>
    (await call("POST", endpoints, { org, body: { url: "https://a", secret: "whsec_first" } })).json
  const rotate = (id: string, body?: object) => call("POST", `${endpoints}/${id}/secret/rotate`, { org, body })
  const read = (id: string) => call("GET", `${endpoints}/${id}/secret`, { org })
  const DAY = 86_400_000
  const fromNow = (text: string) => Date.parse(text) - Date.now()

  it("is replaced by a new one, and is good for a day more", async () => {
    const { id } = await made()
    const answer = await rotate(id)
    expect([answer.status, answer.json["secret"]]).toEqual([200, "whsec_made-by-the-policy"])
    expect(Math.abs(fromNow(answer.json["previousUntil"]) - DAY)).toBeLessThan(10_000)
    const again = await read(id)
    expect(again.json).toEqual(answer.json)
    expect(again.headers.get("cache-control")).toBe("no-store")
    expect((await call("GET", `${endpoints}/${id}`, { org })).json).toMatchObject({ version: 2 })
  })

  it("is replaced by a given one, for as long as is said, or ends at once with those before it", async () => {
    const { id } = await made()
    const month = await rotate(id, { secret: "whsec_second", graceSeconds: 30 * 86_400 })
    expect(month.json["secret"]).toBe("whsec_second")
    expect(Math.abs(fromNow(month.json["previousUntil"]) - 30 * DAY)).toBeLessThan(10_000)
    const last = { secret: "whsec_third", previousUntil: null }
    expect((await rotate(id, { secret: "whsec_third", graceSeconds: 0 })).json).toEqual(last)
    expect((await read(id)).json).toEqual(last)
  })

  it.each([
    ["a secret the policy forbids", { secret: "short" }, ["secret"]],
    ["a grace of more than 30 days", { graceSeconds: 30 * 86_400 + 1 }, ["graceSeconds"]],
    ["a grace before now", { graceSeconds: -1 }, ["graceSeconds"]],
    ["a field that is none", { grace: 1 }, ["grace"]]
  ])("is not replaced, and the field is named: %s", async (_, body, wrong) => {
    const { id } = await made()
    const answer = await rotate(id, body)
    expect([answer.status, field(answer)]).toEqual([400, wrong])
    expect((await read(id)).json).toEqual({ secret: "whsec_first", previousUntil: null })
  })

  it("is told to the audit when it is rotated or read, and not which it is", async () => {
    const { id } = await made()
    const key = await makeKey(org)
    await call("POST", `${endpoints}/${id}/secret/rotate`, { key, org: null, body: { secret: "whsec_second" } })
    const { previousUntil } = (await call("GET", `${endpoints}/${id}/secret`, { key, org: null })).json
    await project()
    const { json, text } = await call("GET", "/api/v1/audit", { org })
    const entries = json["items"].filter((entry: Json) => entry["subject"].id === id)
    expect(entries).toMatchObject([
      { operation: "SECRET_SHOWN", actor: expect.stringMatching(/^key:/), details: { name: "secret" } },
      {
        operation: "SECRET_ROTATED",
        actor: expect.stringMatching(/^key:/),
        details: { name: "secret", previousUntil }
      },
      { operation: "CREATED" }
    ])
    expect(text).not.toContain("whsec_")
  })

  it("is a private key where the endpoint signs by ed25519: only its public key is ever shown", async () => {
    const made = await call("POST", endpoints, { org, body: { url: "https://a", signature: "ed25519" } })
    const { id, publicKey } = made.json
    expect(publicKey).toMatch(/^whpk_[A-Za-z0-9+/]{43}=$/)
    const first = await read(id)
    expect(first.json).toEqual({ publicKey, previousUntil: null })
    const rotated = await rotate(id)
    expect(rotated.json["publicKey"]).toMatch(/^whpk_/)
    expect(rotated.json["publicKey"]).not.toBe(publicKey)
    expect(Math.abs(fromNow(rotated.json["previousUntil"]) - DAY)).toBeLessThan(10_000)
    const again = await read(id)
    expect(again.json).toEqual(rotated.json)
    const shown = await call("GET", `${endpoints}/${id}`, { org })
    expect(shown.json).toMatchObject({ publicKey: rotated.json["publicKey"], version: 2 })
    const listed = await call("GET", endpoints, { org })
    await project()
    const audit = await call("GET", "/api/v1/audit", { org })
    const entries = audit.json["items"].filter((entry: Json) => entry["subject"].id === id)
    expect(entries).toMatchObject([{ operation: "SECRET_ROTATED" }, { operation: "CREATED" }])
    for (const { text, json } of [made, first, rotated, again, shown, listed, audit]) {
      expect(text).not.toContain("whsk_")
      expect(json["secret"]).toBeUndefined()
    }
    const foreign = await call("GET", `${endpoints}/${id}/secret`)
    expect(foreign.status).toBe(404)
  })

  it("has no route where the secrets of a channel can't rotate", async () => {
    for (const path of ["http-targets", "whatsapp-accounts"]) {
      const route = `/api/v1/${path}/${crypto.randomUUID()}/secret`
      expect((await call("POST", `${route}/rotate`, { body: {} })).status).toBe(404)
      expect((await call("GET", route)).status).toBe(404)
    }
    const { json } = await call("GET", "/openapi.json", { key: null, org: null })
    expect(Object.keys(json["paths"]).filter((path) => path.includes("/secret"))).toEqual([
      `${endpoints}/{id}/secret`,
      `${endpoints}/{id}/secret/rotate`
    ])
  })
})
