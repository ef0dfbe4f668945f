/**
 * The ways by which messages leave the lease of their batch: back to the queue, or done. The last one ends the lease.
 */
import { Effect } from "effect"
import { storePauses } from "../command.ts"
import type { StoreUnavailable } from "../ports/errors.ts"
import { Queue } from "../ports/Queue.ts"
import type { Task } from "./deliver.ts"
import type { Lease } from "./lease.ts"
import type { CircuitWatch } from "./watchCircuits.ts"

export interface Held {
  readonly leases: Set<Lease>
  readonly circuits: CircuitWatch
}

/** Puts messages that may not be sent back into the queue: they wait as before and lose no attempt. */
export const putBack = Effect.fnUntraced(function* (tasks: ReadonlyArray<Task>, { leases, circuits }: Held) {
  const queue = yield* Queue
  for (const { claimed } of tasks) circuits.observe(claimed, null)
  for (const [lease, mine] of Map.groupBy(tasks, (task) => task.lease)) {
    const messages = mine.map(({ claimed }) => claimed)
    if (lease.remaining === mine.length) lease.notStarted.push(...messages)
    else {
      const ids = messages.map(({ messageId }) => messageId)
      yield* takeOut(lease, queue.putBack(lease.batch, ids))
    }
    yield* finish(lease, leases, mine.length)
  }
})

export const takeOut = <R>(lease: Lease, ask: Effect.Effect<void, StoreUnavailable, R>) =>
  Effect.suspend(() => (lease.lost ? Effect.void : ask.pipe(Effect.retry(storePauses), Effect.orDie)))

export const finish = (lease: Lease, leases: Set<Lease>, count = 1) =>
  Effect.suspend(() => {
    lease.remaining -= count
    return lease.remaining > 0 ? Effect.void : release(lease, leases)
  })

export const release = Effect.fnUntraced(function* (lease: Lease, leases: Set<Lease>) {
  const queue = yield* Queue
  if (!lease.lost) yield* queue.release(lease.batch, lease.notStarted).pipe(Effect.retry(storePauses), Effect.orDie)
  leases.delete(lease)
})
