/**
 * Refuses a start that expects the streams of messages elsewhere than they are: it would take every message for unknown.
 */
import { Effect, Layer, Schema } from "effect"
import { Postgres, unavailable, unprepared } from "../Postgres.ts"

export class StreamsElsewhere extends Schema.TaggedError<StreamsElsewhere>()("StreamsElsewhere", {
  message: Schema.String
}) {}

const hereStatement = unprepared`select from stream_follower`
const beginStatement = unprepared`insert into stream_follower (one)
    select true where not exists (select from event where stream is null) on conflict do nothing`
const elsewhereStatement = unprepared`select where not exists (select from stream_follower)`

/** An export that is imported into an empty database moves streams from one to the other. */
export const expect = (where: "here" | "elsewhere") =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { durable } = yield* Postgres
      if (where === "elsewhere") yield* unavailable(durable.rows(beginStatement, []))
      const found = yield* unavailable(durable.rows(where === "here" ? hereStatement : elsewhereStatement, []))
      if (found.length === 0) return
      return yield* new StreamsElsewhere({
        message:
          where === "here"
            ? "the messages of this database have their streams in EventStoreDB: set EVENTSTORE_URL"
            : "the messages of this database have their streams in it, not in EventStoreDB: unset EVENTSTORE_URL"
      })
    })
  )
