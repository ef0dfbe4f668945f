/**
 * A rate limit as slots: moments, evenly spaced, in each of which one request may leave. Data in, data out; the caller brings
 * the clock, which is the store's for every worker.
 *
 * - **Never above the limit**: in no window of one period (of a second, where the period is shorter) do more than `limit`
 *   requests leave, over all workers. A request leaves at most `latenessOf` after its slot, and the slots are a little further
 *   apart than the limit says, so requests that come late in their slots can't fill a window with one too many.
 * - **Hardly below it**: that costs a fiftieth. Slots are handed out ahead, so a worker that claims late, or takes a moment to
 *   store that an attempt begins, loses none. A slot that nobody used in time is gone: one more request later would be one too
 *   many for the windows there.
 */

export interface RateLimit {
  readonly limit: number
  readonly periodMs: number
}

/** What a lane remembers: from when on no slot is handed out yet, and slots that came back, the earliest first. */
export interface SlotsOfLane {
  readonly nextSlotAt: number | null
  readonly returned: ReadonlyArray<number>
}

/** How far ahead slots are handed out: so many, within these bounds. A lane is visited again when half of it is over. */
export const SLOTS_AHEAD = 512
export const HORIZON_MIN_MS = 250
export const HORIZON_MAX_MS = 1_000
/** How far ahead somebody who missed a slot may get another. */
export const NEXT_WITHIN_MS = 2_000
/** How much further apart than the limit says: a part of the window, and no more than so many milliseconds of it. */
export const SPREAD = 0.02
export const SPREAD_MAX_MS = 2_000
export const WINDOW_MIN_MS = 1_000
/** The rest of the spread is for clocks that are read a little differently. */
const LATENESS = 0.75
/** An attempt begins so long before its slot that its start is stored by then: in twice the time that this took lately. */
const LEAD_MIN_MS = 30
const LEAD_MAX_MS = 500
/** A fast lane has no more requests that wait for their slots. */
const LEAD_SLOTS = 32

/** The window of the promise: whole periods, together a second at least. */
const windowOf = ({ periodMs }: RateLimit) => Math.ceil(WINDOW_MIN_MS / periodMs) * periodMs

const spreadOf = (rate: RateLimit) => Math.min(windowOf(rate) * SPREAD, SPREAD_MAX_MS)

/** From one slot to the next. */
export const intervalOf = (rate: RateLimit): number =>
  (rate.periodMs / rate.limit) * (1 + spreadOf(rate) / windowOf(rate))

export const horizonOf = (rate: RateLimit): number =>
  Math.min(Math.max(SLOTS_AHEAD * intervalOf(rate), HORIZON_MIN_MS), HORIZON_MAX_MS)

/** When a lane is worth a visit whose next slot is this one. */
export const visitAt = (rate: RateLimit, nextSlotAt: number): number => nextSlotAt - horizonOf(rate) / 2

/** How long after its slot a request may leave. */
export const latenessOf = (rate: RateLimit): number => spreadOf(rate) * LATENESS

/** How long before its slot the attempt may begin, where a start took `storedMs` to store. */
export const leadOf = (rate: RateLimit, storedMs: number): number =>
  Math.min(Math.max(2 * storedMs, LEAD_MIN_MS), LEAD_MAX_MS, LEAD_SLOTS * intervalOf(rate))

/** The slots that may be handed out now, `max` at most, the earliest first. */
export const slotsFree = (
  rate: RateLimit,
  { nextSlotAt, returned }: SlotsOfLane,
  now: number,
  max: number
): ReadonlyArray<number> => {
  const again = returned.filter((at) => at >= now).slice(0, max)
  const first = Math.max(nextSlotAt ?? now, now)
  const interval = intervalOf(rate)
  const ahead = Math.floor((now + horizonOf(rate) - first) / interval) + 1
  const fresh = Math.max(0, Math.min(max - again.length, ahead))
  return [...again, ...Array.from({ length: fresh }, (_, nth) => first + nth * interval)]
}

/** After slots up to `last` were taken. */
export const slotsAfter = (rate: RateLimit, { nextSlotAt, returned }: SlotsOfLane, last: number): SlotsOfLane => ({
  nextSlotAt: nextSlotAt !== null && last < nextSlotAt ? nextSlotAt : last + intervalOf(rate),
  returned: returned.filter((at) => at > last)
})

/** The next slot from `from` on, for one request; null when it is more than `NEXT_WITHIN_MS` away. */
export const nextSlot = ({ nextSlotAt, returned }: SlotsOfLane, now: number, from: number): number | null => {
  const next = returned.find((at) => at >= from) ?? Math.max(nextSlotAt ?? from, from)
  return next > now + NEXT_WITHIN_MS ? null : next
}
