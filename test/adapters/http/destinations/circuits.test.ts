import { describe, expect, it } from "vitest"
import { field, start } from "../served.ts"

const { call, endpoint } = await start()
const circuits = async (org = "acme", query = "") => (await call("GET", `/api/v1/circuits${query}`, { org })).json

describe("circuits", () => {
  it("exist for every destination of the org, closed until there is trouble", async () => {
    const id = await endpoint("quiet")
    expect(await circuits("quiet")).toEqual({
      items: [{ id, destination: id, status: "CLOSED", failures: 0, openUntil: null }],
      nextCursor: null
    })
  })

  it("come page by page, each once", async () => {
    const ids = await Promise.all([1, 2, 3, 4, 5].map(() => endpoint("many")))
    const seen: Array<string> = []
    let cursor: string | null = null
    do {
      const page = await circuits("many", `?limit=2${cursor === null ? "" : `&cursor=${cursor}`}`)
      seen.push(...page["items"].map((item: { id: string }) => item.id))
      cursor = page["nextCursor"]
    } while (cursor !== null)
    expect(seen).toEqual(ids.toSorted())
  })

  it("can be held, with or without a reason, and reset", async () => {
    const id = await endpoint("held")
    const held = await call("POST", `/api/v1/circuits/${id}/hold`, { org: "held", body: { reason: "maintenance" } })
    expect(held).toMatchObject({ status: 200, json: { id, status: "HELD", openUntil: null } })
    expect((await circuits("held"))["items"]).toMatchObject([{ id, status: "HELD" }])
    expect((await call("POST", `/api/v1/circuits/${id}/hold`, { org: "held" })).json["status"]).toBe("HELD")
    const reset = await call("POST", `/api/v1/circuits/${id}/reset`, { org: "held" })
    expect(reset).toMatchObject({ status: 200, json: { id, status: "CLOSED" } })
    expect((await call("POST", `/api/v1/circuits/${id}/reset`, { org: "held" })).json["status"]).toBe("CLOSED")
  })

  it("of another org, or of nobody, are not found", async () => {
    const id = await endpoint("theirs")
    for (const [org, path] of [
      ["acme", id],
      ["theirs", "0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a99"],
      ["theirs", "no-id"]
    ] as const) {
      expect((await call("POST", `/api/v1/circuits/${path}/hold`, { org })).status).toBe(404)
      expect((await call("POST", `/api/v1/circuits/${path}/reset`, { org })).status).toBe(404)
    }
    expect((await circuits("theirs"))["items"]).toMatchObject([{ status: "CLOSED" }])
  })

  it("refuse a command that says what they do not know, by name", async () => {
    const id = await endpoint()
    const answer = await call("POST", `/api/v1/circuits/${id}/hold`, { body: { reson: "x" } })
    expect(answer.status).toBe(400)
    expect(field(answer)).toEqual(["reson"])
  })
})
