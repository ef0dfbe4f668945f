/** Journals that have lost their fronts, as facts from elsewhere: each begins with a fact after which it rests. */
import { randomUUID } from "node:crypto"
import type { ArchivedFact } from "../../../src/application/ports/Archive.ts"
import { newLane, now } from "../sample.ts"

/** A circuit that people have stopped again since, and a backlog that has ended. */
export const cutJournals = () => {
  const lane = newLane()
  const about = { at: now(), actor: "ops" }
  const facts: ReadonlyArray<ArchivedFact> = [
    { ...about, stream: `circuit-${lane}`, version: 23, name: "CircuitReset@1", data: '{"reason":null}' },
    { ...about, stream: `overdue-${randomUUID()}`, version: 2, name: "OverdueEnded@1", data: '{"orgId":"acme"}' },
    { ...about, stream: `circuit-${lane}`, version: 24, name: "CircuitHeld@1", data: '{"reason":"a hunch"}' }
  ]
  return { lane, facts }
}
