import { Context, DateTime, type Redacted } from "effect"
import type { AlertEvent, Severity } from "../../domain/alert/alert.ts"
import type { OldestDue } from "../../domain/condition/decider.ts"
import type { Call } from "../../domain/delivery/exchange.ts"
import type { RateLimit } from "../../domain/delivery/rateLimit.ts"
import type { RetryPolicy } from "../../domain/delivery/retry.ts"
import type { DestinationKind } from "../../domain/destination/changes.ts"
import type { ChannelName, DestinationId, OrgId } from "../../domain/ids.ts"
import type { OnDeadLetter } from "../../domain/message/queueChange.ts"
import type { FromStore, Page, PageRequest } from "../errors.ts"

/** What can be set about a destination of any kind. Each channel adds what it needs to know (see Channels.ts). */
export interface DestinationSettings {
  readonly retry: RetryPolicy | null
  readonly rateLimit: RateLimit | null
  /** How many requests may be under way at once, per worker process. */
  readonly maxInFlight: number
  readonly timeoutMs: number
  readonly onDeadLetter: OnDeadLetter
}

export const alertTargetTypes = ["webhook", "pagerduty"] as const
export type AlertTargetType = (typeof alertTargetTypes)[number]

/** What makes a destination an alert target: its messages are alerts and nothing else. */
export interface Alerting {
  readonly type: AlertTargetType
  readonly events: ReadonlyArray<AlertEvent>
  /** How long a due message may wait before that is told; null tells nothing about it. */
  readonly oldestDueSeconds: number | null
  /** Of all that is told, in place of each alert's own. */
  readonly severity: Severity | null
  readonly description: string | null
}

/** Where a channel delivers for an org: a webhook endpoint, an HTTP target, a WhatsApp account. */
export interface Destination<Settings extends DestinationSettings = DestinationSettings> {
  readonly id: DestinationId
  readonly orgId: OrgId
  readonly channel: ChannelName
  readonly settings: Settings
  /** In alphabetical order. */
  readonly secretNames: ReadonlyArray<string>
  /** What everybody may know of its secrets, by name (`SecretField.publishes`). */
  readonly published: Readonly<Record<string, string>>
  readonly alerting: Alerting | null
  /** Nothing is sent to it; what is accepted for it waits. */
  readonly paused: boolean
  /** Why Posthaste sends nothing to it until it is enabled; null while it is not disabled. */
  readonly disabledReason: string | null
  /** When it was last enabled: what was before counts no more against it. */
  readonly enabledAt: DateTime.Utc | null
  /** Counts changes; an attempt can say which settings it used. */
  readonly version: number
  readonly createdAt: DateTime.Utc
  readonly updatedAt: DateTime.Utc
}

/** The address among its settings; null where its channel has none. */
export const urlIn = ({ settings }: Pick<Destination, "settings">): URL | null =>
  "url" in settings && typeof settings.url === "string" ? URL.parse(settings.url) : null

export type Secrets = Readonly<Record<string, Redacted.Redacted>>

/** A secret that was rotated and is good until its grace ends. */
export interface PreviousSecret {
  readonly name: string
  readonly secret: Redacted.Redacted
  readonly until: DateTime.Utc
}

/**
 * Those that are good now, the newest first: no more than two. So a request to rotate whose answer was lost can be
 * repeated, and what the world outside has is still good.
 */
export const goodAt = (previous: ReadonlyArray<PreviousSecret>, now: DateTime.Utc): ReadonlyArray<PreviousSecret> =>
  previous.filter(({ until }) => DateTime.isGreaterThan(until, now)).slice(0, PREVIOUS_MAX)

export const PREVIOUS_MAX = 2

/** What an attempt needs: settings, and the secrets in the open. */
export interface OpenDestination<Settings extends DestinationSettings = DestinationSettings> {
  readonly destination: Destination<Settings>
  readonly secrets: Secrets
  /** The newest first. Those whose grace has ended may be among them. */
  readonly previousSecrets: ReadonlyArray<PreviousSecret>
}

export interface NewDestination {
  readonly settings: DestinationSettings
  readonly secrets: Secrets
  readonly published: Readonly<Record<string, string>>
  /** What the world outside calls it: no two living destinations of a channel share one, whatever their orgs. */
  readonly publicKey: string | null
  /** A secret by which the world outside asks whether it is known here. */
  readonly lookup: Redacted.Redacted | null
  readonly alerting: Alerting | null
  /** How it will be called. */
  readonly call: Call | null
}

/** What is not named stays. */
export interface DestinationChange {
  /** The version that the change was judged by: one that has changed since is as one that does not exist. */
  readonly of?: number
  readonly settings?: object
  /** Null removes one. */
  readonly secrets?: Readonly<Record<string, Redacted.Redacted | null>>
  readonly lookup?: Redacted.Redacted
  readonly alerting?: Partial<Alerting>
  /** How that version was called, and how it will be. */
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
 * `forSending`, `withPublicKeys`, `rotateSecret` and `showSecret`. A removed destination is unknown to every method but `among`, and its secrets and
 * headers are gone; its public key can be taken again.
 *
 * Each change leaves its facts on the journal of the destination, in the same transaction, and they name who
 * commanded it (`CommandedBy`). A method that names a kind knows no destination of another.
 *
 * A previous secret is good until its grace ends by the clock of whoever uses it. Its value is gone from the row with the
 * first change, rotation or showing after that, and at once when its secret is replaced by a change.
 *
 * `forSending` and `named` may answer from a cache that is at most a second old: changes apply from the
 * next attempt.
 */
export class Destinations extends Context.Service<
  Destinations,
  {
    /** "Taken": a living destination has this public key already, of this org or another. */
    readonly create: (
      kind: DestinationKind,
      orgId: OrgId,
      destination: NewDestination
    ) => FromStore<Destination | "Taken">
    readonly get: (orgId: OrgId, id: DestinationId) => FromStore<Destination | null>
    /** By id. The cursor is the last id. */
    readonly list: (
      orgId: OrgId,
      which: { readonly channel?: ChannelName; readonly alerting?: true },
      page: PageRequest
    ) => FromStore<Page<Destination>>
    readonly change: ChangeOf<[change: DestinationChange], Destination | null>
    /**
     * Puts a secret in the place of another, which is good until `previousUntil`, and so at the longest is each that was
     * rotated before; the newest two stay. What is published of it replaces what was.
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
    /** To its owner, of whom a fact tells. */
    readonly showSecret: ChangeOf<[name: string], OpenDestination | null>
    /**
     * Takes effect with its answer: no attempt is begun after it, save one whose start was being committed at that
     * very moment. The reason of a pause is kept in its fact; a destination that is paused already keeps its first one.
     */
    readonly setPaused: ChangeOf<[paused: boolean, reason?: string | null], Destination | null>
    /**
     * Disables it for this reason, or enables it (null), with the promise of `setPaused`. A destination that is disabled
     * keeps its first reason.
     */
    readonly setDisabled: ChangeOf<[reason: string | null], Destination | null>
    /** False when there was none. Nothing holds back its waiting messages any more, so that they come to an end. */
    readonly remove: (kind: DestinationKind, orgId: OrgId, id: DestinationId) => FromStore<boolean>
    readonly forSending: (orgId: OrgId, id: DestinationId) => FromStore<OpenDestination | null>
    /** The org's destinations of a channel with this public key, or any when it is null: at most two. */
    readonly named: (
      orgId: OrgId,
      channel: ChannelName,
      publicKey: string | null
    ) => FromStore<ReadonlyArray<Destination>>
    /** Destinations of any org by their public keys: a caller from outside names nothing else. */
    readonly withPublicKeys: (
      channel: ChannelName,
      publicKeys: ReadonlyArray<string>
    ) => FromStore<ReadonlyMap<string, OpenDestination>>
    /** Whether a destination of any org has this lookup secret. */
    readonly knowsLookup: (channel: ChannelName, lookup: Redacted.Redacted) => FromStore<boolean>
    /** Those of all orgs whose settings hold these values. */
    readonly matching: (
      channel: ChannelName,
      settings: Readonly<Record<string, string | number | boolean>>
    ) => FromStore<ReadonlyArray<Destination>>
    /** Those of all orgs that alerts are sent to. */
    readonly alertTargets: FromStore<ReadonlyArray<Destination>>
    /** Those of these that are, or were, destinations of whatever org. */
    readonly among: (
      ids: ReadonlyArray<DestinationId>
    ) => FromStore<ReadonlyMap<DestinationId, Destination & { readonly removed: boolean }>>
    /**
     * Of each of these orgs the message that is due longest and has not been handed out, alerts left out. Orgs without
     * one are absent.
     */
    readonly oldestDue: (orgs: ReadonlyArray<OrgId>) => FromStore<ReadonlyMap<OrgId, OldestDue>>
  }
>()("posthaste/application/ports/Destinations") {}
