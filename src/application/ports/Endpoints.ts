import { Context, type DateTime, type Effect, type Redacted } from "effect"
import type { RetryPolicy } from "../../domain/delivery/retry.ts"
import type { DestinationId, OrgId } from "../../domain/ids.ts"
import type { OnDeadLetter } from "../../domain/message/queueChange.ts"
import type { Page, StoreUnavailable } from "../errors.ts"

/** A webhook endpoint as its owner configured it. */
export interface EndpointSettings {
  readonly url: string
  /** Event types it wants from fan-out; null wants all. */
  readonly eventTypes: ReadonlyArray<string> | null
  readonly description: string | null
  readonly signature: "standard" | "legacy"
  readonly retry: RetryPolicy | null
  readonly rateLimit: { readonly limit: number; readonly periodMs: number } | null
  /** How many requests may be under way at once, per worker process. */
  readonly maxInFlight: number
  readonly timeoutMs: number
  readonly onDeadLetter: OnDeadLetter
  readonly headers: Readonly<Record<string, string>>
}

export interface Endpoint extends EndpointSettings {
  readonly id: DestinationId
  readonly orgId: OrgId
  /** Nothing is sent to it; what is accepted for it waits. */
  readonly paused: boolean
  /** Counts changes; an attempt can say which settings it used. */
  readonly version: number
  readonly createdAt: DateTime.Utc
  readonly updatedAt: DateTime.Utc
}

/**
 * Webhook endpoints and their signing secrets. Secrets are encrypted at rest and leave only through
 * `signing`. A removed endpoint is unknown to every method but `signing`'s null.
 *
 * Each change leaves its facts on the journal `endpoint-<id>`, in the same transaction and with the `Actor` it was made by.
 *
 * `signing` may answer from a cache that is at most a second old: changes apply from the next attempt.
 */
export class Endpoints extends Context.Service<
  Endpoints,
  {
    readonly create: (
      orgId: OrgId,
      settings: EndpointSettings,
      secret: Redacted.Redacted
    ) => Effect.Effect<Endpoint, StoreUnavailable>
    readonly get: (orgId: OrgId, id: DestinationId) => Effect.Effect<Endpoint | null, StoreUnavailable>
    readonly list: (
      orgId: OrgId,
      page: { readonly cursor: string | null; readonly limit: number }
    ) => Effect.Effect<Page<Endpoint>, StoreUnavailable>
    /** Null when there is no such endpoint in the org. */
    readonly update: (
      orgId: OrgId,
      id: DestinationId,
      change: Partial<EndpointSettings>
    ) => Effect.Effect<Endpoint | null, StoreUnavailable>
    /**
     * Takes effect with its answer: no attempt is begun after it, save one whose start was being committed at that
     * very moment. Null when there is no such endpoint.
     */
    readonly setPaused: (
      orgId: OrgId,
      id: DestinationId,
      paused: boolean
    ) => Effect.Effect<Endpoint | null, StoreUnavailable>
    /** False when there was none. Nothing holds back its waiting messages any more, so that they come to an end. */
    readonly remove: (orgId: OrgId, id: DestinationId) => Effect.Effect<boolean, StoreUnavailable>
    /** What an attempt needs: settings and every secret that signs now, newest first. */
    readonly signing: (
      orgId: OrgId,
      id: DestinationId
    ) => Effect.Effect<
      { readonly endpoint: Endpoint; readonly secrets: ReadonlyArray<Redacted.Redacted> } | null,
      StoreUnavailable
    >
  }
>()("posthaste/application/ports/Endpoints") {}
