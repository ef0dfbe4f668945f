/**
 * What each key may do: every route with every scope, and keys that are good no more. The routes are those of the API itself, so a
 * route that says no scope fails here.
 */
import { readdirSync } from "node:fs"
import { Context, DateTime, Effect } from "effect"
import { beforeAll, describe, expect, it } from "vitest"
import { apiWith } from "../../../../src/adapters/http/Api.ts"
import { generateKey, hashOf, prefixOf, storedHash } from "../../../../src/adapters/http/server/apiKey.ts"
import { KeyAccess, OperatorAccess, OrgAccess } from "../../../../src/adapters/http/server/auth.ts"
import { NeededScope } from "../../../../src/adapters/http/server/endpoints.ts"
import { ApiKeys } from "../../../../src/application/ports/ApiKeys.ts"
import { type Scope, scopeOfFact, scopeOfType, scopes } from "../../../../src/application/ports/scopes.ts"
import { OrgId } from "../../../../src/domain/ids.ts"
import { amqp, http, webhook, whatsapp } from "../../../contracts/destinations/samples.ts"
import { termsOf } from "../../../contracts/keys/terms.ts"
import { follow } from "../log/follow.ts"
import { start } from "../served.ts"

const { call, run, endpoint, send, url } = await start()

const channels = [webhook, http, amqp, whatsapp]
const endpointsOf = (...given: typeof channels) =>
  Object.values(apiWith(given).groups).flatMap((group) => Object.values(group.endpoints))

const guardedBy = (...guards: ReadonlyArray<unknown>) =>
  endpointsOf(webhook, http, whatsapp).filter(({ middlewares }) =>
    [...(middlewares as unknown as Iterable<unknown>)].some((one) => guards.includes(one))
  )
const ofOrgs = guardedBy(OrgAccess, KeyAccess)
const ofOperators = guardedBy(OperatorAccess)

const nobody = "0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01"

/** Asked so that nothing is found, made or changed: what is asked about is who may ask. */
const ask = (
  { method, path }: { readonly method: string; readonly path: string },
  key: string,
  org: string | null = null
) => {
  const filled = path.replace(":channel", "whatsapp").replaceAll(/:\w+/g, nobody)
  const isFeed = path.endsWith("/feed")
  const body = method === "GET" || method === "DELETE" ? {} : { body: { nonsense: true } }
  return call(method, isFeed ? `${filled}?colour=red` : filled, { key, org, ...body })
}

const makeKey = (terms: Parameters<typeof termsOf>[1] = {}, orgId = "acme") =>
  run(
    Effect.gen(function* () {
      const key = generateKey()
      const { create } = yield* ApiKeys
      const made = yield* create(
        OrgId.make(orgId),
        termsOf("a key", { ...terms, prefix: prefixOf(key) }),
        storedHash(hashOf(key))
      )
      return { id: made.id, key }
    })
  )

/** In words of its own: what a scope lets a key do. */
const lets = (given: Scope | "all" | "none", needed: Scope): boolean => {
  if (given === "none") return needed !== "admin"
  if (given === "all" || given === "admin" || given === needed) return true
  return given === "endpoints:write" && needed === "endpoints:read"
}

const neededBy = ({ annotations }: { readonly annotations: Context.Context<never> }): Scope | undefined =>
  Context.getOrUndefined(annotations, NeededScope)

describe("the scopes of the routes", () => {
  it("are said by every route of an org, and only by those", () => {
    expect(ofOrgs.filter((endpoint) => neededBy(endpoint) === undefined).map(({ path }) => path)).toEqual([])
    expect(ofOperators.filter((endpoint) => neededBy(endpoint) !== undefined).map(({ path }) => path)).toEqual([])
    expect(ofOrgs.length + ofOperators.length).toBeGreaterThan(100)
  })

  it("are all in use, and none that reads is enough to change anything", () => {
    expect(new Set(ofOrgs.map(neededBy))).toEqual(new Set(scopes))
    const changing = ofOrgs.filter(({ method }) => method !== "GET").map(neededBy)
    expect(changing.filter((scope) => scope?.endsWith(":read"))).toEqual([])
  })
})

describe("a key", () => {
  const keys = new Map<Scope | "all" | "none", string>()
  beforeAll(async () => {
    keys.set("none", (await makeKey()).key)
    keys.set("all", (await makeKey({ scopes })).key)
    for (const scope of scopes) keys.set(scope, (await makeKey({ scopes: [scope] })).key)
  })

  it.each(ofOrgs.map((endpoint) => [endpoint.method, endpoint.path, endpoint] as const))(
    "may call %s %s with its scope only",
    async (_, __, endpoint) => {
      const needed = neededBy(endpoint)!
      for (const [scope, key] of keys) {
        const answer = await ask(endpoint, key)
        const isRefused = answer.status === 403
        expect([scope, isRefused], answer.text).toEqual([scope, !lets(scope, needed)])
        if (isRefused) expect(answer.json["detail"]).toContain(needed)
        else expect(answer.status).toBeLessThan(500)
      }
    }
  )

  it("with replays:write alone sends again what was sent, and no new text and nowhere else", async () => {
    const sent = await send({ channel: "webhook", to: await endpoint(), payloadJson: 1 })
    const message = `/api/v1/outbound/messages/${sent.json["id"]}`
    const asks = [
      [`${message}/resend`, { payloadJson: 2 }],
      [`${message}/resend`, { to: nobody }],
      [`${message}/replay`, { payloadJson: 2 }],
      ["/api/v1/dead-letters/replay", { ids: [nobody], to: nobody }]
    ] as const
    const { key } = await makeKey({ scopes: ["replays:write"] })
    const { key: both } = await makeKey({ scopes: ["replays:write", "messages:send"] })
    for (const [path, body] of asks) {
      const answer = await call("POST", path, { key, org: null, body })
      expect([answer.status, answer.json["detail"]], path).toEqual([403, expect.stringContaining("messages:send")])
      expect((await call("POST", path, { key: both, org: null, body })).status, path).not.toBe(403)
    }
    expect((await call("POST", `${message}/resend`, { key, org: null, body: {} })).status).toBe(201)
  })

  it("may ask for nothing that is the operator's", async () => {
    expect(ofOperators.length).toBeGreaterThan(2)
    for (const endpoint of ofOperators) {
      for (const key of keys.values()) expect((await ask(endpoint, key)).status, endpoint.path).toBe(403)
    }
  })

  it("is refused everywhere once it was revoked, has expired, comes from elsewhere, or names another org", async () => {
    const revoked = await makeKey()
    await run(Effect.flatMap(ApiKeys, ({ revoke }) => revoke(revoked.id, null)))
    const expired = await makeKey({ expiresAt: DateTime.makeUnsafe(Date.now()) })
    const elsewhere = await makeKey({ networks: ["192.0.2.0/24", "2001:db8::/32"] })
    // Stored by an older release, or by hand: what can't be read opens nothing.
    const unreadable = await makeKey({ networks: ["nonsense"] })
    const here = await makeKey({ networks: ["192.0.2.0/24", "127.0.0.0/8"], scopes })
    for (const endpoint of [...ofOrgs, ...ofOperators]) {
      const statuses = [revoked, expired, elsewhere, unreadable].map(
        async ({ key }) => (await ask(endpoint, key)).status
      )
      expect(await Promise.all(statuses), endpoint.path).toEqual([401, 401, 403, 403])
    }
    for (const endpoint of ofOrgs) {
      expect((await ask(endpoint, here.key)).status, endpoint.path).not.toBe(403)
      if (!endpoint.path.includes("api-keys")) expect((await ask(endpoint, here.key, "globex")).status).toBe(403)
    }
  })
})

/** In words of its own: which scope guards what the facts of a stream say. */
const guardOf: Readonly<Record<string, Scope>> = {
  message: "messages:read",
  event: "messages:read",
  replay: "messages:read",
  consent: "messages:read",
  blocked: "messages:read",
  endpoint: "endpoints:read",
  circuit: "endpoints:read",
  "event-type": "endpoints:read",
  erasure: "erasures:write",
  access: "audit:read",
  org: "audit:read",
  key: "admin"
}
const kindOf = (stream: string) =>
  stream.startsWith("event-type-") ? "event-type" : stream.slice(0, stream.indexOf("-"))

describe("facts as they are stored", () => {
  const org = "facts"
  const ofOrg = (method: string, path: string, body?: unknown) =>
    call(method, `/api/v1${path}`, { org, ...(body !== undefined && { body }) })

  it("say what another scope guards to who has it, in streams and in the feed", async () => {
    const keys = await Promise.all(
      scopes.map(async (scope) => ({
        scope,
        key: (await makeKey({ scopes: ["messages:read", scope] }, org)).key
      }))
    )
    const feeds = await Promise.all(keys.map(({ key }) => follow(url, org, "", null, key)))
    const all = await follow(url, org)

    const to = await endpoint(org)
    const sent = await send({ channel: "webhook", to, payloadJson: 1, dossierId: "case" }, { org })
    await ofOrg("GET", `/outbound/messages/${sent.json["id"]}/body`)
    await ofOrg("POST", "/events", { eventType: "a.b", data: 1 })
    await ofOrg("POST", "/dead-letters/replay", { filter: {} })
    await ofOrg("POST", `/circuits/${to}/hold`, {})
    await ofOrg("POST", "/event-types", { name: "order.paid" })
    await ofOrg("PUT", "/dossiers/case/consents/whatsapp", { granted: true, source: "form" })
    await ofOrg("POST", "/erasures", { correlationId: "nobody" })
    await ofOrg("PUT", "/orgs/facts", { name: "Facts" })
    await call("POST", "/api/v1/api-keys", { org: null, body: { orgId: org, name: "a key" } })

    const kinds = [
      "message",
      "event",
      "replay",
      "consent",
      "endpoint",
      "circuit",
      "event-type",
      "erasure",
      "access",
      "org",
      "key"
    ]
    const seenBy = ({ events }: { events: typeof all.events }) => new Set(events.map(({ data }) => kindOf(data.stream)))
    await all.until("a fact of each kind", () => kinds.every((kind) => seenBy(all).has(kind)))
    // Where all is told that came before, this comes last.
    const last = await send({ channel: "webhook", to, payloadJson: 1 }, { org })
    const streams = [...new Set(all.events.map(({ data }) => data.stream))]
    for (const [nth, { scope, key }] of keys.entries()) {
      const may = (guard: Scope) => lets("messages:read", guard) || lets(scope, guard)
      const feed = feeds[nth]!
      await feed.until("the last", () => feed.events.some(({ data }) => data.stream === `message-${last.json["id"]}`))
      expect([scope, [...seenBy(feed)].toSorted()]).toEqual([
        scope,
        kinds.filter((kind) => may(guardOf[kind]!)).toSorted()
      ])
      for (const stream of streams) {
        const guard = guardOf[kindOf(stream)]!
        const answer = await call("GET", `/api/v1/streams/${encodeURIComponent(stream)}`, { key, org: null })
        expect([scope, stream, answer.status]).toEqual([scope, stream, may(guard) ? 200 : 403])
        if (!may(guard)) expect(answer.json["detail"]).toBe(`This key lacks the scope ${guard}.`)
      }
      for (const [type, guard] of [
        ["KeyCreated", "admin"],
        ["BodyRead", "audit:read"]
      ] as const) {
        if (may(guard)) continue
        expect((await call("GET", `/api/v1/feed?type=${type}`, { key, org: null })).status, scope).toBe(403)
      }
    }
    for (const feed of [...feeds, all]) feed.stop()
  })

  it("have a scope each, and a type that nobody knows is for admin", () => {
    const types = readdirSync(new URL("../../../domain/facts/", import.meta.url)).map((name) => name.split("@")[0]!)
    expect([...new Set(types)].toSorted()).toEqual([...scopeOfType.keys()].toSorted())
    expect([scopeOfFact("KeyMade@1"), scopeOfFact("KeyCreated@9"), scopeOfFact("BodyRead@1")]).toEqual([
      "admin",
      "admin",
      "audit:read"
    ])
  })
})
