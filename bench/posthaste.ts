/**
 * Posthaste as its users meet it: `node src/main.ts` with its environment, and its HTTP API. Nothing here reaches into
 * the code that is measured.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { createServer } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { Pool } from "undici"
import { monotonicNow } from "./monotonicNow.ts"
import { payloadOf } from "./payload.ts"
import { secret } from "./signedPost.ts"

const startWithinMs = 180_000
const stopWithinMs = 60_000

/**
 * Posthaste counts a message as in flight from before the commit of its `AttemptStarted`, which takes about as
 * long as the request, so 64 would keep some 30 requests under way. It opens at most 128 connections.
 */
const inFlight = 256

/** One key for the whole run: what one process encrypts, the next one reads. */
const encryptionKey = randomBytes(32).toString("base64")
const operatorKey = randomBytes(24).toString("base64url")

export interface Running {
  readonly url: string
  readonly pid: number
  readonly readyAt: number
  /** SIGTERM, and then its own graceful end. */
  readonly stop: () => Promise<void>
}

/** What a client needs to send messages. */
export interface Account {
  readonly key: string
  /** They take turns. */
  readonly endpoints: ReadonlyArray<string>
  /** Of message `n`. */
  readonly orderingKey?: (n: number) => string
}

export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  if (address === null || typeof address === "string") throw new Error("no free port")
  server.close()
  await once(server, "close")
  return address.port
}

export const startPosthaste = async (options: {
  readonly databaseUrl: string
  /** All of them when absent. */
  readonly roles?: string
  /** Settings that differ from what users get without any. */
  readonly settings?: Readonly<Record<string, string>>
  /** Arguments of Node itself, such as `--cpu-prof`. */
  readonly execArgv?: ReadonlyArray<string>
}): Promise<Running> => {
  const port = await freePort()
  const spawnedAt = monotonicNow()
  const name = `Posthaste (${options.roles ?? "all roles"})`
  const child = spawn(
    process.execPath,
    [...(options.execArgv ?? []), fileURLToPath(new URL("../src/main.ts", import.meta.url))],
    {
      env: {
        PATH: process.env["PATH"],
        DATABASE_URL: options.databaseUrl,
        ...(options.roles === undefined ? {} : { POSTHASTE_ROLES: options.roles }),
        PORT: String(port),
        POSTHASTE_OPERATOR_KEY: operatorKey,
        POSTHASTE_ENCRYPTION_KEY: encryptionKey,
        POSTHASTE_ALLOWED_NETWORKS: "127.0.0.0/8",
        ...options.settings
      },
      stdio: ["ignore", "pipe", "pipe"]
    }
  )
  // A bench that fails half-way leaves nobody behind.
  const kill = () => void child.kill("SIGKILL")
  process.once("exit", kill)
  child.once("exit", () => process.off("exit", kill))
  let said = ""
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (text: Buffer) => {
      said = (said + text.toString()).slice(-8000)
    })
  // Without the role `api` there is no port to ask. In every role, the banner says that all is up.
  while (!/Posthaste .*\n/.test(said)) {
    if (hasEnded(child)) throw new Error(`${name} ended at start:\n${said}`)
    if (monotonicNow() - spawnedAt > startWithinMs) {
      child.kill("SIGKILL")
      throw new Error(`${name} was not ready within ${startWithinMs / 1000} s:\n${said}`)
    }
    await sleep(5)
  }
  const readyAt = monotonicNow()
  return {
    url: `http://127.0.0.1:${port}`,
    pid: child.pid!,
    readyAt,
    stop: async () => {
      if (hasEnded(child)) throw new Error(`${name} ended by itself:\n${said}`)
      const exit = once(child, "exit")
      child.kill("SIGTERM")
      const inTime = await Promise.race([exit.then(() => true), sleep(stopWithinMs, false, { ref: false })])
      if (inTime) return
      child.kill("SIGKILL")
      throw new Error(`${name} did not end within ${stopWithinMs / 1000} s of SIGTERM:\n${said}`)
    }
  }
}

const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null

const call = async <Answer>(url: string, key: string, body: unknown): Promise<Answer> => {
  const response = await fetch(url, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body)
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text}`)
  return JSON.parse(text) as Answer
}

/** Asks what only the operator may. */
export const operatorText = async (method: string, url: string): Promise<string> => {
  const response = await fetch(url, { method, headers: { authorization: `Bearer ${operatorKey}` } })
  const text = await response.text()
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text}`)
  return text
}

export const operatorCall = async <Answer>(method: string, url: string): Promise<Answer> =>
  JSON.parse(await operatorText(method, url)) as Answer

/** A key of the bench's org. */
export const openOrg = async (url: string): Promise<string> => {
  const { key } = await call<{ key: string }>(`${url}/api/v1/api-keys`, operatorKey, { orgId: "bench", name: "bench" })
  return key
}

/** A webhook endpoint of the org; what `settings` leave out is as Posthaste has it. */
export const openEndpoint = async (
  url: string,
  key: string,
  receiver: string,
  settings: {
    readonly maxInFlight?: number
    readonly timeoutMs?: number
    readonly eventTypes?: ReadonlyArray<string>
    readonly rateLimit?: { readonly limit: number; readonly periodMs: number }
  } = {}
): Promise<string> => {
  const { id } = await call<{ id: string }>(`${url}/api/v1/webhook-endpoints`, key, {
    url: receiver,
    secret,
    ...settings
  })
  return id
}

/** An org with a key, and the sink as its webhook endpoint, allowed as many requests at a time as everybody else makes. */
export const openAccount = async (url: string, sinkUrl: string): Promise<Account> => {
  const key = await openOrg(url)
  return { key, endpoints: [await openEndpoint(url, key, sinkUrl, { maxInFlight: inFlight })] }
}

/** The request for message `n`. The payload goes in as text, so that what is delivered has exactly its bytes. */
export const messageRequest = ({ endpoints, orderingKey }: Account, n: number, bytes: number): string =>
  `{"channel":"webhook","to":"${endpoints[n % endpoints.length]}",${orderingKey === undefined ? "" : `"orderingKey":"${orderingKey(n)}",`}"payloadJson":${payloadOf(n, bytes)}}`

/** What its endpoints receive of an event has exactly `bytes`. */
export const eventRequest = (eventType: string, n: number, bytes: number): string => {
  const around = `{"type":"${eventType}","timestamp":"${new Date(0).toISOString()}","data":}`
  return `{"eventType":"${eventType}","data":${payloadOf(n, bytes - around.length)}}`
}

/** The ids of the messages that an event became. */
export const messagesOf = async (url: string, key: string, event: string): Promise<ReadonlyArray<string>> => {
  const ids: Array<string> = []
  for (let cursor = ""; ; ) {
    const response = await fetch(`${url}/api/v1/events/${event}/messages?limit=200${cursor}`, {
      headers: { authorization: `Bearer ${key}` }
    })
    const page = (await response.json()) as { items: ReadonlyArray<{ id: string }>; nextCursor: string | null }
    ids.push(...page.items.map(({ id }) => id))
    if (page.nextCursor === null) return ids
    cursor = `&cursor=${page.nextCursor}`
  }
}

/** Accepts `count` messages through the batch route; answers with their ids. */
export const fill = async (
  url: string,
  account: Account,
  options: { readonly count: number; readonly bytes: number }
): Promise<ReadonlyArray<string>> => {
  const batch = 1000
  const pool = new Pool(url, { connections: 4 })
  const ids: Array<string> = []
  let next = 0
  const loop = async () => {
    while (next < options.count) {
      const from = next
      next = Math.min(options.count, from + batch)
      const requests = Array.from({ length: next - from }, (_, n) => messageRequest(account, from + n, options.bytes))
      const { statusCode, body } = await pool.request({
        path: "/api/v1/outbound/messages/batch",
        method: "POST",
        headers: { authorization: `Bearer ${account.key}`, "content-type": "application/json" },
        body: `{"messages":[${requests.join()}]}`
      })
      const text = await body.text()
      if (statusCode !== 200) throw new Error(`the batch was answered ${statusCode}: ${text.slice(0, 500)}`)
      const { items } = JSON.parse(text) as { items: ReadonlyArray<{ status: number; message?: { id: string } }> }
      for (const item of items) {
        if (item.message === undefined) throw new Error(`a message of the batch was refused: ${JSON.stringify(item)}`)
        ids.push(item.message.id)
      }
    }
  }
  await Promise.all(Array.from({ length: 4 }, loop))
  await pool.close()
  return ids
}
