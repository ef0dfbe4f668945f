/** Every setting from the environment, read once at the start. */
import { Duration, Effect, type Redacted } from "effect"
import type { Network } from "../adapters/channels/net/addressGuard.ts"
import { type EgressProxy, parseEgressProxy } from "../adapters/channels/net/egressProxy.ts"
import { type CodeOverrides, parseCodes } from "../adapters/channels/whatsapp/errors.ts"
import type { Networks } from "../adapters/http/server/callers.ts"
import type { Options as TracingOptions } from "../adapters/otlp/OtlpTracing.ts"
import { SCHEMA_DEFAULT } from "../adapters/postgres/schemaName.ts"
import { type FactStart, factStarts } from "../application/log/publishFacts.ts"
import type { Limits } from "../application/ports/Orgs.ts"
import { type CircuitPolicy, circuitDefaults } from "../domain/circuit/policy.ts"
import type { DestinationId } from "../domain/ids.ts"
import * as certificates from "./certificate.ts"
import * as values from "./values.ts"
import { oneOf, secret, text, variable, WrongSetting, wholeNumber } from "./variables.ts"

export interface Settings {
  /** 0: any free port. */
  readonly port: number
  readonly host: string
  readonly certificate: (certificates.CertificateFiles & { readonly first: certificates.Read }) | null
  /** Null: the embedded server. */
  readonly databaseUrl: Redacted.Redacted | null
  /** Schema of the tables; installations may share a database. */
  readonly schema: string
  readonly dataDir: string
  /** Null: PostgreSQL holds the streams of messages. */
  readonly eventStoreUrl: Redacted.Redacted | null
  /** Null: no RabbitMQ of Posthaste's own. */
  readonly amqpUrl: Redacted.Redacted | null
  /** First fact to publish when it is first given. */
  readonly factsFrom: FactStart
  readonly roles: ReadonlySet<values.Role>
  /** Null only with the embedded database, which generates one. */
  readonly operatorKeys: ReadonlyArray<Redacted.Redacted> | null
  /** Read again when it changes; null when they came otherwise. */
  readonly operatorKeyFile: string | null
  /** The first seals, each opens. Null only with the embedded database, which generates one. */
  readonly encryptionKeys: ReadonlyArray<Redacted.Redacted<Uint8Array>> | null
  /** Proxies whose `X-Forwarded-For` counts. */
  readonly trustedProxies: Networks | null
  readonly connections: { readonly perAddressMax: number; readonly connectionsMax: number }
  /** Of orgs without limits of their own. */
  readonly orgLimits: Limits
  readonly allowedNetworks: ReadonlyArray<Network>
  readonly egressProxy: EgressProxy | null
  /** Silence after which other workers take over a worker's messages. */
  readonly lease: Duration.Duration
  /** Sends under way at once in this process. */
  readonly concurrency: number
  readonly circuit: CircuitPolicy
  readonly whatsappBaseUrl: URL
  /** Operator's classes of Meta's error codes. */
  readonly whatsappCodes: CodeOverrides
  /** Of messages that ended well; null: for ever. */
  readonly retention: Duration.Duration | null
  /** Null: for ever. */
  readonly deadLetterRetention: Duration.Duration | null
  /** Most that the operator may give an org; null: unlimited. */
  readonly retentionDaysMax: number | null
  /** Of metrics and health; null: none, 0: any free port. */
  readonly metricsPort: number | null
  readonly metricsDestinations: ReadonlyArray<DestinationId>
  readonly tracing: TracingSettings
}

/** From `POSTHASTE_ENCRYPTION_KEYS` or `POSTHASTE_ENCRYPTION_KEY`. */
export const encryptionKeys = Effect.gen(function* () {
  const one = yield* secret("POSTHASTE_ENCRYPTION_KEY", values.encryptionKeyOf)
  const several = yield* secret("POSTHASTE_ENCRYPTION_KEYS", values.encryptionKeysOf)
  if (one.value !== null && several.value !== null) {
    const problem = "is given beside POSTHASTE_ENCRYPTION_KEYS, which holds all keys"
    return yield* new WrongSetting({ variable: "POSTHASTE_ENCRYPTION_KEY", problem })
  }
  return several.value ?? (one.value === null ? null : [one.value])
})

/** Effect reads the exporter's own (`OTEL_EXPORTER_OTLP_…`, `OTEL_SERVICE_NAME`, …). */
type TracingSettings = Omit<TracingOptions, "version">

const tracing: Effect.Effect<TracingSettings, WrongSetting> = Effect.gen(function* () {
  // Judged for a start-up error in one line; the exporter reads it again.
  yield* variable("OTEL_EXPORTER_OTLP_ENDPOINT", values.collectorUrl)
  const sampler = yield* variable(
    "OTEL_TRACES_SAMPLER",
    oneOf(
      ...["always_on", "always_off", "traceidratio"],
      ...["parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"]
    ),
    "parentbased_always_on"
  )
  const ratio = yield* variable("OTEL_TRACES_SAMPLER_ARG", values.share, 1)
  const shares: Readonly<Record<string, number>> = { always_on: 1, always_off: 0, traceidratio: ratio }
  return {
    protocol: yield* variable("OTEL_EXPORTER_OTLP_PROTOCOL", oneOf("http/protobuf", "http/json"), "http/protobuf"),
    share: shares[sampler.replace("parentbased_", "")]!,
    parentDecides: sampler.startsWith("parentbased_")
  }
})

export interface LogSettings {
  /** Null: text on a terminal, JSON elsewhere. */
  readonly format: "json" | "text" | null
  readonly level: "debug" | "info" | "warn" | "error"
}

/** Read first: errors in other settings depend on it. */
export const logSettings: Effect.Effect<LogSettings, WrongSetting> = Effect.gen(function* () {
  return {
    format: yield* variable("POSTHASTE_LOG_FORMAT", oneOf("json", "text")),
    level: yield* variable("POSTHASTE_LOG_LEVEL", oneOf("debug", "info", "warn", "error"), "info")
  }
})

const requiredWithDatabaseUrl = (variable: string) =>
  new WrongSetting({
    variable,
    problem: "is required with DATABASE_URL: all processes on one database must share it, so none is generated"
  })

const certificate = Effect.gen(function* () {
  const files = {
    certificate: yield* variable("POSTHASTE_TLS_CERT_FILE", text),
    key: yield* variable("POSTHASTE_TLS_KEY_FILE", text)
  }
  if (files.certificate === null && files.key === null) return null
  if (files.key === null || files.certificate === null) {
    const [missing, given] =
      files.key === null
        ? [certificates.KEY_FILE, certificates.CERTIFICATE_FILE]
        : [certificates.CERTIFICATE_FILE, certificates.KEY_FILE]
    return yield* new WrongSetting({ variable: missing, problem: `is required with ${given}` })
  }
  const both = { certificate: files.certificate, key: files.key }
  const first = yield* Effect.mapError(
    Effect.fromResult(certificates.readCertificate(both, new Date())),
    (fault) => new WrongSetting(fault)
  )
  return { ...both, first }
})

const circuit = Effect.gen(function* () {
  const openMs = yield* variable("POSTHASTE_CIRCUIT_OPEN_MS", wholeNumber(100, 3_600_000), circuitDefaults.openMs)
  return {
    failuresMax: yield* variable("POSTHASTE_CIRCUIT_FAILURES", wholeNumber(1, 1_000_000), circuitDefaults.failuresMax),
    openMs,
    openMaxMs: Math.max(openMs, circuitDefaults.openMaxMs)
  }
})

export const settings: Effect.Effect<Settings, WrongSetting> = Effect.gen(function* () {
  const { databaseUrl, ...store } = yield* storeSettings
  const operator = yield* secret("POSTHASTE_OPERATOR_KEY", values.bearerKeys)
  const sealing = yield* encryptionKeys
  if (databaseUrl !== null && operator.value === null) {
    return yield* requiredWithDatabaseUrl("POSTHASTE_OPERATOR_KEY")
  }
  if (databaseUrl !== null && sealing === null) {
    return yield* requiredWithDatabaseUrl("POSTHASTE_ENCRYPTION_KEY")
  }
  return {
    port: yield* variable("PORT", wholeNumber(0, 65_535), 8080),
    host: yield* variable("HOST", text, "127.0.0.1"),
    certificate: yield* certificate,
    databaseUrl,
    ...store,
    amqpUrl: yield* variable("AMQP_URL", values.amqpUrl),
    factsFrom: yield* variable("POSTHASTE_FACTS_FROM", oneOf(...factStarts), "now"),
    roles: yield* variable("POSTHASTE_ROLES", values.roleSet, new Set(values.roles)),
    operatorKeys: operator.value,
    operatorKeyFile: operator.file,
    encryptionKeys: sealing,
    trustedProxies: yield* variable("POSTHASTE_TRUSTED_PROXIES", values.proxies),
    connections: {
      perAddressMax: yield* variable("POSTHASTE_CONNECTIONS_PER_ADDRESS", wholeNumber(1, 1_000_000), 1_000),
      connectionsMax: yield* variable("POSTHASTE_CONNECTIONS_MAX", wholeNumber(1, 1_000_000), 4_000)
    },
    orgLimits: yield* variable("POSTHASTE_ORG_LIMITS", values.orgLimits, {}),
    allowedNetworks: yield* variable("POSTHASTE_ALLOWED_NETWORKS", values.networks, []),
    egressProxy: yield* variable("POSTHASTE_EGRESS_PROXY", parseEgressProxy),
    lease: Duration.millis(yield* variable("POSTHASTE_LEASE_MS", wholeNumber(1_000, 3_600_000), 15_000)),
    concurrency: yield* variable("POSTHASTE_CONCURRENCY", wholeNumber(1, 10_000), 512),
    circuit: yield* circuit,
    whatsappBaseUrl: yield* variable("WHATSAPP_BASE_URL", values.httpUrl, new URL("https://graph.facebook.com")),
    whatsappCodes: yield* variable("POSTHASTE_WHATSAPP_CODES", parseCodes, new Map()),
    tracing: yield* tracing,
    metricsPort: yield* variable("POSTHASTE_METRICS_PORT", wholeNumber(0, 65_535)),
    metricsDestinations: yield* variable("POSTHASTE_METRICS_DESTINATIONS", values.destinationIds, []),
    retention: yield* variable("POSTHASTE_RETENTION_DAYS", values.days, Duration.days(7)),
    deadLetterRetention: yield* variable("POSTHASTE_DEAD_LETTER_DAYS", values.days, Duration.days(365)),
    retentionDaysMax: yield* variable("POSTHASTE_RETENTION_MAX_DAYS", wholeNumber(1, values.DAYS_MAX))
  }
})

/** For commands that work on the store directly. */
export type StoreSettings = Pick<Settings, "databaseUrl" | "schema" | "dataDir" | "eventStoreUrl">

export const storeSettings: Effect.Effect<StoreSettings, WrongSetting> = Effect.gen(function* () {
  return {
    databaseUrl: yield* variable("DATABASE_URL", values.postgresUrl),
    schema: yield* variable("POSTHASTE_SCHEMA", values.schemaName, SCHEMA_DEFAULT),
    dataDir: yield* variable("POSTHASTE_DATA_DIR", text, ".posthaste"),
    eventStoreUrl: yield* variable("EVENTSTORE_URL", values.eventStoreUrl)
  }
})

/** For commands that call a running Posthaste. */
export const callSettings = Effect.gen(function* () {
  return {
    url: yield* variable("POSTHASTE_URL", values.serviceUrl),
    dataDir: yield* variable("POSTHASTE_DATA_DIR", text, ".posthaste"),
    org: yield* variable("POSTHASTE_ORG", text),
    apiKey: yield* variable("POSTHASTE_API_KEY", values.bearerKey),
    operatorKey: (yield* secret("POSTHASTE_OPERATOR_KEY", values.bearerKeys)).value?.[0] ?? null
  }
})
export type CallSettings = Effect.Success<typeof callSettings>
