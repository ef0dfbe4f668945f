/**
 * The receiver: takes every POST, remembers when each `webhook-id` first arrived and how often, and answers 200.
 *
 * It is raw TCP with just enough HTTP/1.1 to be fair to everybody and nearly free: on a small machine a sink on
 * `node:http` would cost more than some of those it measures. It understands keep-alive, pipelining and
 * content-length; a request it can't read (chunked, no `webhook-id`) is counted as unreadable and fails the run.
 * One request in 64 has its size and signature checked, so nobody wins by not signing.
 */
import { createServer, type Socket } from "node:net"
import { monotonicNow } from "./monotonicNow.ts"
import { serve } from "./remote.ts"
import { keyOf, secret, signatureOf } from "./signedPost.ts"

const key = keyOf(secret)
const checkEvery = 64
const headersEnd = Buffer.from("\r\n\r\n")

let answer = Buffer.alloc(0)
let bytes = 0
let firstArrivals = new Map<string, number>()
let received = 0
let forged = 0
let wrongSize = 0
let unreadable = 0
let firstAt = 0
let lastAt = 0
let awaited: { readonly count: number; readonly resolve: () => void } | null = null

const header = (head: string, name: string): string | null => {
  const match = new RegExp(`\\r\\n${name}: *([^\\r]*)`, "i").exec(head)
  return match === null ? null : match[1]!
}

const record = (id: string): void => {
  received++
  if (firstArrivals.has(id)) return
  const at = monotonicNow()
  if (firstArrivals.size === 0) firstAt = at
  lastAt = at
  firstArrivals.set(id, at)
  if (awaited !== null && firstArrivals.size >= awaited.count) {
    awaited.resolve()
    awaited = null
  }
}

const check = (head: string, id: string, body: Buffer): void => {
  if (body.length !== bytes) wrongSize++
  const expected = signatureOf(key, id, header(head, "webhook-timestamp") ?? "", body)
  if (!(header(head, "webhook-signature") ?? "").split(" ").includes(expected)) forged++
}

const contentLength = /\r\ncontent-length: *(\d+)/i
const webhookId = /\r\nwebhook-id: *([^\r]*)/i

const onConnection = (socket: Socket): void => {
  let rest: Buffer | null = null
  socket.setNoDelay(true)
  socket.on("error", () => socket.destroy())
  socket.on("data", (chunk: Buffer) => {
    let data = rest === null ? chunk : Buffer.concat([rest, chunk])
    let answers = 0
    for (;;) {
      const end = data.indexOf(headersEnd)
      if (end < 0) break
      const head = data.toString("latin1", 0, end)
      const length = contentLength.exec(head)
      const id = webhookId.exec(head)
      if (length === null || id === null) {
        unreadable++
        socket.destroy()
        return
      }
      const total = end + 4 + Number(length[1])
      if (data.length < total) break
      record(id[1]!)
      if (received % checkEvery === 0) check(head, id[1]!, data.subarray(end + 4, total))
      answers++
      data = data.subarray(total)
    }
    rest = data.length === 0 ? null : data
    for (; answers > 0; answers--) socket.write(answer)
  })
}

const sink = {
  /** Listens on one more port; answers with the URL to post to. */
  listen: async (options: { readonly reply: string; readonly bytes: number }): Promise<string> => {
    bytes = options.bytes
    answer = Buffer.from(
      `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(options.reply)}\r\n\r\n${options.reply}`
    )
    const server = createServer(onConnection)
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const address = server.address()
    if (address === null || typeof address === "string") throw new Error("the sink has no port")
    return `http://127.0.0.1:${address.port}/hook`
  },
  /** Forgets all arrivals. */
  clear: (): void => {
    firstArrivals = new Map()
    received = forged = wrongSize = unreadable = firstAt = lastAt = 0
  },
  /** Answers when `count` different ids have arrived, or with false when nothing new has come for `patienceMs`. */
  arrived: async (options: { readonly count: number; readonly patienceMs: number }): Promise<boolean> => {
    if (firstArrivals.size >= options.count) return true
    return await new Promise<boolean>((resolve) => {
      let seen = firstArrivals.size
      let seenAt = monotonicNow()
      const patience = setInterval(() => {
        if (firstArrivals.size !== seen) {
          seen = firstArrivals.size
          seenAt = monotonicNow()
        } else if (monotonicNow() - seenAt > options.patienceMs) {
          clearInterval(patience)
          awaited = null
          resolve(false)
        }
      }, 250)
      awaited = {
        count: options.count,
        resolve: () => {
          clearInterval(patience)
          resolve(true)
        }
      }
    })
  },
  report: () => ({ firstArrivals, received, forged, wrongSize, unreadable, firstAt, lastAt })
}

export type Sink = typeof sink
serve(sink)
