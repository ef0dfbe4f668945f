import { describe, expect, it } from "vitest"
import { start } from "../served.ts"

const { call, makeKey } = await start()
const PATH = "/api/v1/processes"

describe("processes", () => {
  it("are listed for the operator", async () => {
    const answer = await call("GET", PATH, { org: null })
    expect(answer.status).toBe(200)
    expect(answer.json).toEqual({
      ...{ items: [], nextCursor: null },
      troubles: [
        expect.objectContaining({ reason: "NO_WORKER", since: null, transaction: null }),
        expect.objectContaining({ reason: "NO_PROJECTOR" })
      ]
    })
  })

  it("are nothing for the key of an org", async () => {
    expect((await call("GET", PATH, { key: await makeKey("acme"), org: null })).status).toBe(403)
    expect((await call("GET", PATH, { key: null, org: null })).status).toBe(401)
  })
})
