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
  it("of one address are so many, and one more is closed", async () => {
    const server = await listening({ perAddressMax: 2 })
    server.on("request", (_, response) => response.end("yes"))
    const two = await Promise.all([caller(portOf(server), get()), caller(portOf(server), get())])
    for (const { got } of two) await expect.poll(got, PATIENCE).toContain("yes")
    const third = await caller(portOf(server), get())
    await expect.poll(third.isClosed, PATIENCE).toBe(true)
    expect([third.got(), ...two.map(({ isClosed }) => isClosed())]).toEqual(["", false, false])
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
    const server = await listening({ underWayMax: 3 }, null, ({ url }, _, begin) => {
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
    const server = await listening({ silentMs: 200 })
    server.on("request", (_, response) => response.end(Buffer.alloc(16 * 1024 * 1024, 1)))
    const stuck = await caller(portOf(server))
    stuck.socket.pause()
    stuck.socket.write(get())
    await expect.poll(() => connectionsOf(server), PATIENCE).toBe(0)
  })

  it("that ask for the docs and do not read them are disconnected", async () => {
    const served = await start(undefined, undefined, { silentMs: 200 })
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
