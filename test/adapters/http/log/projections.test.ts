import { describe, expect, it } from "vitest"
import { start } from "../served.ts"

const { call, send, endpoint, project, makeKey } = await start()
const PATH = "/api/v1/projections"

describe("projections", () => {
  it("are listed for the operator, with how far each is", async () => {
    await send({ channel: "webhook", to: await endpoint(), payloadJson: 1 })
    await project()
    const answer = await call("GET", PATH, { org: null })
    expect(answer.status).toBe(200)
    expect(answer.json["stall"]).toBeNull()
    const messages = answer.json["items"].find(({ name }: { name: string }) => name === "messages")
    expect(messages).toMatchObject({ live: { generation: 1, version: 1 }, build: null })
    expect(messages.live.facts).toBeGreaterThan(0)
  })

  it("are built anew on request: 202, how far it is, and the same build for who asks again", async () => {
    const facts = (await call("GET", `${PATH}/messages`)).json["live"].facts
    const answer = await call("POST", `${PATH}/messages/rebuild`)
    expect(answer.status).toBe(202)
    expect(answer.headers.get("location")).toBe(`${PATH}/messages`)
    expect(answer.json).toMatchObject({
      name: "messages",
      live: { generation: 1 },
      build: { generation: 2, facts: 0, total: facts, factsPerSecond: null, secondsLeft: null }
    })
    const again = await call("POST", `${PATH}/messages/rebuild`)
    expect(again.json["build"]).toEqual(answer.json["build"])
    expect((await call("GET", `${PATH}/messages`)).json).toEqual(answer.json)
  })

  it("that nobody knows are not found", async () => {
    expect((await call("GET", `${PATH}/colours`)).status).toBe(404)
    const answer = await call("POST", `${PATH}/colours/rebuild`)
    expect(answer.status).toBe(404)
    expect(answer.headers.get("content-type")).toBe("application/problem+json")
  })

  it("are nothing for the key of an org", async () => {
    const key = await makeKey("acme")
    for (const [method, path] of [
      ["GET", PATH],
      ["GET", `${PATH}/messages`],
      ["POST", `${PATH}/messages/rebuild`]
    ] as const) {
      expect((await call(method, path, { key, org: null })).status, path).toBe(403)
      expect((await call(method, path, { key: null, org: null })).status, path).toBe(401)
    }
  })
})
