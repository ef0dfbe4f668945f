/**
 * `npx node bench/strangers.ts`: what strangers without a key do to somebody with one. Alone first, then beside slow readers, slow
 * writers, 3,000 connections and 50,000 wrong keys, an org sends 50 messages a second from another address. Prints how long its
 * messages took to be accepted, how many failed, and the memory of the process.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { Agent, request as send } from "node:http"
import { connect, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { generateKey } from "../src/adapters/http/keys/apiKey.ts"
import { startPosthaste, stop } from "../test/servers/posthaste.ts"

const SECONDS = 10
const PER_SECOND = 50

const home = mkdtempSync(join(tmpdir(), "posthaste-strangers-"))
const posthaste = await startPosthaste({ POSTHASTE_DATA_DIR: home, POSTHASTE_LOG_LEVEL: "error" })
const { hostname, port } = new URL(posthaste.url)
const [key, endpoint] = ["default-org-key", "sample-endpoint-id"].map((name) =>
  readFileSync(join(home, name), "utf8").trim()
)

interface Figures {
  readonly p50: number
  readonly p99: number
  readonly failed: number
}

const asked = (agent: Agent, bearer: string, path: string, body: string | null, localAddress: string) =>
  new Promise<number>((resolve) => {
    const headers = { authorization: `Bearer ${bearer}`, "content-type": "application/json" }
    const method = body === null ? "GET" : "POST"
    const outgoing = send({ hostname, port, agent, localAddress, method, path, headers }, (response) => {
      response.resume().on("end", () => resolve(response.statusCode!))
    })
    outgoing.on("error", () => resolve(0))
    outgoing.end(body ?? undefined)
  })

/** The neighbour: its requests begin when they are due, whether or not earlier ones were answered. */
const neighbour = async (): Promise<Figures> => {
  const agent = new Agent({ keepAlive: true, maxSockets: 32 })
  const body = JSON.stringify({ channel: "webhook", to: endpoint, payloadJson: { hello: "world" } })
  const took: Array<number> = []
  let failed = 0
  const begin = performance.now()
  const all: Array<Promise<void>> = []
  for (let n = 0; n < SECONDS * PER_SECOND; n++) {
    const due = begin + (n * 1000) / PER_SECOND
    if (due > performance.now()) await sleep(due - performance.now())
    all.push(
      asked(agent, key!, "/api/v1/outbound/messages", body, "127.0.0.2").then((status) => {
        took.push(performance.now() - due)
        if (status !== 201) failed += 1
      })
    )
  }
  await Promise.all(all)
  agent.destroy()
  took.sort((a, b) => a - b)
  const at = (share: number) => Math.round(took[Math.min(took.length - 1, Math.floor(took.length * share))]! * 10) / 10
  return { p50: at(0.5), p99: at(0.99), failed }
}

const sockets = new Set<Socket>()
const open = (text: string) => {
  const socket = connect(Number(port), hostname)
  sockets.add(socket)
  socket.on("error", () => {})
  socket.on("close", () => sockets.delete(socket))
  socket.on("connect", () => socket.write(text))
  return socket
}

const harms: Readonly<Record<string, (isOver: () => boolean) => Promise<void>>> = {
  "400 readers of /docs who do not read": async (isOver) => {
    while (!isOver()) {
      while (sockets.size < 400) open("GET /docs HTTP/1.1\r\nhost: x\r\n\r\n".repeat(10)).pause()
      await sleep(200)
    }
  },
  "400 writers who send a byte a second": async (isOver) => {
    while (!isOver()) {
      while (sockets.size < 400) {
        open("POST /api/v1/webhooks/whatsapp/inbound HTTP/1.1\r\nhost: x\r\ncontent-length: 4000000\r\n\r\n")
      }
      await sleep(1000)
      for (const socket of sockets) socket.write(" ")
    }
  },
  "3,000 connections that ask nothing": async (isOver) => {
    while (!isOver()) {
      for (let opened = 0; sockets.size < 3_000 && opened < 300; opened++) open("")
      await sleep(50)
    }
  },
  "50,000 wrong keys": async (isOver) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 64 })
    let tried = 0
    await Promise.all(
      Array.from({ length: 64 }, async () => {
        while (!isOver() && tried++ < 50_000) {
          await asked(agent, generateKey(), "/api/v1/outbound/stats", null, "127.0.0.1")
        }
      })
    )
    console.log(`  (${Math.min(tried, 50_000)} wrong keys were tried)`)
    agent.destroy()
  }
}

const residentMB = () =>
  Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${posthaste.process.pid}/status`, "utf8"))![1]) / 1024)

const told = (name: string, { p50, p99, failed }: Figures, alone: Figures) =>
  console.log(
    `${name.padEnd(40)} p50 ${p50} ms  p99 ${p99} ms (${(p99 / alone.p99).toFixed(1)} × alone)  failed ${failed}  ${residentMB()} MB`
  )

await neighbour()
const alone = await neighbour()
told("alone", alone, alone)
for (const [name, harm] of Object.entries(harms)) {
  let isOver = false
  const harming = harm(() => isOver)
  await sleep(1000)
  told(name, await neighbour(), alone)
  isOver = true
  await harming
  for (const socket of sockets) socket.destroy()
  await sleep(500)
}

await stop(posthaste)
rmSync(home, { recursive: true, force: true })
