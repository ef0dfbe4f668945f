/**
 * Makes single attempts over shared connections: no retry, no redirect, one deadline. Once a status has arrived, a body
 * that stalls or breaks changes nothing. Interrupting takes the request back as far as possible.
 */
import type { SecureContext } from "node:tls"
import { Clock, Effect, Latch, type Scope } from "effect"
import type { Dispatcher } from "undici"
import { makeAddressGuard } from "./addressGuard.ts"
import { type Attempt, makeAttempt, type Tried } from "./attempt.ts"
import { makeConnections } from "./connections.ts"
import type { EgressRules } from "./guardedConnect.ts"
import type { Resolve } from "./resolver.ts"

export interface Destination {
  readonly url: URL
  readonly version: number
  /** Name of its pool: by destination, version and server. */
  readonly pool: string
  readonly secureContext?: SecureContext | undefined
  readonly timeoutNanos: bigint
}

export interface Prepared {
  readonly destination: Destination
  readonly request: Dispatcher.DispatchOptions
}

const TIMEOUT_MAX_MS = 30_000

/** Capped at the most any try may take. */
const timeoutNanosOf = (timeoutMs: number): bigint =>
  BigInt(Math.min(Math.max(timeoutMs, 1), TIMEOUT_MAX_MS)) * 1_000_000n

/** Made once per target, not per try: it names the pool. */
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

/** `requestAt` gets the try's time in unix milliseconds. */
type Try = (destination: Destination, requestAt: (now: number) => Dispatcher.DispatchOptions) => Effect.Effect<Tried>

/** Connections close with the scope. */
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

/**
 * One watch for all deadlines, cheaper than a timer per request: it looks every 25 ms and sleeps when idle. A deadline
 * is met up to a tick late, never early.
 */
const TICK = "25 millis"

export interface Expiring {
  /** Not called again after true. */
  readonly expired: (now: bigint) => boolean
}

/** `onExpired` is called once for each. */
export const makeDeadlines = Effect.fnUntraced(function* <A extends Expiring>(
  clock: Clock.Clock,
  onExpired: (one: A) => void
) {
  const watched = new Set<A>()
  const busy = Latch.makeUnsafe(false)

  const look = Effect.sync(() => {
    const now = clock.monotonicTimeNanosUnsafe()
    const late = [...watched].filter((one) => one.expired(now))
    for (const one of late) watched.delete(one)
    // The youngest first: a waiting request must not inherit the connection of one that expires too.
    for (const one of late.toReversed()) onExpired(one)
    if (watched.size === 0) busy.closeUnsafe()
  })
  yield* busy.await.pipe(Effect.andThen(Effect.sleep(TICK)), Effect.andThen(look), Effect.forever, Effect.forkScoped)

  return {
    watch: (one: A) => {
      watched.add(one)
      if (watched.size === 1) busy.openUnsafe()
    },
    forget: (one: A) => {
      watched.delete(one)
    }
  }
})
