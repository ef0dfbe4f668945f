/** Formats of the settings' values, and their error texts. */
import { Duration, Redacted, Result } from "effect"
import { type Network, parseNetworks } from "../adapters/channels/net/addressGuard.ts"
import { type Networks, networksOf } from "../adapters/http/server/callers.ts"
import { urlsOf } from "../adapters/postgres/hosts.ts"
import { isSchemaName } from "../adapters/postgres/schemaName.ts"
import { type LimitName, type Limits, limitNames } from "../application/ports/Orgs.ts"
import { type DestinationId, isUuid } from "../domain/ids.ts"
import { listOf, type Parse } from "./variables.ts"

/** `relay` handles RabbitMQ and SQL commands. */
export const roles = ["api", "worker", "relay", "projector"] as const
export type Role = (typeof roles)[number]

export const DAYS_MAX = 36_500

/** 0: for ever. */
export const days: Parse<Duration.Duration | null> = (given) =>
  /^\d{1,5}(\.\d{1,6})?$/.test(given) && Number(given) <= DAYS_MAX
    ? Result.succeed(Number(given) === 0 ? null : Duration.days(Number(given)))
    : Result.fail(`must be a number of days from 0 to ${DAYS_MAX}, such as 7 or 0.5, not "${given}"`)

export const postgresUrl: Parse<Redacted.Redacted> = (given) => Result.map(urlsOf(given), () => Redacted.make(given))

export const schemaName: Parse<string> = (given) =>
  isSchemaName(given)
    ? Result.succeed(given)
    : Result.fail(
        `must be up to 31 lower-case letters, digits and _, and must not begin with a digit or pg_, unlike "${given}"`
      )

export const eventStoreUrl: Parse<Redacted.Redacted> = (given) =>
  /^esdb(\+discover)?:\/\/([^\s@/?]+@)?[^\s@/?:,]+(:\d{1,5})?(,[^\s@/?:,]+(:\d{1,5})?)*\/?(\?\S*)?$/.test(given)
    ? Result.succeed(Redacted.make(given))
    : Result.fail("must look like esdb://user:password@host:2113?tls=true")

export const amqpUrl: Parse<Redacted.Redacted> = (given) => {
  const url = URL.parse(given)
  const isBroker = url !== null && (url.protocol === "amqp:" || url.protocol === "amqps:") && url.hostname !== ""
  return isBroker && /^(\/[^/]*)?$/.test(url.pathname) && url.search === "" && url.hash === ""
    ? Result.succeed(Redacted.make(given))
    : Result.fail("must look like amqp://user:password@host:5672/vhost, with one virtual host and no query")
}

export const httpUrl: Parse<URL> = (given) => {
  const url = URL.parse(given)
  const isPlain = url !== null && url.username === "" && url.password === "" && url.search === "" && url.hash === ""
  return isPlain && (url.protocol === "https:" || url.protocol === "http:")
    ? Result.succeed(url)
    : Result.fail("must look like https://graph.facebook.com, without user, query or fragment")
}

const isRole = (name: string): name is Role => roles.some((role) => role === name)

export const roleSet: Parse<ReadonlySet<Role>> = (given) => {
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

/** Several while they rotate, separated by white space. */
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

/** Newest first, separated by commas or white space. */
export const encryptionKeysOf = listOf(/[\s,]+/, encryptionKeyOf)

export const networks: Parse<ReadonlyArray<Network>> = (given) =>
  Result.mapError(parseNetworks(given), (problem) => `is not a list of networks: ${problem}`)

export const proxies: Parse<Networks> = (given) =>
  Result.fromNullishOr(
    networksOf(given.split(",").map((each) => each.trim())),
    () => `must list networks such as 10.0.0.0/8 with commas between, unlike "${given}"`
  )

const METRICS_DESTINATIONS_MAX = 50

export const destinationIds: Parse<ReadonlyArray<DestinationId>> = (given) => {
  const ids = given.split(",").map((id) => id.trim().toLowerCase())
  const wrong = ids.find((id) => !isUuid(id))
  if (wrong !== undefined) return Result.fail(`must list ids of destinations with commas between, unlike "${wrong}"`)
  return ids.length <= METRICS_DESTINATIONS_MAX
    ? Result.succeed(ids.map((id) => id as DestinationId))
    : Result.fail(`may list ${METRICS_DESTINATIONS_MAX} destinations, not ${ids.length}`)
}

export const share: Parse<number> = (given) =>
  /^(0(\.\d+)?|1(\.0+)?|\.\d+)$/.test(given)
    ? Result.succeed(Number(given))
    : Result.fail(`must be from 0 to 1, not "${given}"`)

export const collectorUrl: Parse<URL> = (given) => {
  const url = URL.parse(given)
  return url !== null && /^https?:$/.test(url.protocol)
    ? Result.succeed(url)
    : Result.fail("must look like http://127.0.0.1:4318")
}

/** `acceptsPerSecond=100,waiting=1000000` */
export const orgLimits = (given: string): Result.Result<Limits, string> => {
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

export const serviceUrl: Parse<string> = (given) =>
  /^https?:$/.test(URL.parse(given)?.protocol ?? "")
    ? Result.succeed(given)
    : Result.fail("must look like http://127.0.0.1:8080")
