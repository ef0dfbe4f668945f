import { Context, type DateTime, type Effect, type Redacted } from "effect"
import type { RateLimit } from "../../domain/delivery/rateLimit.ts"
import type { RetryPolicy } from "../../domain/delivery/retry.ts"
import type { DestinationId, OrgId } from "../../domain/ids.ts"
import type { OnDeadLetter } from "../../domain/message/queueChange.ts"
import type { Page, StoreUnavailable } from "../errors.ts"

/** What can be changed about a WhatsApp account. */
export interface WhatsAppAccountSettings {
  /** Of Meta's Graph API, such as `v25.0`. */
  readonly graphVersion: string
  readonly retry: RetryPolicy | null
  readonly rateLimit: RateLimit
  /** How many requests may be under way at once, per worker process. */
  readonly maxInFlight: number
  readonly timeoutMs: number
  readonly onDeadLetter: OnDeadLetter
  /** False: receipts are believed although nothing proves that they are Meta's. */
  readonly verifySignature: boolean
  /**
   * What becomes of a try that may have been taken. Meta can't be asked; but a receipt can show it, and is waited for.
   * `otherwise` is what happens without one: left to a person, or sent again at the risk that it arrives twice.
   */
  readonly reconcile: { readonly waitMs: number; readonly otherwise: "deadLetter" | "resend" }
}

/** A phone number of an org that messages go out from. */
export interface WhatsAppAccount extends WhatsAppAccountSettings {
  readonly id: DestinationId
  readonly orgId: OrgId
  /** Meta's name of the number. Another number is another account. */
  readonly phoneNumberId: string
  /** Nothing is sent from it; what is accepted for it waits. */
  readonly paused: boolean
  /** Counts changes. */
  readonly version: number
  readonly createdAt: DateTime.Utc
  readonly updatedAt: DateTime.Utc
}

export interface WhatsAppSecrets {
  /** Proves to Meta who we are. */
  readonly accessToken: Redacted.Redacted
  /** Meta signs receipts with it. */
  readonly appSecret: Redacted.Redacted
  /** By which Meta shows, when receipts are set up, that it means us. */
  readonly verifyToken: Redacted.Redacted
}

/**
 * WhatsApp accounts and their secrets. Secrets are write-only: encrypted at rest, never shown, and they leave only
 * through `calling` and `receiving`. A removed account is unknown to every method, and its secrets are gone.
 *
 * A phone number id belongs to one account over all orgs, because receipts name nothing else; once its account is
 * removed it can be taken again.
 *
 * Each change leaves its facts on the journal `whatsapp-account-<id>`, in the same transaction and with the `Actor` it was
 * made by.
 *
 * `calling`, `named` and `receiving` may answer from a cache that is at most a second old.
 */
export class WhatsAppAccounts extends Context.Service<
  WhatsAppAccounts,
  {
    /** "NumberTaken": there is an account for this phone number id already, of this org or another. */
    readonly create: (
      orgId: OrgId,
      phoneNumberId: string,
      settings: WhatsAppAccountSettings,
      secrets: WhatsAppSecrets
    ) => Effect.Effect<WhatsAppAccount | "NumberTaken", StoreUnavailable>
    readonly get: (orgId: OrgId, id: DestinationId) => Effect.Effect<WhatsAppAccount | null, StoreUnavailable>
    readonly list: (
      orgId: OrgId,
      page: { readonly cursor: string | null; readonly limit: number }
    ) => Effect.Effect<Page<WhatsAppAccount>, StoreUnavailable>
    /** Secrets that are not named stay. Null when there is no such account in the org. */
    readonly update: (
      orgId: OrgId,
      id: DestinationId,
      change: Partial<WhatsAppAccountSettings>,
      secrets: Partial<WhatsAppSecrets>
    ) => Effect.Effect<WhatsAppAccount | null, StoreUnavailable>
    /** As of `Endpoints.setPaused`: no attempt is begun after its answer. */
    readonly setPaused: (
      orgId: OrgId,
      id: DestinationId,
      paused: boolean
    ) => Effect.Effect<WhatsAppAccount | null, StoreUnavailable>
    /** False when there was none. Nothing holds back its waiting messages any more, so that they come to an end. */
    readonly remove: (orgId: OrgId, id: DestinationId) => Effect.Effect<boolean, StoreUnavailable>
    /** The org's accounts that a sender may mean by `from`, an id or a phone number id, or by nothing: at most two. */
    readonly named: (
      orgId: OrgId,
      from: string | null
    ) => Effect.Effect<ReadonlyArray<WhatsAppAccount>, StoreUnavailable>
    /** What an attempt needs. */
    readonly calling: (
      orgId: OrgId,
      id: DestinationId
    ) => Effect.Effect<
      { readonly account: WhatsAppAccount; readonly accessToken: Redacted.Redacted } | null,
      StoreUnavailable
    >
    /** Whose receipts these are, and what proves it: of any org. */
    readonly receiving: (
      phoneNumberId: string
    ) => Effect.Effect<
      { readonly account: WhatsAppAccount; readonly appSecret: Redacted.Redacted } | null,
      StoreUnavailable
    >
    /** Whether an account of any org is set up with this verify token: Meta's question names no account. */
    readonly knowsVerifyToken: (verifyToken: Redacted.Redacted) => Effect.Effect<boolean, StoreUnavailable>
    /** Those of all orgs with `verifySignature: false`. */
    readonly unverified: Effect.Effect<ReadonlyArray<WhatsAppAccount>, StoreUnavailable>
  }
>()("posthaste/application/ports/WhatsAppAccounts") {}
