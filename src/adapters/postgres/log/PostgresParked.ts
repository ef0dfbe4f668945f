/** Streams that can't be processed, as rows of `parked`. */
import { Effect, Layer } from "effect"
import { Parked, type ParkedStream } from "../../../application/ports/Parked.ts"
import { pageOf } from "../filtering.ts"
import { Postgres, prepared, reading, unprepared } from "../Postgres.ts"

const parkStatement = unprepared`insert into parked (stream, reason)
    select u.stream, u.reason from unnest($1::text[], $2::text[]) u(stream, reason) order by u.stream
  on conflict do nothing returning stream`
const listStatement = prepared`select stream, reason, at from parked
    where $1::text is null or stream collate "C" > $1::text collate "C" order by stream collate "C" limit $2`

export const layer = Layer.effect(
  Parked,
  Effect.gen(function* () {
    const { durable, reads } = yield* Postgres
    return Parked.of({
      // Durable: the reader moves on past these facts.
      park: (streams) =>
        streams.size === 0
          ? Effect.succeed([])
          : reading(durable.rows(parkStatement, [[...streams.keys()], [...streams.values()]]), (rows) =>
              rows.map(([stream]) => stream!)
            ),
      list: ({ cursor, limit }) =>
        reading(reads.query<ParkedStream>(listStatement, [cursor, limit + 1]), (rows) =>
          pageOf(
            rows,
            { cursor, limit },
            (row) => row,
            ({ stream }) => stream
          )
        )
    })
  })
)
