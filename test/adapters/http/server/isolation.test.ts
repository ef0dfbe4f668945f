import { beforeAll, describe, expect, it } from "vitest"
import { apiWith } from "../../../../src/adapters/http/Api.ts"
import { http, webhook, whatsapp } from "../../../contracts/destinations/samples.ts"
import { deadLettered, failed, started } from "../../../domain/message/samples.ts"
import { field, OPERATOR, start } from "../served.ts"

const posthaste = await start()
const { call, makeKey, endpoint, send } = posthaste
const api = apiWith([webhook, http, whatsapp])
const missing = "0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01"

const target = async (): Promise<string> =>
  (await call("POST", "/api/v1/http-targets", { body: { url: "https://psp.example" } })).json["id"]

const alertTarget = async (): Promise<string> =>
  (await call("POST", "/api/v1/alert-targets", { body: { type: "webhook", url: "https://ops.example" } })).json["id"]

let numbers = 1_000
const account = async (): Promise<string> => {
  const secrets = { accessToken: "a", appSecret: "b", verifyToken: "c" }
  const body = { phoneNumberId: String(++numbers), ...secrets }
  return (await call("POST", "/api/v1/whatsapp-accounts", { body })).json["id"]
}

/** Dossiers are named by their orgs, and these all have one of the same name. */
const consent = (org: string) =>
  call("PUT", "/api/v1/dossiers/case-17/consents/whatsapp", { org, body: { granted: true, source: `form of ${org}` } })

/** What acme owns and the others ask for. Globex has nothing; the rest have their own of everything. */
let acme: string
let globex: string
const busy = ["initech", "umbrella", "hooli"]
const others: Array<string> = []
const owned = {
  dossier: "case-17",
  endpoint: "",
  message: "",
  event: "",
  eventType: "order.paid",
  dead: "",
  replay: "",
  erasure: "",
  target: "",
  account: "",
  alertTarget: ""
}
let to: string

beforeAll(async () => {
  acme = await makeKey("acme")
  globex = await makeKey("globex")
  owned.endpoint = await endpoint("acme")
  to = owned.endpoint
  owned.target = await target()
  owned.account = await account()
  owned.alertTarget = await alertTarget()
  const request = {
    channel: "webhook",
    to: owned.endpoint,
    payloadJson: 1,
    retry: { strategy: "fixed", baseMs: 0, attemptsMax: 1 }
  }
  owned.message = (await send(request)).json["id"]
  owned.dead = (await send(request)).json["id"]
  await posthaste.append(owned.dead, [started(1)])
  await posthaste.append(owned.dead, [failed(1, null), deadLettered()])
  await posthaste.project()
  await consent("acme")
  for (const org of busy) {
    others.push(await makeKey(org))
    const to = await endpoint(org)
    await call("POST", "/api/v1/http-targets", { org, body: { url: "https://psp.example" } })
    await send({ ...request, to, dossierId: owned.dossier }, { org })
    await consent(org)
  }
  await posthaste.project()
  await call("POST", "/api/v1/event-types", { body: { name: owned.eventType } })
  owned.event = (await call("POST", "/api/v1/events", { body: { eventType: "a", data: 1 } })).json["id"]
  owned.erasure = (await call("POST", "/api/v1/erasures", { body: { dossierId: "nobody's" } })).json["id"]
  owned.replay = (await call("POST", "/api/v1/dead-letters/replay", { body: { filter: {} } })).json["id"]
})

type Asking = [method: string, path: string, kind: keyof typeof owned, body: object | null]

/** The routes of one kind of destination. */
const destinationRoutes = (path: string, kind: keyof typeof owned, change: object): ReadonlyArray<Asking> => [
  ["GET", `${path}/:id`, kind, null],
  ["PATCH", `${path}/:id`, kind, change],
  ["POST", `${path}/:id/pause`, kind, {}],
  ["POST", `${path}/:id/resume`, kind, {}],
  ["POST", `${path}/:id/enable`, kind, {}],
  ["GET", `${path}/:id/health`, kind, null],
  ["GET", `${path}/:id/retry-config`, kind, null],
  ["PUT", `${path}/:id/retry-config`, kind, { strategy: "fixed", baseMs: 1 }],
  ["DELETE", `${path}/:id/retry-config`, kind, null],
  ["DELETE", `${path}/:id`, kind, null]
]

/** One line per route that takes an id of an org's own: how to ask, and for what. */
const asks: ReadonlyArray<Asking> = [
  ["GET", "/outbound/messages/:id", "message", null],
  ["GET", "/outbound/messages/:id?at=2100-01-01T00:00:00Z", "message", null],
  ["GET", "/outbound/messages/:id/events", "message", null],
  ["GET", "/outbound/messages/:id/explanation", "message", null],
  ["GET", "/outbound/messages/:id/attempts", "message", null],
  ["POST", "/outbound/messages/:id/retry-now", "message", null],
  ["POST", "/outbound/messages/:id/cancel", "message", {}],
  ["POST", "/outbound/messages/:id/dismiss", "dead", {}],
  ["POST", "/outbound/messages/:id/replay", "dead", {}],
  ["POST", "/outbound/messages/:id/resend", "message", {}],
  ["GET", "/outbound/messages/:id/body", "message", null],
  ["POST", "/outbound/messages/:id/erase", "message", {}],
  ["GET", "/events/:id", "event", null],
  ["GET", "/events/:id/messages", "event", null],
  ["POST", "/events/:id/erase", "event", {}],
  ["GET", "/event-types/:id", "eventType", null],
  ["PUT", "/event-types/:id", "eventType", {}],
  ["DELETE", "/event-types/:id", "eventType", null],
  ["GET", "/erasures/:id", "erasure", null],
  ["GET", "/replays/:id", "replay", null],
  ["POST", "/replays/:id/cancel", "replay", {}],
  ["GET", "/streams/message-:id", "message", null],
  ["GET", "/webhook-endpoints/:id/secret", "endpoint", null],
  ["POST", "/webhook-endpoints/:id/secret/rotate", "endpoint", {}],
  ["POST", "/webhook-endpoints/:id/test", "endpoint", {}],
  ["POST", "/webhook-endpoints/:id/recover", "endpoint", { since: "2026-01-01T00:00:00Z" }],
  ["POST", "/webhook-endpoints/:id/replay-missing", "endpoint", { since: "2026-01-01T00:00:00Z" }],
  ...destinationRoutes("/webhook-endpoints", "endpoint", { description: "mine now" }),
  ["GET", "/destinations/:id", "endpoint", null],
  ["POST", "/destinations/:id/pause", "endpoint", {}],
  ["POST", "/destinations/:id/resume", "endpoint", {}],
  ["POST", "/destinations/:id/enable", "endpoint", {}],
  ["POST", "/destinations/:id/hold", "target", {}],
  ["POST", "/destinations/:id/reset", "target", {}],
  ["GET", "/circuits/:id", "endpoint", null],
  ["POST", "/circuits/:id/hold", "endpoint", {}],
  ["POST", "/circuits/:id/hold", "account", {}],
  ["POST", "/circuits/:id/reset", "target", {}],
  ...destinationRoutes("/http-targets", "target", { secrets: { token: "mine now" } }),
  ["GET", "/alert-targets/:id", "alertTarget", null],
  ["PATCH", "/alert-targets/:id", "alertTarget", { url: "https://mine.example" }],
  ["POST", "/alert-targets/:id/test", "alertTarget", null],
  ["DELETE", "/alert-targets/:id", "alertTarget", null],
  ["POST", "/circuits/:id/hold", "account", {}],
  ...destinationRoutes("/whatsapp-accounts", "account", { accessToken: "mine-now" }),
  ["GET", "/dossiers/:id/consents/whatsapp", "dossier", null],
  ["DELETE", "/dossiers/:id/consents/whatsapp", "dossier", null],
  ["GET", "/dossiers/:id/activity", "dossier", null]
]
/** What such a route would answer if it knew the id: here every id is a good one, and a name of one's own. */
const named = ["PUT /api/v1/dossiers/:id/consents/:channel"]

describe("another org's id", () => {
  it.each(asks)("is answered like one that does not exist: %s %s", async (method, path, kind, body) => {
    const ask = (id: string, key: string) =>
      call(method, `/api/v1${path.replace(":id", id)}`, { key, org: null, ...(body === null ? {} : { body }) })
    const foreign = await ask(owned[kind], globex)
    // Those who have a dossier of that name are answered with theirs.
    for (const other of kind === "dossier" ? [] : others) {
      const answer = await ask(owned[kind], other)
      expect([answer.status, answer.text]).toEqual([foreign.status, foreign.text])
    }
    const absent = await ask(missing, globex)
    const nonsense = await ask("no-id-at-all", globex)
    expect(foreign.status).toBe(404)
    for (const other of [absent, nonsense]) {
      expect([other.status, other.text]).toEqual([foreign.status, foreign.text])
      expect(other.headers.get("content-type")).toBe(foreign.headers.get("content-type"))
    }
    // The asking changed nothing, and its owner finds it.
    expect((await ask(owned[kind], acme)).status).toBeLessThan(300)
    if (method === "DELETE" && path === "/webhook-endpoints/:id") owned.endpoint = await endpoint("acme")
    if (method === "DELETE" && path === "/http-targets/:id") owned.target = await target()
    if (method === "DELETE" && path === "/alert-targets/:id") owned.alertTarget = await alertTarget()
    if (method === "DELETE" && path === "/whatsapp-accounts/:id") owned.account = await account()
  })

  it("is asked about on every route that takes an id", () => {
    const routes = Object.values(api.groups)
      // What is the operator's belongs to no org.
      .filter(({ identifier }) => !["apiKeys", "projections", "parked", "orgs"].includes(identifier))
      .flatMap((group) => Object.values(group.endpoints).map(({ method, path }) => `${method} ${path}`))
      .filter((route) => route.includes(":"))
    const asked = asks.map(([method, path]) =>
      `${method} /api/v1${path.split("?")[0]}`
        .replace("message-:id", ":stream")
        .replace("consents/whatsapp", "consents/:channel")
        .replace("event-types/:id", "event-types/:name")
    )
    expect(routes.filter((route) => ![...asked, ...named].includes(route))).toEqual([])
  })

  it("can't be sent to", async () => {
    const request = (to: string) => ({ channel: "webhook", to, payloadJson: 1 })
    const foreign = await send(request(owned.endpoint), { key: globex, org: null })
    const absent = await send(request(missing), { key: globex, org: null })
    expect(foreign.status).toBe(400)
    expect(field(foreign)).toEqual(["to"])
    expect(foreign.text).toBe(absent.text)
    const batch = await call("POST", "/api/v1/outbound/messages/batch", {
      key: globex,
      org: null,
      body: { messages: [request(owned.endpoint)] }
    })
    expect(batch.json["items"][0].status).toBe(400)
  })

  it("is in no list and no count", async () => {
    for (const path of [
      "/outbound/messages",
      "/events",
      "/webhook-endpoints",
      "/http-targets",
      "/alert-targets",
      "/whatsapp-accounts",
      `/outbound/messages?to=${to}`
    ]) {
      expect((await call("GET", `/api/v1${path}`, { key: globex, org: null })).json).toMatchObject({
        items: [],
        nextCursor: null
      })
      expect((await call("GET", `/api/v1${path}`, { key: acme, org: null })).json["items"]).not.toEqual([])
    }
    const { byStatus } = (await call("GET", "/api/v1/outbound/stats", { key: globex, org: null })).json
    expect(new Set(Object.values(byStatus))).toEqual(new Set([0]))
  })

  it("is a name of its own where orgs give the names", async () => {
    await consent("acme")
    const path = `/api/v1/dossiers/${owned.dossier}`
    for (const [index, key] of others.entries()) {
      const mine = await call("GET", `${path}/consents/whatsapp`, { key, org: null })
      expect(mine.json["source"]).toBe(`form of ${busy[index]}`)
      const { items } = (await call("GET", `${path}/activity`, { key, org: null })).json
      expect(items.map(({ type }: { type: string }) => type).toSorted()).toEqual(["CONSENT_GRANTED", "MESSAGE_CREATED"])
      await call("DELETE", `${path}/consents/whatsapp`, { key, org: null })
    }
    const acmes = await call("GET", `${path}/consents/whatsapp`, { key: acme, org: null })
    expect(acmes.json).toMatchObject({ granted: true, source: "form of acme" })
  })

  it("stands in the audit of its own org only", async () => {
    await posthaste.project()
    const seen = new Set<string>()
    for (const [index, key] of [acme, globex, ...others].entries()) {
      const { items } = (await call("GET", "/api/v1/audit?limit=200", { key, org: null })).json
      const orgs = new Set(items.map(({ orgId }: { orgId: string }) => orgId))
      expect(orgs).toEqual(new Set([["acme", "globex", ...busy][index]]))
      for (const { id } of items) {
        expect(seen.has(id)).toBe(false)
        seen.add(id)
      }
    }
    const foreign = await call("GET", `/api/v1/audit?subject=message-${owned.message}`, { key: globex, org: null })
    expect(foreign.json["items"]).toEqual([])
  })

  it("is not reached by another org's cursor", async () => {
    await endpoint("acme")
    const { nextCursor } = (await call("GET", "/api/v1/webhook-endpoints?limit=1", { key: acme, org: null })).json
    expect(nextCursor).not.toBeNull()
    const page = await call("GET", `/api/v1/webhook-endpoints?cursor=${nextCursor}`, { key: globex, org: null })
    expect([page.status, field(page)]).toEqual([400, ["cursor"]])
    // Nor is a cursor of one list a cursor of another.
    expect(field(await call("GET", `/api/v1/outbound/messages?cursor=${nextCursor}`))).toEqual(["cursor"])
  })
})

describe("a key", () => {
  it.each([
    ["none", null, null],
    ["an empty one", "", null],
    ["some text", "letmein", "acme"],
    ["one with a slip", "ph_live_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA_000000", "acme"],
    ["the operator's with one letter less", OPERATOR.slice(0, -1), "acme"],
    ["the operator's with one letter more", `${OPERATOR}x`, "acme"]
  ])("that is wrong is a 401, and says how to send one: %s", async (_, key, org) => {
    const answer = await call("GET", "/api/v1/outbound/messages", { key, org })
    expect(answer.status).toBe(401)
    expect(answer.headers.get("content-type")).toBe("application/problem+json")
    expect(answer.headers.get("www-authenticate")).toBe("Bearer")
    if (key) expect(answer.text).not.toContain(key)
  })

  it("is needed on every route of the API but those that Meta calls", async () => {
    for (const group of Object.values(api.groups)) {
      // Proven by a verify token and a signature (whatsAppReceipts.test.ts).
      if (group.identifier === "whatsAppReceipts") continue
      for (const { method, path } of Object.values(group.endpoints)) {
        if (!path.startsWith("/api/")) continue
        const answer = await call(method, path.replaceAll(/:\w+/g, missing), { key: null })
        expect([path, answer.status]).toEqual([path, 401])
      }
    }
  })

  it("of an org acts for that org without naming it", async () => {
    expect((await call("GET", `/api/v1/outbound/messages/${owned.message}`, { key: acme, org: null })).status).toBe(200)
    expect((await call("GET", `/api/v1/outbound/messages/${owned.message}`, { key: acme, org: "acme" })).status).toBe(
      200
    )
  })

  it("of an org can't act for another, whether or not that one exists", async () => {
    for (const org of ["globex", "nobody"]) {
      const answer = await call("GET", "/api/v1/outbound/messages", { key: acme, org })
      expect(answer.status).toBe(403)
      expect(field(answer)).toEqual(["X-Org-Id"])
    }
  })

  it("of the operator must say for whom it acts", async () => {
    for (const org of [null, "", "no spaces please", "x".repeat(65)]) {
      const answer = await call("GET", "/api/v1/outbound/messages", { org })
      expect(answer.status).toBe(400)
      expect(field(answer)).toEqual(["X-Org-Id"])
    }
  })
})
