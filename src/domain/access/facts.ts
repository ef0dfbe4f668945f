/** Facts of access. Each has the journal `access-<id>` to itself. */
import { Schema } from "effect"
import { OrgId } from "../ids.ts"
import { codecOf, type FactIn, fact } from "../recorded.ts"

const address = Schema.NullOr(Schema.String)

export const BodyRead = fact("BodyRead", {
  orgId: OrgId,
  subject: Schema.Literals(["message", "event"]),
  id: Schema.String,
  address
})

export const refusals = ["unknown", "revoked", "expired", "network"] as const
export type Refusal = (typeof refusals)[number]

/** Refused logins of one kind from one address within a minute. `key` is null for an unknown key. */
export const LoginRefused = fact("LoginRefused", {
  key: Schema.NullOr(Schema.Struct({ id: Schema.String, orgId: OrgId })),
  reason: Schema.Literals(refusals),
  address,
  count: Schema.Int
})

export const recorded = { "BodyRead@1": BodyRead, "LoginRefused@1": LoginRefused } as const
export type AccessFact = FactIn<typeof recorded>

export const { toRecorded, fromRecorded } = codecOf<AccessFact>(recorded)
