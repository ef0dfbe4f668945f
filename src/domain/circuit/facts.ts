/**
 * Facts about the circuit of one destination, oldest first, on the stream `circuit-<destination>`. A circuit without
 * facts is closed. Single failures and successes are no facts: a fact changes whether, and how, the destination may be
 * called.
 */
import { Schema } from "effect"
import { MessageId } from "../ids.ts"
import { codecOf, type FactIn, fact } from "../recorded.ts"

const Text = Schema.NullOr(Schema.String)
const Time = Schema.DateTimeUtcFromString

/** The error that put a destination out of use at once, such as an expired token: a person must repair it. */
export const CircuitError = Schema.Struct({ code: Schema.NonEmptyString, message: Schema.String })
export type CircuitError = typeof CircuitError.Type
const Cause = Schema.NullOr(CircuitError)

/** Too many failures in a row, or one that is enough by itself: nothing is sent until the time named. */
export const CircuitOpened = fact("CircuitOpened", {
  failures: Schema.Int,
  until: Time,
  /** How often it has opened since it was last closed: 1 here, more in `CircuitReopened`. */
  openings: Schema.Int,
  /** Null when failures were counted. */
  error: Cause
})

/** One message was let through to test the destination. Its permit is a lease: another may go after `expiresAt`. */
export const CircuitProbed = fact("CircuitProbed", { probe: MessageId, expiresAt: Time })

/** The probe succeeded. Traffic comes back slowly. */
export const CircuitClosed = fact("CircuitClosed", {})

/** The probe failed too: the next open time is longer. */
export const CircuitReopened = fact("CircuitReopened", { until: Time, openings: Schema.Int, error: Cause })

/** A person stopped the destination; only a reset ends this. */
export const CircuitHeld = fact("CircuitHeld", { reason: Text })

/** A person closed the circuit. */
export const CircuitReset = fact("CircuitReset", { reason: Text })

/** The shapes of all facts. */
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
