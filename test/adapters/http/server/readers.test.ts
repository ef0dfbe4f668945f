/** An org that asks for more lists than it may is told to wait; others are answered meanwhile. */
import { Deferred, Effect } from "effect"
import { describe, expect, it } from "vitest"
import { limits } from "../../../../src/adapters/http/server/underWay.ts"
import { until } from "../../../servers/until.ts"
import { limitIn, start } from "../served.ts"

const held = Deferred.makeUnsafe<void>()
let waiting = 0
const { call } = await start((store) => ({
  ...store,
  loadMany: (ids) =>
    Effect.suspend(() => {
      waiting += 1
      return Effect.andThen(Deferred.await(held), store.loadMany(ids))
    })
}))

describe("lists", () => {
  it("of one org beyond its share are refused with when to ask again, and those of another are answered", async () => {
    const list = (org: string) => call("GET", "/api/v1/dead-letters", { org })
    const slow = Array.from({ length: limits.list.atOnce }, () => list("slow"))
    await until("the lists wait", () => Promise.resolve(waiting === limits.list.atOnce))
    const refused = await list("slow")
    expect([refused.status, refused.json["type"]]).toEqual([429, "urn:posthaste:problem:too-many-lists"])
    expect(limitIn(refused)).toEqual({ limit: "20", remaining: "0", reset: "2", after: "2" })
    expect((await call("GET", "/api/v1/outbound/stats", { org: "slow" })).status).toBe(429)
    expect((await call("GET", "/api/v1/outbound/messages", { org: "other" })).status).toBe(200)
    Deferred.doneUnsafe(held, Effect.void)
    expect((await Promise.all(slow)).map(({ status }) => status)).toEqual(slow.map(() => 200))
    expect((await list("slow")).status).toBe(200)
  })
})
