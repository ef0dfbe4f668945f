import { describe, expect, it } from "vitest"
import { field, type Json, start } from "../served.ts"

const { call, endpoint, send, append, project } = await start()
const PATH = "/api/v1/destinations"
const ask = async (org: string, rest = ""): Promise<Json> => (await call("GET", `${PATH}${rest}`, { org })).json
const idsOf = (list: Json) => list["items"].map(({ id }: { id: string }) => id)
const accept = (org: string, to: string) => send({ channel: "webhook", to, payloadJson: 1 }, { org })

const delivered = (id: string) =>
  append(id, [
    { type: "AttemptStarted", epoch: 1, attempt: 1 },
    { type: "AttemptSucceeded", attempt: 1, status: 200, providerMessageId: null, durationMs: 1 },
    { type: "MessageDelivered", proof: "response" }
  ])

describe("destinations", () => {
  it("of all kinds are listed with what waits, and what holds each up", async () => {
    const hook = await endpoint("kinds", { description: "the shop" })
    const { id: psp } = (
      await call("POST", "/api/v1/http-targets", {
        org: "kinds",
        body: { url: "https://psp.example/charges?token=s3cret" }
      })
    ).json
    await accept("kinds", hook)
    await call("POST", `${PATH}/${hook}/pause`, { org: "kinds", body: { reason: "they move house" } })
    const { items } = await ask("kinds", "?sort=waiting")
    expect(items).toMatchObject([
      {
        id: hook,
        channel: "webhook",
        name: "the shop",
        url: "https://shop.example/hook",
        path: `/api/v1/webhook-endpoints/${hook}`,
        isAlertTarget: false,
        pause: { by: "operator", reason: "they move house" },
        circuit: { status: "CLOSED", since: null, until: null, cause: null, by: null },
        waiting: 1,
        inFlight: 0,
        state: "PAUSED",
        disabled: null,
        lastHour: { succeeded: 0, failed: 0, successRate: null },
        perSecond: 0,
        drainsInSeconds: null
      },
      { id: psp, channel: "http", name: "https://psp.example/charges?…", pause: null, waiting: 0, oldestDueAt: null }
    ])
    expect(JSON.stringify(items)).not.toContain("s3cret")
  })

  it("are filtered and come page by page in the order that was asked for", async () => {
    const [a, b, c] = [await endpoint("pages"), await endpoint("pages"), await endpoint("pages")]
    await accept("pages", b)
    await accept("pages", c)
    await accept("pages", c)
    const first = await ask("pages", "?sort=waiting&limit=2")
    expect(idsOf(first)).toEqual([c, b])
    expect(idsOf(await ask("pages", `?sort=waiting&limit=2&cursor=${first["nextCursor"]}`))).toEqual([a])
    expect((await call("GET", `${PATH}?sort=id&cursor=${first["nextCursor"]}`, { org: "pages" })).status).toBe(400)
    expect(idsOf(await ask("pages", "?waiting=false"))).toEqual([a])
    await call("POST", `${PATH}/${a}/hold`, { org: "pages" })
    expect(idsOf(await ask("pages", "?circuit=HELD"))).toEqual([a])
    expect(idsOf(await ask("pages", "?paused=true"))).toEqual([])
    expect(field(await call("GET", `${PATH}?sort=name&paused=yes`, { org: "pages" })).toSorted()).toEqual([
      "paused",
      "sort"
    ])
  })

  it("say how fast they drain and when they are empty, unless something holds them up", async () => {
    const id = await endpoint("flow")
    for (let n = 0; n < 3; n++) await delivered((await accept("flow", id)).json["id"])
    await accept("flow", id)
    await project()
    const flowing = await ask("flow", `/${id}`)
    expect(flowing["lastHour"]).toEqual({ succeeded: 3, failed: 0, successRate: 1 })
    expect(flowing["perSecond"]).toBeGreaterThan(0)
    expect(flowing["drainsInSeconds"]).toBeGreaterThan(0)
    const drains = async () => {
      const [listed] = (await ask("flow"))["items"]
      const one = await ask("flow", `/${id}`)
      expect(one["drainsInSeconds"] === null).toBe(listed["drainsInSeconds"] === null)
      return one["drainsInSeconds"]
    }
    for (const [holds, frees] of [
      ["pause", "resume"],
      ["hold", "reset"]
    ] as const) {
      await call("POST", `${PATH}/${id}/${holds}`, { org: "flow", body: {} })
      expect(await drains(), holds).toBeNull()
      await call("POST", `${PATH}/${id}/${frees}`, { org: "flow", body: {} })
      expect(await drains(), frees).toBeGreaterThan(0)
    }
    // Whatever is right with the destination, nothing of its org goes.
    await call("PUT", "/api/v1/orgs/flow", { body: { suspended: "unpaid" } })
    expect(await drains()).toBeNull()
    await call("PUT", "/api/v1/orgs/flow", { body: {} })
    expect(await drains()).toBeGreaterThan(0)
  })

  it("are empty no sooner than what waits is due", async () => {
    const id = await endpoint("later")
    const deliverAt = new Date(Date.now() + 7_200_000).toISOString()
    const later = () => send({ channel: "webhook", to: id, payloadJson: 1, deliverAt }, { org: "later" })
    for (let n = 0; n < 3; n++) await delivered((await later()).json["id"])
    await later()
    await project()
    expect((await ask("later", `/${id}`))["drainsInSeconds"]).toBeGreaterThan(3_600)
  })

  it("tell one by one what happened to them, by whom and why", async () => {
    const id = await endpoint("past")
    const command = (name: string, reason?: string) =>
      call("POST", `${PATH}/${id}/${name}`, { org: "past", ...(reason && { body: { reason } }) })
    await command("pause", "they move house")
    await command("resume")
    await command("hold", "maintenance")
    expect((await ask("past", `/${id}`))["circuit"]).toMatchObject({
      status: "HELD",
      by: "operator",
      cause: "held by hand: maintenance"
    })
    await command("reset", "done")
    expect((await ask("past", `/${id}`))["history"]).toMatchObject([
      { type: "DestinationCreated", by: "operator" },
      { type: "DestinationPaused", by: "operator", reason: "they move house" },
      { type: "DestinationResumed", reason: null },
      { type: "CircuitHeld", reason: "maintenance" },
      { type: "CircuitReset", reason: "done" }
    ])
  })

  it("of an org are stopped all at once, and only those that were stopped for that are started again", async () => {
    const [a, b] = [await endpoint("all"), await endpoint("all")]
    await endpoint("another")
    await call("POST", "/api/v1/alert-targets", {
      org: "all",
      body: { type: "webhook", url: "https://alerts.example/", events: ["circuit"] }
    })
    await call("POST", `${PATH}/${a}/pause`, { org: "all", body: { reason: "long gone" } })
    const stop = await call("POST", `${PATH}/pause`, { org: "all", body: { reason: "incident 12" } })
    expect(stop.json).toEqual({ commanded: 2 })
    expect(idsOf(await ask("all", "?paused=true")).toSorted()).toEqual([a, b].toSorted())
    expect(idsOf(await ask("another", "?paused=true"))).toEqual([])
    const go = await call("POST", `${PATH}/resume`, { org: "all", body: { stoppedFor: "incident 12" } })
    expect(go.json).toEqual({ commanded: 1 })
    expect(idsOf(await ask("all", "?paused=true"))).toEqual([a])
    expect((await call("POST", `${PATH}/hold`, { org: "all", body: { channel: "http" } })).json).toEqual({
      commanded: 0
    })
    expect(field(await call("POST", `${PATH}/hold`, { org: "all", body: { chanel: "http" } }))).toEqual(["chanel"])
  })

  it("keep the reason of a pause that came by their own route, in the audit too", async () => {
    const id = await endpoint("own")
    await call("POST", `/api/v1/webhook-endpoints/${id}/pause`, { org: "own", body: { reason: "by hand" } })
    expect((await ask("own", `/${id}`))["pause"]).toMatchObject({ reason: "by hand" })
  })
})
