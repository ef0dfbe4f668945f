/**
 * Bounds what wrong keys cost. A key that nobody knows is looked up in the store; whoever sends thousands of them would take the
 * connections that others' keys are looked up with. So wrong keys of one address, and of all together, are counted, and when there
 * were too many, only keys that were good a short while ago are looked up; the rest is answered 429 from memory.
 */

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
  /** Whether a key may be looked up now; `hash` is that of its text. */
  readonly mayAsk: (address: string | null, hash: string, now: number) => boolean
  readonly wrong: (address: string | null, now: number) => void
  readonly good: (hash: string, now: number) => void
}

interface Bucket {
  used: number
  at: number
}

export const makeWrongKeys = (limits: WrongKeyLimits = limitsDefault): WrongKeys => {
  const buckets = new Map<string, Bucket>()
  const all: Bucket = { used: 0, at: 0 }
  const goodUntil = new Map<string, number>()

  /** What has been used up and not been given back by the time that passed. */
  const usedOf = (bucket: Bucket, { perSecond }: Share, now: number) =>
    Math.max(0, bucket.used - ((now - bucket.at) / 1000) * perSecond)

  const use = (bucket: Bucket, share: Share, now: number) => {
    bucket.used = usedOf(bucket, share, now) + 1
    bucket.at = now
  }

  return {
    mayAsk: (address, hash, now) => {
      if ((goodUntil.get(hash) ?? 0) > now) return true
      const own = buckets.get(networkOf(address))
      if (own !== undefined && usedOf(own, limits.perAddress, now) >= limits.perAddress.burst) return false
      return usedOf(all, limits.all, now) < limits.all.burst
    },
    wrong: (address, now) => {
      const network = networkOf(address)
      const own = buckets.get(network) ?? { used: 0, at: now }
      // The newest are last: those that were wrong long ago are forgotten first.
      buckets.delete(network)
      if (buckets.size >= REMEMBERED) buckets.delete(buckets.keys().next().value!)
      buckets.set(network, own)
      use(own, limits.perAddress, now)
      use(all, limits.all, now)
    },
    good: (hash, now) => {
      goodUntil.delete(hash)
      if (goodUntil.size >= REMEMBERED) goodUntil.delete(goodUntil.keys().next().value!)
      goodUntil.set(hash, now + GOOD_FOR_MS)
    }
  }
}

/** Of IPv6 the network of 64 bits: whoever has one has all its addresses. */
const networkOf = (address: string | null): string => {
  if (address === null || !address.includes(":") || /^::ffff:\d+\./i.test(address)) return address ?? ""
  const [head = "", tail] = address.split("::")
  const groups = head.split(":").filter((group) => group !== "")
  const rest = (tail ?? "").split(":").filter((group) => group !== "")
  const zeros = Array.from({ length: Math.max(0, 8 - groups.length - rest.length) }, () => "0")
  return [...groups, ...(tail === undefined ? [] : zeros), ...rest].slice(0, 4).join(":")
}
