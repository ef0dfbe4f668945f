/**
 * Bounds what wrong keys cost. A key that nobody knows is looked up in the store; whoever sends thousands of them would take the
 * connections that others' keys are looked up with. So wrong keys of one address, and of all together, are counted, and when there
 * were too many, only keys that were good a short while ago are looked up; the rest is answered 429 from memory.
 */

import type { OrgId } from "../../../domain/ids.ts"
import type { UsedUp } from "../../api/problem.ts"

/** A bucket: so many at once, and so many more each second. */
interface Share {
  readonly burst: number
  readonly perSecond: number
}

export interface WrongKeyLimits {
  readonly perAddress: Share
  readonly all: Share
}

export const limitsDefault: WrongKeyLimits = {
  perAddress: { burst: 500, perSecond: 10 },
  all: { burst: 5_000, perSecond: 100 }
}

/** A key that was good so recently is looked up whatever others of its address do. */
const GOOD_FOR_MS = 600_000
const REMEMBERED = 10_000

export interface WrongKeys {
  /** Null when a key may be looked up now, else what was used up; `hash` is that of its text. */
  readonly usedUp: (address: string | null, hash: string, now: number) => UsedUp | null
  readonly wrong: (address: string | null, hash: string, now: number) => void
  /** `org` is null of an operator's. */
  readonly good: (hash: string, org: OrgId | null, now: number) => void
  /** Whose key was good lately, and null of an operator's; undefined of any other. */
  readonly orgOf: (hash: string, now: number) => OrgId | null | undefined
}

interface Good {
  readonly org: OrgId | null
  readonly until: number
}

interface Bucket {
  used: number
  at: number
}

export const makeWrongKeys = (limits: WrongKeyLimits = limitsDefault): WrongKeys => {
  const buckets = new Map<string, Bucket>()
  const all: Bucket = { used: 0, at: 0 }
  const known = new Map<string, Good>()

  /** What has been used up and not been given back by the time that passed. */
  const usedOf = (bucket: Bucket, { perSecond }: Share, now: number) =>
    Math.max(0, bucket.used - ((now - bucket.at) / 1000) * perSecond)

  const use = (bucket: Bucket, share: Share, now: number) => {
    bucket.used = usedOf(bucket, share, now) + 1
    bucket.at = now
  }

  /** When nothing is left of it. */
  const usedUpOf = (bucket: Bucket, share: Share, now: number): UsedUp | null => {
    const beyond = usedOf(bucket, share, now) - share.burst
    return beyond < 0 ? null : { allowed: share.burst, afterSeconds: Math.floor(beyond / share.perSecond) + 1 }
  }

  const goodAt = (hash: string, now: number) => {
    const good = known.get(hash)
    return good !== undefined && good.until > now ? good : undefined
  }

  return {
    usedUp: (address, hash, now) => {
      if (goodAt(hash, now) !== undefined) return null
      const own = buckets.get(networkOf(address))
      return (own === undefined ? null : usedUpOf(own, limits.perAddress, now)) ?? usedUpOf(all, limits.all, now)
    },
    wrong: (address, hash, now) => {
      known.delete(hash)
      const network = networkOf(address)
      const own = buckets.get(network) ?? { used: 0, at: now }
      // The newest are last: those that were wrong long ago are forgotten first.
      buckets.delete(network)
      if (buckets.size >= REMEMBERED) buckets.delete(buckets.keys().next().value!)
      buckets.set(network, own)
      use(own, limits.perAddress, now)
      use(all, limits.all, now)
    },
    good: (hash, org, now) => {
      known.delete(hash)
      if (known.size >= REMEMBERED) known.delete(known.keys().next().value!)
      known.set(hash, { org, until: now + GOOD_FOR_MS })
    },
    orgOf: (hash, now) => goodAt(hash, now)?.org
  }
}

/** Of IPv6 the network of 64 bits: whoever has one has all its addresses. */
export const networkOf = (address: string | null): string => {
  if (address === null || !address.includes(":") || /^::ffff:\d+\./i.test(address)) return address ?? ""
  const [head = "", tail] = address.split("::")
  const groups = head.split(":").filter((group) => group !== "")
  const rest = (tail ?? "").split(":").filter((group) => group !== "")
  const zeros = Array.from({ length: Math.max(0, 8 - groups.length - rest.length) }, () => "0")
  return [...groups, ...(tail === undefined ? [] : zeros), ...rest].slice(0, 4).join(":")
}
