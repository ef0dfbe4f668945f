/**
 * Facts about a dossier, a business case of an org: the answers of its people about consent, and the messages that were
 * refused without consent. Each fact names its dossier.
 *
 * Each consent has a journal, so the journal is as short as its list of answers. All refused messages of a dossier
 * share one journal.
 */
import { Schema } from "effect"
import { ChannelName, OrgId } from "../ids.ts"

const Text = Schema.NullOr(Schema.String)

const consent = {
  orgId: OrgId,
  dossierId: Schema.NonEmptyString,
  channel: ChannelName,
  /** Where the answer came from, in the org's own words: a form, a call, a letter. */
  source: Schema.NonEmptyString
}

export const ConsentGranted = Schema.Struct({ type: Schema.tag("ConsentGranted"), ...consent })

export const ConsentWithdrawn = Schema.Struct({ type: Schema.tag("ConsentWithdrawn"), ...consent })

/** No message that was accepted before the withdrawal waits any more. */
export const WithdrawalApplied = Schema.Struct({
  type: Schema.tag("WithdrawalApplied"),
  orgId: OrgId,
  dossierId: Schema.NonEmptyString,
  channel: ChannelName,
  /** How many messages this withdrawal cancelled; an earlier one may have cancelled more. */
  cancelled: Schema.Int
})

/** A message was refused on arrival. It has no stream, so this fact is its only trace. */
export const MessageBlocked = Schema.Struct({
  type: Schema.tag("MessageBlocked"),
  orgId: OrgId,
  dossierId: Schema.NonEmptyString,
  channel: ChannelName,
  to: Schema.String,
  eventType: Text,
  templateCode: Text,
  correlationId: Text,
  reason: Schema.Literals(["no consent", "consent withdrawn"])
})
export type MessageBlocked = typeof MessageBlocked.Type

export const ConsentFact = Schema.Union([ConsentGranted, ConsentWithdrawn, WithdrawalApplied])
export type ConsentFact = typeof ConsentFact.Type

export const DossierFact = Schema.Union([ConsentGranted, ConsentWithdrawn, WithdrawalApplied, MessageBlocked])
export type DossierFact = typeof DossierFact.Type

/** Every shape ever written, keyed by `type@version`. The highest version is the one we write. */
export const recorded = {
  "ConsentGranted@1": ConsentGranted,
  "ConsentWithdrawn@1": ConsentWithdrawn,
  "WithdrawalApplied@1": WithdrawalApplied,
  "MessageBlocked@1": MessageBlocked
} as const
