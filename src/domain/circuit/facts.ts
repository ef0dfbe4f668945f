/**
 * Facts about the circuit of one destination, oldest first, on the stream `circuit-<destination>`. A circuit
 * nobody wrote about is closed. Single failures and successes are no facts: only what changes whether, and
 * how, the destination may be called.
 */
import { Schema, SchemaTransformation } from "effect"
import { MessageId } from "../ids.ts"

const Text = Schema.NullOr(Schema.String)
const Time = Schema.DateTimeUtcFromString

/** What put a destination out of use at once, such as an expired token: somebody must put it right. */
export const CircuitError = Schema.Struct({ code: Schema.NonEmptyString, message: Schema.String })
export type CircuitError = typeof CircuitError.Type
const Cause = Schema.NullOr(CircuitError)

/** Too many failures in a row, or one that is decisive: silence until the time named. */
export const CircuitOpened = Schema.Struct({
  type: Schema.tag("CircuitOpened"),
  failures: Schema.Int,
  until: Time,
  /** How often it has opened since it was last closed: 1 here, more in `CircuitReopened`. */
  openings: Schema.Int,
  /** Null when failures were counted. */
  error: Cause
})

/** One message was let through to find out. Its permit is a lease: after `expiresAt` another one may go. */
export const CircuitProbed = Schema.Struct({
  type: Schema.tag("CircuitProbed"),
  probe: MessageId,
  expiresAt: Time
})

/** The probe was answered. Traffic comes back slowly. */
export const CircuitClosed = Schema.Struct({ type: Schema.tag("CircuitClosed") })

/** The probe failed too: a longer silence. */
export const CircuitReopened = Schema.Struct({
  type: Schema.tag("CircuitReopened"),
  until: Time,
  openings: Schema.Int,
  error: Cause
})

/** Before one answer could open a circuit. */
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

/** Somebody stopped the destination by hand; only a reset ends it. */
export const CircuitHeld = Schema.Struct({ type: Schema.tag("CircuitHeld"), reason: Text })

/** Somebody closed it by hand. */
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
