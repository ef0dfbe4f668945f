/** Tries with a plain POST, over real sockets: what every channel builds on, without any channel. */
import { randomUUID } from "node:crypto"
import { Duration, Effect, Result } from "effect"
import { parseNetworks } from "../../../../src/adapters/channels/net/addressGuard.ts"
import type { EgressProxy } from "../../../../src/adapters/channels/net/egressProxy.ts"
import type { Resolve } from "../../../../src/adapters/channels/net/resolver.ts"
import { type Destination, destinationOf, makeTries } from "../../../../src/adapters/channels/net/tries.ts"
import { receiver } from "./receiver.ts"

export const destinationAt = (url: string, { timeoutMs = 60_000, pool = "one" } = {}): Destination =>
  destinationOf({ id: pool, version: 1 }, new URL(url), timeoutMs)

/** Posts to any destination; loopback may be called unless told otherwise. Each request has a name of its own. */
export const posting = (
  options: {
    readonly networks?: string
    readonly exempt?: number
    readonly resolve?: Resolve
    readonly proxy?: EgressProxy
  } = {}
) =>
  Effect.map(
    makeTries(
      {
        proxy: options.proxy ?? null,
        allowedNetworks: Result.getOrThrow(parseNetworks(options.networks ?? "127.0.0.0/8")),
        exemptions: options.exempt === undefined ? [] : [{ address: "127.0.0.1", port: options.exempt }]
      },
      options.resolve
    ),
    (attempt) => (destination: Destination) =>
      attempt(destination, () => ({
        method: "POST",
        path: destination.url.pathname + destination.url.search,
        headers: ["content-type", "application/json", "x-name", randomUUID()],
        body: Buffer.from('{"a":1}')
      }))
  )

/** Makes one try at a receiver that answers so. */
export const postTo = (on: Parameters<typeof receiver>[0], timeoutMs = 60_000) =>
  Effect.gen(function* () {
    const far = yield* receiver(on)
    const post = yield* posting()
    const [took, reply] = yield* Effect.timed(post(destinationAt(far.url, { timeoutMs })))
    return { far, reply, tookMs: Duration.toMillis(took) }
  })
