/**
 * The time in which the event loop turned. A process can stand still: it is stopped, its machine sleeps, or a long computation
 * keeps the loop. Such a time does not pass here, because nobody's bytes were read in it.
 */

/** How often the clock is looked at, so that a longer gap between two looks is a standstill. */
const LOOK_EVERY_MS = 250
/** A gap up to this long is a busy loop, which reads what came all the same. */
const TURNING_MAX_MS = 500

export interface LoopTime {
  /** In milliseconds, since some moment. */
  readonly now: () => number
  /** How long the loop stood still within the last `withinMs` of its time. */
  readonly stoodStillMs: () => number
  readonly stop: () => void
}

export const watchLoop = (withinMs: number, clock: () => number = () => performance.now()): LoopTime => {
  let looked = clock()
  let turned = 0
  let standstills: ReadonlyArray<{ readonly until: number; readonly ms: number }> = []
  const look = () => {
    const at = clock()
    const gap = at - looked
    looked = at
    const ms = Math.max(0, gap - TURNING_MAX_MS)
    turned += gap - ms
    if (ms > 0 || standstills.length > 0)
      standstills = [...standstills, { until: turned, ms }].filter(
        (standstill) => standstill.ms > 0 && standstill.until > turned - withinMs
      )
  }
  const looking = setInterval(look, LOOK_EVERY_MS).unref()
  return {
    now: () => {
      look()
      return turned
    },
    stoodStillMs: () => {
      look()
      return standstills.reduce((sum, { ms }) => sum + ms, 0)
    },
    stop: () => clearInterval(looking)
  }
}
