/** What the routes of every kind of destination do alike. */
import { describe, expect, it } from "vitest"
import { presets } from "../../../../src/domain/delivery/retry.ts"
import { field, start } from "../served.ts"

const { call, logged } = await start()
const missing = "0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a99"
const canary = "sk_live_canary"
let numbers = 5_000

const kinds = [
  {
    path: "/api/v1/webhook-endpoints",
    required: () => ({ url: "https://shop.example/hook" }),
    secrets: () => ({ secret: `whsec_${canary}` }),
    retry: presets.webhook
  },
  {
    path: "/api/v1/http-targets",
    required: () => ({ url: "https://psp.example/charges" }),
    secrets: () => ({ secrets: { token: canary } }),
    retry: presets.webhook
  },
  {
    path: "/api/v1/whatsapp-accounts",
    required: () => ({ phoneNumberId: String(++numbers), accessToken: "EAAG1", appSecret: "abc", verifyToken: "hub" }),
    secrets: () => ({ accessToken: canary, appSecret: `${canary}2`, verifyToken: `${canary}3` }),
    retry: presets.whatsapp
  }
] as const

describe.each(kinds)("$path", ({ path, required, secrets, retry }) => {
  const create = async (fields: object = {}, org = "acme") =>
    (await call("POST", path, { org, body: { ...required(), ...fields } })).json
  const one = async (org = "acme") => `${path}/${(await create({}, org))["id"]}`

  it("shows what was made wherever it is asked for, and no secret of it, in no answer and no log", async () => {
    const made = await create(secrets())
    const { secret: _, ...shown } = made
    const read = await call("GET", `${path}/${made["id"]}`)
    const listed = await call("GET", `${path}?limit=200`)
    expect(read.json).toEqual(shown)
    expect(listed.json["items"]).toContainEqual(shown)
    expect(read.text + listed.text + logged.join()).not.toContain(canary)
  })

  it("pages through what an org has, and shows it to no other", async () => {
    const org = `pager${path.length}`
    const ids: Array<string> = []
    for (let n = 0; n < 5; n++) ids.push((await create({}, org))["id"])
    const first = (await call("GET", `${path}?limit=3`, { org })).json
    const second = (await call("GET", `${path}?limit=3&cursor=${first["nextCursor"]}`, { org })).json
    const seen = [...first["items"], ...second["items"]].map((item: { id: string }) => item.id)
    expect(seen.toSorted()).toEqual(ids.toSorted())
    expect(second["nextCursor"]).toBeNull()
    expect((await call("GET", path, { org: "stranger" })).json["items"]).toEqual([])
  })

  it.each([
    ["bounds that are crossed", { maxInFlight: 0, timeoutMs: 60_000 }, ["maxInFlight", "timeoutMs"]],
    ["half a rate limit", { rateLimit: { limit: 1 } }, ["rateLimit.periodMs"]],
    ["an unknown effect of a dead letter", { onDeadLetter: "hope" }, ["onDeadLetter"]],
    ["a field that is none", { disabled: true }, ["disabled"]]
  ])("refuses by name, when made and when changed: %s", async (_, fields, wrong) => {
    const made = await call("POST", path, { body: { ...required(), ...fields } })
    const changed = await call("PATCH", await one(), { body: fields })
    expect([made.status, changed.status]).toEqual([400, 400])
    expect([[...field(made)].sort(), [...field(changed)].sort()]).toEqual([wrong, wrong])
  })

  it("changes only what was named, and null puts a setting back to its default", async () => {
    const { id, ...made } = await create({ maxInFlight: 3, retry: { strategy: "fixed", baseMs: 1 } })
    const changed = await call("PATCH", `${path}/${id}`, { body: { timeoutMs: 700 } })
    expect(changed.json).toMatchObject({ maxInFlight: 3, timeoutMs: 700, rateLimit: made["rateLimit"], version: 2 })
    const reset = await call("PATCH", `${path}/${id}`, { body: { maxInFlight: null, retry: null, timeoutMs: null } })
    expect(reset.json).toMatchObject({ maxInFlight: 50, retry: null, timeoutMs: 15_000, version: 3 })
  })

  it("pauses and resumes, as often as one likes, and shows it", async () => {
    const at = await one()
    for (const [command, paused] of [
      ["pause", true],
      ["pause", true],
      ["resume", false],
      ["resume", false]
    ] as const) {
      expect(await call("POST", `${at}/${command}`)).toMatchObject({ status: 200, json: { paused } })
      expect((await call("GET", at)).json["paused"]).toBe(paused)
    }
  })

  it("has a retry policy of its own or the channel's, and shows which applies", async () => {
    const at = await one()
    const own = { strategy: "fixed", baseMs: 250, attemptsMax: 3 }
    expect((await call("GET", `${at}/retry-config`)).json).toEqual(retry)
    expect((await call("PUT", `${at}/retry-config`, { body: own })).json).toEqual(own)
    expect((await call("GET", at)).json["retry"]).toEqual(own)
    expect((await call("DELETE", `${at}/retry-config`)).status).toBe(204)
    expect((await call("GET", `${at}/retry-config`)).json).toEqual(retry)
  })

  it("has a circuit, that can be read, held and reset", async () => {
    const { id } = await create()
    const circuit = `/api/v1/circuits/${id}`
    expect((await call("GET", circuit)).json).toMatchObject({ id, destination: id, status: "CLOSED", failures: 0 })
    expect((await call("POST", `${circuit}/hold`)).json["status"]).toBe("HELD")
    expect((await call("GET", circuit)).json["status"]).toBe("HELD")
    expect((await call("POST", `${circuit}/reset`)).json["status"]).toBe("CLOSED")
  })

  it("finds nothing under the id of another org, of another kind, of nobody, or of what was removed", async () => {
    const removed = await one()
    const answer = await call("DELETE", removed)
    expect([answer.status, answer.text]).toEqual([204, ""])
    const other = kinds.find((kind) => kind.path !== path)!
    const strange = (await call("POST", other.path, { body: other.required() })).json["id"]
    for (const at of [await one("theirs"), `${path}/${strange}`, `${path}/${missing}`, `${path}/no-id`, removed]) {
      for (const [method, below, body] of [
        ["GET", "", undefined],
        ["PATCH", "", {}],
        ["DELETE", "", undefined],
        ["POST", "/pause", undefined],
        ["POST", "/resume", undefined],
        ["GET", "/retry-config", undefined],
        ["PUT", "/retry-config", { strategy: "fixed", baseMs: 1 }],
        ["DELETE", "/retry-config", undefined]
      ] as const) {
        const { status } = await call(method, `${at}${below}`, body === undefined ? {} : { body })
        expect([method, at, below, status]).toEqual([method, at, below, 404])
      }
    }
  })
})
