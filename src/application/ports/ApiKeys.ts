import { Context, type DateTime, type Effect } from "effect"
import type { OrgId } from "../../domain/ids.ts"
import type { FromStore } from "./errors.ts"
import type { Rates } from "./Orgs.ts"
import type { Scopes } from "./scopes.ts"

export interface KeyTerms {
  readonly name: string
  readonly scopes: Scopes
  readonly expiresAt: DateTime.Utc | null
  readonly networks: ReadonlyArray<string> | null
  readonly limits: Rates
  readonly prefix: string | null
}

export interface ApiKey extends KeyTerms {
  readonly id: string
  readonly orgId: OrgId
  readonly createdAt: DateTime.Utc
  /** To the minute; null: never. */
  readonly lastUsedAt: DateTime.Utc | null
}

export type Holder = Pick<ApiKey, "id" | "orgId" | "scopes" | "expiresAt" | "networks" | "limits"> & {
  readonly revoked: boolean
}

/**
 * Keys that act for an org. Only the SHA-256 of a key is stored: a key has 256 random bits, so nothing slower is
 * needed. A revoked key is refused everywhere within a second. Each change leaves its fact on the journal `key-<id>`,
 * in the same transaction.
 */
export class ApiKeys extends Context.Service<
  ApiKeys,
  {
    readonly create: (orgId: OrgId, terms: KeyTerms, keyHash: string) => FromStore<ApiKey>
    readonly holderOf: (keyHash: string) => FromStore<Holder | null>
    /** Notes a use. Stored within a minute: a crash may forget the last use. */
    readonly used: (id: string) => Effect.Effect<void>
    /** The keys among these that are good at this moment, uncached. */
    readonly living: (ids: ReadonlyArray<string>) => FromStore<ReadonlySet<string>>
    readonly list: (orgId: OrgId | null) => FromStore<ReadonlyArray<ApiKey>>
    readonly revoke: (id: string, orgId: OrgId | null) => FromStore<boolean>
  }
>()("posthaste/application/ports/ApiKeys") {}
