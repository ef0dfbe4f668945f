/**
 * Picks a loopback port below 32768: the kernel hands out higher ones to any connection, so a restarted server could
 * lose its own.
 */
import { randomInt } from "node:crypto"
import { createServer } from "node:net"
import { Effect } from "effect"

const [FROM, TO] = [15_000, 32_000]
const TRIES_MAX = 100

/** Another program can still take it. */
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
