/** What somebody without a key can do to the service: a small version of `npx node bench/strangers.ts`. */
import { createHash } from "node:crypto"
import { once } from "node:events"
import type { Server } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { afterEach, describe, expect, it } from "vitest"
import { makeServer } from "../../../../src/adapters/http/server/makeServer.ts"
import { start } from "../served.ts"

let servers: Array<Server> = []
let sockets: Array<Socket> = []

afterEach(() => {
  for (const socket of sockets) socket.destroy()
  for (const server of servers) server.close().closeAllConnections()
  servers = []
  sockets = []
})

const PATIENCE = { timeout: 60_000, interval: 20 }

const listening = async (...given: Parameters<typeof makeServer>): Promise<Server> => {
  const server = makeServer(...given)
  servers.push(server)
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return server
}

interface Caller {
  readonly socket: Socket
  readonly got: () => string
  readonly isClosed: () => boolean
}

const caller = async (port: number, text = ""): Promise<Caller> => {
  const socket = connect(port, "127.0.0.1")
  sockets.push(socket)
  let got = ""
  let isClosed = false
  socket.on("error", () => {})
  socket.on("close", () => {
    isClosed = true
  })
  await once(socket, "connect")
  socket.on("data", (chunk) => {
    got += String(chunk)
  })
  if (text !== "") socket.write(text)
  return { socket, got: () => got, isClosed: () => isClosed }
}

const get = (path = "/") => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`
const portOf = (server: Server) => (server.address() as AddressInfo).port
const connectionsOf = (server: Server) =>
  new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)))

describe("many connections", () => {
  it("of one address make room for the newest of it, and those that ask nothing go first", async () => {
    const server = await listening({ perAddressMax: 3 })
    server.on("request", (_, response) => response.end("yes"))
    const port = portOf(server)
    const asked = await caller(port, get())
    await expect.poll(asked.got, PATIENCE).toContain("yes")
    const silent = await Promise.all([caller(port), caller(port)])
    await expect.poll(() => connectionsOf(server), PATIENCE).toBe(3)
    const next = await caller(port, get())
    await expect.poll(next.got, PATIENCE).toContain("yes")
    // One of those that never asked made room; who had asked can ask again.
    await expect.poll(() => silent.filter(({ isClosed }) => isClosed()).length, PATIENCE).toBe(1)
    asked.socket.write(get())
    await expect.poll(() => asked.got().split("yes").length, PATIENCE).toBe(3)
    await expect.poll(() => connectionsOf(server), PATIENCE).toBe(3)
  })

  it("of one address that have ended leave their places to its next ones", async () => {
    const server = await listening({ perAddressMax: 2 })
    server.on("request", (_, response) => response.end("yes"))
    for (let round = 0; round < 2; round++) {
      const two = await Promise.all([caller(portOf(server), get()), caller(portOf(server), get())])
      for (const { got } of two) await expect.poll(got, PATIENCE).toContain("yes")
      for (const { socket } of two) socket.destroy()
      await expect.poll(() => connectionsOf(server), PATIENCE).toBe(0)
    }
  })

  it("of one address make room so often in a second, and those beyond are closed before anything is made for them", async () => {
    let now = 0
    const server = await listening({ perAddressMax: 2, roomPerSecondMax: 1, now: () => now })
    let made = 0
    server.on("connection", () => made++)
    const port = portOf(server)
    const [first, second] = [await caller(port), await caller(port)]
    await expect.poll(() => made, PATIENCE).toBe(2)
    const third = await caller(port)
    await expect.poll(first.isClosed, PATIENCE).toBe(true)
    const fourth = await caller(port)
    await expect.poll(fourth.isClosed, PATIENCE).toBe(true)
    expect([second.isClosed(), third.isClosed(), made]).toEqual([false, false, 3])
    now = 1_000
    const fifth = await caller(port)
    await expect.poll(second.isClosed, PATIENCE).toBe(true)
    const sixth = await caller(port)
    await expect.poll(sixth.isClosed, PATIENCE).toBe(true)
    expect([third.isClosed(), fifth.isClosed()]).toEqual([false, false])
  })

  it("take the place of one that asks nothing now before that of one that is still sending", async () => {
    const server = await listening({ perAddressMax: 2 })
    let isSending = false
    server.on("request", (request, response) => {
      if (request.method === "GET") response.end("yes")
      else isSending = true
    })
    const port = portOf(server)
    const sending = await caller(port, "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\na")
    await expect.poll(() => isSending, PATIENCE).toBe(true)
    const idle = await caller(port, get())
    await expect.poll(idle.got, PATIENCE).toContain("yes")
    const next = await caller(port, get())
    await expect.poll(next.got, PATIENCE).toContain("yes")
    await expect.poll(idle.isClosed, PATIENCE).toBe(true)
    expect(sending.isClosed()).toBe(false)
  })

  it("never take the place of the second request of a connection whose first is answered", async () => {
    const server = await listening({ connectionsMax: 1 })
    const waiting: Array<() => void> = []
    server.on("request", (request, response) => {
      request.resume()
      if (request.url === "/first") response.end("first")
      else waiting.push(() => response.end("second"))
    })
    const busy = await caller(portOf(server), get("/first") + get("/second"))
    await expect.poll(() => waiting.length, PATIENCE).toBe(1)
    await expect.poll(busy.got, PATIENCE).toContain("first")
    const late = await caller(portOf(server), get())
    await expect.poll(late.isClosed, PATIENCE).toBe(true)
    waiting[0]!()
    await expect.poll(busy.got, PATIENCE).toContain("second")
  })

  it("never take the place of a request that is being worked on", async () => {
    const server = await listening({ connectionsMax: 2 })
    const waiting: Array<() => void> = []
    server.on("request", (request, response) => {
      request.resume()
      waiting.push(() => response.end("done"))
    })
    const busy = await Promise.all([caller(portOf(server), get()), caller(portOf(server), get())])
    await expect.poll(() => waiting.length, PATIENCE).toBe(2)
    const late = await caller(portOf(server), get())
    await expect.poll(late.isClosed, PATIENCE).toBe(true)
    for (const answer of waiting) answer()
    for (const { got } of busy) await expect.poll(got, PATIENCE).toContain("done")
  })

  it("of a proxy count for all its callers", async () => {
    const server = await listening({ perAddressMax: 1, isProxy: (address) => address === "127.0.0.1" })
    server.on("request", (_, response) => response.end("yes"))
    const callers = await Promise.all([1, 2, 3].map(() => caller(portOf(server), get())))
    for (const { got } of callers) await expect.poll(got, PATIENCE).toContain("yes")
  })
})

describe("requests of one connection that come before the answers", () => {
  it("are answered in their order, as many as may be under way", async () => {
    const server = await listening({ underWayMax: 3 })
    const answers: Array<() => void> = []
    server.on("request", ({ url }, response) => answers.push(() => response.end(`answer ${url}.`)))
    const { got } = await caller(portOf(server), get("/1") + get("/2") + get("/3"))
    await expect.poll(() => answers.length, PATIENCE).toBe(3)
    for (const answer of answers.toReversed()) answer()
    await expect.poll(() => got().match(/answer \/\d/g), PATIENCE).toEqual(["answer /1", "answer /2", "answer /3"])
  })

  it("close it when there is one more, and no others of the same piece are heard of", async () => {
    const heard: Array<string> = []
    const server = await listening({ underWayMax: 3 }, null, ({ url }, begin) => {
      heard.push(url!)
      begin()
    })
    const closed: Array<string> = []
    server.on("request", ({ url }, response) => response.on("close", () => closed.push(url!)))
    const { isClosed } = await caller(portOf(server), ["/1", "/2", "/3", "/4", "/5", "/6"].map(get).join(""))
    await expect.poll(isClosed, PATIENCE).toBe(true)
    expect(heard).toEqual(["/1", "/2", "/3"])
    await expect.poll(() => closed.toSorted(), PATIENCE).toEqual(["/1", "/2", "/3"])
  })
})

describe("slow callers", () => {
  it("that do not read their answer are disconnected", async () => {
    const server = await listening({ answerReadWithinMs: 200 })
    server.on("request", (_, response) => response.end(Buffer.alloc(16 * 1024 * 1024, 1)))
    const stuck = await caller(portOf(server))
    stuck.socket.pause()
    stuck.socket.write(get())
    await expect.poll(() => connectionsOf(server), PATIENCE).toBe(0)
  })

  it("that read pages slowly take no more than their share of memory, and the rest is told to come later", async () => {
    const served = await start()
    const port = Number(new URL(served.url).port)
    const stuck = await Promise.all([1, 2, 3].map(() => caller(port)))
    for (const { socket } of stuck) socket.pause()
    for (const { socket } of stuck) socket.write(get("/docs").repeat(16))
    await expect.poll(async () => (await fetch(`${served.url}/docs`)).status, PATIENCE).toBe(503)
    for (const { socket } of stuck) socket.destroy()
    await expect.poll(async () => (await fetch(`${served.url}/docs`)).status, PATIENCE).toBe(200)
  })

  it("that ask for the docs and do not read them are disconnected", async () => {
    const served = await start(undefined, undefined, { answerReadWithinMs: 200 })
    const stuck = await caller(Number(new URL(served.url).port))
    stuck.socket.pause()
    // More than a connection holds in its buffers.
    stuck.socket.write(get("/docs").repeat(8))
    await expect
      .poll(async () => {
        if (!stuck.isClosed()) stuck.socket.write(get("/healthz"))
        return stuck.isClosed()
      }, PATIENCE)
      .toBe(true)
    expect((await served.call("GET", "/healthz")).status).toBe(200)
  })
})

describe("a refusal of what is no HTTP, or comes too slowly", () => {
  const begun = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nx"
  const working = async (limits: Parameters<typeof makeServer>[0] = {}) => {
    const server = await listening(limits)
    const answers: Array<() => void> = []
    server.on("request", (request, response) => {
      request.resume()
      answers.push(() => response.end("done"))
    })
    return { port: portOf(server), answers }
  }

  it("is heard by who waits for nothing else", async () => {
    const { port, answers } = await working()
    const { socket, got } = await caller(port, get())
    await expect.poll(() => answers.length, PATIENCE).toBe(1)
    answers[0]!()
    await expect.poll(got, PATIENCE).toContain("done")
    socket.write("NONSENSE\r\n\r\n")
    await expect.poll(got, PATIENCE).toContain("HTTP/1.1 400 ")
  })

  it("is never taken for the answer to a request that came before", async () => {
    const { port, answers } = await working({ headersWithinMs: 200, requestWithinMs: 200 })
    for (const next of ["NONSENSE\r\n\r\n", begun, "GET / HT"]) {
      const { got, isClosed } = await caller(port, `${get()}${next}`)
      await expect.poll(isClosed, PATIENCE).toBe(true)
      expect(got()).toBe("")
    }
    expect(answers.length).toBe(4)
  })

  it("does not stand in the middle of an answer that has begun", async () => {
    const server = await listening({ headersWithinMs: 200, requestWithinMs: 200 })
    server.on("request", (_, response) => response.write("some"))
    const { got, isClosed } = await caller(portOf(server), begun)
    await expect.poll(isClosed, PATIENCE).toBe(true)
    expect(got()).toContain("some")
    expect(got()).not.toContain("408")
  })
})

describe("bodies of callers without a key", () => {
  it("have so much memory together, and it is free again when they are gone", async () => {
    const { call, url } = await start()
    const port = Number(new URL(url).port)
    const MB = 1024 * 1024
    const begun = `POST /api/v1/webhooks/whatsapp/inbound HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n`
    const senders = await Promise.all(Array.from({ length: 24 }, () => caller(port)))
    // Each announces 4 MiB and sends all of them but the last byte: 96 MiB, of which 64 may be held.
    const chunk = Buffer.alloc(4 * MB - 1, 32)
    for (const { socket } of senders) socket.write(`${begun}content-length: ${4 * MB}\r\n\r\n`)
    for (const { socket } of senders) socket.write(chunk)
    const refused = () => senders.filter(({ got }) => got().startsWith("HTTP/1.1 503")).length
    await expect.poll(refused, PATIENCE).toBeGreaterThanOrEqual(7)
    expect(senders.find(({ got }) => got().startsWith("HTTP/1.1 503"))!.got()).toContain("retry-after: 10")
    for (const { socket } of senders) socket.destroy()
    await expect
      .poll(
        async () => (await call("POST", "/api/v1/webhooks/whatsapp/inbound", { key: null, body: {} })).status,
        PATIENCE
      )
      .toBe(401)
  })
})

describe("the headers of every answer", () => {
  it("let a browser do nothing with it, whatever the answer", async () => {
    const { call, url } = await start()
    const answers = await Promise.all([
      call("GET", "/api/v1/outbound/messages"),
      call("GET", "/api/v1/outbound/messages", { key: "wrong" }),
      call("GET", "/nowhere"),
      call("DELETE", "/api/v1/outbound/messages"),
      call("GET", "/healthz"),
      call("GET", "/openapi.json"),
      fetch(`${url}/`, { redirect: "manual" })
    ])
    for (const { headers, status } of answers) {
      expect(headers.get("x-content-type-options"), String(status)).toBe("nosniff")
      expect(headers.get("x-frame-options")).toBe("DENY")
      expect(headers.get("referrer-policy")).toBe("no-referrer")
      expect(headers.get("content-security-policy")).toMatch(/^default-src 'none'; frame-ancestors 'none'/)
    }
    expect(answers[0]!.headers.get("cache-control")).toBe("no-store")
    const malformed = await caller(Number(new URL(url).port), "NONSENSE\r\n\r\n")
    await expect.poll(malformed.got, PATIENCE).toContain("x-content-type-options: nosniff")
  })

  it("let the docs run their own scripts and no others", async () => {
    const { url } = await start()
    const response = await fetch(`${url}/docs`)
    const policy = response.headers.get("content-security-policy")!
    expect(policy).toMatch(/^default-src 'none'/)
    expect(policy).not.toMatch(/script-src[^;]*unsafe/)
    expect(policy).not.toMatch(/https?:/)
    const page = await response.text()
    const scripts = [...page.matchAll(/<script[^>]*>([\s\S]*?)<\/script>/g)].map(([, text]) => text!)
    expect(scripts.length).toBeGreaterThan(0)
    const known = scripts.filter((text) =>
      policy.includes(`'sha256-${createHash("sha256").update(text).digest("base64")}'`)
    )
    expect(known.length).toBe(scripts.length)
    expect(page.replace(/<script[^>]*>[\s\S]*?<\/script>/g, "")).not.toMatch(/<[a-z]+[^>]*\son[a-z]+=/)
  })
})
