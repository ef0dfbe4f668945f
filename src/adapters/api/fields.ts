/** Fields of requests; those shared with settings are in application/destinations/fields.ts. */
import { Schema, SchemaTransformation } from "effect"
import { text } from "../../application/ports/fields.ts"

const iso =
  /^(\d{4})-(0[1-9]|1[0-2])-(\d\d)T([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/

const TIME_MAX = Date.parse("9999-12-31T23:59:59.999Z")

/** `Date.parse` takes 30 February for a day in March. */
const isTime = (value: string): boolean => {
  const [, year, month, day] = iso.exec(value) ?? []
  if (day === undefined || Number(day) < 1) return false
  if (Number(day) > new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()) return false
  return Date.parse(value) >= 0 && Date.parse(value) <= TIME_MAX
}

/** A moment from 1970 to 9999 with its zone: calendars disagree about earlier years, databases about later ones. */
const TimeText = Schema.String.check(
  Schema.makeFilter(isTime, {
    message: "must be an ISO 8601 time from 1970 to 9999 with its zone, such as 2030-01-31T09:00:00Z",
    toJsonSchema: () => ({ format: "date-time" })
  })
)
const timeIn = (text: typeof TimeText) =>
  text.pipe(Schema.decodeTo(Schema.DateTimeUtc, SchemaTransformation.dateTimeUtcFromString))
export const Time = timeIn(TimeText)

/** A field that may be left out or null. */
export const optional = <S extends Schema.Constraint>(schema: S, description?: string) =>
  Schema.optionalKey(
    Schema.NullOr(schema).annotate({ message: schema.ast.annotations?.["message"] as string })
  ).annotateKey(description === undefined ? {} : { description })

export const maybe = <S extends Schema.Constraint>(schema: S, description: string) =>
  Schema.optionalKey(schema).annotateKey({ description })

/** A time with its words, which the OpenAPI generator reads from the encoded text only. */
export const requiredTime = (description: string) => timeIn(TimeText.annotate({ description }))

export const maybeTime = (description: string) => Schema.optionalKey(requiredTime(description))

/** Says in the OpenAPI document that one of these fields is needed. */
export const needsOneOf = (...names: ReadonlyArray<string>) =>
  Schema.makeFilter<object>(() => true, {
    toJsonSchema: () => ({ anyOf: names.map((name) => ({ required: [name] })) })
  })

export const reason = optional(text(500), "Why; kept in the audit and in the facts.")

export const Reason = Schema.Struct({ reason })

export const createdBetween = {
  createdAfter: maybeTime("Only those that were made at this time or later."),
  createdBefore: maybeTime("Only those that were made before this time.")
}
