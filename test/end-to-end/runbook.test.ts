/**
 * The eight situations of docs/runbook.md, played on the product with the commands of the page: at most three tell what is
 * wrong and end it.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Exit, Redacted, Scope } from "effect"
import pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { posthaste } from "../servers/commandLine.ts"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { api, operatorKey, type Product, startProduct } from "../servers/product.ts"
import { receiver } from "../servers/receiver.ts"

const org = "acme"
const scope = Scope.makeUnsafe()
const inScope = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>) => Effect.runPromise(Scope.provide(effect, scope))
const page = readFileSync(join(import.meta.dirname, "../../docs/runbook.md"), "utf8")

let product: Product
let databaseUrl: string
let receiverUrl: string
let received = 0
let status = 200

beforeAll(async () => {
  databaseUrl = Redacted.value(await inScope(freshDatabase))
  const far = await inScope(
    receiver(() => {
      received += 1
      return { status }
    })
  )
  receiverUrl = far.url
  product = await startProduct(databaseUrl, { POSTHASTE_CIRCUIT_OPEN_MS: "600000" })
}, 60_000)

afterAll(async () => {
  if (product?.process.exitCode === null) await product.stop()
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

const call = <A = Record<string, unknown>>(method: string, path: string, body?: unknown) =>
  api(product.url!, org)<A>(method, path, body)

const PATIENCE_MS = 120_000

const until = async <A>(look: () => Promise<A>, isIt: (found: A) => boolean): Promise<A> => {
  const deadline = Date.now() + PATIENCE_MS
  for (;;) {
    const found = await look()
    if (isIt(found)) return found
    if (Date.now() > deadline) throw new Error(`waited in vain, and found at last ${JSON.stringify(found)}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** Commands with commands of their own. */
const groups = new Set(["destinations", "dead-letters", "streams"])

/** Runs the commands of one section: each must stand there, and there are three at most. */
const night = (heading: string) => {
  const section = page.split(/^## /m).find((text) => text.startsWith(heading))
  if (section === undefined) throw new Error(`the runbook has no section ${heading}`)
  let used = 0
  const uses = (words: string) => {
    used += 1
    expect(used).toBeLessThanOrEqual(3)
    expect(section).toContain(words)
  }
  const env = {
    POSTHASTE_URL: product.url!,
    POSTHASTE_OPERATOR_KEY: operatorKey,
    POSTHASTE_ORG: org,
    DATABASE_URL: databaseUrl
  }
  return {
    run: async (...args: ReadonlyArray<string>) => {
      uses(`posthaste ${args.slice(0, groups.has(args[0]!) ? 2 : 1).join(" ")}`)
      return posthaste(env)(args)
    },
    /** What load balancers ask. */
    ready: async () => {
      uses("curl -s $URL/readyz")
      return (await fetch(`${product.url}/readyz`)).status
    },
    request: async (method: string, path: string, body?: unknown) => {
      uses(path.split("?")[0]!.replace(/[0-9a-f-]{36}/, "$ID"))
      return call<Record<string, unknown> | null>(method, path, body)
    }
  }
}

const endpoint = async (settings: object = {}) =>
  (await call<{ id: string }>("POST", "/webhook-endpoints", { url: receiverUrl, ...settings })).body.id

const BATCH = 1_000

const sendMany = async (to: string, count: number) => {
  for (let sent = 0; sent < count; sent += BATCH) {
    const messages = Array.from({ length: Math.min(BATCH, count - sent) }, () => ({
      channel: "webhook",
      to,
      payloadJson: 1
    }))
    expect((await call("POST", "/outbound/messages/batch", { messages })).status).toBe(200)
  }
}

const sendOne = async (to: string, fields: object = {}) =>
  (await call<{ id: string }>("POST", "/outbound/messages", { channel: "webhook", to, payloadJson: 1, ...fields })).body
    .id

const statusOf = async (id: string) => (await call<{ status: string }>("GET", `/outbound/messages/${id}`)).body.status
const delivered = (id: string) =>
  until(
    () => statusOf(id),
    (status) => status === "DELIVERED"
  )

const destination = async (id: string) =>
  (await call<{ waiting: number; inFlight: number; circuit: { status: string } }>("GET", `/destinations/${id}`)).body
const drained = (id: string) =>
  until(
    () => destination(id),
    ({ waiting, inFlight }) => waiting + inFlight === 0
  )

describe("at night", () => {
  it("an endpoint is down and 5,000 messages wait", async () => {
    status = 503
    const id = await endpoint()
    await sendMany(id, 5_000)
    await until(
      () => destination(id),
      ({ circuit, waiting }) => circuit.status === "OPEN" && waiting === 5_000
    )
    const { run } = night("An endpoint is down")
    const listed = await run("destinations", "list", "--waiting")
    expect(listed.out).toMatch(new RegExp(`^OPEN +${id} .*5,000 waiting.*attempts in a row failed.*next probe in`, "m"))
    status = 200
    const before = received
    expect(await run("destinations", "reset", id)).toMatchObject({ code: 0 })
    await drained(id)
    expect(received - before).toBeGreaterThanOrEqual(5_000)
  }, 240_000)

  it("a receiver's bug refused 2,000 messages", async () => {
    status = 400
    const id = await endpoint()
    await sendMany(id, 2_000)
    const dead = () => call<{ byStatus: Record<string, number> }>("GET", "/outbound/stats")
    await until(dead, ({ body }) => body.byStatus["FAILED"] === 2_000)
    status = 200
    const { run } = night("A receiver's bug")
    const listed = await run("dead-letters", "list", "--error-code", "http_400", "--limit", "1")
    expect(listed.out).toContain("http_400")
    const preview = await run("dead-letters", "replay", "--error-code", "http_400", "--preview")
    expect(preview.out).toContain("2,000 dead letters match")
    const replayed = await run("dead-letters", "replay", "--error-code", "http_400", "--reason", "fixed", "--yes")
    expect(replayed.out).toContain("2,000 replayed")
    await drained(id)
    await until(dead, ({ body }) => body.byStatus["FAILED"] === 0)
  }, 240_000)

  it("a customer did not get order 4711", async () => {
    const to = await endpoint()
    const id = await sendOne(to, { metadata: { order: "4711" } })
    await delivered(id)
    const find = () => call<{ items: ReadonlyArray<unknown> }>("GET", "/outbound/messages?metadata=order%3D4711")
    await until(find, ({ body }) => body.items.length === 1)
    const { run } = night('"We did not get order 4711"')
    expect((await run("find", "--metadata", "order=4711")).out).toContain(id)
    expect((await run("show", id)).out).toMatch(/attempt 1 succeeded with status 200/)
    const again = (await run("resend", id)).out.trim()
    await delivered(again)
    expect((await call<{ resendOf: string }>("GET", `/outbound/messages/${again}`)).body.resendOf).toBe(id)
  })

  it("the database was restarted", async () => {
    const to = await endpoint()
    const client = new pg.Client({ connectionString: databaseUrl })
    await client.connect()
    await client.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    )
    await client.end()
    const id = await until(
      () => call<{ id: string }>("POST", "/outbound/messages", { channel: "webhook", to, payloadJson: 1 }),
      ({ status }) => status === 201
    )
    await delivered(id.body.id)
    const { run, ready } = night("The database was restarted")
    expect(await ready()).toBe(200)
    expect((await run("stats")).out).toMatch(/^QUEUED +0$/m)
    expect(await run("streams", "verify")).toMatchObject({ code: 0, out: expect.stringMatching(/^no violation/) })
  })

  it("the queue grows", async () => {
    const id = await endpoint({ rateLimit: { limit: 1, periodMs: 60_000 } })
    await sendMany(id, 50)
    const last = await sendOne(id)
    const { run } = night("The queue grows")
    const listed = await run("destinations", "list", "--sort", "waiting")
    expect(listed.out.split("\n")[0]).toContain(id)
    expect((await run("show", last)).out).toContain(
      "waits for the rate limit of its destination: 1 messages every 60000 ms"
    )
    await call("PATCH", `/webhook-endpoints/${id}`, { rateLimit: null })
    await drained(id)
  })

  it("everything to one customer must stop, and go on later", async () => {
    const [a, b] = [await endpoint(), await endpoint()]
    await call("POST", `/destinations/${b}/pause`, { reason: "long gone" })
    const { run } = night("Stop everything")
    await run("destinations", "pause", "--all", "--reason", "incident 12", "--org", org)
    const id = await sendOne(a)
    expect((await call<{ reason: string }>("GET", `/outbound/messages/${id}/explanation`)).body.reason).toBe("PAUSED")
    await run("destinations", "resume", "--all", "--stopped-for", "incident 12", "--org", org)
    await delivered(id)
    const { body } = await call<{ items: ReadonlyArray<{ id: string }> }>("GET", "/destinations?paused=true")
    expect(body.items.map((each) => each.id)).toEqual([b])
  })

  it("a person's data must go", async () => {
    const to = await endpoint()
    const id = await sendOne(to, { correlationId: "person-7" })
    await delivered(id)
    const find = () => call<{ items: ReadonlyArray<unknown> }>("GET", "/outbound/messages?correlationId=person-7")
    await until(find, ({ body }) => body.items.length === 1)
    const { run, request } = night("A person's data")
    expect((await run("find", "--correlation-id", "person-7", "--json")).json<{ id: string }>().id).toBe(id)
    expect((await request("POST", `/outbound/messages/${id}/erase`, { reason: "request 31" })).status).toBe(200)
    expect(await run("show", id, "--body")).toMatchObject({ code: 1, err: expect.stringContaining("erased") })
  })

  it("somebody asks what was yesterday at 15:02", async () => {
    const to = await endpoint()
    await call("POST", `/destinations/${to}/pause`, { reason: "they moved" })
    const id = await sendOne(to)
    const then = new Date(Date.now() + 5).toISOString()
    await new Promise((resolve) => setTimeout(resolve, 50))
    await call("POST", `/destinations/${to}/resume`)
    await delivered(id)
    const { run, request } = night("What was yesterday")
    expect((await run("show", id, "--at", then)).out).toMatch(/^QUEUED.*why: .*paused by operator \(they moved\)/ms)
    expect((await run("destinations", "show", to)).out).toMatch(/DestinationPaused by operator: they moved/)
    const from = new Date(Date.now() - 60_000).toISOString()
    const audit = () => call<{ items: ReadonlyArray<{ operation: string }> }>("GET", `/audit?from=${from}`)
    await until(audit, ({ body }) => body.items.some(({ operation }) => operation === "RESUMED"))
    expect((await request("GET", `/audit?from=${from}`)).status).toBe(200)
  })
})
