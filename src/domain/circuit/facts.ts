/**
 * Facts about the circuit of one destination, oldest first, on the stream `circuit-<destination>`. A circuit without
 * facts is closed. Single failures and successes are no facts: a fact changes whether, and how, the destination may be
 * called.
 */
import { Schema, SchemaTransformation } from "effect"
import { MessageId } from "../ids.ts"

const Text = Schema.NullOr(Schema.String)
const Time = Schema.DateTimeUtcFromString

/** The error that put a destination out of use at once, such as an expired token: a person must repair it. */
export const CircuitError = Schema.Struct({ code: Schema.NonEmptyString, message: Schema.String })
export type CircuitError = typeof CircuitError.Type
const Cause = Schema.NullOr(CircuitError)

/** Too many failures in a row, or one that is enough by itself: nothing is sent until the time named. */
export const CircuitOpened = Schema.Struct({
  type: Schema.tag("CircuitOpened"),
  failures: Schema.Int,
  until: Time,
  /** How often it has opened since it was last closed: 1 here, more in `CircuitReopened`. */
  openings: Schema.Int,
  /** Null when failures were counted. */
  error: Cause
})

/** One message was let through to test the destination. Its permit is a lease: another may go after `expiresAt`. */
export const CircuitProbed = Schema.Struct({
  type: Schema.tag("CircuitProbed"),
  probe: MessageId,
  expiresAt: Time
})

/** The probe succeeded. Traffic comes back slowly. */
export const CircuitClosed = Schema.Struct({ type: Schema.tag("CircuitClosed") })

/** The probe failed too: the next open time is longer. */
export const CircuitReopened = Schema.Struct({
  type: Schema.tag("CircuitReopened"),
  until: Time,
  openings: Schema.Int,
  error: Cause
})

/** The shape from before one answer could open a circuit. */
const CircuitOpenedV1 = Schema.Struct({
  type: Schema.tag("CircuitOpened"),
  failures: Schema.Int,
  until: Schema.String,
  openings: Schema.Int
}).pipe(
  Schema.decodeTo(
    CircuitOpened,
    SchemaTransformation.transform({
      decode: (v1): typeof CircuitOpened.Encoded => ({ ...v1, error: null }),
      encode: ({ error: _, ...v1 }) => v1
    })
  )
)
const CircuitReopenedV1 = Schema.Struct({
  type: Schema.tag("CircuitReopened"),
  until: Schema.String,
  openings: Schema.Int
}).pipe(
  Schema.decodeTo(
    CircuitReopened,
    SchemaTransformation.transform({
      decode: (v1): typeof CircuitReopened.Encoded => ({ ...v1, error: null }),
      encode: ({ error: _, ...v1 }) => v1
    })
  )
)

/** A person stopped the destination; only a reset ends this. */
export const CircuitHeld = Schema.Struct({ type: Schema.tag("CircuitHeld"), reason: Text })

/** A person closed the circuit. */
export const CircuitReset = Schema.Struct({ type: Schema.tag("CircuitReset"), reason: Text })

export const CircuitFact = Schema.Union([
  CircuitOpened,
  CircuitProbed,
  CircuitClosed,
  CircuitReopened,
  CircuitHeld,
  CircuitReset
])
export type CircuitFact = typeof CircuitFact.Type
export type CircuitFactOf<T extends CircuitFact["type"]> = Extract<CircuitFact, { readonly type: T }>

/** Every shape ever written, keyed by `type@version`. The highest version is the one we write. */
export const recorded = {
  "CircuitOpened@1": CircuitOpenedV1,
  "CircuitOpened@2": CircuitOpened,
  "CircuitProbed@1": CircuitProbed,
  "CircuitClosed@1": CircuitClosed,
  "CircuitReopened@1": CircuitReopenedV1,
  "CircuitReopened@2": CircuitReopened,
  "CircuitHeld@1": CircuitHeld,
  "CircuitReset@1": CircuitReset
} as const
