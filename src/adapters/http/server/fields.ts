/**
 * The fields of requests and answers that only this API has. Fields that it shares with the settings of channels are in
 * application/destinations/fields.ts.
 */
import { Schema, SchemaTransformation } from "effect"
import { text } from "../../../application/destinations/fields.ts"

const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/

/**
 * A moment since 1970 with its zone: without a zone the same text would mean another time on another machine, and
 * calendars disagree about years before 1970.
 */
export const Time = Schema.String.check(
  Schema.makeFilter((value) => iso.test(value) && Date.parse(value) >= 0, {
    message: "must be an ISO 8601 time with its zone, such as 2030-01-31T09:00:00Z",
    toJsonSchema: () => ({ format: "date-time" })
  })
).pipe(Schema.decodeTo(Schema.DateTimeUtc, SchemaTransformation.dateTimeUtcFromString))

/** A field that may be left out; null means the same. */
export const optional = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/** A text in an answer that may not be there. */
export const Text = Schema.NullOr(Schema.String)

/** Why somebody commands something; any command may leave it out. */
export const Reason = Schema.Struct({ reason: optional(text(500)) })

/** A time in an answer. */
export const Moment = Schema.String.annotate({ format: "date-time" }).pipe(
  Schema.decodeTo(Schema.DateTimeUtc, SchemaTransformation.dateTimeUtcFromString)
)

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
/** An id in a path is any text here: an id that can't exist is answered like one that does not. */
export const idParam = { id: Schema.String }
