import { Context, type DateTime, type Effect, type Redacted } from "effect"
import type { RateLimit } from "../../domain/delivery/rateLimit.ts"
import type { RetryPolicy } from "../../domain/delivery/retry.ts"
import type { DestinationId, OrgId } from "../../domain/ids.ts"
import type { OnDeadLetter } from "../../domain/message/queueChange.ts"
import type { Page, StoreUnavailable } from "../errors.ts"

export const httpMethods = ["POST", "PUT", "PATCH", "DELETE"] as const
export type HttpMethod = (typeof httpMethods)[number]

/** An HTTP API to be called, as its owner configured it. */
export interface HttpTargetSettings {
  readonly url: string
  readonly method: HttpMethod
  /** `{{name}}` within a value stands for the target's secret of that name. */
  readonly headers: Readonly<Record<string, string>>
  /**
   * Texts that are added to the message's JSON object as it is sent, secrets filled in as in headers: for a target
   * that wants its key in the body, where what is stored must not hold it.
   */
  readonly bodyFields: Readonly<Record<string, string>>
  /**
   * "header": it drops a request whose `Idempotency-Key`, the message's id, it has seen. "none": it would do the
   * work twice. Either way the id is also sent as `X-Message-Id`, for the target to remember.
   */
  readonly idempotency: "header" | "none"
  /**
   * Where to ask whether a request was taken: `{messageId}` in the URL stands for the message's id. 2xx says
   * it was; 404 says it was not and never will be; anything else says nothing. Null: there is nobody to ask.
   */
  readonly reconcile: { readonly url: string } | null
  readonly retry: RetryPolicy | null
  readonly rateLimit: RateLimit | null
  /** How many requests may be under way at once, per worker process. */
  readonly maxInFlight: number
  readonly timeoutMs: number
  readonly onDeadLetter: OnDeadLetter
}

export interface HttpTarget extends HttpTargetSettings {
  readonly id: DestinationId
  readonly orgId: OrgId
  /** In alphabetical order. */
  readonly secretNames: ReadonlyArray<string>
  /** Counts changes. */
  readonly version: number
  readonly createdAt: DateTime.Utc
  readonly updatedAt: DateTime.Utc
}

export type Secrets = Readonly<Record<string, Redacted.Redacted>>

/** What a request to a target is made of. */
export interface Calling {
  readonly target: HttpTarget
  readonly secrets: Secrets
}

/**
 * HTTP targets and their secrets. Secrets are write-only: encrypted at rest, named but never shown, and
 * they leave only through `calling`. A removed target is unknown to every method, and its secrets are gone.
 *
 * Each change leaves its facts on the journal `http-target-<id>`, in the same transaction and with the `Actor` it was made by.
 *
 * `calling` may answer from a cache that is at most a second old: changes apply from the next attempt.
 */
export class HttpTargets extends Context.Service<
  HttpTargets,
  {
    readonly create: (
      orgId: OrgId,
      settings: HttpTargetSettings,
      secrets: Secrets
    ) => Effect.Effect<HttpTarget, StoreUnavailable>
    readonly get: (orgId: OrgId, id: DestinationId) => Effect.Effect<HttpTarget | null, StoreUnavailable>
    readonly list: (
      orgId: OrgId,
      page: { readonly cursor: string | null; readonly limit: number }
    ) => Effect.Effect<Page<HttpTarget>, StoreUnavailable>
    /** Secrets that are not named stay; null removes one. Null when there is no such target in the org. */
    readonly update: (
      orgId: OrgId,
      id: DestinationId,
      change: Partial<HttpTargetSettings>,
      secrets: Readonly<Record<string, Redacted.Redacted | null>>
    ) => Effect.Effect<HttpTarget | null, StoreUnavailable>
    /** False when there was none. */
    readonly remove: (orgId: OrgId, id: DestinationId) => Effect.Effect<boolean, StoreUnavailable>
    readonly calling: (orgId: OrgId, id: DestinationId) => Effect.Effect<Calling | null, StoreUnavailable>
  }
>()("posthaste/application/ports/HttpTargets") {}
