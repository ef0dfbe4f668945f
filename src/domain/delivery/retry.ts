/** The wait after an attempt that failed. The caller rolls the die, so policy, attempt and die determine the wait. */
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

/** One member per strategy: a refusal then names the wrong field instead of every strategy. */
export const ComputedRetry = Schema.Union([computed("exponential"), computed("linear"), computed("fixed")])

export const RetryPolicy = Schema.Union([ScheduleRetry, ...ComputedRetry.members])
export type RetryPolicy = typeof RetryPolicy.Type

/** The age of a policy that names none: messages for a dead destination end by themselves. */
const AGE_MAX_DEFAULT_MS = 30 * 24 * 3600 * 1000

export const ageMaxMsOf = (policy: RetryPolicy): number => policy.ageMaxMs ?? AGE_MAX_DEFAULT_MS

const ATTEMPTS_DEFAULT = 6
const CAP_DEFAULT_MS = 24 * 3600 * 1000
/** The longest wait that a provider can ask for. */
export const RETRY_AFTER_MAX_MS = 3600 * 1000

const minutes = (count: number) => count * 60_000

export const presets = {
  webhook: { strategy: "schedule", waitsMs: [1_000, 5_000, 15_000, 60_000, 300_000] },
  whatsapp: { strategy: "schedule", waitsMs: [1, 5, 15, 60, 360].map(minutes) },
  /** Fails soon, so that a person is asked. */
  payments: { strategy: "exponential", baseMs: 1_000, factor: 2, capMs: 30_000, attemptsMax: ATTEMPTS_DEFAULT },
  /** For receivers that may be away for a day. */
  patient: { strategy: "schedule", waitsMs: [1_000, 5_000, 15_000, ...[1, 5, 30, 120, 300, 600, 600].map(minutes)] },
  exponential: { strategy: "exponential", baseMs: 1_000, factor: 2, capMs: 30_000, attemptsMax: ATTEMPTS_DEFAULT }
} as const satisfies Record<string, RetryPolicy>

export const attemptsMaxOf = (policy: RetryPolicy): number =>
  policy.attemptsMax ?? (policy.strategy === "schedule" ? policy.waitsMs.length + 1 : ATTEMPTS_DEFAULT)

export const capMsOf = ({ capMs = CAP_DEFAULT_MS }: typeof ComputedRetry.Type): number => capMs

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

/** A schedule is kept to the millisecond; computed waits spread out unless told otherwise. */
const jitterOf = (policy: RetryPolicy): readonly [number, number] =>
  policy.jitter ?? (policy.strategy === "schedule" ? [1, 1] : [0.5, 1.5])

/**
 * Milliseconds to wait after failure number `failure`. `die` is from [0, 1). `retryAfterMs`, the far side's wish,
 * lengthens the wait, within a bound.
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

export const shortestWaitMs = (policy: RetryPolicy): number => retryWaitMs(policy, 1, 0)

export const DEFER_MAX_MS = 7 * 24 * 3600 * 1000

export const deferWaitMs = (afterMs: number): number => Math.max(0, Math.min(Math.round(afterMs), DEFER_MAX_MS))

/** Deferrals that are as short as the destination asks. */
const DEFERRALS_FREE = 5
/** The number of waits that a message's age is finally divided into, which bounds its facts. */
const DEFERRALS_IN_A_LIFE = 720

/** The shortest wait after so many deferrals: a second, twice as long each time, up to an hour of the default age. */
export const deferAgainMs = (deferrals: number, ageMaxMs: number): number =>
  deferrals < DEFERRALS_FREE
    ? 0
    : Math.ceil(Math.min(1_000 * 2 ** (deferrals - DEFERRALS_FREE), ageMaxMs / DEFERRALS_IN_A_LIFE))

/** The wait of a whole lane whose destination limits the rate: Posthaste asks again within the hour. */
export const laneWaitMs = (afterMs: number): number => Math.min(deferWaitMs(afterMs), RETRY_AFTER_MAX_MS)
