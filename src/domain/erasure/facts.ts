/**
 * Facts of an erasure, on the journal `erasure-<id>`. They name the field by which a person was found, never the value.
 */
import { Schema } from "effect"
import { OrgId } from "../ids.ts"
import { codecOf, type FactIn, fact } from "../recorded.ts"

export const erasureFields = ["dossierId", "recipient", "correlationId", "metadata"] as const
export type ErasureField = (typeof erasureFields)[number]

export const ErasureRequested = fact("ErasureRequested", {
  orgId: OrgId,
  by: Schema.Literals(erasureFields),
  reason: Schema.NullOr(Schema.String)
})

export const ErasureCompleted = fact("ErasureCompleted", { orgId: OrgId, messages: Schema.Int, events: Schema.Int })

export const recorded = { "ErasureRequested@1": ErasureRequested, "ErasureCompleted@1": ErasureCompleted } as const
export type ErasureFact = FactIn<typeof recorded>

export const { toRecorded, fromRecorded } = codecOf<ErasureFact>(recorded)
