/** A TCP proxy that can fall silent: from then on its connections carry nothing and end nothing, as after a failover. */
import { once } from "node:events"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { Effect } from "effect"

export interface Proxy {
  readonly port: number
  /** How many connections were made through it. */
  readonly made: () => number
  /** What is connected now hears nothing any more. `others`: whoever connects anew hears nothing either. */
  readonly fallSilent: (others: boolean) => void
  /** Whoever connects anew is served again. */
  readonly heal: () => void
}

export const proxyTo = (target: {
  readonly host: string
  readonly port: number
}): Effect.Effect<Proxy, never, import("effect").Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        let silent = false
        let made = 0
        const pairs = new Set<readonly [Socket, Socket | null]>()
        const server = createServer((near) => {
          made += 1
          near.on("error", () => {})
          if (silent) {
            pairs.add([near, null])
            return
          }
          const far = connect(target)
          pairs.add([near, far])
          near.pipe(far)
          far.pipe(near)
          near.on("error", () => far.destroy())
          far.on("error", () => near.destroy())
        })
        server.listen(0, "127.0.0.1")
        await once(server, "listening")
        return {
          port: (server.address() as AddressInfo).port,
          made: () => made,
          fallSilent: (others: boolean) => {
            silent = others
            for (const [near, far] of pairs) {
              near.unpipe()
              near.pause()
              far?.unpipe()
              far?.destroy()
            }
          },
          heal: () => {
            silent = false
          },
          close: () => {
            server.close()
            for (const [near, far] of pairs) {
              near.destroy()
              far?.destroy()
            }
          }
        }
      }),
      ({ close }) => Effect.sync(close)
    ),
    ({ close: _, ...proxy }) => proxy
  )
