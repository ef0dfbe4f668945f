/**
 * The situations of docs/runbook.md, played on the product with the commands of the page: at most three tell what is wrong and
 * end it. What the page offers besides is played too, and nothing that it names is left out.
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
import { PATIENCE_MS } from "../servers/until.ts"

const org = "acme"
const scope = Scope.makeUnsafe()
const inScope = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>) => Effect.runPromise(Scope.provide(effect, scope))
const page = readFileSync(join(import.meta.dirname, "../../docs/runbook.md"), "utf8")

let product: Product
let databaseUrl: string
let receiverUrl: string
let received = 0
let report: pg.Client
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
})

afterAll(async () => {
  if (product?.process.exitCode === null) await product.stop()
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

const call = <A = Record<string, unknown>>(method: string, path: string, body?: unknown) =>
  api(product.url!, org)<A>(method, path, body)

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
const groups = new Set(["destinations", "dead-letters", "streams", "endpoints", "parked", "projections"])

/** The words of a command and the names of its flags, whatever their values. */
const formOf = (args: ReadonlyArray<string>): string =>
  [...args.slice(0, groups.has(args[0]!) ? 2 : 1), ...args.filter((word) => word.startsWith("--")).toSorted()].join(" ")

const formOfRequest = (method: string, path: string): string =>
  `${method} ${path.replace(/\?.*/, "").replace(/[0-9a-f-]{36}|\$[A-Z]+/, "$ID")}`

/** Every command of a text: those of its blocks, and those that a sentence names. */
const formsIn = (text: string): ReadonlyArray<string> => {
  const lines = [
    ...[...text.matchAll(/^```sh\n(.*?)^```/gms)].flatMap(([, block]) => block!.trim().split("\n")),
    ...[...text.matchAll(/`(posthaste [^`]+)`/g)].map(([, command]) => command!)
  ]
  return lines.map((line) => {
    if (line.startsWith("psql ")) return line
    const [, method = "GET"] = / -X (\w+) /.exec(line) ?? []
    const [, path] = /\$URL(\/[^ "]+)/.exec(line) ?? []
    return path === undefined
      ? formOf(
          line
            .replaceAll(/"[^"]*"/g, "…")
            .split(" ")
            .slice(1)
        )
      : formOfRequest(method, path)
  })
}

const played = new Set<string>()

/** Runs the commands of one section: each must stand there. Three at most solve it; `or` is what stands besides. */
const night = (heading: string) => {
  const section = page.split(/^## /m).find((text) => text.startsWith(heading))
  if (section === undefined) throw new Error(`the runbook has no section ${heading}`)
  const [solution, besides = ""] = section.split(/^\*Or\*/m)
  const forms = { solution: formsIn(solution!), besides: formsIn(besides) }
  let used = 0
  const uses = (form: string, from: "solution" | "besides" = "solution") => {
    if (from === "solution") used += 1
    expect(used).toBeLessThanOrEqual(3)
    expect(forms[from]).toContain(form)
    played.add(form)
  }
  const env = {
    POSTHASTE_URL: product.url!,
    POSTHASTE_OPERATOR_KEY: operatorKey,
    POSTHASTE_ORG: org,
    DATABASE_URL: databaseUrl
  }
  return {
    run: async (...args: ReadonlyArray<string>) => {
      uses(formOf(args))
      return posthaste(env)(args)
    },
    or: async (...args: ReadonlyArray<string>) => {
      uses(formOf(args), "besides")
      return posthaste(env)(args)
    },
    /** What load balancers ask. */
    ready: async () => {
      uses("GET /readyz")
      return (await fetch(`${product.url}/readyz`)).status
    },
    /** A statement of the section, of the database itself. */
    statement: async (begins: string, pid = "") => {
      const line = forms.solution.find((form) => form.includes(`-c "${begins}`))!
      uses(line)
      const [, text] = /-c "(.*)"$/.exec(line)!
      const client = new pg.Client({ connectionString: databaseUrl })
      await client.connect()
      const { rows } = await client.query(text!.replace("$PID", pid))
      await client.end()
      return rows as ReadonlyArray<Record<string, unknown>>
    },
    request: async (method: string, path: string, body?: unknown) => {
      uses(formOfRequest(method, `/api/v1${path}`))
      return call<Record<string, unknown> | null>(method, path, body)
    },
    orRequest: async (method: string, path: string, body?: unknown) => {
      uses(formOfRequest(method, `/api/v1${path}`), "besides")
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
  }, 600_000)

  it("an endpoint was down for so long that messages ended badly, and one customer's backlog is wanted by nobody", async () => {
    const { or } = night("An endpoint is down")
    const since = new Date(Date.now() - 60_000).toISOString()
    const id = await endpoint()
    status = 410
    const refused = await sendOne(id)
    await until(
      () => statusOf(refused),
      (is) => is === "FAILED"
    )
    status = 200
    await until(
      () => call<{ state: string }>("GET", `/webhook-endpoints/${id}`),
      ({ body }) => body.state === "DISABLED"
    )
    const waiting = await sendOne(id)
    expect(await or("destinations", "enable", id)).toMatchObject({ code: 0 })
    await delivered(waiting)
    await until(
      () => call<{ items: ReadonlyArray<{ id: string }> }>("GET", "/dead-letters"),
      ({ body }) => body.items.some((each) => each.id === refused)
    )
    expect((await or("endpoints", "recover", id, "--since", since)).out).toContain("1 replayed")
    await delivered(refused)
    await call("POST", `/destinations/${id}/pause`)
    const unwanted = await sendOne(id)
    await until(
      () => call<{ items: ReadonlyArray<unknown> }>("GET", `/outbound/messages?to=${id}&status=QUEUED`),
      ({ body }) => body.items.length === 1
    )
    expect((await or("cancel", "--to", id, "--reason", "the customer is gone", "--yes")).out).toContain("1 cancelled")
    expect(await statusOf(unwanted)).toBe("CANCELLED")
    await call("POST", `/destinations/${id}/resume`)
  })

  it("a receiver's bug refused 2,000 messages", async () => {
    status = 400
    const id = await endpoint()
    await sendMany(id, 2_000)
    const dead = () => call<{ byStatus: Record<string, number> }>("GET", "/outbound/stats")
    await until(dead, ({ body }) => body.byStatus["FAILED"] === 2_000)
    status = 200
    const { run } = night("A receiver's bug")
    const listed = await run("dead-letters", "list", "--error-code", "http_400")
    expect(listed.out).toContain("http_400")
    const preview = await run("dead-letters", "replay", "--error-code", "http_400", "--preview")
    expect(preview.out).toContain("2,000 dead letters match")
    const replayed = await run("dead-letters", "replay", "--error-code", "http_400", "--reason", "fixed", "--yes")
    expect(replayed.out).toContain("2,000 replayed")
    await drained(id)
    await until(dead, ({ body }) => body.byStatus["FAILED"] === 0)
  }, 600_000)

  it("what a receiver refused is wanted elsewhere, or by nobody", async () => {
    status = 400
    const [bad, worse] = [await endpoint(), await endpoint()]
    const [first, second] = [await sendOne(bad), await sendOne(worse)]
    const listed = () => call<{ items: ReadonlyArray<{ id: string }> }>("GET", "/dead-letters")
    const has = (id: string) => (found: Awaited<ReturnType<typeof listed>>) =>
      found.body.items.some((each) => each.id === id)
    await until(listed, has(first))
    await until(listed, has(second))
    status = 200
    const { or } = night("A receiver's bug")
    const other = await endpoint()
    const replayed = await or("dead-letters", "replay", "--to", bad, "--send-to", other, "--yes")
    expect(replayed.out).toContain("1 replayed")
    const sent = () => call<{ items: ReadonlyArray<{ resendOf: string }> }>("GET", `/outbound/messages?to=${other}`)
    await until(sent, ({ body }) => body.items[0]?.resendOf === first)
    const dismissed = await or("dead-letters", "dismiss", "--to", worse, "--reason", "the shop closed", "--yes")
    expect(dismissed.out).toContain("1 dismissed")
    await until(listed, (found) => !has(first)(found) && !has(second)(found))
  })

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

  it("a customer waits for a message that waits for its time, and another wants it elsewhere", async () => {
    const { or } = night('"We did not get order 4711"')
    const id = await sendOne(await endpoint(), { deliverAt: new Date(Date.now() + 3_600_000).toISOString() })
    expect(await or("retry-now", id)).toMatchObject({ code: 0 })
    await delivered(id)
    await delivered((await or("resend", id, "--to", await endpoint())).out.trim())
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
    // Lists and counts come a moment after the facts.
    const counted = () => call<{ byStatus: Record<string, number> }>("GET", "/outbound/stats")
    await until(counted, ({ body }) => body.byStatus["QUEUED"] === 0 && body.byStatus["SENDING"] === 0)
    const { run, ready } = night("The database was restarted")
    expect(await ready()).toBe(200)
    expect((await run("stats")).out).toMatch(/^QUEUED +0$/m)
    expect(await run("streams", "verify")).toMatchObject({ code: 0, out: expect.stringMatching(/^no violation/) })
  })

  it("somebody begins a long look at the database", async () => {
    report = new pg.Client({ connectionString: databaseUrl, application_name: "nightly report" })
    // It is ended from outside.
    report.on("error", () => {})
    await report.connect()
    await report.query("begin isolation level repeatable read")
    await report.query("select 1 from posthaste.ready limit 1")
  })

  it("the queue grows", async () => {
    const id = await endpoint({ rateLimit: { limit: 1, periodMs: 60_000 } })
    await sendMany(id, 50)
    const last = await sendOne(id)
    // The first has used up what the limit allows.
    const explained = () => call<{ reason: string }>("GET", `/outbound/messages/${last}/explanation`)
    await until(explained, ({ body }) => body.reason === "RATE_LIMITED")
    const { run } = night("The queue grows")
    const listed = await run("destinations", "list", "--sort", "waiting")
    expect(listed.out.split("\n")[0]).toContain(id)
    expect((await run("show", last)).out).toContain(
      "waits for the rate limit of its destination: 1 messages every 60000 ms"
    )
    await call("PATCH", `/webhook-endpoints/${id}`, { rateLimit: null })
    await drained(id)
  })

  it("messages are parked", async () => {
    const to = await endpoint()
    await call("POST", `/destinations/${to}/pause`)
    const id = await sendOne(to)
    await until(
      () => call<{ items: ReadonlyArray<unknown> }>("GET", `/outbound/messages?to=${to}`),
      ({ body }) => body.items.length === 1
    )
    const client = new pg.Client({ connectionString: databaseUrl })
    await client.connect()
    const rename = (from: string, to: string) =>
      client.query("update posthaste.message set data = replace(data::text, $2, $3)::json where id = $1", [
        id,
        from,
        to
      ])
    await rename('"acceptedAt"', '"spoiltAt"')
    await call("POST", `/destinations/${to}/resume`)
    const { run } = night("Messages are parked")
    await until(
      () => call<{ items: ReadonlyArray<{ stream: string }> }>("GET", "/parked"),
      ({ body }) => body.items.some((each) => each.stream === `message-${id}`)
    )
    expect((await run("parked", "list")).out).toMatch(new RegExp(`^message-${id} .*unreadable`, "m"))
    await rename('"spoiltAt"', '"acceptedAt"')
    await client.end()
    expect(await run("parked", "retry", "--all")).toMatchObject({ code: 0, out: "1 stream is tried again\n" })
    await delivered(id)
  })

  it("an endpoint missed events", async () => {
    const since = new Date(Date.now() - 60_000).toISOString()
    await call("POST", "/events", { eventType: "order.paid", data: { order: 1 } })
    const id = await endpoint({ eventTypes: ["order.*"] })
    const { run } = night("An endpoint missed events")
    expect((await run("endpoints", "replay-missing", id, "--since", since)).out).toContain("1 replayed")
    await drained(id)
    expect(await run("endpoints", "health", id)).toMatchObject({ code: 0, out: expect.stringContaining("1") })
  })

  it("the secret of an endpoint leaked", async () => {
    const id = await endpoint()
    const secret = async () => (await call<{ secret: string }>("GET", `/webhook-endpoints/${id}/secret`)).body.secret
    const before = await secret()
    const { run } = night("The secret of an endpoint leaked")
    expect((await run("endpoints", "rotate", id, "--grace-seconds", "0")).out).toMatch(/whsec_/)
    expect(await secret()).not.toBe(before)
    expect((await run("endpoints", "test", id, "--wait")).out).toMatch(/^DELIVERED {2}/m)
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

  it("nothing of one customer may come in", async () => {
    const to = await endpoint()
    const send = () => call("POST", "/outbound/messages", { channel: "webhook", to, payloadJson: 1 })
    const { orRequest } = night("Stop everything")
    expect((await orRequest("PUT", `/orgs/${org}`, { suspended: "unpaid since March" })).status).toBe(200)
    await until(send, ({ status }) => status === 403)
    expect((await orRequest("PUT", `/orgs/${org}`, {})).status).toBe(200)
    await until(send, ({ status }) => status === 201)
  })

  it("a person's data must go", async () => {
    const to = await endpoint()
    const id = await sendOne(to, { correlationId: "person-7" })
    await delivered(id)
    const find = () => call<{ items: ReadonlyArray<unknown> }>("GET", "/outbound/messages?correlationId=person-7")
    await until(find, ({ body }) => body.items.length === 1)
    const { run, request } = night("A person's data")
    const asked = await request("POST", "/erasures", { correlationId: "person-7", reason: "request 31" })
    expect(asked.status).toBe(202)
    const erasure = `/erasures/${asked.body!["id"]}`
    await until(
      () => call<{ status: string }>("GET", erasure),
      ({ body }) => body.status === "COMPLETED"
    )
    expect((await request("GET", erasure)).body).toMatchObject({ status: "COMPLETED", messages: 1 })
    await until(find, ({ body }) => body.items.length === 0)
    expect((await run("find", "--correlation-id", "person-7")).out).toBe("")
  })

  it("the body of one message must go", async () => {
    const id = await sendOne(await endpoint())
    await delivered(id)
    const { or, orRequest } = night("A person's data")
    expect((await orRequest("POST", `/outbound/messages/${id}/erase`, { reason: "request 32" })).status).toBe(200)
    expect(await or("show", id, "--body")).toMatchObject({ code: 1, err: expect.stringContaining("erased") })
  })

  it("somebody asks what was yesterday at 15:02", async () => {
    const to = await endpoint()
    await call("POST", `/destinations/${to}/pause`, { reason: "they moved" })
    const id = await sendOne(to)
    const { createdAt } = (await call<{ createdAt: string }>("GET", `/outbound/messages/${id}`)).body
    const then = new Date(Date.parse(createdAt) + 5).toISOString()
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

  it("an old transaction makes claims slow", async () => {
    const wrong = async () =>
      (await call<{ troubles: ReadonlyArray<{ reason: string }> }>("GET", "/outbound/stats")).body
    await until(wrong, ({ troubles }) => troubles.some(({ reason }) => reason === "LONG_TRANSACTION"))
    const { run, statement } = night("An old transaction makes claims slow")
    expect((await run("status")).out).toMatch(/LONG_TRANSACTION: .*nightly report \(process \d+\)/)
    const found = await statement("select pid")
    const { pid } = found.find((row) => row["application_name"] === "nightly report")!
    expect(await statement("select pg_terminate_backend", String(pid))).toEqual([{ pg_terminate_backend: true }])
    await until(wrong, ({ troubles }) => troubles.length === 0)
  })

  it("whatever else the page names is a command", async () => {
    const env = { POSTHASTE_URL: product.url!, POSTHASTE_OPERATOR_KEY: operatorKey, POSTHASTE_ORG: org }
    const others: ReadonlyArray<ReadonlyArray<string>> = [
      ["destinations", "list"],
      ["dead-letters", "list"],
      ["projections", "list"],
      ["find", "--to", await endpoint(), "--status", "QUEUED"]
    ]
    for (const args of others) {
      expect(await posthaste(env)(args), args.join(" ")).toMatchObject({ code: 0 })
      played.add(formOf(args))
    }
    expect(new Set(formsIn(page))).toEqual(played)
  })
})
