/**
 * Facts about a dossier, a business case of an org: what the people behind it agreed to, and which messages were
 * turned away because they had not. Each says whose dossier it is.
 *
 * Each consent has a journal, so it is as short as the answers that were given; messages that were turned away
 * together have one.
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

/** Nothing that waited when the consent was withdrawn waits still. */
export const WithdrawalApplied = Schema.Struct({
  type: Schema.tag("WithdrawalApplied"),
  orgId: OrgId,
  dossierId: Schema.NonEmptyString,
  channel: ChannelName,
  /** So many had to be cancelled for that; others may have been before. */
  cancelled: Schema.Int
})

/** A message was refused at the door. It never had a stream, so this is all there is of it. */
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
