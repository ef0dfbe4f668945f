import { Context, type DateTime } from "effect"
import type { RetryPolicy } from "../../domain/delivery/retry.ts"
import type { OrgId } from "../../domain/ids.ts"
import type { FromStore, Page, PageRequest } from "./errors.ts"

/** The limits of an org; one that is not named is the installation's own, or none. */
export const limitNames = ["acceptsPerSecond", "bytesPerSecond", "waiting", "destinations", "replays", "feeds"] as const
export type LimitName = (typeof limitNames)[number]
export type Limits = { readonly [name in LimitName]?: number }

/** The limits per second and process; a key can have them too. */
export const rateNames = ["acceptsPerSecond", "bytesPerSecond"] as const satisfies ReadonlyArray<LimitName>
export type Rates = Pick<Limits, (typeof rateNames)[number]>

/** Days for messages that ended well, and for dead letters. */
export const retentionNames = ["endedDays", "deadLetterDays"] as const
export type RetentionDays = { readonly [name in (typeof retentionNames)[number]]?: number }

export interface OrgSettings {
  readonly name: string | null
  readonly suspended: string | null
  readonly limits: Limits
  /** Of messages that bring none, to destinations that have none; null: the channel's. */
  readonly retry: RetryPolicy | null
  readonly retention: RetentionDays
}

export interface OrgCounts {
  readonly destinations: number
  /** Accepted, and neither ended nor sent; a little behind. */
  readonly waiting: number
  readonly deadLetters: number
  readonly replays: number
}

export interface Org extends OrgSettings, OrgCounts {
  readonly id: OrgId
  readonly updatedAt: DateTime.Utc | null
}

/**
 * The operator's settings for orgs. An org exists by being named. After the commit of a suspension the queue hands out
 * nothing of the org, and claimed messages may not start; nothing is lost. Each change leaves its fact on `org-<id>`,
 * in the same transaction.
 */
export class Orgs extends Context.Service<
  Orgs,
  {
    readonly get: (id: OrgId) => FromStore<Org>
    readonly set: (id: OrgId, settings: OrgSettings) => FromStore<void>
    readonly list: (page: PageRequest) => FromStore<Page<Org>>
    /** For every request, so it may be a second old. */
    readonly settingsOf: (id: OrgId) => FromStore<OrgSettings>
  }
>()("posthaste/application/ports/Orgs") {}

export const unset: OrgSettings = { name: null, suspended: null, limits: {}, retry: null, retention: {} }
