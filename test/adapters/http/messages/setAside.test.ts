import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { MessageId, OrgId } from "../../../../src/domain/ids.ts"
import { start } from "../served.ts"

const unreadable = new Set<string>()
const { call, endpoint, send, putAside, makeKey, startWorker } = await start((store) => ({
  ...store,
  load: (id) => (unreadable.has(id) ? Effect.die(new Error("no release wrote this")) : store.load(id))
}))
const PATH = "/api/v1/set-aside"
const to = await endpoint()
const accept = async (): Promise<string> => (await send({ channel: "webhook", to, payloadJson: 1 })).json["id"]
const aside = async (reason: "failed" | "unreadable") => {
  const id = await accept()
  const about = {
    messageId: MessageId.make(id),
    orgId: OrgId.make("acme"),
    lane: null,
    reason,
    detail: "version 2: odd",
    version: 2
  }
  await putAside(about)
  return id
}

describe("messages that are set aside", () => {
  it("are listed page by page with what is wrong, and tried again one by one or all", async () => {
    const ids = [await aside("failed"), await aside("unreadable")].toSorted()
    const first = await call("GET", `${PATH}?limit=1`, { org: null })
    expect(first.json["items"]).toMatchObject([{ id: ids[0], orgId: "acme", detail: "version 2: odd", tries: 1 }])
    const next = await call("GET", `${PATH}?limit=1&cursor=${first.json["nextCursor"]}`, { org: null })
    expect(next.json).toMatchObject({ items: [{ id: ids[1] }], nextCursor: null })
    expect((await call("POST", `${PATH}/${ids[0]}/retry`, { org: null })).json).toEqual({ messages: 1 })
    expect((await call("POST", `${PATH}/retry`, { org: null })).json).toEqual({ messages: 2 })
    expect((await call("POST", `${PATH}/${await accept()}/retry`, { org: null })).status).toBe(404)
  })

  it("are nothing for the key of an org", async () => {
    const key = await makeKey("acme")
    for (const [method, path] of [["GET", PATH] as const, ["POST", `${PATH}/retry`] as const]) {
      expect((await call(method, path, { key, org: null })).status).toBe(403)
    }
  })

  it("say so in their explanation", async () => {
    await startWorker()
    const id = await aside("failed")
    const explained = await call("GET", `/api/v1/outbound/messages/${id}/explanation`)
    expect(explained.json).toMatchObject({ reason: "SET_ASIDE", waitsFor: "operator", also: [{ reason: "DUE" }] })
    expect(Date.parse(explained.json["until"])).toBeGreaterThan(Date.parse(explained.json["since"]))
    // Since when it was before that, nothing has kept.
    const then = await call("GET", `/api/v1/outbound/messages/${id}/explanation?at=${new Date().toISOString()}`)
    expect(then.json).toMatchObject({ reason: "DUE", also: [] })
  })

  it("are answered by name where nothing of them can be read, to their own org alone", async () => {
    const id = await aside("unreadable")
    unreadable.add(id)
    for (const path of ["", "/explanation", "/events", "/attempts"]) {
      const answer = await call("GET", `/api/v1/outbound/messages/${id}${path}`)
      expect(answer).toMatchObject({ status: 500, json: { type: "urn:posthaste:problem:set-aside" } })
    }
    const foreign = await call("GET", `/api/v1/outbound/messages/${id}`, { org: "other" })
    expect(foreign.text).not.toContain("set-aside")
  })
})
