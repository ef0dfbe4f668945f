/** The database falls silent, as in a failover that closes no connection: the product goes on by itself, and can be stopped. */
import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { describe, expect } from "vitest"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { api, product } from "../servers/product.ts"
import { proxyTo } from "../servers/proxy.ts"
import { receiver } from "../servers/receiver.ts"
import { slowdown } from "../servers/slowdown.ts"
import { PATIENCE_MS, pause, until } from "../servers/until.ts"

describe("a database that falls silent", () => {
  it.live(
    "delays what is asked meanwhile, and ends no process later than it should",
    () =>
      Effect.gen(function* () {
        const direct = new URL(Redacted.value(yield* freshDatabase))
        const proxy = yield* proxyTo({ host: direct.hostname, port: Number(direct.port) })
        const far = yield* receiver(() => ({ status: 200 }))
        const through = new URL(direct)
        through.port = String(proxy.port)
        const running = yield* product(through.href, {})
        const call = api(running.url!, "acme")
        yield* Effect.promise(async () => {
          const to = (await call<{ id: string }>("POST", "/webhook-endpoints", { url: far.url })).body.id
          const send = async (n: number) =>
            (await call("POST", "/outbound/messages", { channel: "webhook", to, payloadJson: n })).status
          await Promise.all(Array.from({ length: 30 }, (_, n) => send(n)))
          await until("thirty deliveries", () => far.received.length === 30)

          // Who connects anew is served: a failover.
          proxy.fallSilent(false)
          const since = performance.now()
          let slowest = slowdown()
          while ((await send(30)) !== 201) {
            await pause(100)
            slowest = Math.max(slowest, slowdown())
          }
          const accepted = performance.now() - since
          const before = far.received.length
          await until("a delivery", () => far.received.length > before)
          // It takes what the longest short statement may take, and a second.
          expect(accepted).toBeLessThan(15_000 * Math.max(slowest, slowdown()))
          await until("a line about it", () => running.printed().includes("made anew"))
          expect(running.printed().match(/made anew/g)).toHaveLength(1)
          await until("the end of the outage", () => running.printed().includes("the store answers again"))

          // Nobody is served.
          proxy.fallSilent(true)
          expect((await fetch(`${running.url}/readyz`)).status).toBe(503)
          const answer = send(31)
          const stopping = performance.now()
          expect(await running.stop()).toBe(0)
          expect(performance.now() - stopping).toBeLessThan(35_000 * Math.max(slowest, slowdown()))
          await answer.catch(() => {})
        })
      }),
    PATIENCE_MS * 5
  )
})
