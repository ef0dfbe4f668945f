/**
 * Makes single attempts over shared keep-alive connections and reports the outcome of each.
 *
 * - One deadline covers waiting for a connection, connecting, the request and the whole answer. It never fires early,
 *   and late by some 25 ms at most.
 * - The status line is the answer. Once it has arrived, a body that stalls, breaks off or never ends changes nothing:
 *   the part that was read is kept, up to a cap.
 * - Nothing is retried and no redirect followed here: one call makes at most one request.
 * - Interrupting an attempt takes the request back as far as that is still possible.
 */
import type { SecureContext } from "node:tls"
import { Clock, Effect, type Scope } from "effect"
import type { Dispatcher } from "undici"
import { makeAddressGuard } from "./addressGuard.ts"
import { type Attempt, makeAttempt, type Tried } from "./attempt.ts"
import { makeConnections } from "./connections.ts"
import { makeDeadlines } from "./deadlines.ts"
import type { EgressRules } from "./guardedConnect.ts"
import type { Resolve } from "./resolver.ts"

export interface Destination {
  readonly url: URL
  /** The version of its settings. */
  readonly version: number
  /** Whose connections it uses: nobody else's, no other version's and no other server's. */
  readonly pool: string
  readonly secureContext?: SecureContext | undefined
  readonly timeoutNanos: bigint
}

/** A request that was made before its try. */
export interface Prepared {
  readonly destination: Destination
  readonly request: Dispatcher.DispatchOptions
}

const TIMEOUT_MAX_MS = 30_000

/** Within what any try may take, whatever its settings say. */
const timeoutNanosOf = (timeoutMs: number): bigint =>
  BigInt(Math.min(Math.max(timeoutMs, 1), TIMEOUT_MAX_MS)) * 1_000_000n

/** The name of the pool is made here, once, and not at each try. */
export const destinationOf = (
  { id, version }: { readonly id: string; readonly version: number },
  url: URL,
  timeoutMs: number,
  secureContext?: SecureContext
): Destination => ({
  url,
  version,
  pool: `${id}/${version} ${url.origin}`,
  secureContext,
  timeoutNanos: timeoutNanosOf(timeoutMs)
})

/** `requestAt` makes the request for the try's time, in unix milliseconds. */
export type Try = (
  destination: Destination,
  requestAt: (now: number) => Dispatcher.DispatchOptions
) => Effect.Effect<Tried>

/** `resolve` replaces the system's resolver. Connections close with the scope. */
export const makeTries = Effect.fnUntraced(function* (
  { proxy, ...rules }: EgressRules,
  resolve?: Resolve
): Effect.fn.Return<Try, never, Scope.Scope> {
  const clock = yield* Clock.Clock
  const connections = yield* Effect.acquireRelease(
    Effect.sync(() => makeConnections({ guard: makeAddressGuard(rules), resolve, proxy })),
    ({ close }) => Effect.sync(close)
  )
  const deadlines = yield* makeDeadlines<Attempt>(clock, connections.giveUp)

  return (destination, requestAt) =>
    Effect.callback<Tried>((resume) => {
      const sentAt = clock.currentTimeMillisUnsafe()
      const attempt: Attempt = makeAttempt(destination, requestAt(sentAt), sentAt, clock, (tried) => {
        deadlines.forget(attempt)
        resume(Effect.succeed(tried))
      })
      deadlines.watch(attempt)
      connections.start(attempt)
      return Effect.sync(() => {
        deadlines.forget(attempt)
        connections.giveUp(attempt)
      })
    })
})
