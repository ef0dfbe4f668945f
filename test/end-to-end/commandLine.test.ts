/** Every command as its users run it, against the product in a process of its own and its database. */
import { once } from "node:events"
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Exit, Redacted, Scope } from "effect"
import pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import manifest from "../../package.json" with { type: "json" }
import { launch, posthaste, type Ran } from "../servers/commandLine.ts"
import { eventStore } from "../servers/eventStore.ts"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { lastingPort } from "../servers/lastingPort.ts"
import { temporaryDirectory } from "../servers/leftovers.ts"
import { api, operatorKey, type Product, startProduct } from "../servers/product.ts"
import { receiver } from "../servers/receiver.ts"
import { PATIENCE_MS } from "../servers/until.ts"

const org = "acme"
const scope = Scope.makeUnsafe()
const home = temporaryDirectory()
const inHome = (name: string) => join(home, name)

let product: Product
let databaseUrl: string
let run: (args: ReadonlyArray<string>, input?: string) => Promise<Ran>
/** Without what the product is called with: only where the store is. */
let onStore: (url: string, ...args: ReadonlyArray<string>) => Promise<Ran>
let endpoint: string
let isDown = false
const received: Array<string> = []

const inScope = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>) => Effect.runPromise(Scope.provide(effect, scope))
const call = <A = Record<string, unknown>>(method: string, path: string, body?: unknown) =>
  api(product.url!, org)<A>(method, path, body)

const until = async <A>(look: () => Promise<A>, isIt: (found: A) => boolean): Promise<A> => {
  const deadline = Date.now() + PATIENCE_MS
  for (;;) {
    const found = await look()
    if (isIt(found)) return found
    if (Date.now() > deadline) throw new Error(`waited in vain, and found at last ${JSON.stringify(found)}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const sql = async (url: string, text: string) => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query(text)
  await client.end()
  return rows as ReadonlyArray<Record<string, unknown>>
}

const statusOf = async (id: string) => (await call<{ status: string }>("GET", `/outbound/messages/${id}`)).body.status
const settled = (id: string) =>
  until(
    () => statusOf(id),
    (status) => status !== "QUEUED" && status !== "SENDING"
  )

const sendOne = async (fields: object | number = {}) => {
  const message = { channel: "webhook", to: endpoint, payloadJson: {}, ...(typeof fields === "object" ? fields : {}) }
  return (await call<{ id: string }>("POST", "/outbound/messages", message)).body.id
}

beforeAll(async () => {
  databaseUrl = Redacted.value(await inScope(freshDatabase))
  const far = await inScope(
    receiver((request) => {
      received.push(request.body)
      return { status: isDown ? 422 : 200, body: "said" }
    })
  )
  product = await startProduct(databaseUrl, { PORT: String(await lastingPort()) })
  run = posthaste({
    POSTHASTE_URL: product.url!,
    POSTHASTE_OPERATOR_KEY: operatorKey,
    POSTHASTE_ORG: org,
    POSTHASTE_DATA_DIR: home
  })
  onStore = (url, ...args) => posthaste({ DATABASE_URL: url, POSTHASTE_DATA_DIR: home })(args)
  endpoint = (await call<{ id: string }>("POST", "/webhook-endpoints", { url: far.url })).body.id
})

afterAll(async () => {
  if (product?.process.exitCode === null) await product.stop()
  await Effect.runPromise(Scope.close(scope, Exit.void))
  rmSync(home, { recursive: true, force: true })
})

describe("the command line", () => {
  it("explains itself, says which release it is, and completes itself in a shell", async () => {
    const [help, version, completions] = await Promise.all([
      run(["--help"]),
      run(["--version"]),
      run(["--completions", "bash"])
    ])
    for (const name of [
      "serve",
      "migrate",
      "send",
      "show",
      "tail",
      "stats",
      "destinations",
      "dead-letters",
      "projections",
      "endpoints",
      "events",
      "event-types",
      "streams",
      "export",
      "import"
    ]) {
      expect(help.out).toMatch(new RegExp(`^  ${name} `, "m"))
      expect(completions.out).toContain(name)
    }
    expect([help.code, version.code, completions.code]).toEqual([0, 0, 0])
    expect(version.out).toContain(manifest.version)
  })

  it.each([
    [["sned"], 2, /^posthaste: Unknown subcommand "sned".*send.*--help\)\n$/],
    [["send", "--bogus"], 2, /^posthaste: Unrecognized flag: --bogus.*\n$/],
    [["send", "--to", "x", "--payload", "{}"], 1, /^posthaste: The request is not valid \(400\): to is not .*\n$/],
    [["show", "nobody"], 1, /^posthaste: Not found \(404\).*\n$/],
    [
      ["stats", "--url", "http://127.0.0.1:9"],
      1,
      /^posthaste: no answer from http:\/\/127.0.0.1:9 .*--url or POSTHASTE_URL.*\n$/
    ]
  ])("says in one line what is wrong with %j", async (args, code, line) => {
    const ran = await run(args)
    expect(ran).toMatchObject({ code, out: "", err: expect.stringMatching(line) })
  })

  it("says which key is missing, and takes the kept ones where there are some", async () => {
    const without = posthaste({ POSTHASTE_URL: product.url!, POSTHASTE_DATA_DIR: inHome("none") })
    expect(await without(["stats"])).toMatchObject({ code: 1, err: expect.stringContaining("set POSTHASTE_API_KEY") })
    const key = (await api(product.url!, org)<{ key: string }>("POST", "/api-keys", { orgId: org, name: "cli" })).body
      .key
    writeFileSync(inHome("default-org-key"), `${key}\n`)
    const kept = await posthaste({ POSTHASTE_URL: product.url!, POSTHASTE_DATA_DIR: home })(["stats", "--json"])
    expect(kept.json()).toHaveProperty("byStatus.QUEUED")
  })
})

describe("send and show", () => {
  it("deliver what was written to the byte, once for a key, and tell the story of it", async () => {
    const payload = '{"n":12345678901234567890,"p":1.10}'
    const args = ["send", "--to", endpoint, "--payload", payload, "--event-type", "order.paid", "--key", "k-1"]
    const first = await run(args)
    const id = first.out.trim()
    expect(first).toMatchObject({ code: 0, out: expect.stringMatching(/^[0-9a-f-]{36}\n$/) })
    expect(await settled(id)).toBe("DELIVERED")
    expect(received).toContain(payload)
    expect(await run(args)).toMatchObject({ code: 0, out: `${id}\n`, err: expect.stringContaining("known already") })
    const shown = await run(["show", id])
    expect(shown.out).toMatch(/^DELIVERED {2}/)
    expect(shown.out).toContain("why: the destination answered that it received the message")
    expect(shown.out).toMatch(/4 {2}\S+ {2}DELIVERED {2}delivered, proven by the response/)
    const { events, attempts } = (await run(["show", id, "--json"])).json<{
      events: Array<{ at: string }>
      attempts: Array<unknown>
    }>()
    expect([events.length, attempts.length]).toEqual([4, 1])
    expect(shown.out).toMatch(
      /\nattempt 1 {2}\S+ {2}POST http:\/\/127\.0\.0\.1:\d+\/\S* {2}to 127\.0\.0\.1:\d+ {2}200 after \d+ ms/
    )
    const proof = await run(["show", id, "--headers"])
    expect(proof.out).toContain(`\n  > webhook-id: ${id}\n`)
    expect(proof.out).toContain("\n  > webhook-signature: ***\n")
    const before = await run(["show", id, "--at", events[0]!.at, "--json"])
    expect(before.json()).toMatchObject({ message: { status: "QUEUED" }, events: [{ version: 1 }] })
  })

  it("take a whole request from a file, with flags before its fields", async () => {
    const request = `{"to":"elsewhere","payloadJson":[1.50],"correlationId":"c-1","deliverAt":"2099-01-01T00:00:00Z"}`
    const sent = await run(["send", "--file", "-", "--to", endpoint, "--json"], request)
    expect(sent.json()).toMatchObject({ to: endpoint, correlationId: "c-1", status: "QUEUED" })
    const why = (await run(["show", sent.json<{ id: string }>().id, "--json"])).json<{ why: string }>().why
    expect(why).toMatch(/^the message is not due yet/)
  })

  it("say what holds a message up: a pause, and another of its ordering key", async () => {
    await call("POST", `/webhook-endpoints/${endpoint}/pause`)
    const send = async () => (await run(["send", "--to", endpoint, "--payload", "1", "--ordering-key", "a"])).out.trim()
    const head = await send()
    const behind = await send()
    const why = async (id: string) => (await run(["show", id, "--json"])).json<{ why: string }>().why
    expect(await why(head)).toMatch(/paused/)
    await until(
      () => why(behind),
      (said) => said.includes(`message ${head} (QUEUED) has the same ordering key`)
    )
    await call("POST", `/webhook-endpoints/${endpoint}/resume`)
    expect(await Promise.all([settled(head), settled(behind)])).toEqual(["DELIVERED", "DELIVERED"])
  })
})

describe("destinations", () => {
  it("are listed with what waits, stopped with a reason, and started again", async () => {
    const stopped = await run(["destinations", "pause", "--all", "--reason", "incident 12", "--json"])
    expect(stopped.json()).toEqual({ commanded: 1 })
    const id = await sendOne()
    const listed = await run(["destinations", "list", "--waiting"])
    expect(listed).toMatchObject({ code: 0, out: expect.stringMatching(/^PAUSED .* [12] waiting .*: incident 12$/m) })
    expect((await run(["show", id])).out).toMatch(
      new RegExp(`^can: .*: posthaste destinations resume ${endpoint}$`, "m")
    )
    const started = await run(["destinations", "resume", endpoint])
    expect(started).toMatchObject({ code: 0, out: expect.stringMatching(/^CLOSED/) })
    expect(await settled(id)).toBe("DELIVERED")
    expect((await run(["destinations", "show", endpoint])).out).toMatch(/DestinationPaused by operator: incident 12/)
    expect(await run(["destinations", "pause"])).toMatchObject({ code: 1, err: expect.stringContaining("--all") })
  })
})

describe("events, event-types and endpoints", () => {
  it("publish an event to those who want it, as it was written, once for a key, and show what became of it", async () => {
    const data = '{"n":12345678901234567890,"p":1.10}'
    const args = ["events", "publish", "--event-type", "order.paid", "--data", data, "--key", "e-1"]
    const first = await run(args)
    const id = first.out.trim()
    expect(first).toMatchObject({ code: 0, err: expect.stringContaining("for 1 endpoint") })
    await until(
      async () => received,
      (bodies) => bodies.some((body) => body.includes(`"data":${data}`))
    )
    expect(await run(args)).toMatchObject({ code: 0, out: `${id}\n`, err: expect.stringContaining("known already") })
    const shown = () => run(["events", "show", id])
    const told = await until(shown, ({ out }) => out.includes("DELIVERED"))
    expect(told.out).toContain(data)
    expect(told.out).toMatch(new RegExp(`^DELIVERED .*to ${endpoint} {2}1 attempt$`, "m"))
    const listed = await run(["events", "list", "--event-type", "order.paid"])
    expect(listed.out).toMatch(new RegExp(`^${id} +order\\.paid +.*1 `, "m"))
    expect((await run(["events", "list", "--event-type", "none"])).err).toContain("there are none")
    expect(await run(["events", "publish", "--data", "1"])).toMatchObject({
      code: 1,
      err: expect.stringContaining("--event-type")
    })
    expect((await run(["events", "publish", "--event-type", "a", "--data", "{"])).err).toContain("is not JSON")
  })

  it("keep a catalogue of types", async () => {
    writeFileSync(inHome("schema.json"), '{"type":"object","required":["kg"],"properties":{"kg":{"type":"number"}}}')
    const definition = ["--schema", `@${inHome("schema.json")}`, "--enforce", "true", "--example", '{"kg":1.50}']
    const made = await run(["event-types", "create", "--name", "order.weighed", ...definition])
    expect(made).toMatchObject({ code: 0, out: expect.stringContaining('"name":"order.weighed"') })
    expect((await run(["event-types", "list"])).out).toMatch(
      /^name +archived +enforced? .*\norder\.weighed +false +true /
    )
    expect((await run(["event-types", "get", "order.weighed"])).out).toContain('"example":{"kg":1.5}')
    const refused = await run(["events", "publish", "--event-type", "order.weighed", "--data", '{"kg":"x"}'])
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining("data.kg") })
    const sent = await run(["endpoints", "test", endpoint, "--event-type", "order.weighed", "--wait"])
    expect(sent).toMatchObject({ code: 0, out: expect.stringContaining("DELIVERED") })
    expect(received.at(-1)).toContain('"test":true,"data":{"kg":1.50}')
    const changed = await run(["event-types", "update", "order.weighed", "--description", "on the scales"])
    expect(changed.json()).toMatchObject({ description: "on the scales", enforce: true, example: { kg: 1.5 } })
    expect((await run(["event-types", "delete", "order.weighed"])).err).toContain("confirm with --yes")
    expect((await run(["event-types", "delete", "order.weighed", "--yes"])).code).toBe(0)
    expect((await run(["event-types", "list"])).err).toContain("there are none")
    expect((await run(["event-types", "list", "--archived", "true"])).out).toContain("order.weighed")
  })

  it("say how an endpoint does, rotate its secret, and send it what it missed", async () => {
    const health = await run(["endpoints", "health", endpoint])
    expect(health).toMatchObject({ code: 0, out: expect.stringMatching(/^CLOSED .*\n\d+ waiting.*\nlast hour: /) })
    const rotated = await run(["endpoints", "rotate", endpoint, "--grace-seconds", "60"])
    expect(rotated).toMatchObject({ code: 0, out: expect.stringMatching(/^whsec_\S+\n$/) })
    expect(rotated.err).toContain("good until")
    const own = `whsec_${Buffer.alloc(32, 1).toString("base64")}`
    const given = await run(["endpoints", "rotate", endpoint, "--secret-file", "-", "--grace-seconds", "0"], `${own}\n`)
    expect(given).toMatchObject({ code: 0, out: `${own}\n` })
    const url = (await call<{ url: string }>("GET", `/webhook-endpoints/${endpoint}`)).body.url
    const late = (await call<{ id: string }>("POST", "/webhook-endpoints", { url, eventTypes: ["order.paid"] })).body.id
    const missed = await run(["endpoints", "replay-missing", late, "--since", "2026-01-01T00:00:00Z", "--json"])
    expect(missed.json()).toMatchObject({ status: "COMPLETED", matched: 1, replayed: 1 })
    await call("DELETE", `/webhook-endpoints/${late}`)
    expect((await run(["endpoints", "recover", endpoint])).code).toBe(2)
    const none = await run(["endpoints", "recover", endpoint, "--since", "2026-01-01T00:00:00Z", "--status", "FAILED"])
    expect(none).toMatchObject({ code: 0, out: expect.stringContaining("completed: 0 replayed") })
    expect(await run(["endpoints", "health", "nobody"])).toMatchObject({ code: 1 })
  })
})

describe("tail", () => {
  it("shows facts as they come, filtered, and goes on by itself after the service was away", async () => {
    const env = { POSTHASTE_URL: product.url!, POSTHASTE_OPERATOR_KEY: operatorKey, POSTHASTE_ORG: org }
    const child = launch(env, ["tail", "--json", "--type", "MessageDelivered", "--count", "2"])
    let out = ""
    child.stdout.on("data", (chunk) => (out += String(chunk)))
    const ended = once(child, "close")
    // It follows from when it is connected: until then nothing is shown.
    const sendAnother = async () => {
      await settled(await sendOne())
      return out
    }
    await until(sendAnother, (text) => text !== "")
    const port = new URL(product.url!).port
    await product.stop()
    product = await startProduct(databaseUrl, { PORT: port })
    await settled(await sendOne())
    expect(await ended).toEqual([0, null])
    const facts = out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(facts).toMatchObject([
      { type: "MessageDelivered" },
      { type: "MessageDelivered", message: { status: "DELIVERED" } }
    ])
    expect(facts[0]).toHaveProperty("id")
  })
})

describe("dead-letters", () => {
  it("lists, counts, asks, and replays to the end", async () => {
    isDown = true
    const ids = await Promise.all([1, 2, 3].map(sendOne))
    await Promise.all(ids.map(settled))
    isDown = false
    const listedByApi = () => call<{ items: ReadonlyArray<unknown> }>("GET", "/dead-letters")
    await until(listedByApi, ({ body }) => body.items.length === 3)
    const preview = await run(["dead-letters", "replay", "--error-code", "http_422", "--preview", "--json"])
    expect(preview.json()).toEqual({ matched: 3, contradicted: 0 })
    const listed = await run(["dead-letters", "list", "--json"])
    expect(
      listed.out
        .trim()
        .split("\n")
        .map((line) => (JSON.parse(line) as { id: string }).id)
        .toSorted()
    ).toEqual(ids.toSorted())
    expect(await run(["dead-letters", "replay", "--all"])).toMatchObject({
      code: 1,
      err: expect.stringContaining("confirm with --yes")
    })
    const replayed = await run(["dead-letters", "replay", "--error-code", "http_422", "--yes", "--json"])
    expect(replayed.json()).toMatchObject({ status: "COMPLETED", matched: 3, replayed: 3 })
    expect(
      await Promise.all(
        ids.map((id) =>
          until(
            () => statusOf(id),
            (status) => status === "DELIVERED"
          )
        )
      )
    ).toHaveLength(3)
  })
})

describe("stats and projections", () => {
  it("count what the lists say, and build them anew", async () => {
    const byApi = () => call<{ byStatus: Record<string, number> }>("GET", "/outbound/stats")
    const { body } = await until(
      byApi,
      // What was replayed before has arrived.
      ({ body: { byStatus } }) => byStatus["FAILED"] === 0 && byStatus["SENDING"] === 0 && byStatus["QUEUED"] === 1
    )
    const counted = (await run(["stats", "--json"])).json<{ byStatus: unknown }>().byStatus
    expect(counted).toEqual(body.byStatus)
    expect(counted).toMatchObject({ QUEUED: 1 })
    expect((await run(["stats"])).out).toMatch(/^QUEUED +1$/m)
    const rebuilt = await run(["projections", "rebuild", "messages", "--json"])
    expect(rebuilt.json()).toMatchObject({ name: "messages", live: { generation: 2 }, build: null })
    expect((await run(["projections", "list"])).out).toMatch(/^messages +generation 2/m)
    expect((await run(["stats", "--json"])).json<{ byStatus: unknown }>().byStatus).toEqual(counted)
    expect(await run(["projections", "rebuild", "nothing"])).toMatchObject({
      code: 1,
      err: expect.stringContaining("404")
    })
  })
})

describe("the other resources", () => {
  it("have plain verbs: an org is updated field by field, and what is not named stays", async () => {
    const update = (...args: ReadonlyArray<string>) => run(["orgs", "update", "globex", ...args])
    await update("--name", "Globex", "--limits", '{"waiting":5,"replays":2}')
    const settings = { name: "Globex", suspended: null, limits: { waiting: 5, replays: 2 } }
    expect((await run(["orgs", "get", "globex"])).json()).toMatchObject(settings)
    expect((await update("--suspended", "unpaid")).json()).toMatchObject({ ...settings, suspended: "unpaid" })
    expect((await run(["orgs", "list"])).out).toMatch(/^globex +Globex +unpaid /m)
    expect((await update("--limits", '{"messages":1}')).err).toContain("limits.messages")
    expect((await update("--limits", "{")).err).toContain("is not JSON")
  })

  it("are made and removed, and what is final asks first", async () => {
    const made = await run([
      "http-targets",
      "create",
      "--target-url",
      "https://shop.example/orders",
      "--max-in-flight",
      "3"
    ])
    expect(made.err).toBe("")
    const { id } = made.json<{ id: string }>()
    expect((await run(["http-targets", "list"])).out).toContain(id)
    expect((await run(["http-targets", "update", id, "--method", "PUT"])).json()).toMatchObject({ method: "PUT" })
    expect(await run(["http-targets", "delete", id])).toMatchObject({ code: 1, err: expect.stringContaining("--yes") })
    expect((await run(["http-targets", "delete", id, "--preview"])).out).toContain(id)
    expect((await run(["http-targets", "get", id])).code).toBe(0)
    expect((await run(["http-targets", "delete", id, "--yes"])).code).toBe(0)
    expect((await run(["http-targets", "get", id])).err).toContain("404")
    const erase = ["erasures", "create", "--dossier-id", "case-1"]
    expect((await run(erase)).err).toContain("confirm with --yes")
    expect((await run([...erase, "--yes"])).json()).toMatchObject({ by: "dossierId" })
    expect((await run(["audit", "list", "--from", "1h"])).out).toMatch(/^id +at +operation +actor\n\S+ /)
  })

  it("count before all that wait are cancelled, and ask", async () => {
    expect(await run(["cancel", "--all"])).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^\d+ waiting.*\n.*--yes/)
    })
    expect((await run(["cancel", "--all", "--preview"])).out).toMatch(/^\d+ waiting/)
  })
})

describe("the stored facts", () => {
  it("are read and verified beside the service, and a violation is named", async () => {
    const [row] = await sql(
      databaseUrl,
      "select stream_id from posthaste.event where name = 'MessageDelivered@1' limit 1"
    )
    const stream = `message-${row!["stream_id"]}`
    const read = await onStore(databaseUrl, "streams", "read", stream, "--json")
    expect(
      read.out
        .trim()
        .split("\n")
        .map((line) => (JSON.parse(line) as { name: string }).name)
    ).toContain("MessageDelivered@1")
    expect(await onStore(databaseUrl, "streams", "read", "message-none")).toMatchObject({ code: 1 })
    expect(await onStore(databaseUrl, "streams", "verify")).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^no violation among/)
    })
    expect(await onStore(databaseUrl, "migrate", "--json")).toMatchObject({
      code: 0,
      out: expect.stringContaining("[]")
    })
  })

  it("are exported, imported into an empty database, verified, and are the same again", async () => {
    await product.stop()
    const other = Redacted.value(await inScope(freshDatabase))
    const [first, second] = [inHome("first.ndjson"), inHome("second.ndjson")]
    expect(await onStore(databaseUrl, "export", "--with-bodies", "--file", first)).toMatchObject({ code: 0 })
    expect(await onStore(databaseUrl, "export", "--file", first)).toMatchObject({
      code: 1,
      err: expect.stringContaining("exists already")
    })
    const imported = await onStore(other, "import", "--file", first, "--json")
    expect(imported.json()).toMatchObject({ known: 0, isOlder: false })
    expect(await onStore(other, "import", "--file", first)).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^nothing to import/)
    })
    expect(await onStore(other, "streams", "verify")).toMatchObject({ code: 0 })
    await onStore(other, "export", "--with-bodies", "--file", second)
    expect(readFileSync(second, "utf8")).toBe(readFileSync(first, "utf8"))
    const views =
      "select id, org_id, version, status, channel, due_at, error_code from posthaste.message_view where generation = (select generation from posthaste.projection where name = 'messages' and live) order by id"
    expect(await sql(other, views)).toEqual(await sql(databaseUrl, views))

    await sql(other, "delete from posthaste.ready")
    const broken = await onStore(other, "streams", "verify")
    expect(broken).toMatchObject({ code: 1, out: expect.stringMatching(/^queue {2}\d+: message-\S+/) })
  })

  it("move to EventStoreDB and back as text", async () => {
    const [moved, back] = [Redacted.value(await inScope(freshDatabase)), Redacted.value(await inScope(freshDatabase))]
    const there = { EVENTSTORE_URL: (await inScope(eventStore())).url, DATABASE_URL: moved }
    const [out, home] = [inHome("out.ndjson"), inHome("home.ndjson")]
    await onStore(databaseUrl, "export", "--with-bodies", "--file", out)
    const imported = (await posthaste(there)(["import", "--file", out, "--json"])).json<{ written: number }>()
    expect(imported.written).toBeGreaterThan(0)
    const verified = await posthaste(there)(["streams", "verify", "--json"])
    expect(verified).toMatchObject({ code: 0, err: "" })
    expect(verified.json()).toMatchObject({ violations: 0, facts: imported.written })
    await posthaste(there)(["export", "--with-bodies", "--file", home])
    expect((await onStore(back, "import", "--file", home, "--json")).json()).toMatchObject(imported)
    expect(await onStore(back, "streams", "verify")).toMatchObject({ code: 0 })
  })

  it("are refused without a store, and by a database that was never migrated", async () => {
    const none = await posthaste({ POSTHASTE_DATA_DIR: inHome("none") })(["streams", "verify"])
    expect(none).toMatchObject({ code: 1, err: expect.stringContaining("there is no store") })
    await sql(databaseUrl, "drop schema posthaste cascade")
    expect(await onStore(databaseUrl, "streams", "verify")).toMatchObject({
      code: 1,
      err: expect.stringContaining("posthaste migrate")
    })
    const ran = await onStore(databaseUrl, "migrate")
    expect(ran).toMatchObject({ code: 0, out: expect.stringContaining("ran schema/0001_streams.sql") })
  })
})
