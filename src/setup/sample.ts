/**
 * The sample of a first start: an org with a key, and an endpoint at the built-in receiver. A revoked key stays
 * revoked; a removed endpoint is replaced.
 */
import { randomBytes } from "node:crypto"
import type { IncomingHttpHeaders } from "node:http"
import { Effect, Option, type Redacted, Schema, type Scope } from "effect"
import * as SampleReceiver from "../../demo/SampleReceiver.ts"
import { generateSecret, verify } from "../adapters/channels/webhook/signature.ts"
import { generateKey, hashOf, isWellFormed, prefixOf, storedHash } from "../adapters/http/server/apiKey.ts"
import { settingsOf } from "../application/destinations/destinations.ts"
import { ApiKeys } from "../application/ports/ApiKeys.ts"
import { Channels } from "../application/ports/Channels.ts"
import { type Destination, Destinations } from "../application/ports/Destinations.ts"
import { DestinationId, OrgId } from "../domain/ids.ts"
import { type DataFileFailed, dataFile, dataFileFailed, readOrCreate } from "./dataFiles.ts"

export const firstOrg = OrgId.make("default")

/** Null once it was revoked. */
export const firstOrgKey = Effect.fnUntraced(function* (dataDir: string) {
  const keys = yield* ApiKeys
  const file = dataFile(dataDir, "default-org-key")
  const known = yield* file.read
  if (known !== null) {
    if (!isWellFormed(known)) {
      const problem = known === "" ? "is empty" : "was cut off"
      return yield* dataFileFailed(
        `${file.path} ${problem}: bring it back from a backup, or delete it and the next start makes another`
      )
    }
    const holder = yield* keys.holderOf(storedHash(hashOf(known)))
    return holder?.orgId === firstOrg && !holder.revoked ? known : null
  }
  const key = generateKey()
  const terms = {
    name: "made at the first start",
    scopes: null,
    expiresAt: null,
    networks: null,
    limits: {},
    prefix: prefixOf(key)
  }
  yield* keys.create(firstOrg, terms, storedHash(hashOf(key)))
  yield* file.write(key)
  return key
})

export interface Sample {
  readonly dataDir: string
  readonly address: string
  readonly port: number
  readonly url: string
  /** Without a secret the receiver trusts no request. */
  readonly trust: (secret: Redacted.Redacted) => void
}

const PATH_BYTES = 16

/**
 * Keeps its port where it can, so that its endpoint stays the same. Destinations of all orgs may call the port, so its
 * page has a secret path.
 */
export const startReceiver = Effect.fnUntraced(function* (
  dataDir: string
): Effect.fn.Return<Sample, DataFileFailed, Scope.Scope> {
  const file = dataFile(dataDir, "sample-receiver-port")
  let trusted: Redacted.Redacted | null = null
  const preferredPort = Number(yield* file.read) || 0
  const makePath = () => `/${randomBytes(PATH_BYTES).toString("base64url")}`
  const path = yield* readOrCreate(dataFile(dataDir, "sample-receiver-path"), makePath, (kept) =>
    /^\/[\w-]+$/.test(kept) ? null : "is no path"
  )
  const { address, port } = yield* SampleReceiver.start({
    preferredPort,
    path,
    verify: (headers, body) => trusted !== null && isSignedBy(trusted, headers, body)
  })
  if (port !== preferredPort) yield* file.write(String(port))
  return {
    dataDir,
    address,
    port,
    url: `http://${address}:${port}${path}`,
    trust: (secret) => {
      trusted = secret
    }
  }
})

export const isSignedBy = (secret: Redacted.Redacted, headers: IncomingHttpHeaders, body: string): boolean =>
  verify(
    secret,
    {
      id: String(headers["webhook-id"]),
      timestamp: String(headers["webhook-timestamp"]),
      signature: String(headers["webhook-signature"])
    },
    body,
    Math.floor(Date.now() / 1000)
  )

export const sampleEndpoint = Effect.fnUntraced(function* ({ dataDir, url, trust }: Sample) {
  const destinations = yield* Destinations
  const channel = (yield* Channels).get("webhook")!
  const file = dataFile(dataDir, "sample-endpoint-id")
  const known = Option.getOrNull(Schema.decodeUnknownOption(DestinationId)(yield* file.read))
  const endpoint = known === null ? null : yield* destinations.forSending(firstOrg, known)
  if (endpoint !== null) {
    const { id, version, settings } = endpoint.destination
    trust(endpoint.secrets["secret"]!)
    if ((settings as { readonly url?: string }).url !== url) {
      const call = { before: channel.callOf(settings), after: channel.callOf({ ...settings, url }) }
      yield* destinations.change(channel, firstOrg, id, { of: version, settings: { url }, call })
    }
    return id
  }
  const secret = generateSecret()
  const description = "The built-in sample receiver"
  const settings = settingsOf(channel, { url, description, maxInFlight: 10, timeoutMs: 5_000 })
  const made = yield* destinations.create(channel, firstOrg, {
    settings,
    secrets: { secret },
    published: {},
    publicKey: null,
    lookup: null,
    alerting: null,
    call: channel.callOf(settings)
  })
  // "Taken" needs a public key, which endpoints don't have.
  const { id } = made as Destination
  trust(secret)
  yield* file.write(id)
  return id
})
