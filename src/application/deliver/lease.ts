/**
 * This process's hold on the messages of one claim. A lease that another worker took over is lost: nothing is sent or
 * written under it. By the monotonic clock it certainly lasts until the duration has passed since it was asked for,
 * because the store began to count later; after that a worker must ask before it sends.
 */
import { Clock, Duration, Effect, identity } from "effect"
import { type Overtaken, type Patience, storePauses, whileUnavailable } from "../command.ts"
import type { StoreUnavailable } from "../ports/errors.ts"
import { type AbandonedMessage, type BatchId, Queue } from "../ports/Queue.ts"

export class Lease {
  readonly batch: BatchId
  readonly duration: Duration.Duration
  /** Messages neither delivered, dropped nor handed back. */
  remaining: number
  readonly notStarted: Array<AbandonedMessage> = []
  lost = false
  readonly #onLost: () => void
  #until = 0n

  /** `askedAt`: the begin of the claim, in nanoseconds of the monotonic clock. `onLost` is called once. */
  constructor(batch: BatchId, count: number, duration: Duration.Duration, askedAt: bigint, onLost: () => void) {
    this.batch = batch
    this.remaining = count
    this.duration = duration
    this.#onLost = onLost
    this.renewed(askedAt)
  }

  renewed(askedAt: bigint): void {
    const until = askedAt + Duration.toNanosUnsafe(this.duration)
    if (until > this.#until) this.#until = until
  }

  certainlyLasts(clock: Clock.Clock): boolean {
    return clock.monotonicTimeNanosUnsafe() < this.#until
  }

  lose(): void {
    if (!this.lost) this.#onLost()
    this.lost = true
  }
}

/** Retries until the store answers or the lease is lost: giving up would leave the batch until its lease runs out. */
export const whileHeld = (lease: Lease): Required<Patience> => ({
  tries: Number.POSITIVE_INFINITY,
  unavailable: { schedule: storePauses, while: () => !lease.lost }
})

/** Null for a command whose lease was lost while the store did not answer. */
export const unlessLost = <A, R>(commanded: Effect.Effect<A, StoreUnavailable | Overtaken, R>) =>
  Effect.match(commanded, { onFailure: () => null, onSuccess: identity<A> })

export const isStillHeld = Effect.fnUntraced(function* (lease: Lease) {
  if (lease.lost) return false
  const askedAt = (yield* Clock.Clock).monotonicTimeNanosUnsafe()
  const renewed = yield* (yield* Queue).renew([lease.batch], lease.duration)
  if (renewed.has(lease.batch)) {
    lease.renewed(askedAt)
    return true
  }
  lease.lose()
  return false
})

/** False too when the lease was lost before the store answered. */
export const isSurelyHeld = (lease: Lease) =>
  whileUnavailable(isStillHeld(lease), whileHeld(lease).unavailable).pipe(
    Effect.catchTag("StoreUnavailable", () => Effect.succeed(false))
  )
