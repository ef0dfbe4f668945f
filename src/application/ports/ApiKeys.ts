import { Context, type DateTime } from "effect"
import type { OrgId } from "../../domain/ids.ts"
import type { FromStore } from "../errors.ts"

export interface ApiKey {
  readonly id: string
  readonly orgId: OrgId
  readonly name: string
  readonly createdAt: DateTime.Utc
}

/** Which key it is, and for whom it acts. */
export type Holder = Pick<ApiKey, "id" | "orgId">

/**
 * Keys that act for an org. Only the SHA-256 of a key is stored: a key has 256 random bits, so nothing
 * slower is needed. A revoked key is refused everywhere within a second.
 *
 * Each change leaves its fact on the journal `key-<id>`, in the same transaction, with who commanded it (`CommandedBy`).
 */
export class ApiKeys extends Context.Service<
  ApiKeys,
  {
    readonly create: (orgId: OrgId, name: string, keyHash: string) => FromStore<ApiKey>
    /** Null when the key is unknown or revoked. */
    readonly holderOf: (keyHash: string) => FromStore<Holder | null>
    /** All living keys, or those of one org. */
    readonly list: (orgId: OrgId | null) => FromStore<ReadonlyArray<ApiKey>>
    /** False when there was no such living key. */
    readonly revoke: (id: string) => FromStore<boolean>
  }
>()("posthaste/application/ports/ApiKeys") {}
