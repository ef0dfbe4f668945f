import { Context, DateTime, type Redacted } from "effect"
import type { AlertEvent, Severity } from "../../domain/alert/alert.ts"
import type { OldestDue } from "../../domain/condition/decider.ts"
import type { Call } from "../../domain/delivery/exchange.ts"
import type { RateLimit } from "../../domain/delivery/rateLimit.ts"
import type { RetryPolicy } from "../../domain/delivery/retry.ts"
import type { DestinationKind } from "../../domain/destination/changes.ts"
import type { ChannelName, DestinationId, OrgId } from "../../domain/ids.ts"
import type { OnDeadLetter } from "../../domain/message/queueChange.ts"
import type { FromStore, Page, PageRequest } from "./errors.ts"

export interface DestinationSettings {
  readonly retry: RetryPolicy | null
  readonly rateLimit: RateLimit | null
  /** Requests under way at once, per worker process. */
  readonly maxInFlight: number
  readonly timeoutMs: number
  readonly onDeadLetter: OnDeadLetter
}

export const alertTargetTypes = ["webhook", "pagerduty"] as const
export type AlertTargetType = (typeof alertTargetTypes)[number]

export interface Alerting {
  readonly type: AlertTargetType
  readonly events: ReadonlyArray<AlertEvent>
  /** The wait of a due message that makes an alert; null: none. */
  readonly oldestDueSeconds: number | null
  readonly severity: Severity | null
  readonly description: string | null
}

export interface Destination<Settings extends DestinationSettings = DestinationSettings> {
  readonly id: DestinationId
  readonly orgId: OrgId
  readonly channel: ChannelName
  readonly settings: Settings
  readonly secretNames: ReadonlyArray<string>
  /** The public parts of its secrets (`SecretField.publishes`). */
  readonly published: Readonly<Record<string, string>>
  readonly alerting: Alerting | null
  readonly paused: boolean
  /** Posthaste sends nothing until it is enabled; null while it is not disabled. */
  readonly disabledReason: string | null
  /** Earlier failures do not count against it. */
  readonly enabledAt: DateTime.Utc | null
  /** Counts changes; an attempt names the version it used. */
  readonly version: number
  readonly createdAt: DateTime.Utc
  readonly updatedAt: DateTime.Utc
}

export const urlIn = ({ settings }: Pick<Destination, "settings">): URL | null =>
  "url" in settings && typeof settings.url === "string" ? URL.parse(settings.url) : null

export type Secrets = Readonly<Record<string, Redacted.Redacted>>

export interface PreviousSecret {
  readonly name: string
  readonly secret: Redacted.Redacted
  readonly until: DateTime.Utc
}

/** The good ones, newest first: two, so that a rotation whose answer was lost can be repeated. */
export const goodAt = (previous: ReadonlyArray<PreviousSecret>, now: DateTime.Utc): ReadonlyArray<PreviousSecret> =>
  previous.filter(({ until }) => DateTime.isGreaterThan(until, now)).slice(0, PREVIOUS_MAX)

export const PREVIOUS_MAX = 2

export interface OpenDestination<Settings extends DestinationSettings = DestinationSettings> {
  readonly destination: Destination<Settings>
  readonly secrets: Secrets
  /** Newest first. The grace of some may have ended. */
  readonly previousSecrets: ReadonlyArray<PreviousSecret>
}

export interface NewDestination {
  readonly settings: DestinationSettings
  readonly secrets: Secrets
  readonly published: Readonly<Record<string, string>>
  /** Unique among the living destinations of a channel, whatever their orgs. */
  readonly publicKey: string | null
  /** A secret by which the outside asks whether it is known here. */
  readonly lookup: Redacted.Redacted | null
  readonly alerting: Alerting | null
  readonly call: Call | null
}

/** Absent fields stay. */
export interface DestinationChange {
  /** The version that the change was judged by; after another change the answer is null. */
  readonly of?: number
  readonly settings?: object
  readonly secrets?: Readonly<Record<string, Redacted.Redacted | null>>
  readonly lookup?: Redacted.Redacted
  readonly alerting?: Partial<Alerting>
  /** The calls of that version and of the new one. */
  readonly call?: { readonly before: Call | null; readonly after: Call | null }
}

/** A method on one destination. It answers null where the org has no such destination of that kind. */
type ChangeOf<Rest extends ReadonlyArray<unknown>, A> = (
  kind: DestinationKind,
  orgId: OrgId,
  id: DestinationId,
  ...rest: Rest
) => FromStore<A>

/**
 * Destinations of every kind, and their secrets. Secrets and headers are encrypted at rest; secrets leave only with
 * `forSending`, `withPublicKeys`, `rotateSecret` and `showSecret`. Only `among` knows removed destinations; their
 * secrets and headers are gone, and their public keys free.
 *
 * Each change leaves its facts on the destination's journal, in the same transaction. A method that names a kind knows
 * no destination of another.
 *
 * The value of a previous secret is deleted with the first change, rotation or showing after its grace, and at once
 * when a change replaces its secret.
 *
 * `forSending` and `named` may be a second old: changes apply from the next attempt.
 */
export class Destinations extends Context.Service<
  Destinations,
  {
    /** "Taken": a living destination of any org has this public key. */
    readonly create: (
      kind: DestinationKind,
      orgId: OrgId,
      destination: NewDestination
    ) => FromStore<Destination | "Taken">
    readonly get: (orgId: OrgId, id: DestinationId) => FromStore<Destination | null>
    readonly list: (
      orgId: OrgId,
      which: { readonly channel?: ChannelName; readonly alerting?: true },
      page: PageRequest
    ) => FromStore<Page<Destination>>
    readonly change: ChangeOf<[change: DestinationChange], Destination | null>
    /**
     * Replaces a secret, which is good until `previousUntil` at the longest, as are the ones before it; the newest two
     * stay.
     */
    readonly rotateSecret: ChangeOf<
      [
        rotation: {
          readonly name: string
          readonly secret: Redacted.Redacted
          readonly published: Readonly<Record<string, string>>
          readonly previousUntil: DateTime.Utc
        }
      ],
      OpenDestination | null
    >
    readonly showSecret: ChangeOf<[name: string], OpenDestination | null>
    /**
     * Takes effect with its answer: no attempt is begun after it, save one whose start was being committed at that
     * moment. A paused destination keeps its first reason.
     */
    readonly setPaused: ChangeOf<[paused: boolean, reason?: string | null], Destination | null>
    /** Disables it for this reason, or enables it (null), with the promises of `setPaused`. */
    readonly setDisabled: ChangeOf<[reason: string | null], Destination | null>
    /** False when there was none. Its waiting messages then come to an end. */
    readonly remove: (kind: DestinationKind, orgId: OrgId, id: DestinationId) => FromStore<boolean>
    readonly forSending: (orgId: OrgId, id: DestinationId) => FromStore<OpenDestination | null>
    /** The org's destinations of a channel with this public key (null: any): at most two. */
    readonly named: (
      orgId: OrgId,
      channel: ChannelName,
      publicKey: string | null
    ) => FromStore<ReadonlyArray<Destination>>
    /** Of any org: a caller from outside names nothing else. */
    readonly withPublicKeys: (
      channel: ChannelName,
      publicKeys: ReadonlyArray<string>
    ) => FromStore<ReadonlyMap<string, OpenDestination>>
    readonly knowsLookup: (channel: ChannelName, lookup: Redacted.Redacted) => FromStore<boolean>
    readonly matching: (
      channel: ChannelName,
      settings: Readonly<Record<string, string | number | boolean>>
    ) => FromStore<ReadonlyArray<Destination>>
    readonly alertTargets: FromStore<ReadonlyArray<Destination>>
    readonly among: (
      ids: ReadonlyArray<DestinationId>
    ) => FromStore<ReadonlyMap<DestinationId, Destination & { readonly removed: boolean }>>
    /** The message of each org that is due longest and not claimed, alerts left out. Orgs without one are absent. */
    readonly oldestDue: (orgs: ReadonlyArray<OrgId>) => FromStore<ReadonlyMap<OrgId, OldestDue>>
  }
>()("posthaste/application/ports/Destinations") {}
