/**
 * Quotas: the bounds of one asker's requests to this process. The headers tell the asker, before a byte of the body is
 * read: the org whose key was good lately, else the network address. So strangers wait behind strangers.
 *
 * - Beyond its rate a request is refused (429).
 * - Beyond its requests under way, or the bytes of their bodies, a request waits unread, in the order of its asker;
 * where too many wait, it is refused.
 * - Beyond the rate of wrong keys only keys that were good lately are looked up.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { Clock, Context, Effect, Layer, Option, PartitionedSemaphore } from "effect"
import { Headers } from "effect/http"
import { makeBuckets, type Rate } from "../../../application/orgs/buckets.ts"
import type { OrgId } from "../../../domain/ids.ts"
import { hashOf, storedHash } from "./apiKey.ts"
import { addressOf, type Networks, networkOfCaller } from "./callers.ts"
import { type Problem, tooMuch } from "./problem.ts"
import { limits as bodies } from "./requestBody.ts"

export interface QuotaLimits {
  readonly ofOrg: Rate
  readonly ofAddress: Rate
  readonly underWayMax: number
  /** Of the bodies of requests under way. */
  readonly bytesMax: number
  readonly waitingMax: number
  readonly wrongKeysOfAddress: Rate
  readonly wrongKeysOfAll: Rate
  /** Lists and counts read at a time, of all orgs: one fewer than their connections. */
  readonly readsMax: number
}

export const limitsDefault: QuotaLimits = {
  ofOrg: { perSecond: 20_000 },
  ofAddress: { perSecond: 500, burst: 2_000 },
  underWayMax: 64,
  bytesMax: 4 * bodies.batch,
  waitingMax: 1_000,
  wrongKeysOfAddress: { perSecond: 10, burst: 500 },
  wrongKeysOfAll: { perSecond: 100, burst: 5_000 },
  readsMax: 3
}

/** For so long a good key stands for its org. */
const GOOD_FOR_MS = 600_000
const KEYS_MAX = 10_000

/** Begins a request now or later, or refuses it. */
export type Enter = (request: IncomingMessage, response: ServerResponse, begin: () => void) => void

export class Quotas extends Context.Service<
  Quotas,
  {
    readonly enter: Enter
    /** Seconds until an unknown key of this address may be looked up; 0: now. */
    readonly wrongKeyWait: (address: string | null, hash: string) => number
    readonly wrongKey: (address: string | null, hash: string) => void
    /** `org` is null for an operator's key. */
    readonly goodKey: (hash: string, org: OrgId | null) => void
    readonly reads: PartitionedSemaphore.PartitionedSemaphore<string>
  }
>()("posthaste/adapters/http/server/quotas/Quotas") {}

const hashed = Symbol("the hash of a request's key")
const leave = Symbol("ends a request's part in its asker's quota")

/** The hash of a request's key, made once. */
export const keyHashOf = (request: object, key: string): Buffer => {
  const kept: { [hashed]?: { readonly key: string; readonly hash: Buffer } } = request
  const known = kept[hashed]
  if (known?.key === key) return known.hash
  const hash = hashOf(key)
  kept[hashed] = { key, hash }
  return hash
}

/** An answer without end leaves the requests under way: it has a bound of its own. */
export const leaveQuota = (response: ServerResponse & { [leave]?: () => void }): void => response[leave]?.()

/**
 * The bytes that a body may have. A batch weighs as the largest does, for its entries take time whatever their size.
 */
const weightOf = ({ url, headers, method }: IncomingMessage): number => {
  if (method === "GET" || method === "HEAD") return 0
  const { "content-length": length } = headers
  if (length === undefined) return headers["transfer-encoding"] === undefined ? 0 : bodies.batch
  return url!.endsWith("/batch") ? bodies.batch : Math.min(Number(length), bodies.batch)
}

/** Answers without a handler; Node reads and drops the body. */
const answerWith = (response: ServerResponse, { body, headers }: Problem) => {
  const text = JSON.stringify(body)
  const length = Buffer.byteLength(text)
  response.writeHead(body.status, { "content-type": "application/problem+json", "content-length": length, ...headers })
  response.end(text)
}

interface Asker {
  underWay: number
  bytes: number
  readonly waiting: Array<{ readonly response: ServerResponse; readonly weight: number; readonly begin: () => void }>
}

export const makeQuotas = (
  proxies: Networks | null,
  nowMs: () => number,
  limits: QuotaLimits = limitsDefault
): Quotas["Service"] => {
  const buckets = makeBuckets(nowMs)
  const askers = new Map<string, Asker>()
  const goodKeys = new Map<string, { readonly org: OrgId | null; readonly until: number }>()

  const goodKeyOf = (hash: string) => {
    const good = goodKeys.get(hash)
    return good !== undefined && good.until > nowMs() ? good : undefined
  }

  const orgOf = (request: IncomingMessage): string | null => {
    const { authorization, "x-org-id": named } = request.headers
    const key = authorization === undefined ? undefined : /^Bearer +(\S+)$/i.exec(authorization)?.[1]
    const good = key === undefined ? undefined : goodKeyOf(storedHash(keyHashOf(request, key)))
    return good === undefined ? null : (good.org ?? `${named}`)
  }

  /** Contains a space, which no org's name has. */
  const placeOf = ({ headers, socket }: IncomingMessage): string => {
    const asked = {
      remoteAddress: Option.fromNullishOr(socket.remoteAddress),
      headers: Headers.fromInput({ "x-forwarded-for": headers["x-forwarded-for"] })
    }
    return `at ${networkOfCaller(addressOf(asked, proxies))}`
  }

  const fits = ({ underWay, bytes }: Asker, weight: number) =>
    underWay < limits.underWayMax && (bytes === 0 || bytes + weight <= limits.bytesMax)

  const start = (
    name: string,
    asker: Asker,
    response: ServerResponse & { [leave]?: () => void },
    weight: number,
    begin: () => void
  ) => {
    asker.underWay += 1
    asker.bytes += weight
    let isUnderWay = true
    const end = () => {
      if (!isUnderWay) return
      isUnderWay = false
      asker.underWay -= 1
      asker.bytes -= weight
      for (let next = asker.waiting[0]; next !== undefined && fits(asker, next.weight); next = asker.waiting[0]) {
        asker.waiting.shift()
        if (!next.response.destroyed) start(name, asker, next.response, next.weight, next.begin)
      }
      if (asker.underWay === 0) askers.delete(name)
    }
    response[leave] = end
    response.on("close", end)
    begin()
  }

  const enter: Enter = (request, response, begin) => {
    const org = orgOf(request)
    const name = org ?? placeOf(request)
    const rate = org === null ? limits.ofAddress : limits.ofOrg
    const wait = buckets.waitOf(name, rate)
    if (wait > 0)
      return answerWith(response, tooMuch(`More than ${rate.perSecond} requests in a second came from here.`, wait))
    buckets.take(name, rate, 1)
    let asker = askers.get(name)
    if (asker === undefined) {
      asker = { underWay: 0, bytes: 0, waiting: [] }
      askers.set(name, asker)
    }
    const weight = weightOf(request)
    if (asker.waiting.length === 0 && fits(asker, weight)) return start(name, asker, response, weight, begin)
    if (asker.waiting.length < limits.waitingMax) return void asker.waiting.push({ response, weight, begin })
    answerWith(response, tooMuch(`${limits.waitingMax} requests from here wait for others to end.`, 1))
  }

  const ofAddress = (address: string | null) => `wrong keys from ${networkOfCaller(address)}`
  const ofAll = "wrong keys"

  return {
    enter,
    wrongKeyWait: (address, hash) =>
      goodKeyOf(hash) !== undefined
        ? 0
        : buckets.waitOf(ofAddress(address), limits.wrongKeysOfAddress) || buckets.waitOf(ofAll, limits.wrongKeysOfAll),
    wrongKey: (address, hash) => {
      goodKeys.delete(hash)
      buckets.take(ofAddress(address), limits.wrongKeysOfAddress, 1)
      buckets.take(ofAll, limits.wrongKeysOfAll, 1)
    },
    goodKey: (hash, org) => {
      goodKeys.delete(hash)
      if (goodKeys.size >= KEYS_MAX) goodKeys.delete(goodKeys.keys().next().value!)
      goodKeys.set(hash, { org, until: nowMs() + GOOD_FOR_MS })
    },
    reads: PartitionedSemaphore.makeUnsafe({ permits: limits.readsMax })
  }
}

export const layer = (proxies: Networks | null, limits: QuotaLimits = limitsDefault) =>
  Layer.effect(
    Quotas,
    Effect.map(Clock.Clock, (clock) =>
      makeQuotas(proxies, () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6, limits)
    )
  )
