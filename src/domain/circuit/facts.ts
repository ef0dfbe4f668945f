/**
 * Facts of the circuit of one destination, on the stream `circuit-<destination>`. A circuit without facts is closed.
 * Single failures and successes are no facts.
 */
import { Schema } from "effect"
import { MessageId } from "../ids.ts"
import { codecOf, type FactIn, fact } from "../recorded.ts"

const Text = Schema.NullOr(Schema.String)
const Time = Schema.DateTimeUtcFromString

/** An error that a person must repair, such as an expired token. */
export const CircuitError = Schema.Struct({ code: Schema.NonEmptyString, message: Schema.String })
export type CircuitError = typeof CircuitError.Type
const Cause = Schema.NullOr(CircuitError)

export const CircuitOpened = fact("CircuitOpened", {
  failures: Schema.Int,
  until: Time,
  /** Openings since it was last closed: 1 here, more in `CircuitReopened`. */
  openings: Schema.Int,
  error: Cause
})

/** One message tests the destination. Its permit is a lease until `expiresAt`. */
export const CircuitProbed = fact("CircuitProbed", { probe: MessageId, expiresAt: Time })

/** The probe succeeded. Traffic comes back slowly. */
export const CircuitClosed = fact("CircuitClosed", {})

/** The probe failed: the next open time is longer. */
export const CircuitReopened = fact("CircuitReopened", { until: Time, openings: Schema.Int, error: Cause })

/** Stopped by hand; only a reset ends it. */
export const CircuitHeld = fact("CircuitHeld", { reason: Text })

export const CircuitReset = fact("CircuitReset", { reason: Text })

export const recorded = {
  "CircuitOpened@1": CircuitOpened,
  "CircuitProbed@1": CircuitProbed,
  "CircuitClosed@1": CircuitClosed,
  "CircuitReopened@1": CircuitReopened,
  "CircuitHeld@1": CircuitHeld,
  "CircuitReset@1": CircuitReset
} as const
export type CircuitFact = FactIn<typeof recorded>
export type CircuitFactOf<T extends CircuitFact["type"]> = Extract<CircuitFact, { readonly type: T }>

export const { toRecorded, fromRecorded } = codecOf<CircuitFact>(recorded)
