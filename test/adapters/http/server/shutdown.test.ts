import { connect } from "node:net"
import { Deferred, Effect } from "effect"
import { describe, expect, it } from "vitest"
import { slowdown } from "../../../servers/slowdown.ts"
import { OPERATOR, start } from "../served.ts"

describe("a server that is stopped", () => {
  it("finishes what is in flight, takes nothing new, and is gone within seconds", async () => {
    const entered = Deferred.makeUnsafe<void>()
    const mayGoOn = Deferred.makeUnsafe<void>()
    const posthaste = await start((store) => ({
      ...store,
      append: (entries) =>
        Deferred.succeed(entered, undefined).pipe(
          Effect.andThen(Deferred.await(mayGoOn)),
          Effect.andThen(store.append(entries))
        )
    }))
    const port = Number(new URL(posthaste.url).port)
    const to = await posthaste.endpoint()
    const sending = posthaste.send({ channel: "webhook", to, payloadJson: 1 })
    await Effect.runPromise(Deferred.await(entered))

    const since = performance.now()
    const stopped = posthaste.stop()
    await new Promise((resolve) => setTimeout(resolve, 50))
    await expect(
      new Promise((resolve, reject) => {
        const socket = connect(port, "127.0.0.1", () => resolve("connected"))
        socket.on("error", reject)
      })
    ).rejects.toThrow("ECONNREFUSED")

    Effect.runSync(Deferred.succeed(mayGoOn, undefined))
    const sent = await sending
    expect(sent.status).toBe(201)
    await stopped
    // Neither the idle connection kept alive by our client nor the one just used holds it up.
    expect(performance.now() - since).toBeLessThan(3_000 * slowdown())
  })

  it("lets go of each connection as soon as its request is answered", async () => {
    const gates = { slow: Deferred.makeUnsafe<void>(), quick: Deferred.makeUnsafe<void>() }
    let entered = 0
    const posthaste = await start((store) => ({
      ...store,
      append: (entries) =>
        Effect.suspend(() => {
          entered++
          return Deferred.await(gates[entered === 1 ? "slow" : "quick"])
        }).pipe(Effect.andThen(store.append(entries)))
    }))
    const to = await posthaste.endpoint()
    const body = `{"channel":"webhook","to":"${to}","payloadJson":1}`
    const headers = `host: x\r\nauthorization: Bearer ${OPERATOR}\r\nx-org-id: acme\r\ncontent-type: application/json`
    const send = () => {
      const socket = connect(Number(new URL(posthaste.url).port), "127.0.0.1")
      socket.write(
        `POST /api/v1/outbound/messages HTTP/1.1\r\n${headers}\r\ncontent-length: ${body.length}\r\n\r\n${body}`
      )
      let text = ""
      socket.on("data", (data) => {
        text += data.toString()
      })
      return new Promise<string>((resolve) => socket.on("close", () => resolve(text)))
    }
    const until = async (count: number) => {
      while (entered < count) await new Promise((resolve) => setTimeout(resolve, 5))
    }
    const slow = send()
    await until(1)
    const quick = send()
    await until(2)

    const stopped = posthaste.stop()
    Effect.runSync(Deferred.succeed(gates.quick, undefined))
    // Closed while the other is still under way: it can't bring another request.
    expect(await quick).toMatch(/^HTTP\/1\.1 201 /)
    Effect.runSync(Deferred.succeed(gates.slow, undefined))
    expect(await slow).toMatch(/^HTTP\/1\.1 201 /)
    await stopped
  })

  it("does not wait for a caller who sent half a request", async () => {
    const posthaste = await start()
    const socket = connect(Number(new URL(posthaste.url).port), "127.0.0.1")
    await new Promise((resolve) => socket.once("connect", resolve))
    socket.write(`POST /api/v1/outbound/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${OPERATOR}\r\n`)
    await new Promise((resolve) => setTimeout(resolve, 50))
    const since = performance.now()
    await posthaste.stop()
    expect(performance.now() - since).toBeLessThan(3_000 * slowdown())
    socket.destroy()
  })
})
