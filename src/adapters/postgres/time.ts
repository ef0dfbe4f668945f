/**
 * The database's time, as a process knows it between two questions: the time the database told last, moved on by the
 * process's own monotonic clock. The machine's wall clock has no part in it.
 *
 * It never goes back. Where a new answer says that it is ahead, it goes slower for a while; where the answer says that it is
 * behind by little, faster; by much, it jumps. An answer is as good as the question was quick, so of the last answers the
 * quickest counts.
 */

/** A question: when it was asked and answered by the monotonic clock, and what the database said, all in milliseconds. */
export interface Answer {
  readonly asked: number
  readonly answered: number
  readonly said: number
}

/** How many of the last answers are compared. */
const COMPARED = 8
/** How wrong a monotonic clock may go: a second in three hours. */
const DRIFT = 0.0001
/** Over how long a small difference is made up for. */
const SMOOTHED_OVER_MS = 5_000
/** Behind by more than this, it jumps. */
const JUMP_MS = 1_000
const SLOWEST = 0.5
const FASTEST = 1.5
/** An answer that is wrong by an hour would end messages: it is not believed. */
const BELIEVED_WITHIN_MS = 3_600_000

export interface Time {
  readonly at: (monotonic: number) => number
  /** False for an answer that is not believed. */
  readonly learn: (answer: Answer) => boolean
}

/** Of the database's time over the monotonic clock, if the database answered half-way. */
const offsetOf = ({ asked, answered, said }: Answer) => said - (asked + answered) / 2
const errorOf = ({ asked, answered }: Answer, now: number) => (answered - asked) / 2 + (now - answered) * DRIFT
const bestOf = (answers: ReadonlyArray<Answer>, now: number) =>
  answers.reduce((a, b) => (errorOf(b, now) <= errorOf(a, now) ? b : a))

export const makeTime = (first: Answer): Time => {
  let answers: ReadonlyArray<Answer> = [first]
  // From `since` on it shows `shown` and goes at `rate`, and from `straight` on like any clock.
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
    // Both can't be right: the database's clock was set, or it is another database, as after a failover.
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
