/**
 * Buckets of tokens by name, filled at a rate up to a burst. A request passes while anything is left and may overdraw;
 * the next one waits until that is filled, so a large batch passes, too.
 */

export interface Rate {
  readonly perSecond: number
  /** The content of a full bucket; absent: the amount of a second. */
  readonly burst?: number
}

/** Seconds to name where time alone makes no room. */
export const LATER_SECONDS = 3_600

const NAMES_MAX = 10_000

export interface Buckets {
  readonly waitOf: (name: string, rate: Rate) => number
  readonly take: (name: string, rate: Rate, count: number) => void
}

export const makeBuckets = (nowMs: () => number): Buckets => {
  const known = new Map<string, { left: number; at: number }>()

  const bucketOf = (name: string, { perSecond, burst = perSecond }: Rate) => {
    const at = nowMs()
    let bucket = known.get(name)
    if (bucket === undefined) {
      if (known.size >= NAMES_MAX) known.delete(known.keys().next().value!)
      bucket = { left: burst, at }
      known.set(name, bucket)
    }
    bucket.left = Math.min(burst, bucket.left + ((at - bucket.at) / 1_000) * perSecond)
    bucket.at = at
    return bucket
  }

  return {
    waitOf: (name, rate) => {
      const { left } = bucketOf(name, rate)
      if (left > 0) return 0
      return rate.perSecond === 0 ? LATER_SECONDS : Math.floor(-left / rate.perSecond) + 1
    },
    take: (name, rate, count) => {
      bucketOf(name, rate).left -= count
    }
  }
}
