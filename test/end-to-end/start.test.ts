import { execFile } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { readFileSync, rmSync, statSync } from "node:fs"
import { createServer, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { promisify } from "node:util"
import { Effect, Exit, Redacted, Scope } from "effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { postmasterOf } from "../../src/adapters/embedded-postgres/postmaster.ts"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { temporaryDirectory } from "../servers/leftovers.ts"
import { type Posthaste, runToEnd, startPosthaste, stop } from "../servers/posthaste.ts"

let home: string
let running: Array<Posthaste> = []
let servers: Array<Server> = []

beforeEach(() => {
  home = temporaryDirectory()
})

afterEach(async () => {
  await Promise.all(running.map(stop))
  running = []
  for (const server of servers) server.close().closeAllConnections()
  servers = []
  rmSync(home, { recursive: true, force: true })
})

const start = async (env: Record<string, string> = {}): Promise<Posthaste> => {
  const posthaste = await startPosthaste({ POSTHASTE_DATA_DIR: home, ...env })
  running.push(posthaste)
  return posthaste
}

/** Does what curl would do with the arguments the lines use, after a real shell has read the quotes. */
const curl = `
  const { parseArgs } = require("node:util")
  const options = { s: { type: "boolean", short: "s" }, X: { type: "string", short: "X" }, d: { type: "string", short: "d" },
    H: { type: "string", short: "H", multiple: true } }
  const { values, positionals: [url] } = parseArgs({ args: process.argv.slice(1), options, allowPositionals: true })
  const headers = (values.H ?? []).map((line) => line.split(": "))
  fetch(url, { method: values.X ?? "GET", headers, body: values.d }).then((r) => r.text()).then((t) => console.log(t))`

const inShell = async (line: string): Promise<unknown> => {
  const shell = `curl() { "$NODE" -e "$CURL" -- "$@"; }; ${line}`
  const env = { PATH: process.env["PATH"], NODE: process.execPath, CURL: curl }
  return JSON.parse((await promisify(execFile)("/bin/sh", ["-c", shell], { env })).stdout)
}

const curlLines = ({ printed }: Posthaste): ReadonlyArray<string> =>
  printed()
    .split("\n")
    .filter((line) => line.startsWith("curl "))

const until = async <A>(look: () => Promise<A>, isIt: (found: A) => boolean): Promise<A> => {
  for (;;) {
    const found = await look()
    if (isIt(found)) return found
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Runs the one command that the start prints, as a shell does, in the directory where the start ran. */
const tryIt = async ({ printed }: Posthaste) => {
  const line = printed()
    .split("\n")
    .find((each) => each.includes("bin/posthaste send"))!
  const env = { PATH: process.env["PATH"] }
  return (await promisify(execFile)("/bin/sh", ["-c", line], { env })).stdout
}

const keyIn = ({ printed }: Posthaste): string => /Key of org default +(\S+)/.exec(printed())![1]!

const call = async <A>(url: string, headers: Record<string, string>, body?: unknown): Promise<A> => {
  const response = await fetch(url, {
    headers: { "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) })
  })
  expect(response.ok, await response.clone().text()).toBe(true)
  return (await response.json()) as A
}

interface Message {
  readonly id: string
  readonly status: string
  readonly attempts: number
}

const receiver = async (answer: (response: ServerResponse) => void): Promise<string> => {
  const server = createServer((request, response) => {
    request.resume().on("end", () => answer(response))
  }).listen(0, "127.0.0.1")
  servers.push(server)
  await once(server, "listening")
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

describe("a first start without settings", () => {
  it("prints one command that sends a message, waits for it, and shows that it arrived", async () => {
    const said = await tryIt(await start())
    expect(said).toMatch(/^ +1 .* QUEUED +accepted$/m)
    expect(said).toMatch(/^DELIVERED {2}[0-9a-f-]{36}$/m)
    expect(said).toContain("why: the destination answered that it received the message")
  })

  it("prints three curl lines that work as they stand", async () => {
    const [send, list, received, ...more] = curlLines(await start())
    expect(more).toEqual([])
    const sent = (await inShell(send!)) as Message
    expect(sent).toMatchObject({ status: "QUEUED" })
    const { items } = await until(
      () => inShell(list!) as Promise<{ items: ReadonlyArray<Message> }>,
      (page) => page.items[0]?.status === "DELIVERED"
    )
    expect(items).toEqual([expect.objectContaining({ id: sent.id, attempts: 1 })])
    expect(await inShell(received!)).toEqual([
      expect.objectContaining({ webhookId: sent.id, signature: "valid", answered: 200, body: '{"hello":"world"}' })
    ])
  })

  it("keeps its keys in files only their owner can read, and its endpoint, over a restart, and prints keys once", async () => {
    const first = await start()
    await stop(first)
    for (const name of ["operator-key", "encryption-key", "default-org-key", "postgres-password"]) {
      expect(statSync(join(home, name)).mode & 0o777, name).toBe(0o600)
    }
    const second = await start()
    expect(first.printed()).toContain(readFileSync(join(home, "operator-key"), "utf8").trim())
    expect(first.printed()).toContain(readFileSync(join(home, "default-org-key"), "utf8").trim())
    expect(second.printed()).not.toMatch(/ph_(operator|live)_/)
    expect(second.printed()).toContain(`Keys       ${join(home, "operator-key")}, ${join(home, "default-org-key")}`)
    // Its port is another one, and the command finds it.
    const [, id] = /^DELIVERED {2}([0-9a-f-]{36})$/m.exec(await tryIt(second))!
    await until(
      () => inShell(curlLines(first)[2]!) as Promise<ReadonlyArray<{ webhookId: string; signature: string }>>,
      (got) => got.some(({ webhookId, signature }) => webhookId === id && signature === "valid")
    )
  })

  it("does not bring back a key that was revoked", async () => {
    const first = await start()
    const operator = { authorization: `Bearer ${/Operator key +(\S+)/.exec(first.printed())![1]}` }
    const { items } = await call<{ items: ReadonlyArray<{ id: string }> }>(`${first.url}/api/v1/api-keys`, operator)
    await fetch(`${first.url}/api/v1/api-keys/${items[0]!.id}`, { method: "DELETE", headers: operator })
    await stop(first)
    // As if nobody had been told of the keys: the start prints all it has.
    rmSync(join(home, "api-url"))
    const second = await start()
    expect(second.printed()).toContain("(revoked)")
    expect(await tryIt(second)).toContain("DELIVERED")
    expect(await inShell(curlLines(second)[0]!)).toMatchObject({ status: "QUEUED" })
  })
})

describe("a stop", () => {
  it("waits for the send that is under way, and leaves no server behind", async () => {
    const waiting: Array<ServerResponse> = []
    const url = await receiver((response) => waiting.push(response))
    const first = await start({ POSTHASTE_ALLOWED_NETWORKS: "127.0.0.1/32" })
    const org = { authorization: `Bearer ${keyIn(first)}` }
    const endpoint = await call<{ id: string }>(`${first.url}/api/v1/webhook-endpoints`, org, { url })
    const message = { channel: "webhook", to: endpoint.id, payloadJson: {} }
    const { id } = await call<Message>(`${first.url}/api/v1/outbound/messages`, org, message)
    await until(
      async () => waiting.length,
      (count) => count === 1
    )
    first.process.kill("SIGTERM")
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(first.process.exitCode).toBeNull()
    waiting[0]!.end()
    expect(await first.exitCode).toBe(0)
    expect(postmasterOf(join(home, "postgres"))).toBeNull()
    const second = await start()
    expect(await call<Message>(`${second.url}/api/v1/outbound/messages/${id}`, org)).toMatchObject({
      status: "DELIVERED",
      attempts: 1
    })
  })
})

describe("a start that can't be", () => {
  it("says so in one line and ends with 1", async () => {
    const lines = [
      [{ PORT: "http" }, /^posthaste: PORT must be a whole number .+\n$/],
      [{ POSTHASTE_ROLES: "chef" }, /^posthaste: POSTHASTE_ROLES knows the roles .+\n$/],
      [{ DATABASE_URL: "postgres://u:p@127.0.0.1:1/x" }, /^posthaste: POSTHASTE_OPERATOR_KEY is required .+\n$/],
      [{ DATABASE_URL: "postgres://u:hush@127.0.0.1:1/x", ...keys }, /^posthaste: can't work with the database: .+\n$/]
    ] as const
    for (const [env, line] of lines) {
      const { exitCode, printed } = await runToEnd({ POSTHASTE_DATA_DIR: home, ...env })
      expect(printed).toMatch(line)
      expect(printed).not.toContain("hush")
      expect(exitCode).toBe(1)
    }
  })

  it("says which port is taken, and stops the server it had started", async () => {
    const taken = new URL(await receiver((response) => response.end())).port
    const { exitCode, printed } = await runToEnd({ POSTHASTE_DATA_DIR: home, PORT: taken })
    expect(printed).toMatch(/^posthaste: can't listen on HOST and PORT: .*EADDRINUSE.*\n$/)
    expect(exitCode).toBe(1)
    expect(postmasterOf(join(home, "postgres"))).toBeNull()
  })

  it("is refused while another Posthaste uses the data directory", async () => {
    await start()
    const { exitCode, printed } = await runToEnd({ POSTHASTE_DATA_DIR: home })
    expect(printed).toMatch(/^posthaste: Another Posthaste is using this data directory.+\n$/)
    expect(exitCode).toBe(1)
  })
})

const keys = {
  POSTHASTE_OPERATOR_KEY: randomBytes(24).toString("base64url"),
  POSTHASTE_ENCRYPTION_KEY: randomBytes(32).toString("base64")
}

describe("roles", () => {
  it("work together from processes of their own on one database", async () => {
    const scope = Scope.makeUnsafe()
    const database = Redacted.value(await Effect.runPromise(Scope.provide(freshDatabase, scope)))
    const env = { DATABASE_URL: database, ...keys, POSTHASTE_ALLOWED_NETWORKS: "127.0.0.1/32" }
    const [api, worker] = await Promise.all([
      start({ ...env, POSTHASTE_ROLES: "api" }),
      start({ ...env, POSTHASTE_ROLES: "worker,relay" }),
      start({ ...env, POSTHASTE_ROLES: "projector" })
    ])
    expect(worker.printed()).toContain("works without an API  (worker, relay)")
    // Nothing is made up in a database that is somebody else's.
    expect(api.printed()).not.toContain("curl")
    const operator = { authorization: `Bearer ${keys.POSTHASTE_OPERATOR_KEY}`, "x-org-id": "acme" }
    const url = await receiver((response) => response.end())
    const endpoint = await call<{ id: string }>(`${api.url}/api/v1/webhook-endpoints`, operator, { url })
    const message = { channel: "webhook", to: endpoint.id, payloadJson: {} }
    const { id } = await call<Message>(`${api.url}/api/v1/outbound/messages`, operator, message)
    const { items } = await until(
      () => call<{ items: ReadonlyArray<Message> }>(`${api.url}/api/v1/outbound/messages`, operator),
      (page) => page.items[0]?.status === "DELIVERED"
    )
    expect(items).toEqual([expect.objectContaining({ id, attempts: 1 })])
    await Promise.all(running.map(stop))
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })
})

describe("the demo", () => {
  it("shows a message fail, die, be replayed and arrive, and another read on a phone, within a minute", async () => {
    const { exitCode, printed } = await runToEnd({}, join(import.meta.dirname, "../../demo/demo.ts"))
    const [webhook, whatsApp] = printed
      .split("A WhatsApp message")
      .map((text) => [...text.matchAll(/(?:Message|Attempt|Receipt)[A-Z]\w+/g)].map(([fact]) => fact).join(" "))
    expect(webhook).toBe(
      `MessageQueued ${"AttemptStarted AttemptFailed ".repeat(3)}MessageDeadLettered MessageReplayed AttemptStarted AttemptSucceeded MessageDelivered`
    )
    expect(whatsApp).toBe(
      "MessageQueued AttemptStarted AttemptSucceeded ReceiptRecorded ReceiptRecorded MessageDelivered ReceiptRecorded"
    )
    expect(printed.match(/ 503 .* signature valid/g)).toHaveLength(3)
    expect(printed.match(/ 200 .* signature valid/g)).toHaveLength(1)
    expect(printed.split("\n").filter((line) => line.length > 80)).toEqual([])
    expect(exitCode).toBe(0)
  })
})
