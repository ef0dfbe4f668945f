/**
 * A waiting message rebuilt from what its queue row carries, so that the common delivery never reads
 * its stream.
 *
 * It answers only where the row tells the whole story: a first epoch made of `MessageQueued` and
 * `attempt` pairs of a start and its failure. Each attempt adds at least two facts, so a stream of
 * exactly `1 + 2 × attempt` facts can hold no receipt, no attempt in doubt and no replay besides. For any
 * other stream it answers null and the caller loads it.
 *
 * `dueAt` is the row's due time. That is the retry time, or an expiry that comes before it: a worker that starts
 * the message or takes it out of its lane finds the same either way.
 */
import { DateTime } from "effect"
import { evolve, initial } from "./decider.ts"
import type { MessageQueued } from "./facts.ts"
import type { Message } from "./transitions.ts"

export const resume = (
  queued: MessageQueued,
  epoch: number,
  attempt: number,
  version: number,
  dueAt: DateTime.Utc
): Message | null => {
  if (epoch !== 1 || version !== 1 + 2 * attempt) return null
  const fresh = evolve(initial, queued)
  if (attempt === 0 && DateTime.Equivalence(queued.dueAt, dueAt)) return fresh
  return { status: fresh.status, progress: { ...fresh.progress, attempt, dueAt } }
}
