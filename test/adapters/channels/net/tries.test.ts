/**
 * What every channel relies on when it makes a request: one request at most, one deadline over everything, the status line
 * as the answer, and no address that may not be called. Channels test only what they add.
 */
import type { Socket } from "node:net"
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib"
import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { Resolve } from "../../../../src/adapters/channels/net/resolver.ts"
import { answer, receiver, until } from "./receiver.ts"
import { destinationAt, posting, postTo } from "./trying.ts"

const KIB = 1024

describe("the status line", () => {
  it.live.each([
    [301, "Unreachable", "redirect"],
    [302, "Unreachable", "redirect"],
    [307, "Unreachable", "redirect"],
    [308, "Unreachable", "redirect"],
    [400, "Refused", "http_400"],
    [404, "Refused", "http_404"],
    [410, "Refused", "http_410"],
    [408, "Unreachable", "http_408"],
    [409, "Unreachable", "http_409"],
    [425, "Unreachable", "http_425"],
    [429, "Unreachable", "http_429"],
    [500, "Unreachable", "http_500"],
    [503, "Unreachable", "http_503"],
    [999, "Unreachable", "http_999"]
  ] as const)("%i means %s (%s)", ([status, type, code]) =>
    Effect.gen(function* () {
      const elsewhere = yield* receiver({ request: (socket) => answer(socket, 200) })
      const { far, reply } = yield* postTo({
        request: (socket) => answer(socket, status, { location: elsewhere.url }, "because")
      })
      expect(reply.outcome).toMatchObject({ type, status, error: { code, retryable: type === "Unreachable" } })
      expect(reply.responseBody).toBe("because")
      expect(far.requests).toHaveLength(1)
      expect(elsewhere.connections()).toBe(0)
    })
  )

  it.live.each([
    ["7", 7_000],
    ["-1", null],
    ["1e99", null],
    ["soon", null]
  ] as const)("may come with Retry-After: %s", ([header, wait]) =>
    Effect.gen(function* () {
      const { reply } = yield* postTo({ request: (socket) => answer(socket, 429, { "retry-after": header }) })
      expect(reply.outcome).toMatchObject({ type: "Unreachable", status: 429, retryAfterMs: wait })
    })
  )

  it.live("may come with a date to retry after", () =>
    Effect.gen(function* () {
      const at = new Date(Date.now() + 60_000).toUTCString()
      const { reply } = yield* postTo({ request: (socket) => answer(socket, 503, { "retry-after": at }) })
      expect(reply.outcome.type === "Unreachable" && reply.outcome.retryAfterMs).toBeGreaterThan(57_000)
      expect(reply.outcome.type === "Unreachable" && reply.outcome.retryAfterMs).toBeLessThanOrEqual(60_000)
    })
  )

  it.live("is the final one: interim answers before it mean nothing", () =>
    Effect.gen(function* () {
      const { reply } = yield* postTo({
        request: (socket) => {
          for (let i = 0; i < 50; i++) socket.write("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n")
          answer(socket, 200, {}, "ok")
        }
      })
      expect(reply).toMatchObject({ outcome: { type: "Accepted", status: 200 }, responseBody: "ok" })
    })
  )
})

describe("a far side that breaks off", () => {
  it.live("refusing the connection is a failed connection", () =>
    Effect.gen(function* () {
      const gone = yield* Effect.scoped(receiver({}))
      const destination = destinationAt(gone.url)
      const post = yield* posting()
      const reply = yield* post(destination)
      expect(reply.outcome).toMatchObject({ type: "Unreachable", status: null, error: { code: "connection_failed" } })
      expect(reply.responseBody).toBeNull()
    })
  )

  it.live.each([
    ["as the connection opens", { connection: (socket) => void socket.resetAndDestroy() }],
    ["once it has the request", { request: (socket) => void socket.resetAndDestroy() }],
    ["politely, once it has the request", { request: (socket) => void socket.end() }]
  ] as ReadonlyArray<[string, Parameters<typeof receiver>[0]]>)(
    "%s is a failed connection, and nothing is sent twice",
    ([, on]) =>
      Effect.gen(function* () {
        const { far, reply } = yield* postTo(on)
        expect(reply.outcome).toMatchObject({ type: "Unreachable", status: null, error: { code: "connection_failed" } })
        yield* Effect.sleep("50 millis")
        expect(far.connections()).toBe(1)
        expect(far.requests.length).toBeLessThanOrEqual(1)
      })
  )

  it.live("as a kept connection is written to again is a failed connection, not a hidden second try", () =>
    Effect.gen(function* () {
      const far = yield* receiver({
        request: (socket, _request, count) => {
          if (count === 1) answer(socket, 200)
          else socket.resetAndDestroy()
        }
      })
      const destination = destinationAt(far.url)
      const post = yield* posting()
      yield* post(destination)
      const reply = yield* post(destination)
      expect(reply.outcome).toMatchObject({ type: "Unreachable", error: { code: "connection_failed" } })
      yield* Effect.sleep("50 millis")
      expect([far.requests.length, far.connections()]).toEqual([2, 1])
    })
  )

  it.live.each([
    ["a broken status line", "NONSENSE\r\n\r\n"],
    ["another protocol", "SSH-2.0-OpenSSH_9.2\r\n"],
    ["a broken header", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n"],
    ["two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok!"],
    ["an unasked 100 Continue", "HTTP/1.1 100 Continue\r\n\r\n"],
    ["an unasked upgrade", "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"],
    ["endless headers", `HTTP/1.1 200 OK\r\n${"x-filler: 0123456789\r\n".repeat(5_000)}`]
  ] as const)("into %s is a broken answer", ([, bytes]) =>
    Effect.gen(function* () {
      const { reply, far } = yield* postTo({ request: (socket) => void socket.write(bytes) })
      expect(reply.outcome).toMatchObject({ type: "Unreachable", status: null, error: { code: "response_broken" } })
      expect(far.requests).toHaveLength(1)
    })
  )

  it.live.each([
    ["a length that is never reached", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"],
    ["a broken chunk", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\nzzz\r\n"]
  ] as const)("after its yes, in %s, has still said yes", ([, bytes]) =>
    Effect.gen(function* () {
      const { reply } = yield* postTo({ request: (socket) => void socket.end(bytes) })
      expect(reply).toMatchObject({ outcome: { type: "Accepted", status: 200 }, responseBody: "half" })
    })
  )

  it.live("after its no has still said no", () =>
    Effect.gen(function* () {
      const { reply } = yield* postTo({
        request: (socket) => void socket.end("HTTP/1.1 422 No\r\ncontent-length: 10\r\n\r\nhalf")
      })
      expect(reply).toMatchObject({ outcome: { type: "Refused", status: 422 }, responseBody: "half" })
    })
  )
})

describe("a far side that never stops talking", () => {
  /** Writes these bytes again and again, for as long as they are taken; answers how many were. */
  const flooding = (beginning: string, again: string) => {
    let taken = 0
    const request = (socket: Socket) => {
      socket.write(beginning)
      const bytes = Buffer.from(again.repeat(Math.ceil((64 * KIB) / again.length)))
      const more = () => {
        while (!socket.destroyed && socket.write(bytes)) taken += bytes.length
      }
      socket.on("drain", more)
      more()
    }
    return { request, taken: () => taken }
  }
  const chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"

  it.live.each([
    ["interim answers", "", "HTTP/1.1 102 Processing\r\n\r\n"],
    ["blank lines before the answer", "", "\r\n"]
  ] as const)("in %s is cut off, and its answer is broken", ([, beginning, again]) =>
    Effect.gen(function* () {
      const { request, taken } = flooding(beginning, again)
      const { reply, far } = yield* postTo({ request })
      expect(reply.outcome).toMatchObject({ type: "Unreachable", status: null, error: { code: "response_broken" } })
      yield* until(() => far.open.size === 0)
      // What the kernel holds for both sides comes on top.
      expect(taken()).toBeLessThan(32 * KIB * KIB)
    })
  )

  it.live.each([
    ["what stands beside the size of a chunk", `${chunked}4;`, "a"],
    ["zeros before the size of a chunk", `${chunked}0`, "0"]
  ] as const)("in %s is cut off, and yes is yes", ([, beginning, again]) =>
    Effect.gen(function* () {
      const { request, taken } = flooding(beginning, again)
      const { reply, far } = yield* postTo({ request })
      expect(reply.outcome).toMatchObject({ type: "Accepted", status: 200 })
      yield* until(() => far.open.size === 0)
      expect(taken()).toBeLessThan(32 * KIB * KIB)
    })
  )

  it.live("in interim answers that are few bytes and too many is cut off before the answer", () =>
    Effect.gen(function* () {
      const { reply } = yield* postTo({
        request: (socket) => {
          socket.write("HTTP/1.1 102 P\r\n\r\n".repeat(2_000))
          answer(socket, 200)
        }
      })
      expect(reply.outcome).toMatchObject({ type: "Unreachable", status: null, error: { code: "response_broken" } })
    })
  )

  it.live("in crumbs is listened to for some thousands of them", () =>
    Effect.gen(function* () {
      const { reply } = yield* postTo({
        request: (socket) => void socket.write(`${chunked}${"1\r\na\r\n".repeat(10_000)}0\r\n\r\n`)
      })
      expect(reply).toMatchObject({ outcome: { type: "Accepted", status: 200 }, responseBody: "a".repeat(4_096) })
    })
  )

  it.live("takes nothing from the next answer over the same connection", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket) => answer(socket, 200, {}, "x".repeat(60 * KIB)) })
      const post = yield* posting()
      for (let n = 0; n < 20; n++) expect((yield* post(destinationAt(far.url))).responseBody).toHaveLength(60 * KIB)
      expect(far.connections()).toBe(1)
    })
  )
})

describe("a try that came to nothing", () => {
  const nowhere: Resolve = (_host, callback) => callback(new Error("NXDOMAIN"), [])
  const plain = { connection: (socket: Socket) => void socket.end("not TLS") }

  it.live("says that nothing was sent as long as no byte of the request was written", () =>
    Effect.gen(function* () {
      const gone = yield* Effect.scoped(receiver({}))
      const noTls = yield* receiver(plain)
      const post = yield* posting()
      const lost = yield* posting({ resolve: nowhere })
      const hanging = yield* posting({ resolve: () => {} })
      const tries = [
        post(destinationAt(gone.url)),
        post(destinationAt(`https://127.0.0.1:${noTls.port}/`)),
        lost(destinationAt("http://psp.example/")),
        hanging(destinationAt("http://psp.example/", { timeoutMs: 100 }))
      ]
      const tried = yield* Effect.all(tries)
      expect(tried.map(({ outcome }) => outcome.type !== "Accepted" && outcome.error.code)).toEqual([
        "connection_failed",
        "tls_failed",
        "dns_failed",
        "timeout"
      ])
      expect(tried.map(({ begun }) => begun)).toEqual([false, false, false, false])
    })
  )

  it.live.each([
    ["never", {}],
    ["with a reset", { request: (socket) => void socket.resetAndDestroy() }],
    ["with nonsense", { request: (socket) => void socket.write("NONSENSE\r\n\r\n") }]
  ] as ReadonlyArray<[string, Parameters<typeof receiver>[0]]>)(
    "says that it may have been taken once the request was written and was answered %s",
    ([, on]) =>
      Effect.gen(function* () {
        // Also on a busy machine the request is written by then.
        const { reply } = yield* postTo(on, 1_000)
        expect(reply).toMatchObject({ outcome: { type: "Unreachable" }, begun: true })
      })
  )
})

describe("the deadline", () => {
  /** Also on a busy machine the request is written by then. */
  const TIMEOUT = 1_000
  /** Room for a busy machine; the 25 ms of a tick are checked on a clock that stands still. */
  const LATE = 20_000

  it.live("ends the wait for an answer that never comes, never early", () =>
    Effect.gen(function* () {
      const { reply, tookMs, far } = yield* postTo({}, TIMEOUT)
      expect(reply.outcome).toMatchObject({ type: "Unreachable", status: null, error: { code: "timeout" } })
      expect(tookMs).toBeGreaterThanOrEqual(TIMEOUT)
      expect(tookMs).toBeLessThan(TIMEOUT + LATE)
      expect(reply.outcome.durationMs).toBeGreaterThanOrEqual(TIMEOUT)
      yield* until(() => far.open.size === 0)
      expect(far.requests).toHaveLength(1)
    })
  )

  it.live("ends the wait for headers that drip", () =>
    Effect.gen(function* () {
      const { reply, tookMs } = yield* postTo(
        {
          request: (socket) => {
            const drip = setInterval(() => socket.write("H"), 20)
            socket.on("close", () => clearInterval(drip))
          }
        },
        TIMEOUT
      )
      expect(reply.outcome.type).toBe("Unreachable")
      expect(tookMs).toBeLessThan(TIMEOUT + LATE)
    })
  )

  it.live("ends the wait for interim answers without end", () =>
    Effect.gen(function* () {
      const { reply, tookMs } = yield* postTo(
        {
          request: (socket) => {
            const flood = setInterval(() => socket.write("HTTP/1.1 102 Processing\r\n\r\n"), 5)
            socket.on("close", () => clearInterval(flood))
          }
        },
        TIMEOUT
      )
      expect(reply.outcome).toMatchObject({ type: "Unreachable", status: null, error: { code: "timeout" } })
      expect(tookMs).toBeLessThan(TIMEOUT + LATE)
    })
  )

  it.live.each([
    [200, "Accepted"],
    [503, "Unreachable"],
    [404, "Refused"]
  ] as const)("after a %i whose body stalls leaves the status standing", ([status, type]) =>
    Effect.gen(function* () {
      const { reply, tookMs, far } = yield* postTo(
        { request: (socket) => void socket.write(`HTTP/1.1 ${status} X\r\ncontent-length: 10\r\n\r\nhalf`) },
        TIMEOUT
      )
      expect(reply).toMatchObject({ outcome: { type, status }, responseBody: "half" })
      expect(tookMs).toBeGreaterThanOrEqual(TIMEOUT)
      expect(tookMs).toBeLessThan(TIMEOUT + LATE)
      yield* until(() => far.open.size === 0)
    })
  )

  it.live("covers a body that drips for ever", () =>
    Effect.gen(function* () {
      const { reply, tookMs } = yield* postTo(
        {
          request: (socket) => {
            socket.write("HTTP/1.1 200 OK\r\n\r\n")
            const drip = setInterval(() => socket.write("."), 10)
            socket.on("close", () => clearInterval(drip))
          }
        },
        TIMEOUT
      )
      expect(reply.outcome).toMatchObject({ type: "Accepted", status: 200 })
      expect(reply.responseBody).toMatch(/^\.+$/)
      expect(tookMs).toBeLessThan(TIMEOUT + LATE)
    })
  )

  it.live("covers finding the address and connecting", () =>
    Effect.gen(function* () {
      const destination = destinationAt("http://slow.example/", { timeoutMs: TIMEOUT })
      const post = yield* posting({ resolve: () => {} })
      const [took, reply] = yield* Effect.timed(post(destination))
      expect(reply.outcome).toMatchObject({ type: "Unreachable", error: { code: "timeout" } })
      expect(Duration.toMillis(took)).toBeLessThan(TIMEOUT + LATE)
    })
  )

  it.live("covers waiting for one of the connections, and who waited in vain holds none", () =>
    Effect.gen(function* () {
      let answering = false
      const far = yield* receiver({
        request: (socket) => {
          if (answering) answer(socket, 200)
        }
      })
      const [patient, hasty] = [
        destinationAt(far.url, { timeoutMs: 60_000 }),
        destinationAt(far.url, { timeoutMs: TIMEOUT })
      ]
      const post = yield* posting()
      const holders = yield* Effect.forEach(Array.from({ length: 128 }), () => Effect.forkChild(post(patient)))
      yield* until(() => far.requests.length === holders.length)

      const replies = yield* Effect.forEach(Array.from({ length: 5 }), () => post(hasty), {
        concurrency: "unbounded"
      })
      expect(replies.map(({ outcome }) => outcome)).toEqual(
        replies.map(() => expect.objectContaining({ error: expect.objectContaining({ code: "timeout" }) }))
      )
      const waiter = yield* Effect.forkChild(post(patient))
      yield* Effect.sleep("20 millis")
      expect([far.connections(), far.requests.length]).toEqual([128, 128])

      answering = true
      yield* Fiber.interrupt(holders[0]!)
      expect((yield* Fiber.join(waiter)).outcome.type).toBe("Accepted")
      expect(far.requests).toHaveLength(129)
    })
  )

  it.effect("is kept by the clock it is given", () =>
    Effect.gen(function* () {
      const far = yield* receiver({})
      const destination = destinationAt(far.url, { timeoutMs: 20_000 })
      const post = yield* posting()
      const fiber = yield* Effect.forkChild(post(destination))
      yield* TestClock.adjust("19 seconds")
      yield* TestClock.withLive(Effect.sleep("30 millis"))
      expect(fiber.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust("2 seconds")
      const reply = yield* Fiber.join(fiber)
      expect(reply.outcome).toMatchObject({ error: { code: "timeout" } })
      expect(reply.outcome.durationMs).toBeGreaterThanOrEqual(20_000)
    })
  )
})

describe("the body of an answer", () => {
  it.live("is kept up to 64 KiB, and one that is longer still means yes", () =>
    Effect.gen(function* () {
      const exact = yield* postTo({ request: (socket) => answer(socket, 200, {}, "x".repeat(64 * KIB)) })
      expect(exact.reply.responseBody).toHaveLength(64 * KIB)
      const longer = yield* postTo({ request: (socket) => answer(socket, 200, {}, "x".repeat(64 * KIB + 1)) })
      expect(longer.reply.outcome.type).toBe("Accepted")
      expect(longer.reply.responseBody).toBe("x".repeat(64 * KIB))
    })
  )

  it.live("without end is cut off at once", () =>
    Effect.gen(function* () {
      const { reply, tookMs, far } = yield* postTo({
        request: (socket) => {
          socket.write("HTTP/1.1 200 OK\r\n\r\n")
          const more = () => {
            while (!socket.destroyed && socket.write(Buffer.alloc(64 * KIB, "x")));
          }
          socket.on("drain", more)
          more()
        }
      })
      expect(reply.outcome).toMatchObject({ type: "Accepted", status: 200 })
      expect(reply.responseBody).toHaveLength(64 * KIB)
      expect(tookMs).toBeLessThan(30_000)
      yield* until(() => far.open.size === 0)
    })
  )

  it.live.each([
    ["gzip", gzipSync],
    ["GZIP", gzipSync],
    ["x-gzip", gzipSync],
    ["deflate", deflateSync],
    ["br", brotliCompressSync]
  ] as const)("is unpacked once when it comes as %s", ([encoding, pack]) =>
    Effect.gen(function* () {
      const text = Array.from({ length: 6_000 }, (_, n) => `line ${n}`)
        .join("\n")
        .slice(0, 60 * KIB)
      const { reply } = yield* postTo({
        request: (socket) => answer(socket, 200, { "content-encoding": encoding }, pack(text))
      })
      expect(reply.outcome.type).toBe("Accepted")
      expect(reply.responseBody).toBe(text)
    })
  )

  it.live.each([
    ["gzip", gzipSync(Buffer.alloc(50 * KIB * KIB, "z"))],
    ["br", brotliCompressSync(Buffer.alloc(50 * KIB * KIB, "z"))]
  ] as const)(
    "that unfolds from %s into 50 MiB is cut at 64 KiB, memory stays flat, and yes is yes",
    ([encoding, bomb]) =>
      Effect.gen(function* () {
        const far = yield* receiver({
          request: (socket) => answer(socket, 200, { "content-encoding": encoding }, bomb)
        })
        const destination = destinationAt(far.url)
        const post = yield* posting()
        yield* post(destination)
        const memory = () => process.memoryUsage().rss
        const before = memory()
        const replies = yield* Effect.forEach(Array.from({ length: 20 }), () => post(destination), {
          concurrency: 4
        })
        expect(replies.every(({ outcome }) => outcome.type === "Accepted")).toBe(true)
        expect(replies.every(({ responseBody }) => responseBody === "z".repeat(64 * KIB))).toBe(true)
        expect(memory() - before).toBeLessThan(64 * KIB * KIB)
      })
  )

  it.live.each([
    ["two encodings", "gzip, gzip", gzipSync(gzipSync("hello"))],
    ["a thousand encodings", Array(1000).fill("gzip").join(","), gzipSync("hello")],
    ["an encoding nobody knows", "zstd-2", Buffer.from("hello")],
    ["a name from the prototype", "constructor", Buffer.from("hello")],
    ["an encoding that isn't one", "gzip", Buffer.from("hello")]
  ] as const)("in %s is not kept, and yes is yes", ([, encoding, bytes]) =>
    Effect.gen(function* () {
      const { reply } = yield* postTo({
        request: (socket) => answer(socket, 200, { "content-encoding": encoding }, bytes)
      })
      expect(reply).toMatchObject({ outcome: { type: "Accepted", status: 200 }, responseBody: null })
    })
  )

  it.live("is text any store can hold", () =>
    Effect.gen(function* () {
      const { reply } = yield* postTo({
        request: (socket) => answer(socket, 200, {}, Buffer.from([0x61, 0x00, 0xff, 0xf0, 0x9f, 0x90, 0x8e]))
      })
      expect(reply.responseBody).toBe("a\ufffd\ufffd🐎")
    })
  )
})

describe("a connection", () => {
  it.live("is kept and used again, one request at a time", () =>
    Effect.gen(function* () {
      let underWay = 0
      const far = yield* receiver({
        request: (socket) => {
          underWay += 1
          expect(underWay).toBeLessThanOrEqual(4)
          setTimeout(() => {
            underWay -= 1
            answer(socket, 200, {}, "ok")
          }, 1)
        }
      })
      const destination = destinationAt(far.url)
      const post = yield* posting()
      yield* Effect.forEach(Array.from({ length: 200 }), () => post(destination), { concurrency: 4 })
      expect(far.requests).toHaveLength(200)
      expect(far.connections()).toBe(4)
    })
  )

  it.live("that the far side asks to close is not used again, and nothing fails for it", () =>
    Effect.gen(function* () {
      const far = yield* receiver({
        request: (socket) => {
          answer(socket, 200, { connection: "close" })
          socket.end()
        }
      })
      const destination = destinationAt(far.url)
      const post = yield* posting()
      const replies = yield* Effect.forEach(Array.from({ length: 20 }), () => post(destination))
      expect(replies.every(({ outcome }) => outcome.type === "Accepted")).toBe(true)
      expect(far.connections()).toBe(20)
    })
  )

  it.live("that the far side closed while it was idle is replaced, and nothing fails for it", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket) => answer(socket, 200) })
      const destination = destinationAt(far.url)
      const post = yield* posting()
      yield* post(destination)
      for (const socket of far.open) socket.end()
      yield* until(() => far.open.size === 0)
      expect((yield* post(destination)).outcome.type).toBe("Accepted")
      expect([far.connections(), far.requests.length]).toEqual([2, 2])
    })
  )

  it.live("closes with the scope of its tries", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket) => answer(socket, 200) })
      const destination = destinationAt(far.url)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const post = yield* posting()
          yield* post(destination)
          expect(far.open.size).toBe(1)
        })
      )
      yield* until(() => far.open.size === 0)
    })
  )

  it.live("that fails takes no other attempt with it", () =>
    Effect.gen(function* () {
      const far = yield* receiver({
        request: (socket, _request, count) => {
          if (count % 3 === 0) socket.resetAndDestroy()
          else answer(socket, 200)
        }
      })
      const destination = destinationAt(far.url)
      const post = yield* posting()
      const replies = yield* Effect.forEach(Array.from({ length: 300 }), () => post(destination), {
        concurrency: 200
      })
      expect(replies.filter(({ outcome }) => outcome.type === "Accepted")).toHaveLength(200)
      expect(far.requests).toHaveLength(300)
      expect(new Set(far.requests.map(({ headers }) => headers.get("x-name"))).size).toBe(300)
    })
  )
})

describe("an interrupted try", () => {
  it.live("hangs up on a request under way", () =>
    Effect.gen(function* () {
      const far = yield* receiver({})
      const destination = destinationAt(far.url)
      const post = yield* posting()
      const fiber = yield* Effect.forkChild(post(destination))
      yield* until(() => far.requests.length === 1)
      yield* Fiber.interrupt(fiber)
      yield* until(() => far.open.size === 0)
    })
  )

  it.live("sends nothing when it was still connecting", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket) => answer(socket, 200) })
      let resolved = () => {}
      const resolve: Resolve = (_host, callback) => {
        resolved = () => callback(null, [{ address: "127.0.0.1", family: 4 }])
      }
      const destination = destinationAt(`http://late.example:${far.port}/`)
      const post = yield* posting({ resolve })
      const fiber = yield* Effect.forkChild(post(destination))
      yield* Effect.sleep("20 millis")
      yield* Fiber.interrupt(fiber)
      resolved()
      yield* Effect.sleep("50 millis")
      expect(far.requests).toHaveLength(0)
      expect(far.open.size).toBe(0)
    })
  )

  it.live("leaves every other request alone", () =>
    Effect.gen(function* () {
      const sockets: Array<Parameters<typeof answer>[0]> = []
      const far = yield* receiver({ request: (socket) => sockets.push(socket) })
      const destination = destinationAt(far.url)
      const post = yield* posting()
      const fibers = yield* Effect.forEach([1, 2, 3], (count) =>
        Effect.forkChild(post(destination)).pipe(Effect.tap(() => until(() => far.requests.length >= count)))
      )
      yield* Fiber.interrupt(fibers[1]!)
      for (const socket of [sockets[0]!, sockets[2]!]) answer(socket, 200)
      for (const fiber of [fibers[0]!, fibers[2]!]) {
        expect((yield* Fiber.join(fiber)).outcome.type).toBe("Accepted")
      }
      expect(far.connections()).toBe(3)
    })
  )
})

describe("an address that may not be called", () => {
  const forbidden = { type: "Refused", status: null, error: { code: "forbidden_address", retryable: false } }
  const local = { address: "127.0.0.1", family: 4 }
  const global = { address: "8.8.8.8", family: 4 }
  const answering =
    (...addresses: ReadonlyArray<{ address: string; family: number }>): Resolve =>
    (_host, callback) =>
      callback(null, addresses)

  it.live.each([
    "127.0.0.1",
    "2130706433",
    "0x7f.1",
    "127.1",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "localhost",
    "①②⑦.0.0.1"
  ])("is never connected to as %s", (host) =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket) => answer(socket, 200) })
      const destination = destinationAt(`http://${host}:${far.port}/`)
      const post = yield* posting({ networks: "" })
      const reply = yield* post(destination)
      expect(reply.outcome).toMatchObject(forbidden)
      expect(JSON.stringify(reply)).not.toContain("127.0.0.1")
      expect(far.connections()).toBe(0)
    })
  )

  it.live("refuses a name that has one such answer among good ones", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket) => answer(socket, 200) })
      const destination = destinationAt(`http://mixed.example:${far.port}/`)
      for (const addresses of [
        [global, local],
        [local, global],
        [{ address: "::1", family: 6 }, global]
      ]) {
        const post = yield* posting({ networks: "", resolve: answering(...addresses) })
        expect((yield* post(destination)).outcome).toMatchObject(forbidden)
      }
      expect(far.connections()).toBe(0)
    })
  )

  it.live("is refused when a name turns to it later, and a kept connection is no way around", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket) => answer(socket, 200) })
      const canary = yield* receiver({ request: (socket) => answer(socket, 200) })
      let asked = 0
      // First the one open port, then, for everybody after, an address that is open to nobody.
      const resolve: Resolve = (_host, callback) => {
        asked += 1
        callback(null, [asked === 1 ? local : { address: "127.0.0.2", family: 4 }])
      }
      const destination = destinationAt(`http://rebind.example:${far.port}/`)
      const other = destinationAt(`http://rebind.example:${canary.port}/`)
      const post = yield* posting({ networks: "", exempt: far.port, resolve })
      expect((yield* post(destination)).outcome.type).toBe("Accepted")
      expect((yield* post(other)).outcome).toMatchObject(forbidden)
      for (const socket of far.open) socket.end()
      yield* until(() => far.open.size === 0)
      expect((yield* post(destination)).outcome).toMatchObject(forbidden)
      expect([far.connections(), canary.connections()]).toEqual([1, 0])
    })
  )

  it.live("is not asked for twice: the answer that was judged is the one connected to", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket) => answer(socket, 200) })
      let asked = 0
      const resolve: Resolve = (_host, callback) => {
        asked += 1
        callback(null, [local])
      }
      const destination = destinationAt(`http://once.example:${far.port}/`)
      const post = yield* posting({ resolve })
      expect((yield* post(destination)).outcome.type).toBe("Accepted")
      expect(asked).toBe(1)
      expect(far.requests[0]!.headers.get("host")).toBe(`once.example:${far.port}`)
    })
  )

  it.live("may be exempt, at one port", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket) => answer(socket, 200) })
      const other = yield* receiver({ request: (socket) => answer(socket, 200) })
      const [exempt, closed] = [destinationAt(far.url), destinationAt(other.url)]
      const post = yield* posting({ networks: "", exempt: far.port })
      expect((yield* post(exempt)).outcome.type).toBe("Accepted")
      expect((yield* post(closed)).outcome).toMatchObject(forbidden)
      expect(other.connections()).toBe(0)
    })
  )

  it.live("is told apart from a name without an address", () =>
    Effect.gen(function* () {
      const destination = destinationAt("http://nowhere.example/")
      const failing: Resolve = (_host, callback) => callback(new Error("ENOTFOUND"), [])
      for (const resolve of [failing, answering()]) {
        const post = yield* posting({ resolve })
        expect((yield* post(destination)).outcome).toMatchObject({
          type: "Unreachable",
          error: { code: "dns_failed" }
        })
      }
    })
  )
})
