/**
 * How long a message waits after an attempt that failed. Data in, data out: the caller rolls the die, so the same
 * policy, attempt and die always give the same wait.
 */
import { Schema } from "effect"

const Millis = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 366 * 24 * 3600 * 1000 }))
const jitterRange = Schema.Tuple([
  Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 10 })),
  Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 10 }))
]).check(
  Schema.makeFilter(([low, high]) => low <= high || "the first factor must not exceed the second", {
    title: "a range of factors, low first"
  })
)

const limits = {
  attemptsMax: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 }))),
  ageMaxMs: Schema.optionalKey(Millis),
  jitter: Schema.optionalKey(jitterRange)
}

export const ScheduleRetry = Schema.Struct({
  strategy: Schema.Literal("schedule"),
  waitsMs: Schema.Array(Millis).check(Schema.isMinLength(1), Schema.isMaxLength(99)),
  ...limits
})

const computed = <S extends string>(strategy: S) =>
  Schema.Struct({
    strategy: Schema.Literal(strategy),
    baseMs: Millis,
    capMs: Schema.optionalKey(Millis),
    factor: Schema.optionalKey(Schema.Finite.check(Schema.isBetween({ minimum: 1, maximum: 100 }))),
    ...limits
  })

/** One member per strategy: a refusal then names the wrong field instead of every strategy there is. */
export const ComputedRetry = Schema.Union([computed("exponential"), computed("linear"), computed("fixed")])

/** The wire and stored form of a policy; every field of it is a promise to the caller. */
export const RetryPolicy = Schema.Union([ScheduleRetry, ...ComputedRetry.members])
export type RetryPolicy = typeof RetryPolicy.Type

/** A policy that names no age: what waits for a dead destination comes to its end by itself. */
const AGE_MAX_DEFAULT_MS = 30 * 24 * 3600 * 1000

export const ageMaxMsOf = (policy: RetryPolicy): number => policy.ageMaxMs ?? AGE_MAX_DEFAULT_MS

const ATTEMPTS_DEFAULT = 6
const CAP_DEFAULT_MS = 24 * 3600 * 1000
/** A provider may ask us to wait longer than the policy would, but not for ever. */
export const RETRY_AFTER_MAX_MS = 3600 * 1000

const minutes = (count: number) => count * 60_000

/** Each is named after its use. */
export const presets = {
  webhook: { strategy: "schedule", waitsMs: [1_000, 5_000, 15_000, 60_000, 300_000] },
  whatsapp: { strategy: "schedule", waitsMs: [1, 5, 15, 60, 360].map(minutes) },
  /** A payment provider is asked again soon, or a person is. */
  payments: { strategy: "exponential", baseMs: 1_000, factor: 2, capMs: 30_000, attemptsMax: ATTEMPTS_DEFAULT },
  /** For receivers that may be away for a day. */
  patient: {
    strategy: "schedule",
    waitsMs: [1_000, 5_000, 15_000, ...[1, 5, 30, 120, 300, 600, 600].map(minutes)]
  },
  exponential: { strategy: "exponential", baseMs: 1_000, factor: 2, capMs: 30_000, attemptsMax: ATTEMPTS_DEFAULT }
} as const satisfies Record<string, RetryPolicy>

export const attemptsMaxOf = (policy: RetryPolicy): number =>
  policy.attemptsMax ?? (policy.strategy === "schedule" ? policy.waitsMs.length + 1 : ATTEMPTS_DEFAULT)

/** No computed wait of it is longer. */
export const capMsOf = ({ capMs = CAP_DEFAULT_MS }: typeof ComputedRetry.Type): number => capMs

/** The wait after failure number `failure` (1, 2, …) before any jitter. */
const plainWaitMs = (policy: RetryPolicy, failure: number): number => {
  if (policy.strategy === "schedule") {
    return policy.waitsMs[Math.min(failure, policy.waitsMs.length) - 1]!
  }
  const cap = capMsOf(policy)
  switch (policy.strategy) {
    case "exponential":
      return Math.min(policy.baseMs * (policy.factor ?? 2) ** (failure - 1), cap)
    case "linear":
      return Math.min(policy.baseMs * failure, cap)
    case "fixed":
      return Math.min(policy.baseMs, cap)
  }
}

/** A written schedule is kept to the millisecond; computed waits spread out unless told otherwise. */
const jitterOf = (policy: RetryPolicy): readonly [number, number] =>
  policy.jitter ?? (policy.strategy === "schedule" ? [1, 1] : [0.5, 1.5])

/**
 * Milliseconds to wait after failure number `failure`. `die` is drawn by the caller from [0, 1).
 * `retryAfterMs` is what the far side asked for: it lengthens the wait, within a bound.
 */
export const retryWaitMs = (
  policy: RetryPolicy,
  failure: number,
  die: number,
  retryAfterMs: number | null = null
): number => {
  const [low, high] = jitterOf(policy)
  const wait = Math.round(plainWaitMs(policy, failure) * (low + (high - low) * die))
  return retryAfterMs === null ? wait : Math.max(wait, Math.min(retryAfterMs, RETRY_AFTER_MAX_MS))
}

/** The least that a message waits for its first retry. */
export const shortestWaitMs = (policy: RetryPolicy): number => retryWaitMs(policy, 1, 0)

/** The bound for the reason of a deferral, such as a sender's bad standing: no such reason lasts for ever. */
export const DEFER_MAX_MS = 7 * 24 * 3600 * 1000

/** Milliseconds a deferred message waits. */
export const deferWaitMs = (afterMs: number): number => Math.max(0, Math.min(Math.round(afterMs), DEFER_MAX_MS))

/** So often a message is deferred for as short as its destination asks. */
const DEFERRALS_FREE = 5
/** Into so many waits its life is divided in the end, so that its facts can be counted. */
const DEFERRALS_IN_A_LIFE = 720

/**
 * The least that a message waits which was deferred so often: a second at first, twice as long each time, and in the end a part of
 * its life, an hour of the default one.
 */
export const deferAgainMs = (deferrals: number, ageMaxMs: number): number =>
  deferrals < DEFERRALS_FREE
    ? 0
    : Math.ceil(Math.min(1_000 * 2 ** (deferrals - DEFERRALS_FREE), ageMaxMs / DEFERRALS_IN_A_LIFE))

/** How long a whole lane waits because its destination limits the rate: Posthaste asks again within the hour. */
export const laneWaitMs = (afterMs: number): number => Math.min(deferWaitMs(afterMs), RETRY_AFTER_MAX_MS)
