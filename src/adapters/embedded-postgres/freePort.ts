/**
 * A loopback port for a server that comes and goes. The kernel hands ports above 32767 to whoever asks for any, for connections too,
 * and a server that is started again would find its port taken: these lie below, where nobody gets one by chance.
 */
import { randomInt } from "node:crypto"
import { createServer } from "node:net"
import { Effect } from "effect"

const [FROM, TO] = [15_000, 32_000]
const TRIES_MAX = 100

/** It was free a moment ago; another program may have taken it since. */
export const freePort: Effect.Effect<number> = Effect.gen(function* () {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const port = randomInt(FROM, TO)
    if (yield* isFree(port)) return port
  }
  return yield* Effect.die(new Error(`no free port between ${FROM} and ${TO} was found`))
})

const isFree = (port: number): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    const server = createServer()
    server.once("error", () => resume(Effect.succeed(false)))
    server.listen(port, "127.0.0.1", () => server.close(() => resume(Effect.succeed(true))))
  })
