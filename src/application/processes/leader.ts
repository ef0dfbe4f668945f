/**
 * Maintenance: jobs that the leader carries out (Processes.ts). Every process has the loops of all jobs, and they idle
 * while it does not lead. A step under way when leadership ends goes on: each job writes by versions or leases, so a
 * double step is safe.
 */
import { Clock, Context, type Duration, Effect, Layer } from "effect"
import { background } from "../background.ts"
import type { StoreUnavailable } from "../ports/errors.ts"
import { LEADS_FOR_MS } from "../ports/Processes.ts"

export interface Job<R> {
  /** For the log: "forgetting old messages". */
  readonly name: string
  readonly every: Duration.Input
  readonly step: Effect.Effect<unknown, StoreUnavailable, R>
}

/** Ends a little before the store's own lease, whatever the heartbeats do. */
const HOLDS_NANOS = BigInt(LEADS_FOR_MS - 1_000) * 1_000_000n

export class Leadership extends Context.Service<
  Leadership,
  {
    /** Takes the store's answer to a heartbeat that was asked for at this time of the monotonic clock. */
    readonly told: (leads: boolean, askedAtNanos: bigint) => void
    readonly holds: () => boolean
  }
>()("posthaste/application/maintenance/Leadership") {
  static readonly layer = Layer.effect(
    Leadership,
    Effect.map(Clock.Clock, (clock) => {
      let until: bigint | null = null
      return Leadership.of({
        told: (leads, askedAtNanos) => {
          until = leads ? askedAtNanos + HOLDS_NANOS : null
        },
        holds: () => until !== null && clock.monotonicTimeNanosUnsafe() < until
      })
    })
  )

  static readonly always = Layer.succeed(Leadership, { told: () => {}, holds: () => true })
}

const LOOK_EVERY = "1 second"

export const maintain = <R>({ name, every, step }: Job<R>): Effect.Effect<never, never, R | Leadership> =>
  Effect.flatMap(Leadership, ({ holds }) =>
    background(
      name,
      Effect.suspend(() => (holds() ? Effect.andThen(step, Effect.sleep(every)) : Effect.sleep(LOOK_EVERY))),
      every
    )
  )
