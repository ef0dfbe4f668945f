/**
 * `initial · decide · evolve · replay` of one consent, of a dossier to one channel. Every order of answers is allowed,
 * so there is no machine.
 */
import type { ChannelName, OrgId } from "../ids.ts"
import type { ConsentFact, MessageBlocked } from "./facts.ts"

export interface ConsentOf {
  readonly orgId: OrgId
  readonly dossierId: string
  readonly channel: ChannelName
}

export interface Consent {
  readonly status: "NONE" | "GRANTED" | "WITHDRAWN"
  readonly source: string | null
  /** Withdrawn, and messages accepted before may still wait. */
  readonly open: boolean
}

export type ConsentCommand =
  | { readonly type: "GrantConsent"; readonly source: string }
  | { readonly type: "WithdrawConsent"; readonly source: string }
  | { readonly type: "ApplyWithdrawal"; readonly cancelled: number }

export const initial: Consent = { status: "NONE", source: null, open: false }

export const evolve = (consent: Consent, fact: ConsentFact): Consent => {
  switch (fact.type) {
    case "ConsentGranted":
      return { status: "GRANTED", source: fact.source, open: false }
    case "ConsentWithdrawn":
      return { status: "WITHDRAWN", source: fact.source, open: true }
    case "WithdrawalApplied":
      return { ...consent, open: false }
  }
}

export const replay = (history: ReadonlyArray<ConsentFact>): Consent => history.reduce(evolve, initial)

/**
 * The same answer from the same source adds nothing. A consent that was never granted can be withdrawn: an objection.
 */
export const decide = (consent: Consent, of: ConsentOf, command: ConsentCommand): ReadonlyArray<ConsentFact> => {
  const { orgId, dossierId, channel } = of
  const about = { orgId, dossierId, channel }
  switch (command.type) {
    case "GrantConsent":
      return consent.status === "GRANTED" && consent.source === command.source
        ? []
        : [{ type: "ConsentGranted", ...about, source: command.source }]
    case "WithdrawConsent":
      return consent.status === "WITHDRAWN" && consent.source === command.source
        ? []
        : [{ type: "ConsentWithdrawn", ...about, source: command.source }]
    case "ApplyWithdrawal":
      return consent.open ? [{ type: "WithdrawalApplied", ...about, cancelled: command.cancelled }] : []
  }
}

/**
 * The reason why no message of the dossier may go on this channel, or null. A channel that reaches a person needs a
 * consent first; any other is free until the dossier objects.
 */
export const objection = (reachesPerson: boolean, { status }: Consent): MessageBlocked["reason"] | null => {
  if (status === "WITHDRAWN") return "consent withdrawn"
  return reachesPerson && status === "NONE" ? "no consent" : null
}
