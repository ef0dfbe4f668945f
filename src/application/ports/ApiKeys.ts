import { Context, type DateTime, type Effect } from "effect"
import type { OrgId } from "../../domain/ids.ts"
import type { FromStore } from "../errors.ts"
import type { Scopes } from "../keys/scopes.ts"
import type { Rates } from "./Orgs.ts"

/** What is said about a key when it is made. */
export interface KeyTerms {
  readonly name: string
  readonly scopes: Scopes
  /** Null: never. */
  readonly expiresAt: DateTime.Utc | null
  /** CIDRs that it may be used from; null: from anywhere. */
  readonly networks: ReadonlyArray<string> | null
  /** Beside those of its org. */
  readonly limits: Rates
  /** The beginning of its text, for people to know it by; null of keys from before it was kept. */
  readonly prefix: string | null
}

export interface ApiKey extends KeyTerms {
  readonly id: string
  readonly orgId: OrgId
  readonly createdAt: DateTime.Utc
  /** To the minute; null: it was not used yet. */
  readonly lastUsedAt: DateTime.Utc | null
}

/** Which key it is, for whom it acts, and what it may do. */
export type Holder = Pick<ApiKey, "id" | "orgId" | "scopes" | "expiresAt" | "networks" | "limits"> & {
  readonly revoked: boolean
}

/**
 * Keys that act for an org. Only the SHA-256 of a key is stored: a key has 256 random bits, so nothing
 * slower is needed. A revoked key is refused everywhere within a second.
 *
 * Each change leaves its fact on the journal `key-<id>`, in the same transaction, with who commanded it (`CommandedBy`).
 */
export class ApiKeys extends Context.Service<
  ApiKeys,
  {
    readonly create: (orgId: OrgId, terms: KeyTerms, keyHash: string) => FromStore<ApiKey>
    /** Null when the key is unknown. Whoever asks looks at what it may, and until when. */
    readonly holderOf: (keyHash: string) => FromStore<Holder | null>
    /** It was used now. Kept in memory and stored within a minute: a crash may forget the last use. */
    readonly used: (id: string) => Effect.Effect<void>
    /** Of these keys, those that are good at this moment. Never remembered. */
    readonly living: (ids: ReadonlyArray<string>) => FromStore<ReadonlySet<string>>
    /** All keys that were not revoked, or those of one org. */
    readonly list: (orgId: OrgId | null) => FromStore<ReadonlyArray<ApiKey>>
    /** False when there was no such living key; `orgId` names whose it must be. */
    readonly revoke: (id: string, orgId: OrgId | null) => FromStore<boolean>
  }
>()("posthaste/application/ports/ApiKeys") {}
