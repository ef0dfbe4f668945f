/**
 * A rate limit as one moment in time: the generic cell rate algorithm. The moment moves ahead by one interval per
 * message and may run ahead of the clock by a small burst. Data in, data out; the caller brings the clock.
 *
 * The burst is the number of messages that one claim may hand out at once; the slack makes up for claims that come a
 * little late, so that the limit is reached. Both are small: with n per second, no second sees more than n × 1.045 + 1
 * messages leave the queue.
 */

export interface RateLimit {
  readonly limit: number
  readonly periodMs: number
}

export const BURST_MS = 25
export const SLACK_MS = 20
/** A hundredth of a message forgives what rounding to microseconds takes. */
export const ROUNDING = 0.01

/** How long after its hand-out a message may start. A later one goes back: late ones would add up to a burst. */
export const SLOT_FRESH_MS = 60

const shapeOf = ({ limit, periodMs }: RateLimit) => {
  const interval = periodMs / limit
  const burst = Math.max(1, Math.floor(BURST_MS / interval))
  // A lane is worth a claim when half a burst can go; one message at a time would keep a worker busy with claims.
  const worthwhile = Math.ceil(burst / 2)
  return { interval, burst, lead: (burst - worthwhile) * interval }
}

/** The moment of the last message that was handed out. */
const endOf = (lead: number, nextClaimAt: number | null, now: number): number =>
  Math.max(nextClaimAt === null ? Number.NEGATIVE_INFINITY : nextClaimAt + lead, now - SLACK_MS)

/** How many messages may be handed out now. `nextClaimAt` is what `taken` answered the last time; null: never. */
export const slotsFree = (rate: RateLimit, nextClaimAt: number | null, now: number): number => {
  const { interval, burst, lead } = shapeOf(rate)
  return Math.max(0, Math.floor((now - endOf(lead, nextClaimAt, now)) / interval + ROUNDING) + burst)
}

/** When the lane is worth a claim again after `count` more messages were handed out. */
export const taken = (rate: RateLimit, nextClaimAt: number | null, now: number, count: number): number => {
  const { interval, lead } = shapeOf(rate)
  return endOf(lead, nextClaimAt, now) + count * interval - lead
}
