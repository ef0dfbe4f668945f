/**
 * Facts of a dossier, a business case of an org: consents, one journal each, and the messages refused without consent,
 * all in one journal.
 */
import { Schema } from "effect"
import { ChannelName, OrgId } from "../ids.ts"
import { codecOf, ERASED, type FactIn, fact } from "../recorded.ts"

const Text = Schema.NullOr(Schema.String)

const consent = {
  orgId: OrgId,
  dossierId: Schema.NonEmptyString,
  channel: ChannelName,
  /** The origin of the answer in the org's words: a form, a call, a letter. */
  source: Schema.NonEmptyString
}

export const ConsentGranted = fact("ConsentGranted", { ...consent })

export const ConsentWithdrawn = fact("ConsentWithdrawn", { ...consent })

/** Every message that was accepted before the withdrawal has ended. */
export const WithdrawalApplied = fact("WithdrawalApplied", {
  orgId: OrgId,
  dossierId: Schema.NonEmptyString,
  channel: ChannelName,
  /** By this withdrawal; an earlier one may have cancelled more. */
  cancelled: Schema.Int
})

/** A message was refused on arrival. It has no stream: this fact is its only trace. */
export const MessageBlocked = fact(
  "MessageBlocked",
  {
    orgId: OrgId,
    dossierId: Schema.NonEmptyString,
    channel: ChannelName,
    to: Schema.String,
    eventType: Text,
    templateCode: Text,
    correlationId: Text,
    reason: Schema.Literals(["no consent", "consent withdrawn"])
  },
  { to: ERASED, templateCode: null, correlationId: null }
)
export type MessageBlocked = typeof MessageBlocked.Type

export const recorded = {
  "ConsentGranted@1": ConsentGranted,
  "ConsentWithdrawn@1": ConsentWithdrawn,
  "WithdrawalApplied@1": WithdrawalApplied,
  "MessageBlocked@1": MessageBlocked
} as const
export type DossierFact = FactIn<typeof recorded>
export type ConsentFact = Exclude<DossierFact, MessageBlocked>

export const { toRecorded, fromRecorded } = codecOf<DossierFact>(recorded)
