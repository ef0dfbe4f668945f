/**
 * Every setting from the environment, read once at the start. A value that makes no sense stops the start with one line
 * that names the variable and never repeats a secret. An empty variable counts as absent: that is the meaning of
 * `NAME=` in an env file.
 */
import { readFileSync } from "node:fs"
import { Config, Duration, Effect, Option, Redacted, Result, Schema } from "effect"
import { type Network, parseNetworks } from "../adapters/channels/net/addressGuard.ts"
import { type EgressProxy, parseEgressProxy } from "../adapters/channels/net/egressProxy.ts"
import { type CodeOverrides, parseCodes } from "../adapters/channels/whatsapp/errors.ts"
import { type Networks, networksOf } from "../adapters/http/server/callers.ts"
import { urlsOf } from "../adapters/postgres/hosts.ts"
import { isSchemaName, SCHEMA_DEFAULT } from "../adapters/postgres/schemaName.ts"
import { type FactStart, factStarts } from "../application/log/letOutFacts.ts"
import { type LimitName, type Limits, limitNames } from "../application/ports/Orgs.ts"
import { type CircuitPolicy, circuitDefaults } from "../domain/circuit/policy.ts"
import { type DestinationId, isUuid } from "../domain/ids.ts"
import {
  CERTIFICATE_FILE,
  type Read as Certificate,
  type CertificateFiles,
  KEY_FILE,
  readCertificate
} from "./certificate.ts"
import { outputOf } from "./secretCommand.ts"

/** `relay` moves what comes and goes by other ways than HTTP. */
export const roles = ["api", "worker", "relay", "projector"] as const
export type Role = (typeof roles)[number]

export interface Settings {
  /** 0 takes any free port. */
  readonly port: number
  readonly host: string
  /** Of the API; null: it speaks plain HTTP. */
  readonly certificate: (CertificateFiles & { readonly first: Certificate }) | null
  /** Null: the embedded server. */
  readonly databaseUrl: Redacted.Redacted | null
  /** The schema of Posthaste's tables; several installations may share a database. */
  readonly schema: string
  readonly dataDir: string
  /** Null: the streams of messages are in PostgreSQL too. */
  readonly eventStoreUrl: Redacted.Redacted | null
  /** Posthaste's own RabbitMQ; null: commands come and facts go over HTTP and SQL only. */
  readonly amqpUrl: Redacted.Redacted | null
  /** Where facts begin to go out to it, the first time that it is given. */
  readonly factsFrom: FactStart
  readonly roles: ReadonlySet<Role>
  /** Null only with the embedded database, which keeps a generated one. */
  readonly operatorKeys: ReadonlyArray<Redacted.Redacted> | null
  /** The file they came from, which is read again when it changes; null when they came otherwise. */
  readonly operatorKeyFile: string | null
  /** The newest first: it seals, each opens. Null only with the embedded database, which keeps a generated one. */
  readonly encryptionKeys: ReadonlyArray<Redacted.Redacted<Uint8Array>> | null
  /** Whether bodies and answers are stored sealed from now on. */
  readonly sealsBodies: boolean
  /** Proxies in front of the API, which say for whom they ask. */
  readonly trustedProxies: Networks | null
  /** Of callers of the API at once: of one address, and of all together. */
  readonly connections: { readonly perAddressMax: number; readonly connectionsMax: number }
  /** Of an org that the operator has set no limits for. */
  readonly orgLimits: Limits
  readonly allowedNetworks: ReadonlyArray<Network>
  /** The way out to destinations; null: straight. */
  readonly egressProxy: EgressProxy | null
  /** How long a worker may stay silent before other workers take over its messages. */
  readonly lease: Duration.Duration
  /** Sends under way at once in this process. */
  readonly concurrency: number
  /** When the circuit of a destination opens, and for how long. */
  readonly circuit: CircuitPolicy
  /** Where Meta's Graph API is. */
  readonly whatsappBaseUrl: URL
  /** The operator's own classification of Meta's error codes. */
  readonly whatsappCodes: CodeOverrides
  /** How long messages that ended well are kept; null keeps them for ever. */
  readonly retention: Duration.Duration | null
  /** How long dead letters are kept; null keeps them for ever. */
  readonly deadLetterRetention: Duration.Duration | null
  /** The most that an org may be given; null: as many as the operator likes. */
  readonly retentionDaysMax: number | null
  /** Null: this process opens no port for metrics and health. 0 takes any free port. */
  readonly metricsPort: number | null
  /** The destinations whose ids may be labels of metrics. */
  readonly metricsDestinations: ReadonlyArray<DestinationId>
  readonly tracing: TracingSettings
}

export class WrongSetting extends Schema.TaggedError<WrongSetting>()("WrongSetting", {
  variable: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `${this.variable} ${this.problem}`
  }
}

type Parse<A> = (text: string) => Result.Result<A, string>

/** Null when the variable is absent, or the fallback where there is one. */
const variable = <A, Fallback extends A | null = null>(
  name: string,
  parse: Parse<A>,
  fallback: Fallback = null as Fallback
): Effect.Effect<A | Fallback, WrongSetting> =>
  Config.option(Config.String(name)).pipe(
    Effect.mapError((error) => new WrongSetting({ variable: name, problem: `can't be read: ${error.message}` })),
    Effect.flatMap((given): Effect.Effect<A | Fallback, WrongSetting> => {
      const text = Option.getOrElse(given, () => "").trim()
      if (text === "") return Effect.succeed(fallback)
      return Effect.fromResult(parse(text)).pipe(
        Effect.mapError((problem) => new WrongSetting({ variable: name, problem }))
      )
    })
  )

const text: Parse<string> = Result.succeed

/** A secret: the variable, what the file holds that `<name>_FILE` names, or what the command `<name>_COMMAND` prints. */
const secretText = Effect.fnUntraced(function* (name: string) {
  const ways = {
    given: { variable: name, text: yield* variable(name, text) },
    file: { variable: `${name}_FILE`, text: yield* variable(`${name}_FILE`, text) },
    command: { variable: `${name}_COMMAND`, text: yield* variable(`${name}_COMMAND`, text) }
  }
  const [first, second] = Object.values(ways).filter((way) => way.text !== null)
  if (second !== undefined) {
    return yield* new WrongSetting({ variable: first!.variable, problem: `is given beside ${second.variable}` })
  }
  const file = ways.file.text
  if (file !== null) {
    const read = Result.try({ try: () => readFileSync(file, "utf8").trim(), catch: (error) => error as Error })
    if (Result.isFailure(read)) {
      const problem = `can't be read: ${read.failure.message}`
      return yield* new WrongSetting({ variable: ways.file.variable, problem })
    }
    return { text: read.success === "" ? null : read.success, variable: ways.file.variable, file }
  }
  if (ways.command.text === null) return { text: ways.given.text, variable: name, file }
  const printed = yield* Effect.mapError(
    outputOf(ways.command.text),
    (problem) => new WrongSetting({ variable: ways.command.variable, problem })
  )
  return { text: printed, variable: ways.command.variable, file }
})

const secret = Effect.fnUntraced(function* <A>(name: string, parse: Parse<A>) {
  const { text, variable, file } = yield* secretText(name)
  if (text === null) return { value: null, file }
  const value = yield* Effect.fromResult(parse(text)).pipe(
    Effect.mapError((problem) => new WrongSetting({ variable, problem }))
  )
  return { value, file }
})

/** Each part of a text, and there is one at least. */
const listOf =
  <A>(separator: RegExp, parse: Parse<A>): Parse<ReadonlyArray<A>> =>
  (given) =>
    Result.all(
      given
        .split(separator)
        .filter((part) => part !== "")
        .map(parse)
    )

const wholeNumber =
  (min: number, max: number): Parse<number> =>
  (given) =>
    /^\d{1,15}$/.test(given) && Number(given) >= min && Number(given) <= max
      ? Result.succeed(Number(given))
      : Result.fail(`must be a whole number from ${min} to ${max}, not "${given}"`)

const DAYS_MAX = 36_500

/** 0 is for ever. */
const days: Parse<Duration.Duration | null> = (given) =>
  /^\d{1,5}(\.\d{1,6})?$/.test(given) && Number(given) <= DAYS_MAX
    ? Result.succeed(Number(given) === 0 ? null : Duration.days(Number(given)))
    : Result.fail(`must be a number of days from 0 to ${DAYS_MAX}, such as 7 or 0.5, not "${given}"`)

const postgresUrl: Parse<Redacted.Redacted> = (given) => Result.map(urlsOf(given), () => Redacted.make(given))

const schemaName: Parse<string> = (given) =>
  isSchemaName(given)
    ? Result.succeed(given)
    : Result.fail(
        `must be up to 31 lower-case letters, digits and _, and must not begin with a digit or pg_, unlike "${given}"`
      )

/** One host, or several of a cluster. The client judges the connection's options. */
const eventStoreUrl: Parse<Redacted.Redacted> = (given) =>
  /^esdb(\+discover)?:\/\/([^\s@/?]+@)?[^\s@/?:,]+(:\d{1,5})?(,[^\s@/?:,]+(:\d{1,5})?)*\/?(\?\S*)?$/.test(given)
    ? Result.succeed(Redacted.make(given))
    : Result.fail("must look like esdb://user:password@host:2113?tls=true")

const amqpUrl: Parse<Redacted.Redacted> = (given) => {
  const url = URL.parse(given)
  const isBroker = url !== null && (url.protocol === "amqp:" || url.protocol === "amqps:") && url.hostname !== ""
  return isBroker && /^(\/[^/]*)?$/.test(url.pathname) && url.search === "" && url.hash === ""
    ? Result.succeed(Redacted.make(given))
    : Result.fail("must look like amqp://user:password@host:5672/vhost, with one virtual host and no query")
}

const httpUrl: Parse<URL> = (given) => {
  const url = URL.parse(given)
  const isPlain = url !== null && url.username === "" && url.password === "" && url.search === "" && url.hash === ""
  return isPlain && (url.protocol === "https:" || url.protocol === "http:")
    ? Result.succeed(url)
    : Result.fail("must look like https://graph.facebook.com, without user, query or fragment")
}

const isRole = (name: string): name is Role => roles.some((role) => role === name)

const roleSet: Parse<ReadonlySet<Role>> = (given) => {
  const names = given
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "")
  const wrong = names.find((name) => !isRole(name))
  if (wrong !== undefined) return Result.fail(`knows the roles ${roles.join(", ")}, not "${wrong}"`)
  return names.length > 0 ? Result.succeed(new Set(names.filter(isRole))) : Result.fail("names no role")
}

const KEY_LENGTH_MIN = 16

export const bearerKey: Parse<Redacted.Redacted> = (given) =>
  given.length >= KEY_LENGTH_MIN && /^[\x21-\x7e]+$/.test(given)
    ? Result.succeed(Redacted.make(given))
    : Result.fail(`must have at least ${KEY_LENGTH_MIN} characters, printable ASCII without blanks`)

/** Several while they rotate, with blanks or line breaks between. */
export const bearerKeys = listOf(/\s+/, bearerKey)

const ENCRYPTION_KEY_BYTES = 32

export const encryptionKeyOf: Parse<Redacted.Redacted<Uint8Array>> = (given) => {
  const isHex = /^[0-9a-fA-F]{64}$/.test(given)
  const isBase64 = /^[A-Za-z0-9+/_-]{43}=?$/.test(given)
  const bytes = isHex ? Buffer.from(given, "hex") : isBase64 ? Buffer.from(given, "base64") : null
  return bytes?.length === ENCRYPTION_KEY_BYTES
    ? Result.succeed(Redacted.make(new Uint8Array(bytes)))
    : Result.fail("must be 32 random bytes as base64 (openssl rand -base64 32) or 64 hex digits")
}

/** The newest first, with commas, blanks or line breaks between. */
export const encryptionKeysOf = listOf(/[\s,]+/, encryptionKeyOf)

/** `POSTHASTE_ENCRYPTION_KEYS`, or the one key of `POSTHASTE_ENCRYPTION_KEY`. */
export const encryptionKeys = Effect.gen(function* () {
  const one = yield* secret("POSTHASTE_ENCRYPTION_KEY", encryptionKeyOf)
  const several = yield* secret("POSTHASTE_ENCRYPTION_KEYS", encryptionKeysOf)
  if (one.value !== null && several.value !== null) {
    const problem = "is given beside POSTHASTE_ENCRYPTION_KEYS, which holds all keys"
    return yield* new WrongSetting({ variable: "POSTHASTE_ENCRYPTION_KEY", problem })
  }
  return several.value ?? (one.value === null ? null : [one.value])
})

const proxies: Parse<Networks> = (given) =>
  Result.fromNullishOr(
    networksOf(given.split(",").map((each) => each.trim())),
    () => `must list networks such as 10.0.0.0/8 with commas between, unlike "${given}"`
  )

const METRICS_DESTINATIONS_MAX = 50

const destinationIds: Parse<ReadonlyArray<DestinationId>> = (given) => {
  const ids = given.split(",").map((id) => id.trim().toLowerCase())
  const wrong = ids.find((id) => !isUuid(id))
  if (wrong !== undefined) return Result.fail(`must list ids of destinations with commas between, unlike "${wrong}"`)
  return ids.length <= METRICS_DESTINATIONS_MAX
    ? Result.succeed(ids.map((id) => id as DestinationId))
    : Result.fail(`may list ${METRICS_DESTINATIONS_MAX} destinations, not ${ids.length}`)
}

const oneOf =
  <const A extends string>(...known: ReadonlyArray<A>): Parse<A> =>
  (given) => {
    const found = known.find((one) => one === given.toLowerCase())
    return found === undefined ? Result.fail(`must be ${known.join(", ")}, not "${given}"`) : Result.succeed(found)
  }

/** What the exporter itself reads (`OTEL_EXPORTER_OTLP_…`, `OTEL_SERVICE_NAME`, …) is Effect's to read. */
export interface TracingSettings {
  readonly protocol: "http/protobuf" | "http/json"
  /** The share of messages without a trace of their caller's that get one, from 0 to 1. */
  readonly share: number
  /** Whether the caller's own decision counts. */
  readonly parentDecides: boolean
}

const share: Parse<number> = (given) =>
  /^(0(\.\d+)?|1(\.0+)?|\.\d+)$/.test(given)
    ? Result.succeed(Number(given))
    : Result.fail(`must be from 0 to 1, not "${given}"`)

const collectorUrl: Parse<URL> = (given) => {
  const url = URL.parse(given)
  return url !== null && /^https?:$/.test(url.protocol)
    ? Result.succeed(url)
    : Result.fail("must look like http://127.0.0.1:4318")
}

const tracing: Effect.Effect<TracingSettings, WrongSetting> = Effect.gen(function* () {
  // Judged here, so that a mistake is one line; the exporter reads it itself.
  yield* variable("OTEL_EXPORTER_OTLP_ENDPOINT", collectorUrl)
  const sampler = yield* variable(
    "OTEL_TRACES_SAMPLER",
    oneOf(
      ...["always_on", "always_off", "traceidratio"],
      ...["parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"]
    ),
    "parentbased_always_on"
  )
  const ratio = yield* variable("OTEL_TRACES_SAMPLER_ARG", share, 1)
  const shares: Readonly<Record<string, number>> = { always_on: 1, always_off: 0, traceidratio: ratio }
  return {
    protocol: yield* variable("OTEL_EXPORTER_OTLP_PROTOCOL", oneOf("http/protobuf", "http/json"), "http/protobuf"),
    share: shares[sampler.replace("parentbased_", "")]!,
    parentDecides: sampler.startsWith("parentbased_")
  }
})

/** `acceptsPerSecond=100,waiting=1000000` */
const orgLimits = (given: string): Result.Result<Limits, string> => {
  const limits: { [name: string]: number } = {}
  for (const entry of given.split(",").map((part) => part.trim())) {
    const [, name = "", count = ""] = /^(\w+)=(\d{1,9})$/.exec(entry) ?? []
    if (!limitNames.includes(name as LimitName)) {
      return Result.fail(`must be a list like acceptsPerSecond=100,waiting=1000000 of ${limitNames.join(", ")}`)
    }
    limits[name] = Number(count)
  }
  return Result.succeed(limits)
}

export interface LogSettings {
  /** Null: text on a terminal, JSON elsewhere. */
  readonly format: "json" | "text" | null
  readonly level: "debug" | "info" | "warn" | "error"
}

/** Read first: how to say that another setting is wrong depends on it. */
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

/** Judged here, so that a mistake is one line at the start. */
const certificate = Effect.gen(function* () {
  const files = {
    certificate: yield* variable("POSTHASTE_TLS_CERT_FILE", text),
    key: yield* variable("POSTHASTE_TLS_KEY_FILE", text)
  }
  if (files.certificate === null && files.key === null) return null
  if (files.key === null || files.certificate === null) {
    const [missing, given] = files.key === null ? [KEY_FILE, CERTIFICATE_FILE] : [CERTIFICATE_FILE, KEY_FILE]
    return yield* new WrongSetting({ variable: missing, problem: `is required with ${given}` })
  }
  const both = { certificate: files.certificate, key: files.key }
  const first = yield* Effect.mapError(
    Effect.fromResult(readCertificate(both, new Date())),
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
  const operator = yield* secret("POSTHASTE_OPERATOR_KEY", bearerKeys)
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
    amqpUrl: yield* variable("AMQP_URL", amqpUrl),
    factsFrom: yield* variable("POSTHASTE_FACTS_FROM", oneOf(...factStarts), "now"),
    roles: yield* variable("POSTHASTE_ROLES", roleSet, new Set(roles)),
    operatorKeys: operator.value,
    operatorKeyFile: operator.file,
    encryptionKeys: sealing,
    trustedProxies: yield* variable("POSTHASTE_TRUSTED_PROXIES", proxies),
    connections: {
      perAddressMax: yield* variable("POSTHASTE_CONNECTIONS_PER_ADDRESS", wholeNumber(1, 1_000_000), 1_000),
      connectionsMax: yield* variable("POSTHASTE_CONNECTIONS_MAX", wholeNumber(1, 1_000_000), 4_000)
    },
    orgLimits: yield* variable("POSTHASTE_ORG_LIMITS", orgLimits, {}),
    allowedNetworks: yield* variable(
      "POSTHASTE_ALLOWED_NETWORKS",
      (given) => Result.mapError(parseNetworks(given), (problem) => `is not a list of networks: ${problem}`),
      []
    ),
    egressProxy: yield* variable("POSTHASTE_EGRESS_PROXY", parseEgressProxy),
    lease: Duration.millis(yield* variable("POSTHASTE_LEASE_MS", wholeNumber(1_000, 3_600_000), 15_000)),
    concurrency: yield* variable("POSTHASTE_CONCURRENCY", wholeNumber(1, 10_000), 512),
    circuit: yield* circuit,
    whatsappBaseUrl: yield* variable("WHATSAPP_BASE_URL", httpUrl, new URL("https://graph.facebook.com")),
    whatsappCodes: yield* variable("POSTHASTE_WHATSAPP_CODES", parseCodes, new Map()),
    tracing: yield* tracing,
    metricsPort: yield* variable("POSTHASTE_METRICS_PORT", wholeNumber(0, 65_535)),
    metricsDestinations: yield* variable("POSTHASTE_METRICS_DESTINATIONS", destinationIds, []),
    retention: yield* variable("POSTHASTE_RETENTION_DAYS", days, Duration.days(7)),
    deadLetterRetention: yield* variable("POSTHASTE_DEAD_LETTER_DAYS", days, Duration.days(365)),
    retentionDaysMax: yield* variable("POSTHASTE_RETENTION_MAX_DAYS", wholeNumber(1, DAYS_MAX))
  }
})

/** Where the facts are stored, for commands that work on the store directly. */
export type StoreSettings = Pick<Settings, "databaseUrl" | "schema" | "dataDir" | "eventStoreUrl" | "sealsBodies">

export const storeSettings: Effect.Effect<StoreSettings, WrongSetting> = Effect.gen(function* () {
  return {
    databaseUrl: yield* variable("DATABASE_URL", postgresUrl),
    schema: yield* variable("POSTHASTE_SCHEMA", schemaName, SCHEMA_DEFAULT),
    dataDir: yield* variable("POSTHASTE_DATA_DIR", text, ".posthaste"),
    eventStoreUrl: yield* variable("EVENTSTORE_URL", eventStoreUrl),
    sealsBodies: (yield* variable("POSTHASTE_SEAL_BODIES", oneOf("true", "false"), "false")) === "true"
  }
})

const serviceUrl: Parse<string> = (given) =>
  /^https?:$/.test(URL.parse(given)?.protocol ?? "")
    ? Result.succeed(given)
    : Result.fail("must look like http://127.0.0.1:8080")

/** How the command line calls a running Posthaste. */
export const callSettings = Effect.gen(function* () {
  return {
    url: yield* variable("POSTHASTE_URL", serviceUrl),
    dataDir: yield* variable("POSTHASTE_DATA_DIR", text, ".posthaste"),
    org: yield* variable("POSTHASTE_ORG", text),
    apiKey: yield* variable("POSTHASTE_API_KEY", bearerKey),
    operatorKey: (yield* secret("POSTHASTE_OPERATOR_KEY", bearerKeys)).value?.[0] ?? null
  }
})
export type CallSettings = Effect.Success<typeof callSettings>
