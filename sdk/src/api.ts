// Made by `npm run sdk:types` from the OpenAPI document of the service: change that, and run it again.
import type { CallOptions, KeyedCallOptions, Pages, Route } from "./client.ts"
import type { ProblemDocument as Problem } from "./errors.ts"

export type Activity = {
  readonly id: string
  readonly dossierId: string
  readonly type: "MESSAGE_CREATED" | "MESSAGE_SENT" | "MESSAGE_STATUS_UPDATE" | "MESSAGE_FAILED" | "MESSAGE_CANCELLED" | "MESSAGE_EXPIRED" | "MESSAGE_REPLAYED" | "MESSAGE_ERASED" | "MESSAGE_BLOCKED" | "CONSENT_GRANTED" | "CONSENT_WITHDRAWN"
  readonly at: string
  readonly channel: string
  readonly messageId: string | null
  readonly actor: string | null
  readonly details: { readonly [name: string]: unknown }
}

export type AlertTarget = {
  readonly id: string
  readonly orgId: string
  readonly type: "webhook" | "pagerduty"
  readonly url: string | null
  readonly events: ReadonlyArray<"circuit" | "deadLetter" | "disabled" | "commandRefused" | "oldestDue" | "broker">
  readonly oldestDueSeconds: number | null
  readonly severity: "critical" | "error" | "warning" | "info" | null
  readonly description: string | null
  readonly createdAt: string
  readonly updatedAt: string
}

export type AlertTest = {
  readonly messageIds: ReadonlyArray<string>
}

export type AmqpTarget = {
  readonly id: string
  readonly orgId: string
  readonly url: string
  readonly exchange: string
  readonly routingKey: string
  readonly unconfirmed: "resend" | "deadLetter"
  readonly retry: RetryPolicy | null
  readonly rateLimit: {
    readonly limit: number
    readonly periodMs: number
  } | null
  readonly maxInFlight: number
  readonly timeoutMs: number
  readonly onDeadLetter: "block" | "skip"
  readonly paused: boolean
  readonly state: "ACTIVE" | "PAUSED" | "DISABLED"
  readonly disabledReason: string | null
  readonly version: number
  readonly createdAt: string
  readonly updatedAt: string
}

export type ApiKey = {
  readonly id: string
  readonly orgId: string
  readonly name: string
  readonly prefix: string | null
  readonly scopes: ReadonlyArray<"messages:send" | "messages:read" | "bodies:read" | "endpoints:read" | "endpoints:write" | "replays:write" | "consents:write" | "erasures:write" | "audit:read" | "admin"> | null
  readonly expiresAt: string | null
  readonly networks: ReadonlyArray<string> | null
  readonly limits: ApiKeyLimits
  readonly createdAt: string
  readonly lastUsedAt: string | null
}

export type ApiKeyLimits = {
  readonly acceptsPerSecond?: number | undefined
  readonly bytesPerSecond?: number | undefined
}

export type Attempt = {
  readonly number: number
  readonly epoch: number
  readonly startedAt: string
  readonly endedAt: string | null
  readonly outcome: "succeeded" | "failed" | "deferred" | "abandoned" | "unresolved" | null
  readonly error: {
    readonly code: string
    readonly message: string
    readonly retryable: boolean
  } | null
  readonly request: {
    readonly method: string | null
    readonly url: string | null
    readonly headers: { readonly [name: string]: string } | null
    readonly sentAt: string
    readonly address: string | null
  } | null
  readonly response: {
    readonly status: number | null
    readonly headers: { readonly [name: string]: string } | null
    readonly body: string | null
  }
  readonly timing: {
    readonly dnsMs: number | null
    readonly connectMs: number | null
    readonly tlsMs: number | null
    readonly firstByteMs: number | null
    readonly totalMs: number | null
  } | null
}

export type AuditEntry = {
  readonly id: string
  readonly orgId: string
  readonly at: string
  readonly operation: "CREATED" | "SENT" | "UPDATED" | "FAILED" | "CANCELLED" | "EXPIRED" | "HURRIED" | "DISMISSED" | "REPLAYED" | "ERASED" | "BLOCKED_BY_POLICY" | "CONSENT_GRANTED" | "CONSENT_WITHDRAWN" | "ADDRESSED" | "SECRETS_CHANGED" | "SECRET_ROTATED" | "SECRET_SHOWN" | "BODY_READ" | "LOGIN_REFUSED" | "PAUSED" | "RESUMED" | "DISABLED" | "ENABLED" | "REMOVED" | "REVOKED" | "HELD" | "RESET"
  readonly subject: {
    readonly type: string
    readonly id: string
  }
  readonly actor: string | null
  readonly details: { readonly [name: string]: unknown }
}

export type BatchAnswer = {
  readonly status: number
  readonly message?: Message | undefined
  readonly problem?: Problem | undefined
}

export type BatchEntry = {
  readonly channel: string
  readonly to: string
  readonly payloadJson: unknown
  readonly routingKey?: string | null | undefined
  readonly eventType?: string | null | undefined
  readonly templateCode?: string | null | undefined
  readonly dossierId?: string | null | undefined
  readonly orderingKey?: string | null | undefined
  readonly correlationId?: string | null | undefined
  readonly metadata?: { readonly [name: string]: string } | null | undefined
  readonly deliverAt?: string | null | undefined
  readonly expiresAt?: string | null | undefined
  readonly retry?: RetryPolicy | null | undefined
  readonly idempotencyKey?: string | null | undefined
}

export type CancelWaitingRequest = {
  readonly filter: WaitingFilter
  readonly reason?: string | null | undefined
  readonly idempotencyKey?: string | null | undefined
}

export type Cause = {
  readonly reason: "PARKED" | "ORG_SUSPENDED" | "BEHIND_ANOTHER" | "NO_WORKER" | "DISABLED" | "PAUSED" | "CIRCUIT_HELD" | "CIRCUIT_OPEN" | "NOT_DUE" | "RETRY" | "RATE_LIMITED" | "DUE" | "UNDER_WAY" | "IN_DOUBT" | "AWAITING_RECEIPT" | "DELIVERED" | "REFUSED" | "ATTEMPTS_USED_UP" | "TOO_OLD" | "OUTCOME_UNKNOWN" | "CANCELLED" | "EXPIRED"
  readonly says: string
  readonly since: string | null
  readonly until: string | null
  readonly waitsFor: "operator" | "time" | "message" | "destination" | "circuit" | "rateLimit" | "worker" | "answer" | "receipt" | null
}

export type ChangeAlertTarget = {
  readonly url?: string | null | undefined
  readonly routingKey?: string | undefined
  readonly severity?: "critical" | "error" | "warning" | "info" | null | undefined
  readonly events?: ReadonlyArray<"circuit" | "deadLetter" | "disabled" | "commandRefused" | "oldestDue" | "broker"> | null | undefined
  readonly oldestDueSeconds?: number | null | undefined
  readonly description?: string | null | undefined
}

export type ChangeAmqpTarget = {
  readonly url?: string | undefined
  readonly exchange?: string | undefined
  readonly routingKey?: string | null | undefined
  readonly unconfirmed?: "resend" | "deadLetter" | null | undefined
  readonly retry?: RetryPolicy | null | undefined
  readonly rateLimit?: {
    readonly limit: number
    readonly periodMs: number
  } | null | undefined
  readonly maxInFlight?: number | null | undefined
  readonly timeoutMs?: number | null | undefined
  readonly onDeadLetter?: "block" | "skip" | null | undefined
}

export type ChangeEventType = {
  readonly description?: string | null | undefined
  readonly schema?: { readonly [name: string]: unknown } | null | undefined
  readonly example?: unknown | undefined
  readonly enforce?: boolean | null | undefined
}

export type ChangeHttpTarget = {
  readonly url?: string | undefined
  readonly method?: "POST" | "PUT" | "PATCH" | "DELETE" | null | undefined
  readonly headers?: { readonly [name: string]: string } | null | undefined
  readonly bodyFields?: { readonly [name: string]: string } | null | undefined
  readonly idempotency?: "header" | "none" | null | undefined
  readonly reconcile?: {
    readonly url: string
  } | null | undefined
  readonly retry?: RetryPolicy | null | undefined
  readonly rateLimit?: {
    readonly limit: number
    readonly periodMs: number
  } | null | undefined
  readonly maxInFlight?: number | null | undefined
  readonly timeoutMs?: number | null | undefined
  readonly onDeadLetter?: "block" | "skip" | null | undefined
  readonly secrets?: { readonly [name: string]: string | null } | undefined
}

export type ChangeWebhookEndpoint = {
  readonly url?: string | undefined
  readonly eventTypes?: ReadonlyArray<string> | null | undefined
  readonly description?: string | null | undefined
  readonly signature?: "standard" | "ed25519" | "legacy" | null | undefined
  readonly headers?: { readonly [name: string]: string } | null | undefined
  readonly disableAfterMs?: number | null | undefined
  readonly caCertificate?: string | null | undefined
  readonly clientCertificate?: string | null | undefined
  readonly retry?: RetryPolicy | null | undefined
  readonly rateLimit?: {
    readonly limit: number
    readonly periodMs: number
  } | null | undefined
  readonly maxInFlight?: number | null | undefined
  readonly timeoutMs?: number | null | undefined
  readonly onDeadLetter?: "block" | "skip" | null | undefined
}

export type ChangeWhatsAppAccount = {
  readonly graphVersion?: string | null | undefined
  readonly verifySignature?: boolean | null | undefined
  readonly reconcile?: {
    readonly waitMs: number
    readonly otherwise: "deadLetter" | "resend"
  } | null | undefined
  readonly retry?: RetryPolicy | null | undefined
  readonly rateLimit?: {
    readonly limit: number
    readonly periodMs: number
  } | null | undefined
  readonly maxInFlight?: number | null | undefined
  readonly timeoutMs?: number | null | undefined
  readonly onDeadLetter?: "block" | "skip" | null | undefined
  readonly accessToken?: string | undefined
  readonly appSecret?: string | undefined
  readonly verifyToken?: string | undefined
}

export type Channel = {
  readonly name: string
  readonly noun: string
  readonly path: string
}

export type ChannelList = {
  readonly items: ReadonlyArray<Channel>
}

export type Circuit = {
  readonly id: string
  readonly destination: string
  readonly status: "CLOSED" | "OPEN" | "HALF_OPEN" | "HELD"
  readonly failures: number
  readonly openUntil: string | null
}

export type CommandAllDestinations = {
  readonly reason?: string | null | undefined
  readonly channel?: string | null | undefined
  readonly stoppedFor?: string | null | undefined
}

export type CommandRequest = {
  readonly reason?: string | null | undefined
}

export type CommandedDestinations = {
  readonly commanded: number
}

export type Consent = {
  readonly dossierId: string
  readonly channel: string
  readonly granted: boolean
  readonly source: string
  readonly at: string
  readonly actor: string | null
  readonly history: ReadonlyArray<{
    readonly granted: boolean
    readonly source: string
    readonly at: string
    readonly actor: string | null
  }>
}

export type ConsentRequest = {
  readonly granted: boolean
  readonly source: string
}

export type CreateAlertTarget = CreateWebhookAlertTarget | CreatePagerDutyAlertTarget

export type CreateAmqpTarget = {
  readonly url: string
  readonly exchange: string
  readonly routingKey?: string | null | undefined
  readonly unconfirmed?: "resend" | "deadLetter" | null | undefined
  readonly retry?: RetryPolicy | null | undefined
  readonly rateLimit?: {
    readonly limit: number
    readonly periodMs: number
  } | null | undefined
  readonly maxInFlight?: number | null | undefined
  readonly timeoutMs?: number | null | undefined
  readonly onDeadLetter?: "block" | "skip" | null | undefined
}

export type CreateApiKey = {
  readonly orgId?: string | null | undefined
  readonly name: string
  readonly scopes?: ReadonlyArray<"messages:send" | "messages:read" | "bodies:read" | "endpoints:read" | "endpoints:write" | "replays:write" | "consents:write" | "erasures:write" | "audit:read" | "admin"> | null | undefined
  readonly expiresAt?: string | null | undefined
  readonly networks?: ReadonlyArray<string> | null | undefined
  readonly limits?: ApiKeyLimits | null | undefined
}

export type CreateEventType = {
  readonly name: string
  readonly description?: string | null | undefined
  readonly schema?: { readonly [name: string]: unknown } | null | undefined
  readonly example?: unknown | undefined
  readonly enforce?: boolean | null | undefined
}

export type CreateHttpTarget = {
  readonly url: string
  readonly method?: "POST" | "PUT" | "PATCH" | "DELETE" | null | undefined
  readonly headers?: { readonly [name: string]: string } | null | undefined
  readonly bodyFields?: { readonly [name: string]: string } | null | undefined
  readonly idempotency?: "header" | "none" | null | undefined
  readonly reconcile?: {
    readonly url: string
  } | null | undefined
  readonly retry?: RetryPolicy | null | undefined
  readonly rateLimit?: {
    readonly limit: number
    readonly periodMs: number
  } | null | undefined
  readonly maxInFlight?: number | null | undefined
  readonly timeoutMs?: number | null | undefined
  readonly onDeadLetter?: "block" | "skip" | null | undefined
  readonly secrets?: { readonly [name: string]: string } | undefined
}

export type CreatePagerDutyAlertTarget = {
  readonly type: "pagerduty"
  readonly routingKey: string
  readonly url?: string | null | undefined
  readonly severity?: "critical" | "error" | "warning" | "info" | null | undefined
  readonly events?: ReadonlyArray<"circuit" | "deadLetter" | "disabled" | "commandRefused" | "oldestDue" | "broker"> | null | undefined
  readonly oldestDueSeconds?: number | null | undefined
  readonly description?: string | null | undefined
}

export type CreateWebhookAlertTarget = {
  readonly type: "webhook"
  readonly url: string
  readonly secret?: string | undefined
  readonly events?: ReadonlyArray<"circuit" | "deadLetter" | "disabled" | "commandRefused" | "oldestDue" | "broker"> | null | undefined
  readonly oldestDueSeconds?: number | null | undefined
  readonly description?: string | null | undefined
}

export type CreateWebhookEndpoint = {
  readonly url: string
  readonly eventTypes?: ReadonlyArray<string> | null | undefined
  readonly description?: string | null | undefined
  readonly signature?: "standard" | "ed25519" | "legacy" | null | undefined
  readonly headers?: { readonly [name: string]: string } | null | undefined
  readonly disableAfterMs?: number | null | undefined
  readonly caCertificate?: string | null | undefined
  readonly clientCertificate?: string | null | undefined
  readonly retry?: RetryPolicy | null | undefined
  readonly rateLimit?: {
    readonly limit: number
    readonly periodMs: number
  } | null | undefined
  readonly maxInFlight?: number | null | undefined
  readonly timeoutMs?: number | null | undefined
  readonly onDeadLetter?: "block" | "skip" | null | undefined
  readonly secret?: string | undefined
}

export type CreateWhatsAppAccount = {
  readonly phoneNumberId: string
  readonly graphVersion?: string | null | undefined
  readonly verifySignature?: boolean | null | undefined
  readonly reconcile?: {
    readonly waitMs: number
    readonly otherwise: "deadLetter" | "resend"
  } | null | undefined
  readonly retry?: RetryPolicy | null | undefined
  readonly rateLimit?: {
    readonly limit: number
    readonly periodMs: number
  } | null | undefined
  readonly maxInFlight?: number | null | undefined
  readonly timeoutMs?: number | null | undefined
  readonly onDeadLetter?: "block" | "skip" | null | undefined
  readonly accessToken: string
  readonly appSecret: string
  readonly verifyToken: string
}

export type DeadLetter = {
  readonly id: string
  readonly orgId: string
  readonly channel: string
  readonly to: string
  readonly destination: string
  readonly routingKey: string | null
  readonly resendOf: string | null
  readonly test: boolean
  readonly status: "QUEUED" | "SENDING" | "SENT" | "DELIVERED" | "FAILED" | "DEAD_LETTER" | "CANCELLED" | "EXPIRED"
  readonly epoch: number
  readonly attempts: number
  readonly attemptsMax: number
  readonly nextAttemptAt: string | null
  readonly lastError: {
    readonly code: string
    readonly message: string
    readonly retryable: boolean
  } | null
  readonly providerMessageId: string | null
  readonly eventType: string | null
  readonly templateCode: string | null
  readonly dossierId: string | null
  readonly orderingKey: string | null
  readonly correlationId: string | null
  readonly metadata: { readonly [name: string]: string } | null
  readonly deliverAt: string | null
  readonly expiresAt: string | null
  readonly endsAt: string | null
  readonly createdAt: string
  readonly updatedAt: string
  readonly lastAttemptAt: string | null
  readonly endedAt: string | null
  readonly deliveredAt: string | null
  readonly readAt: string | null
  readonly bodyErased: boolean
  readonly contradicted: boolean
  readonly dismissed: boolean
  readonly eventId: string | null
  readonly deadLetteredAt: string
  readonly wouldReplayTo: {
    readonly destination: string
    readonly url: string | null
    readonly exists: boolean
    readonly paused: boolean
    readonly hasBody: boolean
    readonly attemptsMax: number
    readonly retry: RetryPolicy
  }
}

export type DeadLetterFilter = {
  readonly to?: string | undefined
  readonly channel?: string | undefined
  readonly errorCode?: string | undefined
  readonly after?: string | undefined
  readonly before?: string | undefined
  readonly dismissed?: boolean | undefined
}

export type Destination = {
  readonly id: string
  readonly orgId: string
  readonly channel: string
  readonly name: string
  readonly url: string | null
  readonly path: string | null
  readonly isAlertTarget: boolean
  readonly state: "ACTIVE" | "PAUSED" | "DISABLED"
  readonly pause: {
    readonly since: string
    readonly by: string | null
    readonly reason: string | null
  } | null
  readonly disabled: {
    readonly since: string
    readonly reason: string
  } | null
  readonly circuit: {
    readonly status: "CLOSED" | "OPEN" | "HALF_OPEN" | "HELD"
    readonly since: string | null
    readonly until: string | null
    readonly cause: string | null
    readonly by: string | null
  }
  readonly waiting: number
  readonly oldestDueAt: string | null
  readonly inFlight: number
  readonly lastHour: {
    readonly succeeded: number
    readonly failed: number
    readonly successRate: number | null
  }
  readonly perSecond: number
  readonly drainsInSeconds: number | null
}

export type DestinationHealth = {
  readonly state: "ACTIVE" | "PAUSED" | "DISABLED"
  readonly disabledReason: string | null
  readonly circuit: "CLOSED" | "OPEN" | "HALF_OPEN" | "HELD"
  readonly failingSince: string | null
  readonly lastFailedAt: string | null
  readonly lastSucceededAt: string | null
  readonly waiting: number
  readonly oldestDueAt: string | null
  readonly lastHour: HealthSummary
  readonly lastDay: HealthSummary
  readonly asOf: string
  readonly behindSeconds: number
}

export type DestinationWithHistory = {
  readonly id: string
  readonly orgId: string
  readonly channel: string
  readonly name: string
  readonly url: string | null
  readonly path: string | null
  readonly isAlertTarget: boolean
  readonly state: "ACTIVE" | "PAUSED" | "DISABLED"
  readonly pause: {
    readonly since: string
    readonly by: string | null
    readonly reason: string | null
  } | null
  readonly disabled: {
    readonly since: string
    readonly reason: string
  } | null
  readonly circuit: {
    readonly status: "CLOSED" | "OPEN" | "HALF_OPEN" | "HELD"
    readonly since: string | null
    readonly until: string | null
    readonly cause: string | null
    readonly by: string | null
  }
  readonly waiting: number
  readonly oldestDueAt: string | null
  readonly inFlight: number
  readonly lastHour: {
    readonly succeeded: number
    readonly failed: number
    readonly successRate: number | null
  }
  readonly perSecond: number
  readonly drainsInSeconds: number | null
  readonly history: ReadonlyArray<{
    readonly at: string
    readonly type: string
    readonly by: string | null
    readonly reason: string | null
  }>
  readonly asOf: string
  readonly behindSeconds: number
}

export type DismissRequest = {
  readonly filter?: DeadLetterFilter | null | undefined
  readonly ids?: ReadonlyArray<string> | null | undefined
  readonly preview?: boolean | null | undefined
  readonly reason?: string | null | undefined
  readonly idempotencyKey?: string | null | undefined
}

export type Erasure = {
  readonly id: string
  readonly orgId: string
  readonly by: "dossierId" | "recipient" | "correlationId" | "metadata"
  readonly status: "RUNNING" | "COMPLETED"
  readonly reason: string | null
  readonly messages: number
  readonly events: number
  readonly requestedAt: string
  readonly endedAt: string | null
}

export type ErasureRequest = {
  readonly dossierId?: string | null | undefined
  readonly recipient?: string | null | undefined
  readonly correlationId?: string | null | undefined
  readonly metadata?: { readonly [name: string]: string } | null | undefined
  readonly reason?: string | null | undefined
}

export type Event = {
  readonly version: number
  readonly type: string
  readonly at: string
  readonly data: unknown
  readonly status: "QUEUED" | "SENDING" | "SENT" | "DELIVERED" | "FAILED" | "DEAD_LETTER" | "CANCELLED" | "EXPIRED"
}

export type EventBatch = {
  readonly events: ReadonlyArray<EventBatchEntry>
}

export type EventBatchAnswer = {
  readonly status: number
  readonly event?: PublishedEvent | undefined
  readonly problem?: Problem | undefined
}

export type EventBatchAnswers = {
  readonly items: ReadonlyArray<EventBatchAnswer>
}

export type EventBatchEntry = {
  readonly eventType: string
  readonly data: unknown
  readonly dossierId?: string | null | undefined
  readonly orderingKey?: string | null | undefined
  readonly correlationId?: string | null | undefined
  readonly metadata?: { readonly [name: string]: string } | null | undefined
  readonly deliverAt?: string | null | undefined
  readonly expiresAt?: string | null | undefined
  readonly idempotencyKey?: string | null | undefined
}

export type EventRequest = {
  readonly eventType: string
  readonly data: unknown
  readonly dossierId?: string | null | undefined
  readonly orderingKey?: string | null | undefined
  readonly correlationId?: string | null | undefined
  readonly metadata?: { readonly [name: string]: string } | null | undefined
  readonly deliverAt?: string | null | undefined
  readonly expiresAt?: string | null | undefined
}

export type EventType = {
  readonly name: string
  readonly orgId: string
  readonly description: string | null
  readonly schema: unknown
  readonly example: unknown
  readonly enforce: boolean
  readonly archived: boolean
  readonly version: number
  readonly createdAt: string
  readonly updatedAt: string
}

export type EventWithData = {
  readonly id: string
  readonly orgId: string
  readonly eventType: string
  readonly matched: number
  readonly dossierId: string | null
  readonly orderingKey: string | null
  readonly correlationId: string | null
  readonly metadata: { readonly [name: string]: string } | null
  readonly deliverAt: string | null
  readonly expiresAt: string | null
  readonly createdAt: string
  readonly bodyErased: boolean
  readonly data: unknown
}

export type Explanation = {
  readonly id: string
  readonly status: "QUEUED" | "SENDING" | "SENT" | "DELIVERED" | "FAILED" | "DEAD_LETTER" | "CANCELLED" | "EXPIRED"
  readonly at: string
  readonly reason: "PARKED" | "ORG_SUSPENDED" | "BEHIND_ANOTHER" | "NO_WORKER" | "DISABLED" | "PAUSED" | "CIRCUIT_HELD" | "CIRCUIT_OPEN" | "NOT_DUE" | "RETRY" | "RATE_LIMITED" | "DUE" | "UNDER_WAY" | "IN_DOUBT" | "AWAITING_RECEIPT" | "DELIVERED" | "REFUSED" | "ATTEMPTS_USED_UP" | "TOO_OLD" | "OUTCOME_UNKNOWN" | "CANCELLED" | "EXPIRED"
  readonly says: string
  readonly since: string | null
  readonly until: string | null
  readonly waitsFor: "operator" | "time" | "message" | "destination" | "circuit" | "rateLimit" | "worker" | "answer" | "receipt" | null
  readonly also: ReadonlyArray<Cause>
  readonly next: string
  readonly before: {
    readonly id: string
    readonly status: "QUEUED" | "SENDING" | "SENT" | "DELIVERED" | "FAILED" | "DEAD_LETTER" | "CANCELLED" | "EXPIRED"
  } | null
  readonly ahead: number | null
  readonly actions: ReadonlyArray<{
    readonly action: string
    readonly says: string
    readonly method: "POST"
    readonly path: string
  }>
  readonly restored: {
    readonly savedAt: string
    readonly noticedAt: string
    readonly says: string
  } | null
  readonly unknown: ReadonlyArray<string>
  readonly troubles: ReadonlyArray<Trouble>
}

export type ExponentialRetry = {
  readonly strategy: "exponential"
  readonly baseMs: number
  readonly capMs?: number | undefined
  readonly factor?: number | undefined
  readonly attemptsMax?: number | undefined
  readonly ageMaxMs?: number | undefined
  readonly jitter?: ReadonlyArray<number> | undefined
}

export type FixedRetry = {
  readonly strategy: "fixed"
  readonly baseMs: number
  readonly capMs?: number | undefined
  readonly factor?: number | undefined
  readonly attemptsMax?: number | undefined
  readonly ageMaxMs?: number | undefined
  readonly jitter?: ReadonlyArray<number> | undefined
}

export type Health = {
  readonly status: "ok"
}

export type HealthSummary = {
  readonly attempts: number
  readonly succeeded: number
  readonly failed: number
  readonly successRate: number | null
  readonly latencyMs: {
    readonly p50: number
    readonly p95: number
    readonly p99: number
  } | null
}

export type HttpTarget = {
  readonly id: string
  readonly orgId: string
  readonly url: string
  readonly method: "POST" | "PUT" | "PATCH" | "DELETE"
  readonly headers: { readonly [name: string]: string }
  readonly bodyFields: { readonly [name: string]: string }
  readonly idempotency: "header" | "none"
  readonly reconcile: {
    readonly url: string
  } | null
  readonly retry: RetryPolicy | null
  readonly rateLimit: {
    readonly limit: number
    readonly periodMs: number
  } | null
  readonly maxInFlight: number
  readonly timeoutMs: number
  readonly onDeadLetter: "block" | "skip"
  readonly secretNames: ReadonlyArray<string>
  readonly paused: boolean
  readonly state: "ACTIVE" | "PAUSED" | "DISABLED"
  readonly disabledReason: string | null
  readonly version: number
  readonly createdAt: string
  readonly updatedAt: string
}

export type LinearRetry = {
  readonly strategy: "linear"
  readonly baseMs: number
  readonly capMs?: number | undefined
  readonly factor?: number | undefined
  readonly attemptsMax?: number | undefined
  readonly ageMaxMs?: number | undefined
  readonly jitter?: ReadonlyArray<number> | undefined
}

export type LiveProjection = {
  readonly generation: number
  readonly version: number
  readonly facts: number
  readonly startedAt: string
}

export type Message = {
  readonly id: string
  readonly orgId: string
  readonly channel: string
  readonly to: string
  readonly destination: string
  readonly routingKey: string | null
  readonly resendOf: string | null
  readonly test: boolean
  readonly status: "QUEUED" | "SENDING" | "SENT" | "DELIVERED" | "FAILED" | "DEAD_LETTER" | "CANCELLED" | "EXPIRED"
  readonly epoch: number
  readonly attempts: number
  readonly attemptsMax: number
  readonly nextAttemptAt: string | null
  readonly lastError: {
    readonly code: string
    readonly message: string
    readonly retryable: boolean
  } | null
  readonly providerMessageId: string | null
  readonly eventType: string | null
  readonly templateCode: string | null
  readonly dossierId: string | null
  readonly orderingKey: string | null
  readonly correlationId: string | null
  readonly metadata: { readonly [name: string]: string } | null
  readonly deliverAt: string | null
  readonly expiresAt: string | null
  readonly endsAt: string | null
  readonly createdAt: string
  readonly updatedAt: string
  readonly lastAttemptAt: string | null
  readonly endedAt: string | null
  readonly deliveredAt: string | null
  readonly readAt: string | null
  readonly bodyErased: boolean
  readonly contradicted: boolean
  readonly dismissed: boolean
  readonly eventId: string | null
}

export type MessageBatch = {
  readonly messages: ReadonlyArray<BatchEntry>
}

export type MessageBatchAnswer = {
  readonly items: ReadonlyArray<BatchAnswer>
}

export type MessageRequest = {
  readonly channel: string
  readonly to: string
  readonly payloadJson: unknown
  readonly routingKey?: string | null | undefined
  readonly eventType?: string | null | undefined
  readonly templateCode?: string | null | undefined
  readonly dossierId?: string | null | undefined
  readonly orderingKey?: string | null | undefined
  readonly correlationId?: string | null | undefined
  readonly metadata?: { readonly [name: string]: string } | null | undefined
  readonly deliverAt?: string | null | undefined
  readonly expiresAt?: string | null | undefined
  readonly retry?: RetryPolicy | null | undefined
}

export type NewAlertTarget = {
  readonly id: string
  readonly orgId: string
  readonly type: "webhook" | "pagerduty"
  readonly url: string | null
  readonly events: ReadonlyArray<"circuit" | "deadLetter" | "disabled" | "commandRefused" | "oldestDue" | "broker">
  readonly oldestDueSeconds: number | null
  readonly severity: "critical" | "error" | "warning" | "info" | null
  readonly description: string | null
  readonly createdAt: string
  readonly updatedAt: string
  readonly secret?: string | undefined
}

export type NewApiKey = {
  readonly id: string
  readonly orgId: string
  readonly name: string
  readonly prefix: string | null
  readonly scopes: ReadonlyArray<"messages:send" | "messages:read" | "bodies:read" | "endpoints:read" | "endpoints:write" | "replays:write" | "consents:write" | "erasures:write" | "audit:read" | "admin"> | null
  readonly expiresAt: string | null
  readonly networks: ReadonlyArray<string> | null
  readonly limits: ApiKeyLimits
  readonly createdAt: string
  readonly lastUsedAt: string | null
  readonly key: string
}

export type NewWebhookEndpoint = {
  readonly id: string
  readonly orgId: string
  readonly url: string
  readonly eventTypes: ReadonlyArray<string> | null
  readonly description: string | null
  readonly signature: "standard" | "ed25519" | "legacy"
  readonly headers: { readonly [name: string]: string }
  readonly disableAfterMs: number
  readonly caCertificate: string | null
  readonly clientCertificate: string | null
  readonly retry: RetryPolicy | null
  readonly rateLimit: {
    readonly limit: number
    readonly periodMs: number
  } | null
  readonly maxInFlight: number
  readonly timeoutMs: number
  readonly onDeadLetter: "block" | "skip"
  readonly publicKey: string | null
  readonly paused: boolean
  readonly state: "ACTIVE" | "PAUSED" | "DISABLED"
  readonly disabledReason: string | null
  readonly version: number
  readonly createdAt: string
  readonly updatedAt: string
  readonly secret?: string | undefined
}

export type Org = {
  readonly id: string
  readonly name: string | null
  readonly suspended: string | null
  readonly limits: OrgLimits
  readonly retention: OrgRetention
  readonly retry: RetryPolicy | null
  readonly destinations: number
  readonly waiting: number
  readonly deadLetters: number
  readonly replays: number
  readonly updatedAt: string | null
}

export type OrgLimits = {
  readonly acceptsPerSecond?: number | undefined
  readonly bytesPerSecond?: number | undefined
  readonly waiting?: number | undefined
  readonly destinations?: number | undefined
  readonly replays?: number | undefined
  readonly feeds?: number | undefined
}

export type OrgRetention = {
  readonly endedDays?: number | undefined
  readonly deadLetterDays?: number | undefined
}

export type ParkedStream = {
  readonly stream: string
  readonly reason: "unreadable" | "failed" | "lost"
  readonly at: string
}

export type PatientPreset = {
  readonly preset: "patient"
}

export type PaymentsPreset = {
  readonly preset: "payments"
}

export type Process = {
  readonly id: string
  readonly host: string
  readonly pid: number
  readonly roles: ReadonlyArray<string>
  readonly version: string
  readonly broker: boolean
  readonly since: string
  readonly lastSeen: string
  readonly alive: boolean
  readonly clockOffsetMs: number | null
}

export type ProcessList = {
  readonly items: ReadonlyArray<Process>
  readonly nextCursor: string | null
  readonly troubles: ReadonlyArray<TroubleInFull>
}

export type Projection = {
  readonly name: string
  readonly live: LiveProjection | null
  readonly build: ProjectionBuild | null
}

export type ProjectionBuild = {
  readonly generation: number
  readonly version: number
  readonly facts: number
  readonly startedAt: string
  readonly total: number
  readonly factsPerSecond: number | null
  readonly secondsLeft: number | null
}

export type ProjectionList = {
  readonly items: ReadonlyArray<Projection>
  readonly stall: Stall | null
}

export type PublishedEvent = {
  readonly id: string
  readonly orgId: string
  readonly eventType: string
  readonly matched: number
  readonly dossierId: string | null
  readonly orderingKey: string | null
  readonly correlationId: string | null
  readonly metadata: { readonly [name: string]: string } | null
  readonly deliverAt: string | null
  readonly expiresAt: string | null
  readonly createdAt: string
  readonly bodyErased: boolean
}

export type Readiness = {
  readonly status: "ok"
  readonly rabbitmq?: {
    readonly status: "ok" | "away"
    readonly since: string
  } | undefined
  readonly troubles?: ReadonlyArray<Trouble> | undefined
}

export type RecoverWebhookEndpoint = {
  readonly since: string
  readonly until?: string | null | undefined
  readonly statuses?: ReadonlyArray<"FAILED" | "DEAD_LETTER"> | null | undefined
  readonly reason?: string | null | undefined
  readonly idempotencyKey?: string | null | undefined
}

export type Replay = {
  readonly id: string
  readonly status: "RUNNING" | "COMPLETED" | "CANCELLED"
  readonly does: "replay" | "send" | "dismiss" | "cancel"
  readonly to: string | null
  readonly matched: number
  readonly searching: boolean
  readonly replayed: number
  readonly skipped: number
  readonly filter: {
    readonly to?: string | undefined
    readonly channel?: string | undefined
    readonly errorCode?: string | undefined
    readonly statuses?: ReadonlyArray<"FAILED" | "DEAD_LETTER"> | undefined
    readonly dismissed?: boolean | undefined
    readonly after?: string | undefined
    readonly before?: string | undefined
  } | null
  readonly ids: ReadonlyArray<string> | null
  readonly missed: {
    readonly to: string
    readonly since: string
  } | null
  readonly waiting: {
    readonly to?: string | undefined
    readonly channel?: string | undefined
    readonly eventType?: string | undefined
    readonly correlationId?: string | undefined
    readonly createdAfter?: string | undefined
    readonly createdBefore?: string | undefined
  } | null
  readonly outcome: {
    readonly arrived: number
    readonly sent: number
    readonly failed: number
    readonly waiting: number
    readonly ended: number
    readonly asOf: string
    readonly behindSeconds: number
  } | null
  readonly reason: string | null
  readonly requestedAt: string
  readonly endedAt: string | null
}

export type ReplayCommand = {
  readonly reason?: string | null | undefined
  readonly payloadJson?: unknown | undefined
}

export type ReplayMissingToWebhookEndpoint = {
  readonly since: string
  readonly reason?: string | null | undefined
  readonly idempotencyKey?: string | null | undefined
}

export type ReplayPreview = {
  readonly matched: number
  readonly contradicted: number
}

export type ReplayRequest = {
  readonly filter?: DeadLetterFilter | null | undefined
  readonly ids?: ReadonlyArray<string> | null | undefined
  readonly preview?: boolean | null | undefined
  readonly reason?: string | null | undefined
  readonly idempotencyKey?: string | null | undefined
  readonly to?: string | null | undefined
}

export type ResendCommand = {
  readonly to?: string | null | undefined
  readonly payloadJson?: unknown | undefined
}

export type Retried = {
  readonly streams: number
}

/** When failed attempts are repeated. Left out: as the org or the channel says. */
export type RetryPolicy = ScheduleRetry | ExponentialRetry | LinearRetry | FixedRetry | WebhookPreset | WhatsappPreset | PaymentsPreset | PatientPreset

export type RotateWebhookEndpointSecret = {
  readonly graceSeconds?: number | null | undefined
  readonly secret?: string | null | undefined
}

export type ScheduleRetry = {
  readonly strategy: "schedule"
  readonly waitsMs: ReadonlyArray<number>
  readonly attemptsMax?: number | undefined
  readonly ageMaxMs?: number | undefined
  readonly jitter?: ReadonlyArray<number> | undefined
}

export type SetOrg = {
  readonly name?: string | null | undefined
  readonly suspended?: string | null | undefined
  readonly limits?: OrgLimits | null | undefined
  readonly retry?: RetryPolicy | null | undefined
  readonly retention?: OrgRetention | null | undefined
}

/** An open transaction of the database server. No projection and no feed reads on until it has ended. */
export type Stall = {
  readonly pid: number
  readonly application: string
  readonly since: string
  readonly seconds: number
}

export type Stats = {
  readonly byStatus: { readonly [name: string]: number }
  readonly byChannel: { readonly [name: string]: { readonly [name: string]: number } }
  readonly oldestDueAt: string | null
  readonly receipts: {
    readonly waiting: number
    readonly parked: number
  }
  readonly asOf: string
  readonly behindSeconds: number
  readonly troubles: ReadonlyArray<Trouble>
}

export type StreamFact = {
  readonly version: number
  readonly name: string
  readonly type: string
  readonly at: string
  readonly data: unknown
}

export type TestWebhookEndpoint = {
  readonly eventType?: string | null | undefined
}

export type Trouble = {
  readonly reason: "NO_WORKER" | "NO_PROJECTOR" | "NO_RELAY" | "PROJECTION_BEHIND" | "LOG_STALLED" | "LONG_TRANSACTION" | "PARKED"
  readonly says: string
  readonly since: string | null
}

export type TroubleInFull = {
  readonly reason: "NO_WORKER" | "NO_PROJECTOR" | "NO_RELAY" | "PROJECTION_BEHIND" | "LOG_STALLED" | "LONG_TRANSACTION" | "PARKED"
  readonly says: string
  readonly since: string | null
  readonly transaction: {
    readonly kind: "transaction" | "prepared" | "slot"
    readonly pid: number | null
    readonly name: string
    readonly database: string | null
    readonly since: string | null
  } | null
}

/** All messages that wait and match; {} means all that wait. */
export type WaitingFilter = {
  readonly to?: string | undefined
  readonly channel?: string | undefined
  readonly eventType?: string | undefined
  readonly correlationId?: string | undefined
  readonly createdAfter?: string | undefined
  readonly createdBefore?: string | undefined
}

export type WebhookEndpoint = {
  readonly id: string
  readonly orgId: string
  readonly url: string
  readonly eventTypes: ReadonlyArray<string> | null
  readonly description: string | null
  readonly signature: "standard" | "ed25519" | "legacy"
  readonly headers: { readonly [name: string]: string }
  readonly disableAfterMs: number
  readonly caCertificate: string | null
  readonly clientCertificate: string | null
  readonly retry: RetryPolicy | null
  readonly rateLimit: {
    readonly limit: number
    readonly periodMs: number
  } | null
  readonly maxInFlight: number
  readonly timeoutMs: number
  readonly onDeadLetter: "block" | "skip"
  readonly publicKey: string | null
  readonly paused: boolean
  readonly state: "ACTIVE" | "PAUSED" | "DISABLED"
  readonly disabledReason: string | null
  readonly version: number
  readonly createdAt: string
  readonly updatedAt: string
}

export type WebhookEndpointSecret = {
  readonly secret?: string | undefined
  readonly publicKey?: string | undefined
  readonly previousUntil: string | null
}

export type WebhookPreset = {
  readonly preset: "webhook"
}

export type WhatsAppAccount = {
  readonly id: string
  readonly orgId: string
  readonly phoneNumberId: string
  readonly graphVersion: string
  readonly verifySignature: boolean
  readonly reconcile: {
    readonly waitMs: number
    readonly otherwise: "deadLetter" | "resend"
  }
  readonly retry: RetryPolicy | null
  readonly rateLimit: {
    readonly limit: number
    readonly periodMs: number
  }
  readonly maxInFlight: number
  readonly timeoutMs: number
  readonly onDeadLetter: "block" | "skip"
  readonly paused: boolean
  readonly state: "ACTIVE" | "PAUSED" | "DISABLED"
  readonly disabledReason: string | null
  readonly version: number
  readonly createdAt: string
  readonly updatedAt: string
}

export type WhatsAppNotice = {
  readonly entry: ReadonlyArray<unknown>
}

export type WhatsappPreset = {
  readonly preset: "whatsapp"
}

/** Every route of the service, by group. */
export interface Api {
  readonly messages: {
    /** Send a message. 201 when it is stored; 200 with the same message when the key was used for it before. */
    send(body: MessageRequest, options?: KeyedCallOptions): Promise<Message>
    /** List messages, newest first. Read from a projection: asOf says how far it is. */
    list(query?: { limit?: number | undefined; cursor?: string | undefined; channel?: string | undefined; to?: string | undefined; eventType?: string | undefined; dossierId?: string | undefined; correlationId?: string | undefined; createdAfter?: string | undefined; createdBefore?: string | undefined; status?: "QUEUED" | "SENDING" | "SENT" | "DELIVERED" | "FAILED" | "DEAD_LETTER" | "CANCELLED" | "EXPIRED" | undefined; updatedAfter?: string | undefined; idempotencyKey?: string | undefined; metadata?: string | undefined; errorCode?: string | undefined; attempts?: number | undefined }, options?: CallOptions): Pages<Message>
    /** Send up to 1,000 messages, each answered on its own and in its place. */
    sendBatch(body: MessageBatch, options?: CallOptions): Promise<MessageBatchAnswer>
    /** One message, folded from its facts: always current, or as it was at a time. */
    get(id: string, query?: { at?: string | undefined }, options?: CallOptions): Promise<Message>
    /** Where a message is, why, and what comes next: now, or as it was known at a time. */
    explanation(id: string, query?: { at?: string | undefined }, options?: CallOptions): Promise<Explanation>
    /** Every fact of a message, with the status it had after each. */
    events(id: string, query?: { limit?: number | undefined; cursor?: string | undefined }, options?: CallOptions): Pages<Event>
    /** Every try to deliver a message, with what the far side answered. */
    attempts(id: string, query?: { limit?: number | undefined; cursor?: string | undefined }, options?: CallOptions): Pages<Attempt>
    /** Cancel a message that has not been sent. */
    cancel(id: string, body?: CommandRequest, options?: CallOptions): Promise<Message>
    /** Make a message due now that waits for a retry or for its time. A pause, a circuit and a rate limit stay. */
    retryNow(id: string, options?: CallOptions): Promise<Message>
    /** Send a message again that ended in FAILED or DEAD_LETTER, as it was or with another body. */
    replay(id: string, body?: ReplayCommand, options?: CallOptions): Promise<Message>
    /** Take a dead letter from the list of those that want somebody. It stays, and can still be replayed. */
    dismiss(id: string, body?: CommandRequest, options?: CallOptions): Promise<Message>
    /** Send any message again as a new one that names it, whatever became of it, perhaps to another destination. */
    resend(id: string, body?: ResendCommand, options?: KeyedCallOptions): Promise<Message>
    /** Erase a message's body and the answers to it at once. Its facts stay; what was not sent is never sent. */
    erase(id: string, body?: CommandRequest, options?: CallOptions): Promise<Message>
    /** The body of a message, byte for byte as it is delivered. 410 when it was erased. */
    body(id: string, options?: CallOptions): Promise<unknown>
    /** How many messages are in each status, per channel too, and since when the longest overdue one waits. */
    stats(options?: CallOptions): Promise<Stats>
    /** The stored facts of a stream, such as message-<id>, circuit-<destination> or replay-<id>, as they were written. What is not about messages needs the scope that guards it too, such as endpoints:read for a circuit. */
    stream(stream: string, query?: { limit?: number | undefined; cursor?: string | undefined }, options?: CallOptions): Pages<StreamFact>
  }
  readonly events: {
    /** Publish an event: it becomes a message for every webhook endpoint that wants its type. 201 when all of it is stored; 200 with the same event when the key was used for it before. */
    publish(body: EventRequest, options?: KeyedCallOptions): Promise<PublishedEvent>
    /** List events, newest first. */
    list(query?: { limit?: number | undefined; cursor?: string | undefined; eventType?: string | undefined; correlationId?: string | undefined; dossierId?: string | undefined; createdAfter?: string | undefined; createdBefore?: string | undefined }, options?: CallOptions): Pages<PublishedEvent>
    /** Publish up to 1,000 events, each answered on its own and in its place. */
    publishBatch(body: EventBatch, options?: CallOptions): Promise<EventBatchAnswers>
    /** One event, with its data. */
    get(id: string, options?: CallOptions): Promise<EventWithData>
    /** The messages that an event became, each as it is now. */
    messages(id: string, query?: { limit?: number | undefined; cursor?: string | undefined }, options?: CallOptions): Pages<Message>
    /** Erase an event's body, and the bodies and answers of all its messages, at once. Facts stay; what was not sent is never sent. */
    erase(id: string, body?: CommandRequest, options?: CallOptions): Promise<PublishedEvent>
  }
  readonly eventTypes: {
    /** Add a type to the org's catalogue of event types. */
    create(body: CreateEventType, options?: CallOptions): Promise<EventType>
    /** List the org's event types by name; archived ones with archived=true. */
    list(query?: { limit?: number | undefined; cursor?: string | undefined; archived?: "true" | "false" | undefined }, options?: CallOptions): Pages<EventType>
    /** One event type, also an archived one. */
    get(name: string, options?: CallOptions): Promise<EventType>
    /** Give an event type another definition, as a whole. It brings an archived type back. */
    change(name: string, body?: ChangeEventType, options?: CallOptions): Promise<EventType>
    /** Archive an event type. Its name stays taken, and what was published stays. */
    archive(name: string, options?: CallOptions): Promise<void>
  }
  readonly deadLetters: {
    /** Dead letters, the last to die first. They ended in FAILED or DEAD_LETTER and were neither replayed nor dismissed. */
    list(query?: { limit?: number | undefined; cursor?: string | undefined; to?: string | undefined; channel?: string | undefined; errorCode?: string | undefined; after?: string | undefined; before?: string | undefined; dismissed?: "true" | "false" | undefined }, options?: CallOptions): Pages<DeadLetter>
    /** Replay all dead letters that match, or these. 202 when it is sure to happen; a preview only counts. */
    replay(body: ReplayRequest, options?: CallOptions): Promise<ReplayPreview | Replay>
    /** Dismiss all dead letters that match, or these: a job like a replay. They stay, and can still be replayed. */
    dismissMany(body: DismissRequest, options?: CallOptions): Promise<ReplayPreview | Replay>
    /** Cancel all messages that wait and match: a job like a replay. It survives every crash. */
    cancelWaiting(body: CancelWaitingRequest, options?: CallOptions): Promise<Replay>
    /** List replays, newest first. */
    replays(query?: { limit?: number | undefined; cursor?: string | undefined }, options?: CallOptions): Pages<Replay>
    /** How far a replay is. */
    getReplay(id: string, options?: CallOptions): Promise<Replay>
    /** Replay no further message. Those that were replayed stay so. */
    cancelReplay(id: string, body?: CommandRequest, options?: CallOptions): Promise<Replay>
  }
  readonly erasures: {
    /** Erase a person from every message and event that one field finds. What still waits is cancelled. */
    request(body: ErasureRequest, options?: CallOptions): Promise<Erasure>
    /** List erasures, newest first. */
    list(query?: { limit?: number | undefined; cursor?: string | undefined }, options?: CallOptions): Pages<Erasure>
    /** One erasure, and how far it is. */
    get(id: string, options?: CallOptions): Promise<Erasure>
  }
  readonly channels: {
    /** The channels this Posthaste has. */
    list(options?: CallOptions): Promise<ChannelList>
  }
  readonly destinations: {
    /** Destinations of all kinds: what holds each up, and how much waits. By id, by what waits, or by the oldest. Rates come from a projection: asOf is theirs. */
    list(query?: { limit?: number | undefined; cursor?: string | undefined; sort?: "id" | "waiting" | "oldest" | undefined; channel?: string | undefined; paused?: "true" | "false" | undefined; circuit?: "CLOSED" | "OPEN" | "HALF_OPEN" | "HELD" | undefined; waiting?: "true" | "false" | undefined }, options?: CallOptions): Pages<Destination>
    /** One destination of any kind, with what happened to it. */
    get(id: string, options?: CallOptions): Promise<DestinationWithHistory>
    /** Send nothing to a destination until it is resumed. Its messages wait. */
    pause(id: string, body?: CommandRequest, options?: CallOptions): Promise<Destination>
    /** Send to a destination again, beginning with what has waited. */
    resume(id: string, body?: CommandRequest, options?: CallOptions): Promise<Destination>
    /** Send to a destination again that was disabled, beginning with what has waited. */
    enable(id: string, body?: CommandRequest, options?: CallOptions): Promise<Destination>
    /** Stop calling a destination until its circuit is reset. */
    hold(id: string, body?: CommandRequest, options?: CallOptions): Promise<Destination>
    /** Close the circuit of a destination by hand. Traffic comes back slowly. */
    reset(id: string, body?: CommandRequest, options?: CallOptions): Promise<Destination>
    /** Pause all destinations of the org but its alert targets. */
    pauseAll(body?: CommandAllDestinations, options?: CallOptions): Promise<CommandedDestinations>
    /** Resume all destinations of the org, or those that were paused for one reason. */
    resumeAll(body?: CommandAllDestinations, options?: CallOptions): Promise<CommandedDestinations>
    /** Enable all destinations of the org that were disabled. */
    enableAll(body?: CommandAllDestinations, options?: CallOptions): Promise<CommandedDestinations>
    /** Hold the circuits of all destinations of the org but its alert targets. */
    holdAll(body?: CommandAllDestinations, options?: CallOptions): Promise<CommandedDestinations>
    /** Reset the circuits of all destinations of the org, or those that were held for one reason. */
    resetAll(body?: CommandAllDestinations, options?: CallOptions): Promise<CommandedDestinations>
  }
  readonly circuits: {
    /** The circuit of every destination of the org. */
    list(query?: { limit?: number | undefined; cursor?: string | undefined }, options?: CallOptions): Pages<Circuit>
    /** The circuit of one destination. */
    get(id: string, options?: CallOptions): Promise<Circuit>
    /** Stop calling a destination until its circuit is reset. What waits for it stays where it is. */
    hold(id: string, body?: CommandRequest, options?: CallOptions): Promise<Circuit>
    /** Close a circuit by hand. Traffic comes back slowly. */
    reset(id: string, body?: CommandRequest, options?: CallOptions): Promise<Circuit>
  }
  readonly recovery: {
    /** Send the endpoint a test. The message is real and signed, and its body says that it is a test. */
    test(id: string, body?: TestWebhookEndpoint, options?: CallOptions): Promise<Message>
    /** Send the endpoint everything again that ended badly in this time. A replay, as in GET /replays/{id}. */
    recover(id: string, body: RecoverWebhookEndpoint, options?: CallOptions): Promise<Replay>
    /** Send the endpoint the events that it missed. Every event since then that it wants now and never had a message of; a replay, as in GET /replays/{id}. */
    replayMissing(id: string, body: ReplayMissingToWebhookEndpoint, options?: CallOptions): Promise<Replay>
  }
  readonly alertTargets: {
    /** Add a target for the org's alerts. A webhook's secret is shown in this answer only. */
    create(body: CreateAlertTarget, options?: CallOptions): Promise<NewAlertTarget>
    /** List the org's alert targets. */
    list(query?: { limit?: number | undefined; cursor?: string | undefined }, options?: CallOptions): Pages<AlertTarget>
    /** One alert target. */
    get(id: string, options?: CallOptions): Promise<AlertTarget>
    /** Change an alert target. PagerDuty's routing key is needed again, else 422, when the URL leads to another place. */
    change(id: string, body?: ChangeAlertTarget, options?: CallOptions): Promise<AlertTarget>
    /** Remove an alert target, its destination and its secret. */
    remove(id: string, options?: CallOptions): Promise<void>
    /** Send a test alert, and that it is over. */
    test(id: string, options?: CallOptions): Promise<AlertTest>
  }
  readonly dossiers: {
    /** What the people behind a dossier last answered for a channel, and every answer before. */
    getConsent(id: string, channel: string, options?: CallOptions): Promise<Consent>
    /** Record an answer. When it is a withdrawal, messages of the dossier that still wait are cancelled. */
    putConsent(id: string, channel: string, body: ConsentRequest, options?: CallOptions): Promise<Consent>
    /** Withdraw a consent that was answered before, with the source api. */
    withdrawConsent(id: string, channel: string, options?: CallOptions): Promise<Consent>
    /** The timeline of a dossier, newest first. */
    activity(id: string, query?: { limit?: number | undefined; cursor?: string | undefined }, options?: CallOptions): Pages<Activity>
  }
  readonly audit: {
    /** What was done and by whom, newest first. */
    list(query?: { limit?: number | undefined; cursor?: string | undefined; operation?: "CREATED" | "SENT" | "UPDATED" | "FAILED" | "CANCELLED" | "EXPIRED" | "HURRIED" | "DISMISSED" | "REPLAYED" | "ERASED" | "BLOCKED_BY_POLICY" | "CONSENT_GRANTED" | "CONSENT_WITHDRAWN" | "ADDRESSED" | "SECRETS_CHANGED" | "SECRET_ROTATED" | "SECRET_SHOWN" | "BODY_READ" | "LOGIN_REFUSED" | "PAUSED" | "RESUMED" | "DISABLED" | "ENABLED" | "REMOVED" | "REVOKED" | "HELD" | "RESET" | undefined; actor?: string | undefined; subject?: string | undefined; from?: string | undefined; to?: string | undefined }, options?: CallOptions): Pages<AuditEntry>
  }
  readonly apiKeys: {
    /** Make a key that acts for an org. A key that makes another can give it no more than it has itself. */
    create(body: CreateApiKey, options?: CallOptions): Promise<NewApiKey>
    /** List the keys that were not revoked: of all orgs or of one, or of the own org. */
    list(query?: { orgId?: string | undefined; limit?: number | undefined; cursor?: string | undefined }, options?: CallOptions): Pages<ApiKey>
    /** Revoke a key. It is refused everywhere within a second, and what it follows ends. */
    revoke(id: string, options?: CallOptions): Promise<void>
  }
  readonly projections: {
    /** Every projection: how far it is, and what keeps all of them from reading on, if anything does. */
    list(options?: CallOptions): Promise<ProjectionList>
    /** One projection, and how far its build is. */
    get(name: string, options?: CallOptions): Promise<Projection>
    /** Build a projection anew beside the one that serves. It takes its place when it has caught up. Asking again shows the same build. */
    rebuild(name: string, options?: CallOptions): Promise<Projection>
  }
  readonly processes: {
    /** The processes of this Posthaste: what each does, since when, and when it was last seen. And what is wrong with it as a whole. */
    list(options?: CallOptions): Promise<ProcessList>
  }
  readonly orgs: {
    /** List all orgs that have settings, keys, destinations or messages, with counts. */
    list(query?: { limit?: number | undefined; cursor?: string | undefined }, options?: CallOptions): Pages<Org>
    /** What is set for an org, and what it has. An org that nobody set anything for has no settings. */
    get(id: string, options?: CallOptions): Promise<Org>
    /** Set an org's name, limits, retry policy and retention, suspend it or let it go on. What is not named is unset. */
    set(id: string, body?: SetOrg, options?: CallOptions): Promise<Org>
  }
  readonly parked: {
    /** The streams of all orgs that can't be processed: messages, and what else has facts. */
    list(query?: { limit?: number | undefined; cursor?: string | undefined }, options?: CallOptions): Pages<ParkedStream>
    /** Try all of them again now, or one. What can't be read stays parked. */
    retry(query?: { stream?: string | undefined }, options?: CallOptions): Promise<Retried>
  }
  readonly health: {
    /** The process runs. */
    live(options?: CallOptions): Promise<Health>
    /** The store answers. */
    ready(options?: CallOptions): Promise<Readiness>
  }
  readonly webhookEndpoints: {
    /** Add a webhook endpoint. */
    create(body: CreateWebhookEndpoint, options?: CallOptions): Promise<NewWebhookEndpoint>
    /** List the org's webhook endpoints. */
    list(query?: { limit?: number | undefined; cursor?: string | undefined }, options?: CallOptions): Pages<WebhookEndpoint>
    /** One webhook endpoint. */
    get(id: string, options?: CallOptions): Promise<WebhookEndpoint>
    /** Change a webhook endpoint. Changes apply from the next attempt. One that moves it to another place must bring its secrets again: 422 names those that are missing. */
    change(id: string, body?: ChangeWebhookEndpoint, options?: CallOptions): Promise<WebhookEndpoint>
    /** Remove a webhook endpoint, its secrets and its headers. */
    remove(id: string, options?: CallOptions): Promise<void>
    /** Send nothing to a webhook endpoint until it is resumed. Its messages wait. */
    pause(id: string, body?: CommandRequest, options?: CallOptions): Promise<WebhookEndpoint>
    /** Send to a webhook endpoint again, beginning with what has waited. */
    resume(id: string, options?: CallOptions): Promise<WebhookEndpoint>
    /** Send to a webhook endpoint again that was disabled, beginning with what has waited. */
    enable(id: string, options?: CallOptions): Promise<WebhookEndpoint>
    /** How the webhook endpoint does: success and latency of the last hour and day, what waits, since when it fails. */
    health(id: string, options?: CallOptions): Promise<DestinationHealth>
    /** The retry policy that applies to the webhook endpoint: its own, its org's, or the default of webhook. */
    getRetry(id: string, options?: CallOptions): Promise<RetryPolicy>
    /** Give the webhook endpoint a retry policy of its own. It applies to messages accepted from now on. */
    putRetry(id: string, body: RetryPolicy, options?: CallOptions): Promise<RetryPolicy>
    /** Return the webhook endpoint to the policy of its org, or the default of webhook. */
    removeRetry(id: string, options?: CallOptions): Promise<void>
  }
  readonly webhookEndpointSecrets: {
    /** The secret of the webhook endpoint. The audit tells who read it. */
    readSecret(id: string, options?: CallOptions): Promise<WebhookEndpointSecret>
    /** Give the webhook endpoint a new secret. Until the grace ends every request carries a signature by each. */
    rotateSecret(id: string, body?: RotateWebhookEndpointSecret, options?: CallOptions): Promise<WebhookEndpointSecret>
  }
  readonly httpTargets: {
    /** Add an HTTP target. */
    create(body: CreateHttpTarget, options?: CallOptions): Promise<HttpTarget>
    /** List the org's HTTP targets. */
    list(query?: { limit?: number | undefined; cursor?: string | undefined }, options?: CallOptions): Pages<HttpTarget>
    /** One HTTP target. */
    get(id: string, options?: CallOptions): Promise<HttpTarget>
    /** Change an HTTP target. Changes apply from the next attempt. One that moves it to another place must bring its secrets again: 422 names those that are missing. */
    change(id: string, body?: ChangeHttpTarget, options?: CallOptions): Promise<HttpTarget>
    /** Remove an HTTP target, its secrets and its headers. */
    remove(id: string, options?: CallOptions): Promise<void>
    /** Send nothing to an HTTP target until it is resumed. Its messages wait. */
    pause(id: string, body?: CommandRequest, options?: CallOptions): Promise<HttpTarget>
    /** Send to an HTTP target again, beginning with what has waited. */
    resume(id: string, options?: CallOptions): Promise<HttpTarget>
    /** Send to an HTTP target again that was disabled, beginning with what has waited. */
    enable(id: string, options?: CallOptions): Promise<HttpTarget>
    /** How the HTTP target does: success and latency of the last hour and day, what waits, since when it fails. */
    health(id: string, options?: CallOptions): Promise<DestinationHealth>
    /** The retry policy that applies to the HTTP target: its own, its org's, or the default of http. */
    getRetry(id: string, options?: CallOptions): Promise<RetryPolicy>
    /** Give the HTTP target a retry policy of its own. It applies to messages accepted from now on. */
    putRetry(id: string, body: RetryPolicy, options?: CallOptions): Promise<RetryPolicy>
    /** Return the HTTP target to the policy of its org, or the default of http. */
    removeRetry(id: string, options?: CallOptions): Promise<void>
  }
  readonly amqpTargets: {
    /** Add an AMQP target. */
    create(body: CreateAmqpTarget, options?: CallOptions): Promise<AmqpTarget>
    /** List the org's AMQP targets. */
    list(query?: { limit?: number | undefined; cursor?: string | undefined }, options?: CallOptions): Pages<AmqpTarget>
    /** One AMQP target. */
    get(id: string, options?: CallOptions): Promise<AmqpTarget>
    /** Change an AMQP target. Changes apply from the next attempt. One that moves it to another place must bring its secrets again: 422 names those that are missing. */
    change(id: string, body?: ChangeAmqpTarget, options?: CallOptions): Promise<AmqpTarget>
    /** Remove an AMQP target, its secrets and its headers. */
    remove(id: string, options?: CallOptions): Promise<void>
    /** Send nothing to an AMQP target until it is resumed. Its messages wait. */
    pause(id: string, body?: CommandRequest, options?: CallOptions): Promise<AmqpTarget>
    /** Send to an AMQP target again, beginning with what has waited. */
    resume(id: string, options?: CallOptions): Promise<AmqpTarget>
    /** Send to an AMQP target again that was disabled, beginning with what has waited. */
    enable(id: string, options?: CallOptions): Promise<AmqpTarget>
    /** How the AMQP target does: success and latency of the last hour and day, what waits, since when it fails. */
    health(id: string, options?: CallOptions): Promise<DestinationHealth>
    /** The retry policy that applies to the AMQP target: its own, its org's, or the default of amqp. */
    getRetry(id: string, options?: CallOptions): Promise<RetryPolicy>
    /** Give the AMQP target a retry policy of its own. It applies to messages accepted from now on. */
    putRetry(id: string, body: RetryPolicy, options?: CallOptions): Promise<RetryPolicy>
    /** Return the AMQP target to the policy of its org, or the default of amqp. */
    removeRetry(id: string, options?: CallOptions): Promise<void>
  }
  readonly whatsAppAccounts: {
    /** Add a WhatsApp account. 409 when there is one of its name. */
    create(body: CreateWhatsAppAccount, options?: CallOptions): Promise<WhatsAppAccount>
    /** List the org's WhatsApp accounts. */
    list(query?: { limit?: number | undefined; cursor?: string | undefined }, options?: CallOptions): Pages<WhatsAppAccount>
    /** One WhatsApp account. */
    get(id: string, options?: CallOptions): Promise<WhatsAppAccount>
    /** Change a WhatsApp account. Changes apply from the next attempt. */
    change(id: string, body?: ChangeWhatsAppAccount, options?: CallOptions): Promise<WhatsAppAccount>
    /** Remove a WhatsApp account, its secrets and its headers. */
    remove(id: string, options?: CallOptions): Promise<void>
    /** Send nothing to a WhatsApp account until it is resumed. Its messages wait. */
    pause(id: string, body?: CommandRequest, options?: CallOptions): Promise<WhatsAppAccount>
    /** Send to a WhatsApp account again, beginning with what has waited. */
    resume(id: string, options?: CallOptions): Promise<WhatsAppAccount>
    /** Send to a WhatsApp account again that was disabled, beginning with what has waited. */
    enable(id: string, options?: CallOptions): Promise<WhatsAppAccount>
    /** How the WhatsApp account does: success and latency of the last hour and day, what waits, since when it fails. */
    health(id: string, options?: CallOptions): Promise<DestinationHealth>
    /** The retry policy that applies to the WhatsApp account: its own, its org's, or the default of whatsapp. */
    getRetry(id: string, options?: CallOptions): Promise<RetryPolicy>
    /** Give the WhatsApp account a retry policy of its own. It applies to messages accepted from now on. */
    putRetry(id: string, body: RetryPolicy, options?: CallOptions): Promise<RetryPolicy>
    /** Return the WhatsApp account to the policy of its org, or the default of whatsapp. */
    removeRetry(id: string, options?: CallOptions): Promise<void>
  }
}

/** How each route is called: its method, its path, and what it takes and answers. */
export const routes: Readonly<Record<string, Readonly<Record<string, Route>>>> = {
  messages: {
    send: ["POST","/api/v1/outbound/messages","body key"],
    list: ["GET","/api/v1/outbound/messages","query pages"],
    sendBatch: ["POST","/api/v1/outbound/messages/batch","body keyInEach:messages"],
    get: ["GET","/api/v1/outbound/messages/{id}","query"],
    explanation: ["GET","/api/v1/outbound/messages/{id}/explanation","query"],
    events: ["GET","/api/v1/outbound/messages/{id}/events","query pages"],
    attempts: ["GET","/api/v1/outbound/messages/{id}/attempts","query pages"],
    cancel: ["POST","/api/v1/outbound/messages/{id}/cancel","body"],
    retryNow: ["POST","/api/v1/outbound/messages/{id}/retry-now"],
    replay: ["POST","/api/v1/outbound/messages/{id}/replay","body"],
    dismiss: ["POST","/api/v1/outbound/messages/{id}/dismiss","body"],
    resend: ["POST","/api/v1/outbound/messages/{id}/resend","body key"],
    erase: ["POST","/api/v1/outbound/messages/{id}/erase","body"],
    body: ["GET","/api/v1/outbound/messages/{id}/body"],
    stats: ["GET","/api/v1/outbound/stats"],
    stream: ["GET","/api/v1/streams/{stream}","query pages"]
  },
  events: {
    publish: ["POST","/api/v1/events","body key"],
    list: ["GET","/api/v1/events","query pages"],
    publishBatch: ["POST","/api/v1/events/batch","body keyInEach:events"],
    get: ["GET","/api/v1/events/{id}"],
    messages: ["GET","/api/v1/events/{id}/messages","query pages"],
    erase: ["POST","/api/v1/events/{id}/erase","body"]
  },
  eventTypes: {
    create: ["POST","/api/v1/event-types","body"],
    list: ["GET","/api/v1/event-types","query pages"],
    get: ["GET","/api/v1/event-types/{name}"],
    change: ["PUT","/api/v1/event-types/{name}","body"],
    archive: ["DELETE","/api/v1/event-types/{name}"]
  },
  deadLetters: {
    list: ["GET","/api/v1/dead-letters","query pages"],
    replay: ["POST","/api/v1/dead-letters/replay","body keyInBody"],
    dismissMany: ["POST","/api/v1/dead-letters/dismiss","body keyInBody"],
    cancelWaiting: ["POST","/api/v1/outbound/messages/cancel","body keyInBody"],
    replays: ["GET","/api/v1/replays","query pages"],
    getReplay: ["GET","/api/v1/replays/{id}"],
    cancelReplay: ["POST","/api/v1/replays/{id}/cancel","body"]
  },
  erasures: {
    request: ["POST","/api/v1/erasures","body"],
    list: ["GET","/api/v1/erasures","query pages"],
    get: ["GET","/api/v1/erasures/{id}"]
  },
  channels: {
    list: ["GET","/api/v1/channels"]
  },
  destinations: {
    list: ["GET","/api/v1/destinations","query pages"],
    get: ["GET","/api/v1/destinations/{id}"],
    pause: ["POST","/api/v1/destinations/{id}/pause","body"],
    resume: ["POST","/api/v1/destinations/{id}/resume","body"],
    enable: ["POST","/api/v1/destinations/{id}/enable","body"],
    hold: ["POST","/api/v1/destinations/{id}/hold","body"],
    reset: ["POST","/api/v1/destinations/{id}/reset","body"],
    pauseAll: ["POST","/api/v1/destinations/pause","body"],
    resumeAll: ["POST","/api/v1/destinations/resume","body"],
    enableAll: ["POST","/api/v1/destinations/enable","body"],
    holdAll: ["POST","/api/v1/destinations/hold","body"],
    resetAll: ["POST","/api/v1/destinations/reset","body"]
  },
  circuits: {
    list: ["GET","/api/v1/circuits","query pages"],
    get: ["GET","/api/v1/circuits/{id}"],
    hold: ["POST","/api/v1/circuits/{id}/hold","body"],
    reset: ["POST","/api/v1/circuits/{id}/reset","body"]
  },
  recovery: {
    test: ["POST","/api/v1/webhook-endpoints/{id}/test","body"],
    recover: ["POST","/api/v1/webhook-endpoints/{id}/recover","body keyInBody"],
    replayMissing: ["POST","/api/v1/webhook-endpoints/{id}/replay-missing","body keyInBody"]
  },
  alertTargets: {
    create: ["POST","/api/v1/alert-targets","body"],
    list: ["GET","/api/v1/alert-targets","query pages"],
    get: ["GET","/api/v1/alert-targets/{id}"],
    change: ["PATCH","/api/v1/alert-targets/{id}","body"],
    remove: ["DELETE","/api/v1/alert-targets/{id}"],
    test: ["POST","/api/v1/alert-targets/{id}/test"]
  },
  dossiers: {
    getConsent: ["GET","/api/v1/dossiers/{id}/consents/{channel}"],
    putConsent: ["PUT","/api/v1/dossiers/{id}/consents/{channel}","body"],
    withdrawConsent: ["DELETE","/api/v1/dossiers/{id}/consents/{channel}"],
    activity: ["GET","/api/v1/dossiers/{id}/activity","query pages"]
  },
  audit: {
    list: ["GET","/api/v1/audit","query pages"]
  },
  apiKeys: {
    create: ["POST","/api/v1/api-keys","body"],
    list: ["GET","/api/v1/api-keys","query pages"],
    revoke: ["DELETE","/api/v1/api-keys/{id}"]
  },
  projections: {
    list: ["GET","/api/v1/projections"],
    get: ["GET","/api/v1/projections/{name}"],
    rebuild: ["POST","/api/v1/projections/{name}/rebuild"]
  },
  processes: {
    list: ["GET","/api/v1/processes"]
  },
  orgs: {
    list: ["GET","/api/v1/orgs","query pages"],
    get: ["GET","/api/v1/orgs/{id}"],
    set: ["PUT","/api/v1/orgs/{id}","body"]
  },
  parked: {
    list: ["GET","/api/v1/parked","query pages"],
    retry: ["POST","/api/v1/parked/retry","query"]
  },
  health: {
    live: ["GET","/healthz"],
    ready: ["GET","/readyz"]
  },
  webhookEndpoints: {
    create: ["POST","/api/v1/webhook-endpoints","body"],
    list: ["GET","/api/v1/webhook-endpoints","query pages"],
    get: ["GET","/api/v1/webhook-endpoints/{id}"],
    change: ["PATCH","/api/v1/webhook-endpoints/{id}","body"],
    remove: ["DELETE","/api/v1/webhook-endpoints/{id}"],
    pause: ["POST","/api/v1/webhook-endpoints/{id}/pause","body"],
    resume: ["POST","/api/v1/webhook-endpoints/{id}/resume"],
    enable: ["POST","/api/v1/webhook-endpoints/{id}/enable"],
    health: ["GET","/api/v1/webhook-endpoints/{id}/health"],
    getRetry: ["GET","/api/v1/webhook-endpoints/{id}/retry-config"],
    putRetry: ["PUT","/api/v1/webhook-endpoints/{id}/retry-config","body"],
    removeRetry: ["DELETE","/api/v1/webhook-endpoints/{id}/retry-config"]
  },
  webhookEndpointSecrets: {
    readSecret: ["GET","/api/v1/webhook-endpoints/{id}/secret"],
    rotateSecret: ["POST","/api/v1/webhook-endpoints/{id}/secret/rotate","body"]
  },
  httpTargets: {
    create: ["POST","/api/v1/http-targets","body"],
    list: ["GET","/api/v1/http-targets","query pages"],
    get: ["GET","/api/v1/http-targets/{id}"],
    change: ["PATCH","/api/v1/http-targets/{id}","body"],
    remove: ["DELETE","/api/v1/http-targets/{id}"],
    pause: ["POST","/api/v1/http-targets/{id}/pause","body"],
    resume: ["POST","/api/v1/http-targets/{id}/resume"],
    enable: ["POST","/api/v1/http-targets/{id}/enable"],
    health: ["GET","/api/v1/http-targets/{id}/health"],
    getRetry: ["GET","/api/v1/http-targets/{id}/retry-config"],
    putRetry: ["PUT","/api/v1/http-targets/{id}/retry-config","body"],
    removeRetry: ["DELETE","/api/v1/http-targets/{id}/retry-config"]
  },
  amqpTargets: {
    create: ["POST","/api/v1/amqp-targets","body"],
    list: ["GET","/api/v1/amqp-targets","query pages"],
    get: ["GET","/api/v1/amqp-targets/{id}"],
    change: ["PATCH","/api/v1/amqp-targets/{id}","body"],
    remove: ["DELETE","/api/v1/amqp-targets/{id}"],
    pause: ["POST","/api/v1/amqp-targets/{id}/pause","body"],
    resume: ["POST","/api/v1/amqp-targets/{id}/resume"],
    enable: ["POST","/api/v1/amqp-targets/{id}/enable"],
    health: ["GET","/api/v1/amqp-targets/{id}/health"],
    getRetry: ["GET","/api/v1/amqp-targets/{id}/retry-config"],
    putRetry: ["PUT","/api/v1/amqp-targets/{id}/retry-config","body"],
    removeRetry: ["DELETE","/api/v1/amqp-targets/{id}/retry-config"]
  },
  whatsAppAccounts: {
    create: ["POST","/api/v1/whatsapp-accounts","body"],
    list: ["GET","/api/v1/whatsapp-accounts","query pages"],
    get: ["GET","/api/v1/whatsapp-accounts/{id}"],
    change: ["PATCH","/api/v1/whatsapp-accounts/{id}","body"],
    remove: ["DELETE","/api/v1/whatsapp-accounts/{id}"],
    pause: ["POST","/api/v1/whatsapp-accounts/{id}/pause","body"],
    resume: ["POST","/api/v1/whatsapp-accounts/{id}/resume"],
    enable: ["POST","/api/v1/whatsapp-accounts/{id}/enable"],
    health: ["GET","/api/v1/whatsapp-accounts/{id}/health"],
    getRetry: ["GET","/api/v1/whatsapp-accounts/{id}/retry-config"],
    putRetry: ["PUT","/api/v1/whatsapp-accounts/{id}/retry-config","body"],
    removeRetry: ["DELETE","/api/v1/whatsapp-accounts/{id}/retry-config"]
  }
}
