/**
 * The fields requests and answers are made of. Every rule here is one a caller can be told: the words
 * after "must be" in a problem come from these annotations.
 *
 * Texts end up in a database, in logs' neighbours and in HTTP headers, so what those can't hold (NUL,
 * other control characters, half a surrogate pair) is refused at the door.
 */
import { Schema, SchemaTransformation } from "effect"
import { RetryPolicy } from "../../../domain/delivery/retry.ts"
import { onDeadLetter } from "../../../domain/message/queueChange.ts"

// biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the point
const control = /[\u0000-\u001f\u007f]/

export const text = (maxLength: number) =>
  Schema.String.check(
    Schema.makeFilter(
      (value) =>
        (value.length > 0 && value.length <= maxLength && !control.test(value) && value.isWellFormed()) ||
        `must be 1 to ${maxLength} characters without control characters`,
      {
        title: `1 to ${maxLength} characters without control characters`,
        toJsonSchema: () => ({ minLength: 1, maxLength })
      }
    )
  )

/** Text that is also sent as an HTTP header. */
export const headerText = (maxLength: number) =>
  Schema.String.check(
    Schema.isPattern(new RegExp(`^[\\x21-\\x7e]([\\x20-\\x7e]{0,${maxLength - 2}}[\\x21-\\x7e])?$`), {
      message: `must be 1 to ${maxLength} printable ASCII characters without spaces at the ends`,
      toJsonSchema: () => ({ minLength: 1, maxLength })
    })
  )

const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/

/**
 * A moment since 1970 with its zone written out: without one, the same text would mean another time on
 * another machine, and years before that are not the same in every calendar behind us.
 */
export const Time = Schema.String.check(
  Schema.makeFilter((value) => iso.test(value) && Date.parse(value) >= 0, {
    message: "must be an ISO 8601 time with its zone, such as 2030-01-31T09:00:00Z",
    toJsonSchema: () => ({ format: "date-time" })
  })
).pipe(Schema.decodeTo(Schema.DateTimeUtc, SchemaTransformation.dateTimeUtcFromString))

export const Retry = RetryPolicy.annotate({
  identifier: "RetryPolicy",
  expected: "a retry policy",
  message:
    'must be {"strategy": "schedule", "waitsMs": […]} or {"strategy": "exponential" | "linear" | "fixed", "baseMs": …}'
})

/** A field that may be left out; null says the same. */
export const optional = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/** How answers write times. */
export const Moment = Schema.String.annotate({ format: "date-time" })

export const listOf = <S extends Schema.Constraint>(item: S) =>
  Schema.Struct({ items: Schema.Array(item), nextCursor: Schema.NullOr(Schema.String) })

export const LIMIT_MAX = 200
export const LIMIT_DEFAULT = 50

const Limit = Schema.String.check(
  Schema.makeFilter((value) => /^[1-9]\d{0,2}$/.test(value) && Number(value) <= LIMIT_MAX, {
    message: `must be a whole number from 1 to ${LIMIT_MAX}`
  })
).pipe(Schema.decodeTo(Schema.Number, SchemaTransformation.numberFromString))

export const paging = {
  limit: Schema.optionalKey(Limit),
  cursor: Schema.optionalKey(Schema.String)
}
/** An id in a path is any text here: one that can't exist is answered like one that doesn't. */
export const idParam = { id: Schema.String }

export const OnDeadLetter = Schema.Literals(onDeadLetter).annotate({
  description:
    "What a dead letter does to the messages behind it with the same orderingKey. skip: they go on without it. block: they wait until it was replayed, or this is set to skip."
})

export const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

export const RateLimit = Schema.Struct({ limit: between(1, 1_000_000), periodMs: between(1, 86_400_000) })
export const MaxInFlight = between(1, 1000)
/** The longest request. A worker keeps its lease by renewing it, so this bounds a stop and a probe, not the lease. */
export const TimeoutMs = between(100, 30_000)

/** Of every kind of destination. */
export const destinationDefaults = { maxInFlight: 50, timeoutMs: 15_000, onDeadLetter: "skip" } as const
