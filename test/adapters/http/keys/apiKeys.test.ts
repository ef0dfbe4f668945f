import { describe, expect, it } from "vitest"
import { generateKey, isWellFormed } from "../../../../src/adapters/http/keys/apiKey.ts"
import { field, start } from "../served.ts"

const { call, makeKey } = await start()
const keys = "/api/v1/api-keys"

describe("an API key", () => {
  it("is shown once, and works at once", async () => {
    const made = await call("POST", keys, { org: null, body: { orgId: "acme", name: "ci" } })
    expect(made.status).toBe(201)
    expect(Object.keys(made.json).sort()).toEqual(["createdAt", "id", "key", "name", "orgId"])
    expect(made.json["key"]).toMatch(/^ph_live_[A-Za-z0-9_-]{43}_[0-9A-Za-z]{6}$/)
    const listed = await call("GET", keys, { org: null })
    expect(listed.text).not.toContain(made.json["key"].slice(8))
    const { key: _, ...rest } = made.json
    expect(listed.json["items"]).toContainEqual(rest)
    expect((await call("GET", "/api/v1/outbound/stats", { key: made.json["key"], org: null })).status).toBe(200)
  })

  it("is refused once it is revoked", async () => {
    const key = await makeKey("revoked")
    const [{ id }] = (await call("GET", `${keys}?orgId=revoked`, { org: null })).json["items"]
    expect((await call("DELETE", `${keys}/${id}`, { org: null })).status).toBe(204)
    expect((await call("GET", "/api/v1/outbound/stats", { key, org: null })).status).toBe(401)
    expect((await call("DELETE", `${keys}/${id}`, { org: null })).status).toBe(404)
    expect((await call("DELETE", `${keys}/nonsense`, { org: null })).status).toBe(404)
  })

  it("is the operator's to manage", async () => {
    const key = await makeKey("acme")
    for (const [method, path] of [
      ["POST", keys],
      ["GET", keys],
      ["DELETE", `${keys}/x`]
    ] as const) {
      expect((await call(method, path, { key, org: null })).status).toBe(403)
    }
  })

  it.each([
    ["an org's name that is none", { orgId: "no spaces", name: "x" }, ["orgId"]],
    ["no name", { orgId: "acme" }, ["name"]],
    ["a field that is none", { orgId: "acme", name: "x", admin: true }, ["admin"]]
  ])("is not made from %s", async (_, body, wrong) => {
    const answer = await call("POST", keys, { org: null, body })
    expect(answer.status).toBe(400)
    expect(field(answer)).toEqual(wrong)
  })

  it("tells a slip of the pen from an unknown key", () => {
    const key = generateKey()
    expect(isWellFormed(key)).toBe(true)
    for (let at = 8; at < key.length; at++) {
      const other = key[at] === "A" ? "B" : "A"
      expect(isWellFormed(key.slice(0, at) + other + key.slice(at + 1)), `letter ${at}`).toBe(false)
    }
  })
})
