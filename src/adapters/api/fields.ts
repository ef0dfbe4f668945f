/** Fields of requests. Those that they share with the settings of channels are in destinations/fields.ts. */
import { Schema, SchemaTransformation } from "effect"
import { text } from "../../application/destinations/fields.ts"

const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/

const TIME_MAX = Date.parse("9999-12-31T23:59:59.999Z")

/**
 * A moment from 1970 to 9999 with its zone: without a zone the same text would mean another time on another machine,
 * calendars disagree about years before 1970, and databases and parsers about years of five digits.
 */
export const Time = Schema.String.check(
  Schema.makeFilter((value) => iso.test(value) && Date.parse(value) >= 0 && Date.parse(value) <= TIME_MAX, {
    message: "must be an ISO 8601 time from 1970 to 9999 with its zone, such as 2030-01-31T09:00:00Z",
    toJsonSchema: () => ({ format: "date-time" })
  })
).pipe(Schema.decodeTo(Schema.DateTimeUtc, SchemaTransformation.dateTimeUtcFromString))

/** A field that may be left out; null means the same. What it must be is said in the words of its schema. */
export const optional = <S extends Schema.Constraint>(schema: S) =>
  Schema.optionalKey(Schema.NullOr(schema).annotate({ message: schema.ast.annotations?.["message"] as string }))

/** Why somebody commands something; any command may leave it out. */
export const Reason = Schema.Struct({ reason: optional(text(500)) })
