/**
 * Fields of requests and answers that only HTTP has; those shared with settings are in
 * application/destinations/fields.ts.
 */
import { Schema, SchemaTransformation } from "effect"
import { text } from "../../../application/ports/fields.ts"
import { ChannelName } from "../../../domain/ids.ts"
import { maybe } from "../../api/fields.ts"

export {
  createdBetween,
  maybe,
  maybeTime,
  needsOneOf,
  optional,
  Reason,
  reason,
  requiredTime,
  Time
} from "../../api/fields.ts"

export const Text = Schema.NullOr(Schema.String)

export const Moment = Schema.String.annotate({ format: "date-time" }).pipe(
  Schema.decodeTo(Schema.DateTimeUtc, SchemaTransformation.dateTimeUtcFromString)
)

export const Id = Schema.String.annotate({ format: "uuid" })

const nextCursor = Schema.NullOr(Schema.String).annotateKey({
  description:
    "The cursor of the next page; null at the end. A page may have fewer items than its limit, even none, before that."
})

const nameOf = (item: Schema.Constraint) => item.ast.annotations?.["identifier"] as string

export const listOf = <S extends Schema.Constraint>(item: S) =>
  Schema.Struct({ items: Schema.Array(item), nextCursor }).annotate({ identifier: `${nameOf(item)}Page` })

export const freshness = {
  asOf: Moment.annotateKey({ description: "What was stored before this time is in it." }),
  behindSeconds: Schema.Finite.annotate({
    description: "How old the oldest fact is that it lacks; 0 when it lacks none."
  })
}

export const projectedListOf = <S extends Schema.Constraint>(item: S) =>
  Schema.Struct({ items: Schema.Array(item), nextCursor, ...freshness }).annotate({
    identifier: `${nameOf(item)}PageAsOf`
  })

const LIMIT_MAX = 200
export const LIMIT_DEFAULT = 50
/** Nearly always the whole history of a message or stream. */
export const HISTORY_LIMIT = LIMIT_MAX

const limitUpTo = (max: number) =>
  Schema.String.check(
    Schema.makeFilter((value) => /^[1-9]\d{0,3}$/.test(value) && Number(value) <= max, {
      message: `must be a whole number from 1 to ${max}`,
      toJsonSchema: () => ({ minimum: 1, maximum: max, default: max === LIMIT_MAX ? LIMIT_DEFAULT : max })
    })
  )
    .annotate({ description: "How many items at most." })
    .pipe(Schema.decodeTo(Schema.Number, SchemaTransformation.numberFromString))

const pagingUpTo = (max: number) => ({
  limit: Schema.optionalKey(limitUpTo(max)),
  cursor: maybe(Schema.String, "Where the page begins: the nextCursor of the page before.")
})

export const paging = pagingUpTo(LIMIT_MAX)
export const historyPaging = pagingUpTo(HISTORY_LIMIT)
export const filters = {
  channel: maybe(ChannelName, "Only those of this channel."),
  to: maybe(text(512), "Only those to this destination or recipient."),
  eventType: maybe(text(256), "Only those of this type of event."),
  dossierId: maybe(text(256), "Only those of this dossier."),
  correlationId: maybe(text(256), "Only those with this correlation id.")
}

export const switchParameter = (description: string) => maybe(Schema.Literals(["true", "false"]), description)

/** Any text: an impossible id is answered like an absent one. */
export const idParam = { id: Id.annotateKey({ description: "The id." }) }
