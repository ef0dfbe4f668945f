/**
 * What callers hear of a process that stood still for longer than their time: it is stopped and woken, as a debugger, a container's
 * pause or a machine that sleeps does it. All that is due on time happens in one standstill, because it takes as long as a time-out.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { type AddressInfo, connect, type Socket } from "node:net"
import { join } from "node:path"
import { connect as connectSecurely } from "node:tls"
import { afterEach, expect, it } from "vitest"
import { watchLoop } from "../../../../src/adapters/http/server/loopTime.ts"
import { makeServer } from "../../../../src/adapters/http/server/makeServer.ts"
import { compileCache } from "../../../servers/posthaste.ts"

const PATIENCE = { timeout: 60_000, interval: 20 }
/** Node keeps an idle connection for a second more than it is told. */
const TIME = { headersWithinMs: 1_500, requestWithinMs: 1_600, idleMs: 500 }
/** Before it is over for anybody, everything is set up and the process stands still. */
const SET_UP_WITHIN_MS = 1_000
const STANDSTILL_MS = 1_700

let child: ChildProcess | null = null
let sockets: Array<Socket> = []
afterEach(() => {
  for (const socket of sockets) socket.destroy()
  sockets = []
  child?.kill("SIGKILL")
  child = null
})

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const begin = async (): Promise<readonly [plain: number, secure: number]> => {
  child = spawn(process.execPath, [join(import.meta.dirname, "serversToStop.ts"), JSON.stringify(TIME)], {
    env: { ...process.env, ...compileCache },
    stdio: ["ignore", "pipe", "inherit"]
  })
  const [printed] = (await once(child.stdout!, "data")) as [Buffer]
  return JSON.parse(String(printed)) as [number, number]
}

const standStill = async () => {
  child!.kill("SIGSTOP")
  const isStopped = () => / T /.test(readFileSync(`/proc/${child!.pid}/stat`, "utf8"))
  while (!isStopped()) await pause(5)
}

interface Caller {
  readonly socket: Socket
  readonly heard: () => string
}

const following = (socket: Socket): Caller => {
  sockets.push(socket)
  let text = ""
  socket.on("error", () => {})
  socket.on("data", (chunk) => (text += String(chunk)))
  return { socket, heard: () => text }
}

const plainly = async (port: number) => {
  const caller = following(connect(port, "127.0.0.1"))
  await once(caller.socket, "connect")
  return caller
}
const securely = async (port: number) => {
  const caller = following(connectSecurely({ host: "127.0.0.1", port, rejectUnauthorized: false }))
  await once(caller.socket, "secureConnect")
  return caller
}

const LENGTH = 1_000_000
const head = `POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${LENGTH}\r\n`
const get = "GET / HTTP/1.1\r\nhost: x\r\n\r\n"

it("a request that came while the process stood still is served, and who goes on being slow is cut off", async () => {
  const [plain, secure] = await begin()
  const ways = [() => plainly(plain), () => securely(secure)]

  const setUp = async () => {
    const since = performance.now()
    const met = await Promise.all(
      ways.map(async (call) => ({
        inHeaders: await call(),
        inBody: await call(),
        asksAgain: await call(),
        silent: await call(),
        slow: await call(),
        slowInBody: await call()
      }))
    )
    const unmet = await plainly(secure)
    const unmetAndSilent = await plainly(secure)
    for (const { inHeaders, inBody, asksAgain, slow, slowInBody } of met) {
      for (const { socket } of [inHeaders, slow]) socket.write(head)
      for (const { socket } of [inBody, slowInBody]) socket.write(`${head}\r\n${"x".repeat(1_000)}`)
      asksAgain.socket.write(get)
    }
    for (const { asksAgain } of met) await expect.poll(asksAgain.heard, PATIENCE).toContain("<0>")
    await standStill()
    return { met, unmet, unmetAndSilent, isInTime: performance.now() - since < SET_UP_WITHIN_MS }
  }

  // On a machine that is busy at that moment some might be late before the standstill: then everybody comes again.
  let callers = await setUp()
  while (!callers.isInTime) {
    child!.kill("SIGCONT")
    for (const socket of sockets.splice(0)) socket.destroy()
    callers = await setUp()
  }
  const { met, unmet, unmetAndSilent } = callers

  for (const { inHeaders, inBody, asksAgain, silent } of met) {
    inHeaders.socket.write(`\r\n${"x".repeat(LENGTH)}`)
    inBody.socket.write("x".repeat(LENGTH - 1_000))
    asksAgain.socket.write(get)
    silent.socket.write(get)
  }
  const shaking = following(connectSecurely({ socket: unmet.socket, rejectUnauthorized: false }))
  shaking.socket.write(get)
  await pause(STANDSTILL_MS)
  child!.kill("SIGCONT")

  for (const { inHeaders, inBody, asksAgain, silent } of met) {
    for (const { heard } of [inHeaders, inBody]) await expect.poll(heard, PATIENCE).toContain(`<${LENGTH}>`)
    await expect.poll(() => asksAgain.heard().split("<0>").length, PATIENCE).toBe(3)
    await expect.poll(silent.heard, PATIENCE).toContain("<0>")
  }
  await expect.poll(shaking.heard, PATIENCE).toContain("<0>")

  const refused = met.flatMap(({ slow, slowInBody }) => [slow, slowInBody])
  for (const { socket, heard } of refused) {
    await expect.poll(heard, PATIENCE).toMatch(/^HTTP\/1.1 408 /)
    await expect.poll(() => socket.closed, PATIENCE).toBe(true)
  }
  await expect.poll(() => unmetAndSilent.socket.closed, PATIENCE).toBe(true)
  for (const { inHeaders, inBody } of met)
    for (const { heard } of [inHeaders, inBody]) expect(heard()).not.toContain("408")
})

it("what came while the loop was kept for a moment is read before anybody is late", async () => {
  const server = makeServer({ headersWithinMs: 200, requestWithinMs: 200 })
  server.on("request", (_, response) => response.end("served"))
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const keepTheLoop = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 220)
  const met = async (): Promise<Caller> => {
    const since = performance.now()
    const caller = await plainly((server.address() as AddressInfo).port)
    caller.socket.write("GET / HT")
    await pause(20)
    // What comes next in a turn of the loop are its timers, and then what has arrived.
    const isInTime = await new Promise<boolean>((resolve) =>
      setImmediate(() => {
        const isInTime = performance.now() - since < 150
        caller.socket.write("TP/1.1\r\nhost: x\r\n\r\n")
        keepTheLoop()
        resolve(isInTime)
      })
    )
    // Else it may be late by itself.
    return isInTime ? caller : met()
  }
  const { heard } = await met()
  await expect.poll(heard, PATIENCE).not.toBe("")
  expect(heard()).toContain("served")
  server.close()
})

it("a writer of a byte now and then gains no time where nothing stood still", async () => {
  const server = makeServer({ headersWithinMs: 300, requestWithinMs: 300 })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const since = performance.now()
  const { socket, heard } = await plainly((server.address() as AddressInfo).port)
  socket.write(`${head}x-slow: `)
  const writing = setInterval(() => socket.write("x"), 20)
  await expect.poll(heard, PATIENCE).toMatch(/^HTTP\/1.1 408 /)
  clearInterval(writing)
  expect(performance.now() - since).toBeGreaterThanOrEqual(300)
  server.close()
})

it("the loop's time leaves out what it stood still, and tells of it for so long", () => {
  let clock = 1_000
  const loop = watchLoop(10_000, () => clock)
  const passes = (ms: number) => {
    clock += ms
    return [loop.now(), loop.stoodStillMs()]
  }
  expect(passes(250)).toEqual([250, 0])
  expect(passes(500)).toEqual([750, 0])
  expect(passes(60_500)).toEqual([1_250, 60_000])
  expect(passes(1_500)).toEqual([1_750, 61_000])
  for (let n = 0; n < 38; n++) passes(250)
  expect(passes(0)).toEqual([11_250, 1_000])
  expect(passes(500)).toEqual([11_750, 0])
  loop.stop()
})
