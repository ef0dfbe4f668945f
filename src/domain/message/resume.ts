/**
 * A waiting message rebuilt from its queue row, so that the common delivery never reads its stream. Only for a first
 * epoch of `MessageQueued` and `attempt` pairs of a start and its failure: each attempt adds at least two facts, so a
 * stream of exactly `1 + 2 × attempt` facts holds nothing else. Null for any other. `dueAt` may be an earlier expiry:
 * the worker then ends the message either way.
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
