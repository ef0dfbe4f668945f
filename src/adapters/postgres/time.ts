/**
 * The database's time between two questions: its last answer, moved on by the process's monotonic clock. It never goes back: ahead, it
 * slows down; a little behind, it speeds up; far behind, it jumps. Of the last answers the quickest counts.
 */

/** In milliseconds; `asked` and `answered` by the monotonic clock. */
export interface Answer {
  readonly asked: number
  readonly answered: number
  readonly said: number
}

const COMPARED = 8
/** Of a monotonic clock: a second in three hours. */
const DRIFT = 0.0001
const SMOOTHED_OVER_MS = 5_000
const JUMP_MS = 1_000
const SLOWEST = 0.5
const FASTEST = 1.5
/** An answer that is wrong by an hour would end messages. */
const BELIEVED_WITHIN_MS = 3_600_000

export interface Time {
  readonly at: (monotonic: number) => number
  /** False for a disbelieved answer. */
  readonly learn: (answer: Answer) => boolean
}

/** Of the database's time over the monotonic clock, if it answered half-way. */
const offsetOf = ({ asked, answered, said }: Answer) => said - (asked + answered) / 2
const errorOf = ({ asked, answered }: Answer, now: number) => (answered - asked) / 2 + (now - answered) * DRIFT
const bestOf = (answers: ReadonlyArray<Answer>, now: number) =>
  answers.reduce((a, b) => (errorOf(b, now) <= errorOf(a, now) ? b : a))

export const makeTime = (first: Answer): Time => {
  let answers: ReadonlyArray<Answer> = [first]
  // Shows `shown` at `since`, then goes at `rate` until `straight`.
  let since = first.answered
  let straight = since
  let shown = since + offsetOf(first)
  let rate = 1

  const at = (monotonic: number): number => {
    const passed = Math.max(0, monotonic - since)
    const bent = Math.min(passed, straight - since)
    return shown + bent * rate + (passed - bent)
  }

  const learn = (answer: Answer): boolean => {
    const now = answer.answered
    if (Math.abs(now + offsetOf(answer) - at(now)) > BELIEVED_WITHIN_MS) return false
    const known = bestOf(answers, now)
    // The database's clock was set, or it is another database, as after a failover.
    const isAnother = Math.abs(offsetOf(answer) - offsetOf(known)) > errorOf(answer, now) + errorOf(known, now)
    answers = [...(isAnother ? [] : answers), answer].slice(-COMPARED)
    const wanted = now + offsetOf(bestOf(answers, now))
    const difference = wanted - at(now)
    shown = difference > JUMP_MS ? wanted : at(now)
    since = now
    rate = Math.min(FASTEST, Math.max(SLOWEST, 1 + difference / SMOOTHED_OVER_MS))
    straight = difference > JUMP_MS || rate === 1 ? now : now + difference / (rate - 1)
    return true
  }

  return { at, learn }
}
