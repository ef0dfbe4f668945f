import { ConfigProvider, Duration, Effect, Redacted } from "effect"
import { describe, expect, it } from "vitest"
import { settings } from "../../src/setup/config.ts"

const read = (env: Record<string, string>) =>
  Effect.runSync(
    settings.pipe(
      Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env })),
      Effect.match({ onFailure: (error) => error.message, onSuccess: (value) => value })
    )
  )

const good = (env: Record<string, string>) => {
  const result = read(env)
  if (typeof result === "string") throw new Error(result)
  return result
}

const external = {
  DATABASE_URL: "postgres://app:hunter2hunter2@db.internal/posthaste",
  POSTHASTE_OPERATOR_KEY: "an-operator-key-of-length",
  POSTHASTE_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64")
}

describe("settings", () => {
  it("need no variable at all", () => {
    const { roles, ...rest } = good({})
    expect([...roles]).toEqual(["api", "worker", "relay", "projector"])
    expect(rest).toEqual({
      port: 8080,
      host: "127.0.0.1",
      certificate: null,
      connections: { connectionsMax: 4_000, perAddressMax: 1_000 },
      databaseUrl: null,
      schema: "posthaste",
      eventStoreUrl: null,
      amqpUrl: null,
      factsFrom: "now",
      dataDir: ".posthaste",
      operatorKeys: null,
      operatorKeyFile: null,
      trustedProxies: null,
      orgLimits: {},
      encryptionKeys: null,
      egressProxy: null,
      allowedNetworks: [],
      lease: Duration.seconds(15),
      concurrency: 512,
      retention: Duration.days(7),
      deadLetterRetention: Duration.days(365),
      retentionDaysMax: null,
      metricsPort: null,
      tracing: { protocol: "http/protobuf", share: 1, parentDecides: true },
      metricsDestinations: [],
      whatsappBaseUrl: new URL("https://graph.facebook.com"),
      whatsappCodes: new Map(),
      circuit: { failuresMax: 5, openMs: 30_000, openMaxMs: 900_000 }
    })
  })

  it("keep what ended well for ever when that is asked for", () => {
    expect(good({ POSTHASTE_RETENTION_DAYS: "0" }).retention).toBeNull()
    expect(good({ POSTHASTE_RETENTION_DAYS: "0.5" }).retention).toEqual(Duration.hours(12))
    expect(good({}).deadLetterRetention).toEqual(Duration.days(365))
    expect(good({ POSTHASTE_DEAD_LETTER_DAYS: "0" }).deadLetterRetention).toBeNull()
    expect(good({ POSTHASTE_RETENTION_MAX_DAYS: "90" }).retentionDaysMax).toBe(90)
    expect(good({ POSTHASTE_RETENTION_DAYS: "30" }).retention).toEqual(Duration.days(30))
  })

  it.each([
    "postgres://app:hunter2hunter2@a:5432,b:5433/posthaste?target_session_attrs=read-write",
    "postgresql://app@[::1],db.internal/posthaste?sslmode=verify-full",
    "postgres:///posthaste?host=/run/postgresql"
  ])("take the database at %s", (url) => {
    expect(Redacted.value(good({ ...external, DATABASE_URL: url }).databaseUrl!)).toBe(url)
  })

  it.each([
    "esdb://localhost:2113?tls=false",
    "esdb://admin:changeit@es-1:2113,es-2:2113,es-3:2113",
    "esdb+discover://admin:changeit@es.example.com"
  ])("take EventStoreDB at %s", (url) => {
    expect(Redacted.value(good({ EVENTSTORE_URL: url }).eventStoreUrl!)).toBe(url)
  })

  it("take every value that is given", () => {
    const given = good({
      ...external,
      PORT: "0",
      HOST: "0.0.0.0",
      POSTHASTE_DATA_DIR: "/var/lib/posthaste",
      POSTHASTE_ROLES: "worker, projector",
      POSTHASTE_ALLOWED_NETWORKS: "10.0.0.0/8,fd00::/8",
      POSTHASTE_LEASE_MS: "2000",
      POSTHASTE_CONCURRENCY: "16",
      WHATSAPP_BASE_URL: "http://127.0.0.1:4004/graph",
      POSTHASTE_WHATSAPP_CODES: "131047=temporary"
    })
    expect(given.whatsappBaseUrl.href).toBe("http://127.0.0.1:4004/graph")
    expect(given.whatsappCodes).toEqual(new Map([[131047, "temporary"]]))
    expect(given).toMatchObject({ port: 0, host: "0.0.0.0", dataDir: "/var/lib/posthaste", concurrency: 16 })
    expect(Redacted.value(given.databaseUrl!)).toBe(external.DATABASE_URL)
    expect(given.operatorKeys!.map(Redacted.value)).toEqual([external.POSTHASTE_OPERATOR_KEY])
    expect([...given.roles]).toEqual(["worker", "projector"])
    expect(given.allowedNetworks.map(({ prefix }) => prefix)).toEqual([8, 8])
    expect(Duration.toMillis(given.lease)).toBe(2000)
  })

  it("count an empty variable as absent", () => {
    expect(good({ DATABASE_URL: "", PORT: " " })).toMatchObject({ databaseUrl: null, port: 8080 })
  })

  it("read the encryption key as base64, base64url or hex", () => {
    const bytes = Buffer.alloc(32, 0xfb)
    for (const encoding of ["base64", "base64url", "hex"] as const) {
      const { encryptionKeys } = good({ POSTHASTE_ENCRYPTION_KEY: bytes.toString(encoding) })
      expect(Buffer.from(Redacted.value(encryptionKeys![0]!)).equals(bytes)).toBe(true)
    }
  })
})

describe("a wrong value", () => {
  it.each([
    [{ PORT: "eighty" }, 'PORT must be a whole number from 0 to 65535, not "eighty"'],
    [{ PORT: "70000" }, 'PORT must be a whole number from 0 to 65535, not "70000"'],
    [{ POSTHASTE_ROLES: "api,wroker" }, 'POSTHASTE_ROLES knows the roles api, worker, relay, projector, not "wroker"'],
    [{ POSTHASTE_ROLES: "," }, "POSTHASTE_ROLES names no role"],
    [{ POSTHASTE_LEASE_MS: "15s" }, 'POSTHASTE_LEASE_MS must be a whole number from 1000 to 3600000, not "15s"'],
    [{ POSTHASTE_CONCURRENCY: "0" }, 'POSTHASTE_CONCURRENCY must be a whole number from 1 to 10000, not "0"'],
    [
      { POSTHASTE_EGRESS_PROXY: "https://user:hunter2@proxy:3128" },
      "POSTHASTE_EGRESS_PROXY must look like http://proxy.internal:3128 or http://user:password@proxy.internal:3128"
    ],
    [
      { POSTHASTE_ALLOWED_NETWORKS: "10.0.0.0/8, 10.0.0.0/99" },
      'POSTHASTE_ALLOWED_NETWORKS is not a list of networks: "10.0.0.0/99" is not a network like 10.0.0.0/8 or fd00::/8'
    ],
    ...["localhost:5672", "http://localhost", "amqp://", "amqp://host/a/b", "amqp://host?heartbeat=5"].map(
      (url): [Record<string, string>, string] => [
        { AMQP_URL: url },
        "AMQP_URL must look like amqp://user:password@host:5672/vhost, with one virtual host and no query"
      ]
    ),
    ...["localhost:2113", "http://localhost:2113", "esdb://", "esdb://host:port"].map(
      (url): [Record<string, string>, string] => [
        { EVENTSTORE_URL: url },
        "EVENTSTORE_URL must look like esdb://user:password@host:2113?tls=true"
      ]
    ),
    ...["Posthaste", "1st", "a-b", "pg_own", "a".repeat(32), 'a"; drop table b'].map(
      (schema): [Record<string, string>, string] => [
        { POSTHASTE_SCHEMA: schema },
        `POSTHASTE_SCHEMA must be up to 31 lower-case letters, digits and _, and must not begin with a digit or pg_, unlike "${schema}"`
      ]
    ),
    ...["graph.facebook.com", "ftp://graph.facebook.com", "https://user@graph.facebook.com", "https://x/?a=b"].map(
      (url): [Record<string, string>, string] => [
        { WHATSAPP_BASE_URL: url },
        "WHATSAPP_BASE_URL must look like https://graph.facebook.com, without user, query or fragment"
      ]
    ),
    [{ POSTHASTE_METRICS_PORT: "x" }, 'POSTHASTE_METRICS_PORT must be a whole number from 0 to 65535, not "x"'],
    [
      { POSTHASTE_METRICS_DESTINATIONS: "my-endpoint" },
      'POSTHASTE_METRICS_DESTINATIONS must list ids of destinations with commas between, unlike "my-endpoint"'
    ],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318" },
      "OTEL_EXPORTER_OTLP_ENDPOINT must look like http://127.0.0.1:4318"
    ],
    [{ OTEL_TRACES_SAMPLER_ARG: "2" }, 'OTEL_TRACES_SAMPLER_ARG must be from 0 to 1, not "2"'],
    [
      { POSTHASTE_WHATSAPP_CODES: "131026:permanent" },
      'POSTHASTE_WHATSAPP_CODES holds "131026:permanent"; an entry looks like 131026=permanent'
    ]
  ])("of %j is told in one line that names the variable", (env, line) => {
    expect(read(env)).toBe(line)
  })

  it.each([
    ["DATABASE_URL", "mysql://app:hunter2hunter2@db/x"],
    ["DATABASE_URL", "postgres://app:hunter2hunter2@a:5432,b:port/x"],
    ["DATABASE_URL", "postgres://app:hunter2hunter2@a,b/x?target_session_attrs=standby"],
    ["POSTHASTE_OPERATOR_KEY", "hunter2hunter2 hunter2"],
    ["POSTHASTE_ENCRYPTION_KEY", "hunter2hunter2"]
  ])("of %s is not repeated", (name, value) => {
    const line = read({ ...external, [name]: value })
    expect(line).toMatch(new RegExp(`^${name} must .+$`))
    expect(line).not.toContain("hunter2")
  })

  it.each(["POSTHASTE_OPERATOR_KEY", "POSTHASTE_ENCRYPTION_KEY"])("is also %s missing beside DATABASE_URL", (name) => {
    expect(read({ ...external, [name]: "" })).toMatch(new RegExp(`^${name} is required with DATABASE_URL`))
  })
})
