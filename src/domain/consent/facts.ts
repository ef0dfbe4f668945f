/**
 * Facts about a dossier, a business case of an org: the answers of its people about consent, and the messages that were
 * refused without consent. Each fact names its dossier.
 *
 * Each consent has a journal, so the journal is as short as its list of answers. All refused messages of a dossier
 * share one journal.
 */
import { Schema } from "effect"
import { ChannelName, OrgId } from "../ids.ts"
import { codecOf, ERASED, type FactIn, fact } from "../recorded.ts"

const Text = Schema.NullOr(Schema.String)

const consent = {
  orgId: OrgId,
  dossierId: Schema.NonEmptyString,
  channel: ChannelName,
  /** Where the answer came from, in the org's own words: a form, a call, a letter. */
  source: Schema.NonEmptyString
}

export const ConsentGranted = fact("ConsentGranted", { ...consent })

export const ConsentWithdrawn = fact("ConsentWithdrawn", { ...consent })

/** No message that was accepted before the withdrawal waits any more. */
export const WithdrawalApplied = fact("WithdrawalApplied", {
  orgId: OrgId,
  dossierId: Schema.NonEmptyString,
  channel: ChannelName,
  /** How many messages this withdrawal cancelled; an earlier one may have cancelled more. */
  cancelled: Schema.Int
})

/** A message was refused on arrival. It has no stream, so this fact is its only trace; it stays with its dossier. */
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

/** The shapes of all facts. */
export const recorded = {
  "ConsentGranted@1": ConsentGranted,
  "ConsentWithdrawn@1": ConsentWithdrawn,
  "WithdrawalApplied@1": WithdrawalApplied,
  "MessageBlocked@1": MessageBlocked
} as const
export type DossierFact = FactIn<typeof recorded>
export type ConsentFact = Exclude<DossierFact, MessageBlocked>

export const { toRecorded, fromRecorded } = codecOf<DossierFact>(recorded)
