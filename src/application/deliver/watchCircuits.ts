/**
 * Reports the evidence of this worker's attempts to the circuits.
 *
 * - Attempts do not wait for it: observations are collected per destination and reported together.
 * - A healthy destination costs nothing: a success is reported only while its circuit counts failures, lets traffic
 *   back in, or waits for this probe.
 * - The domain decides on the circuit's own facts. A report about an older generation is dropped.
 * - A probe that shows nothing is not reported: the next one goes when its permit has run out.
 * - When the store does not answer, counts are dropped rather than counted twice; the result of a probe is repeated
 *   for a while.
 */
import { Effect, Latch, Random, Result } from "effect"
import { type CircuitCommand, decide } from "../../domain/circuit/decider.ts"
import { type Evidence, evidenceOf, openingErrorOf } from "../../domain/circuit/evidence.ts"
import type { CircuitError } from "../../domain/circuit/facts.ts"
import type { CircuitPolicy } from "../../domain/circuit/policy.ts"
import type { CircuitState } from "../../domain/circuit/state.ts"
import type { AttemptOutcome } from "../../domain/delivery/outcome.ts"
import type { DestinationId } from "../../domain/ids.ts"
import { background } from "../background.ts"
import { storePauses } from "../command.ts"
import { changeCircuit } from "../destinations/changeCircuit.ts"
import { Circuits, type Report } from "../ports/Circuits.ts"
import type { Claim, ClaimedMessage, Queue } from "../ports/Queue.ts"

export interface CircuitWatch {
  /** Remembers which lanes of a claim count failures or let traffic back in. */
  readonly claimed: (claim: Claim) => void
  /**
   * Takes the outcome of an attempt; null when there was none. True for a failure, whose place in the lane is taken
   * until `onReported`.
   */
  readonly observe: (claimed: Pick<ClaimedMessage, "lane" | "terms">, outcome: AttemptOutcome | null) => boolean
  readonly flush: Effect.Effect<void, never, Circuits | Queue>
  readonly run: Effect.Effect<never, never, Circuits | Queue>
}

interface Observation extends Report {
  readonly probe: boolean
  /** The error that opens the circuit by itself. */
  readonly error: CircuitError | null
}

type CircuitChange =
  | Pick<Extract<CircuitCommand, { readonly type: "CountFailures" }>, "type" | "failures" | "error">
  | Pick<Extract<CircuitCommand, { readonly type: "SettleProbe" }>, "type" | "succeeded" | "error">

/** `onState` gets every state learnt; `onReported` the number of failures that are reported or dropped. */
export const watchCircuits = (
  policy: CircuitPolicy,
  onState: (destination: DestinationId, state: CircuitState) => Effect.Effect<void, never, Queue>,
  onReported: (destination: DestinationId, failures: number) => void = () => {}
): CircuitWatch => {
  const watched = new Set<DestinationId>()
  let pending = new Map<DestinationId, Observation>()
  let unreported = new Map<DestinationId, number>()
  const news = Latch.makeUnsafe(false)

  const add = (claimed: Pick<ClaimedMessage, "lane" | "terms">, evidence: Evidence, error: CircuitError | null) => {
    const { lane: destination, terms } = claimed
    const { generation } = terms
    const probe = terms.circuitMode === "probe"
    const before = pending.get(destination)
    const known = before?.generation === generation ? before : null
    // An older generation's observation is void.
    if (before !== undefined && before.generation > generation) return
    pending.set(destination, {
      destination,
      generation,
      succeeded: evidence === "success" || (known?.succeeded ?? false),
      failures: evidence === "success" ? 0 : (known?.failures ?? 0) + (evidence === "failure" ? 1 : 0),
      probe,
      error: error ?? known?.error ?? null
    })
  }

  const learnt = (destination: DestinationId, state: CircuitState) => {
    const { status, failures, inFlightMax } = state
    if (status === "CLOSED" && (failures > 0 || inFlightMax !== null)) watched.add(destination)
    else watched.delete(destination)
    return onState(destination, state)
  }

  const change = Effect.fnUntraced(function* ({ destination, generation }: Observation, command: CircuitChange) {
    const after = yield* changeCircuit(
      destination,
      Effect.fnUntraced(function* (circuit, { generation: present, now }) {
        if (present !== generation) return []
        return Result.getOrElse(decide(circuit, { ...command, now, policy, die: yield* Random.next }), () => [])
      }),
      { tries: 1 }
    ).pipe(Effect.catchTag("Overtaken", () => Effect.succeed(null)))
    if (after !== null) yield* learnt(destination, after)
  })

  const settle = Effect.fnUntraced(function* (observation: Observation, state: CircuitState) {
    const { destination, failures, succeeded, error } = observation
    yield* learnt(destination, state)
    if (state.status === "HALF_OPEN") {
      yield* change(observation, {
        type: "SettleProbe",
        succeeded: succeeded && failures === 0 && error === null,
        error
      })
    } else if (state.status === "CLOSED" && (error !== null || state.failures >= policy.failuresMax)) {
      // Successes beside a decisive failure may have reset the count.
      yield* change(observation, { type: "CountFailures", failures: Math.max(state.failures, 1), error })
    }
  })

  const flush = Effect.suspend(() => {
    news.closeUnsafe()
    const [observations, failures] = [pending, unreported]
    pending = new Map()
    unreported = new Map()
    // After any result of the report: the next failure tells what it left open.
    const over = Effect.sync(() => {
      for (const [destination, count] of failures) onReported(destination, count)
    })
    return Effect.ensuring(report(observations), over)
  })

  const report = Effect.fnUntraced(function* (observations: ReadonlyMap<DestinationId, Observation>) {
    const circuits = yield* Circuits
    if (observations.size === 0) return
    const states = yield* circuits.report([...observations.values()]).pipe(
      Effect.catchTag("StoreUnavailable", () =>
        // A probe's result and a decisive failure may be repeated.
        Effect.sync(() => {
          for (const [destination, observation] of observations) {
            if ((observation.probe || observation.error !== null) && !pending.has(destination))
              pending.set(destination, observation)
          }
          if (pending.size > 0) news.openUnsafe()
          return null
        })
      )
    )
    if (states === null) return yield* Effect.sleep("100 millis")
    for (const [destination, state] of states) {
      yield* settle(observations.get(destination)!, state).pipe(
        Effect.retry({ schedule: storePauses, times: 10 }),
        Effect.ignore
      )
    }
  })

  return {
    claimed: ({ messages }) => {
      for (const { lane, terms } of messages) {
        if (terms.circuitMode === "watched") watched.add(lane)
        else if (!pending.has(lane)) watched.delete(lane)
      }
    },
    observe: (claimed, outcome) => {
      const evidence = outcome === null ? "none" : evidenceOf(outcome)
      const isProbe = claimed.terms.circuitMode === "probe"
      const isNews = evidence === "failure" || (evidence === "success" && (isProbe || watched.has(claimed.lane)))
      if (!isNews) return false
      const isFailure = evidence === "failure"
      if (isFailure) {
        watched.add(claimed.lane)
        unreported.set(claimed.lane, (unreported.get(claimed.lane) ?? 0) + 1)
      }
      add(claimed, evidence, outcome === null ? null : openingErrorOf(outcome))
      // Waiters go on at once, inside of this call: a failure must be there to be reported by then.
      news.openUnsafe()
      return isFailure
    },
    flush,
    run: background("reporting to circuits", Effect.andThen(news.await, Effect.uninterruptible(flush)))
  }
}
