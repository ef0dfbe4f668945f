/**
 * The batches that this process holds. A batch is held from its claim until each of its messages was delivered, dropped
 * or handed back; then it is released. A batch that another worker took over is lost: nothing is sent or written for it
 * any more.
 *
 * Until when a lease certainly lasts is told by the monotonic clock alone: no other worker can have taken the batch over before,
 * because the store began to count after it was asked. A worker that stood still for longer must ask before it sends.
 */
import { Duration } from "effect"
import type { AbandonedMessage, BatchId, Claim } from "../ports/Queue.ts"

export interface HeldBatch {
  readonly batch: BatchId
  readonly lease: Duration.Duration
  /** Until when the lease certainly lasts, in nanoseconds of the monotonic clock. */
  readonly heldUntil: bigint
  /** The lease was given or renewed by a call that began at this moment of the monotonic clock. */
  readonly renewed: (askedAt: bigint) => void
  /** Messages that are neither delivered, dropped nor handed back. */
  remaining: number
  /** Messages that go back to the queue when the batch is released. */
  readonly notStarted: Array<AbandonedMessage>
  readonly lost: boolean
  readonly lose: () => void
}

export interface HeldBatches {
  /** `askedAt`: when the claim began, by the monotonic clock. */
  readonly add: (claim: Claim, askedAt: bigint) => HeldBatch
  readonly remove: (heldBatch: HeldBatch) => void
  readonly all: () => ReadonlyArray<HeldBatch>
}

/** `onLost` is called once for each batch that was lost. */
export const makeHeldBatches = (lease: Duration.Duration, onLost: () => void = () => {}): HeldBatches => {
  const held = new Set<HeldBatch>()
  const leaseNanos = Duration.toNanosUnsafe(lease)
  return {
    add: ({ batch, messages }, askedAt) => {
      let lost = false
      let heldUntil = askedAt + leaseNanos
      const heldBatch: HeldBatch = {
        batch,
        lease,
        remaining: messages.length,
        notStarted: [],
        get heldUntil() {
          return heldUntil
        },
        renewed: (askedAt) => {
          if (askedAt + leaseNanos > heldUntil) heldUntil = askedAt + leaseNanos
        },
        get lost() {
          return lost
        },
        lose: () => {
          if (!lost) onLost()
          lost = true
        }
      }
      held.add(heldBatch)
      return heldBatch
    },
    remove: (heldBatch) => {
      held.delete(heldBatch)
    },
    all: () => [...held]
  }
}
