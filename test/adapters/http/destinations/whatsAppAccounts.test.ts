import { describe, expect, it } from "vitest"
import { field, start } from "../served.ts"

const { call, send, logged } = await start()
const accounts = "/api/v1/whatsapp-accounts"
const secrets = { accessToken: "EAAG1", appSecret: "abc", verifyToken: "hub" }
let numbers = 1_000
const newNumber = () => String(++numbers)
const create = (body: object = {}, org = "acme") =>
  call("POST", accounts, { body: { phoneNumberId: newNumber(), ...secrets, ...body }, org })

describe("a WhatsApp account", () => {
  it("is made with what most need, and found again", async () => {
    const made = await create()
    expect(made.status).toBe(201)
    expect(made.json).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      orgId: "acme",
      phoneNumberId: String(numbers),
      graphVersion: "v25.0",
      retry: null,
      rateLimit: { limit: 80, periodMs: 1_000 },
      maxInFlight: 50,
      timeoutMs: 15_000,
      onDeadLetter: "skip",
      verifySignature: true,
      reconcile: { waitMs: 120_000, otherwise: "deadLetter" },
      paused: false,
      state: "ACTIVE",
      disabledReason: null,
      version: 1,
      createdAt: expect.stringMatching(/Z$/),
      updatedAt: expect.stringMatching(/Z$/)
    })
    const path = `${accounts}/${made.json["id"]}`
    expect(made.headers.get("location")).toBe(path)
    expect((await call("GET", path)).json).toEqual(made.json)
    expect((await call("GET", accounts)).json["items"]).toContainEqual(made.json)
  })

  it("takes everything it can be told", async () => {
    const told = {
      graphVersion: "v26.0",
      retry: { strategy: "fixed", baseMs: 10 },
      rateLimit: { limit: 20, periodMs: 1000 },
      maxInFlight: 3,
      timeoutMs: 2000,
      onDeadLetter: "block",
      verifySignature: false,
      reconcile: { waitMs: 60_000, otherwise: "resend" }
    }
    expect((await create(told)).json).toMatchObject(told)
  })

  it("never shows a secret, in no answer and no log", async () => {
    const canary = "EAAG_canary"
    const made = await create({ accessToken: canary, appSecret: `${canary}2`, verifyToken: `${canary}3` })
    const path = `${accounts}/${made.json["id"]}`
    const answers = [
      made,
      await call("GET", path),
      await call("GET", accounts),
      await call("PATCH", path, { body: { accessToken: `${canary}4`, verifyToken: `${canary}5` } }),
      await create({ phoneNumberId: made.json["phoneNumberId"], accessToken: canary }),
      await call("PATCH", path, { body: { accessToken: `${canary} with blanks` } }),
      await call("PATCH", path, { body: { appSecret: [canary] } })
    ]
    expect(answers.map(({ status }) => status)).toEqual([201, 200, 200, 200, 409, 400, 400])
    expect(answers.map(({ text }) => text).join()).not.toContain(canary)
    expect(logged.join()).not.toContain(canary)
  })

  it("has its number for itself, over all orgs, until it is removed", async () => {
    const made = await create()
    const { id, phoneNumberId } = made.json
    for (const org of ["acme", "globex"]) {
      const again = await create({ phoneNumberId }, org)
      expect([again.status, again.json["type"]]).toEqual([409, "urn:posthaste:problem:number-taken"])
      expect(field(again)).toEqual(["phoneNumberId"])
      expect(again.text).not.toContain(id)
    }
    await call("DELETE", `${accounts}/${id}`)
    expect((await create({ phoneNumberId }, "globex")).status).toBe(201)
  })

  it.each([
    ["no number", { phoneNumberId: undefined }, ["phoneNumberId"]],
    ["a number that leaves the path", { phoneNumberId: "1/../2" }, ["phoneNumberId"]],
    ["a version that leaves the path", { graphVersion: "v25.0/x" }, ["graphVersion"]],
    ["no version", { graphVersion: "25" }, ["graphVersion"]],
    ["a secret that is left out", { appSecret: undefined }, ["appSecret"]],
    ["a token that is no header", { accessToken: "a\r\nb: c" }, ["accessToken"]],
    [
      "another way to reconcile",
      { reconcile: { waitMs: 1, otherwise: "hope" } },
      ["reconcile.otherwise", "reconcile.waitMs"]
    ],
    ["bounds that are crossed", { maxInFlight: 0, timeoutMs: 60_000 }, ["maxInFlight", "timeoutMs"]],
    ["a field that is none", { displayName: "Shop" }, ["displayName"]]
  ])("is refused by name: %s", async (_, body, wrong) => {
    const answer = await create(body)
    expect(answer.status).toBe(400)
    expect([...field(answer)].sort()).toEqual(wrong)
  })

  it("changes only what was named, null puts a field back, and the number stays", async () => {
    const { id } = (await create({ maxInFlight: 3, retry: { strategy: "fixed", baseMs: 1 } })).json
    const change = (body: object) => call("PATCH", `${accounts}/${id}`, { body })
    expect((await change({ timeoutMs: 700 })).json).toMatchObject({ maxInFlight: 3, timeoutMs: 700, version: 2 })
    expect((await change({ maxInFlight: null, retry: null, timeoutMs: null })).json).toMatchObject({
      maxInFlight: 50,
      retry: null,
      timeoutMs: 15_000
    })
    expect(field(await change({ phoneNumberId: "17" }))).toEqual(["phoneNumberId"])
    expect(field(await change({ appSecret: null }))).toEqual(["appSecret"])
  })

  it("takes messages to phone numbers", async () => {
    const request = { channel: "whatsapp", to: "+49 151 12345678", payloadJson: { text: "Hello" } }
    expect(field(await send(request, { org: "sender" }))).toEqual(["channel"])
    await create({}, "sender")
    expect((await send(request, { org: "sender" })).json).toMatchObject({
      channel: "whatsapp",
      to: "4915112345678",
      status: "QUEUED",
      attemptsMax: 6
    })
    expect(field(await send({ ...request, payloadJson: {} }, { org: "sender" }))).toEqual(["payloadJson"])
  })
})

describe("a phone number", () => {
  it("is bound by whoever has a token that acts for it", async () => {
    const phoneNumberId = newNumber()
    const refused = await create({ phoneNumberId, accessToken: "forbidden" })
    expect([refused.status, field(refused)]).toEqual([400, ["accessToken"]])
    const unanswered = await create({ phoneNumberId, accessToken: "unanswered" })
    expect(unanswered.status).toBe(503)
    expect(unanswered.json["detail"]).toContain("Nothing was stored")
    // Neither took the number.
    const { status, json } = await create({ phoneNumberId })
    expect(status).toBe(201)
    const path = `${accounts}/${json["id"]}`
    expect(field(await call("PATCH", path, { body: { accessToken: "forbidden" } }))).toEqual(["accessToken"])
    expect((await call("PATCH", path, { body: { accessToken: "unanswered" } })).status).toBe(503)
    expect((await call("PATCH", path, { body: { accessToken: "EAAG2" } })).status).toBe(200)
    expect((await call("GET", path)).json["version"]).toBe(2)
  })

  it("is no more known as taken than as free to whoever has none", async () => {
    const phoneNumberId = newNumber()
    await create({ phoneNumberId })
    const taken = await create({ phoneNumberId, accessToken: "forbidden" }, "globex")
    const free = await create({ phoneNumberId: newNumber(), accessToken: "forbidden" }, "globex")
    expect(taken.text).toBe(free.text)
    // Moving it needs the proof as well.
    expect((await create({ phoneNumberId }, "globex")).status).toBe(409)
  })
})
