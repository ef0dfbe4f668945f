import { Context, type DateTime } from "effect"
import type { RetryPolicy } from "../../domain/delivery/retry.ts"
import type { OrgId } from "../../domain/ids.ts"
import type { FromStore, Page, PageRequest } from "../errors.ts"

/** What an org may have or do at most; a limit that is not named is the installation's own, or none. */
export const limitNames = ["acceptsPerSecond", "bytesPerSecond", "waiting", "destinations", "replays", "feeds"] as const
export type LimitName = (typeof limitNames)[number]
export type Limits = { readonly [name in LimitName]?: number }

/** Those that count what is asked of one process in a second; a key can have such limits too. */
export const rateNames = ["acceptsPerSecond", "bytesPerSecond"] as const satisfies ReadonlyArray<LimitName>
export type Rates = Pick<Limits, (typeof rateNames)[number]>

/** What of an org is kept for days of its own: what ended well, and dead letters. */
export const retentionNames = ["endedDays", "deadLetterDays"] as const
export type RetentionDays = { readonly [name in (typeof retentionNames)[number]]?: number }

export interface OrgSettings {
  readonly name: string | null
  /** Why nothing is accepted from it and nothing sent for it; null: it is not suspended. */
  readonly suspended: string | null
  readonly limits: Limits
  /** Of messages that bring none, to destinations that have none; null: as their channels say. */
  readonly retry: RetryPolicy | null
  /** What is not named is kept as long as the installation keeps it. */
  readonly retention: RetentionDays
}

export interface OrgCounts {
  readonly destinations: number
  /** Accepted, and neither ended nor sent. Of the list of messages, so a little behind. */
  readonly waiting: number
  readonly deadLetters: number
  /** Replays that have work left. */
  readonly replays: number
}

export interface Org extends OrgSettings, OrgCounts {
  readonly id: OrgId
  /** Null: nobody has set anything. */
  readonly updatedAt: DateTime.Utc | null
}

/**
 * What the operator has set for orgs. An org comes into being by being named: one that nobody set anything for has no name, no
 * limits of its own, and is not suspended.
 *
 * From the commit of a suspension on the queue hands out nothing of the org, and what was handed out before may not start. Nothing
 * is lost: it goes on where it stood. Each change leaves its fact on the journal `org-<id>`, in the same transaction, with who
 * commanded it (`CommandedBy`).
 */
export class Orgs extends Context.Service<
  Orgs,
  {
    readonly get: (id: OrgId) => FromStore<Org>
    readonly set: (id: OrgId, settings: OrgSettings) => FromStore<void>
    /** All that have settings, keys, destinations or messages, by id. */
    readonly list: (page: PageRequest) => FromStore<Page<Org>>
    /** For every request, so it may be remembered for a second. */
    readonly settingsOf: (id: OrgId) => FromStore<OrgSettings>
  }
>()("posthaste/application/ports/Orgs") {}

export const unset: OrgSettings = { name: null, suspended: null, limits: {}, retry: null, retention: {} }
