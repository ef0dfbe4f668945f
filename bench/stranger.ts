/** A stranger of strangers.ts, in a thread of its own: does the harm it is told the name of, until somebody says that it is enough. */
import { Agent } from "node:http"
import { connect, type Socket } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { parentPort, workerData } from "node:worker_threads"
import { generateKey } from "../src/adapters/http/server/apiKey.ts"
import { asked } from "./asked.ts"
import type { Harm } from "./harms.ts"

const { name, at } = workerData as {
  readonly name: Harm
  readonly at: { readonly hostname: string; readonly port: string }
}
const sockets = new Set<Socket>()
const open = (text: string) => {
  const socket = connect(Number(at.port), at.hostname)
  sockets.add(socket)
  socket.on("error", () => {})
  socket.on("close", () => sockets.delete(socket))
  socket.on("connect", () => socket.write(text))
  return socket
}

const harmsByName: Readonly<Record<Harm, (isOver: () => boolean) => Promise<void>>> = {
  "400 readers of /docs who do not read": async (isOver) => {
    while (!isOver()) {
      while (sockets.size < 400) open("GET /docs HTTP/1.1\r\nhost: x\r\n\r\n".repeat(10)).pause()
      await sleep(200)
    }
  },
  "400 writers who send a byte a second": async (isOver) => {
    while (!isOver()) {
      while (sockets.size < 400) {
        open(
          "POST /api/v1/webhooks/whatsapp/inbound HTTP/1.1\r\nhost: x\r\nx-hub-signature-256: sha256=0\r\ncontent-length: 260000\r\n\r\n"
        )
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
          await asked(agent, at, { bearer: generateKey(), path: "/api/v1/outbound/stats", from: "127.0.0.1" })
        }
      })
    )
    console.log(`  (${Math.min(tried, 50_000)} wrong keys were tried)`)
    agent.destroy()
  }
}

let isOver = false
parentPort!.once("message", () => {
  isOver = true
})
await harmsByName[name](() => isOver)
for (const socket of sockets) socket.destroy()
