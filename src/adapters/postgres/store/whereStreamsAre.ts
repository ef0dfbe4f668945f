/**
 * One database, one place for the streams of its messages. A start that expects them elsewhere than they are would take
 * every message for one that never was; it is refused.
 */
import { Effect, Layer, Schema } from "effect"
import { Postgres, unavailable, unprepared } from "../Postgres.ts"

export class StreamsElsewhere extends Schema.TaggedError<StreamsElsewhere>()("StreamsElsewhere", {
  message: Schema.String
}) {}

const copiesStatement = unprepared`select 1 from copied_fact limit 1`
const streamsStatement = unprepared`select 1 from event where stream is null limit 1`

/** An export that is imported into an empty database moves streams from one to the other. */
export const expect = (where: "here" | "elsewhere") =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { reads } = yield* Postgres
      const found = yield* unavailable(reads.rows(where === "here" ? copiesStatement : streamsStatement, []))
      if (found.length === 0) return
      return yield* new StreamsElsewhere({
        message:
          where === "here"
            ? "the messages of this database have their streams in EventStoreDB: set EVENTSTORE_URL"
            : "the messages of this database have their streams in it, not in EventStoreDB: unset EVENTSTORE_URL"
      })
    })
  )
