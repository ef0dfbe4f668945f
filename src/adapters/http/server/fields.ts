/**
 * The fields of requests and answers that only this API has. Fields that it shares with the settings of channels are in
 * application/destinations/fields.ts.
 */
import { Schema, SchemaTransformation } from "effect"

export { optional, Reason, Time } from "../../api/fields.ts"

/** A text in an answer that may not be there. */
export const Text = Schema.NullOr(Schema.String)

/** A time in an answer. */
export const Moment = Schema.String.annotate({ format: "date-time" }).pipe(
  Schema.decodeTo(Schema.DateTimeUtc, SchemaTransformation.dateTimeUtcFromString)
)

export const listOf = <S extends Schema.Constraint>(item: S) =>
  Schema.Struct({ items: Schema.Array(item), nextCursor: Schema.NullOr(Schema.String) })

/** How far behind the facts it is what is answered. */
export const freshness = {
  asOf: Moment.annotate({ description: "What was stored before this time is in it." }),
  behindSeconds: Schema.Finite.annotate({
    description: "How old the oldest fact is that it lacks; 0 when it lacks none."
  })
}

/** A list that is read from a projection. */
export const projectedListOf = <S extends Schema.Constraint>(item: S) =>
  Schema.Struct({ items: Schema.Array(item), nextCursor: Schema.NullOr(Schema.String), ...freshness })

export const LIMIT_MAX = 200
export const LIMIT_DEFAULT = 50
/** Of what one message or one stream has: nearly always all of it. */
export const HISTORY_LIMIT = LIMIT_MAX

const limitUpTo = (max: number) =>
  Schema.String.check(
    Schema.makeFilter((value) => /^[1-9]\d{0,3}$/.test(value) && Number(value) <= max, {
      message: `must be a whole number from 1 to ${max}`
    })
  ).pipe(Schema.decodeTo(Schema.Number, SchemaTransformation.numberFromString))

const pagingUpTo = (max: number) => ({
  limit: Schema.optionalKey(limitUpTo(max)),
  cursor: Schema.optionalKey(Schema.String)
})

export const paging = pagingUpTo(LIMIT_MAX)
export const historyPaging = pagingUpTo(HISTORY_LIMIT)
/** An id in a path is any text here: an id that can't exist is answered like one that does not. */
export const idParam = { id: Schema.String }
