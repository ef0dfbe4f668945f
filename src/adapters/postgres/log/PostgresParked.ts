import { Effect, Layer } from "effect"
import { Parked, type ParkedStream } from "../../../application/ports/Parked.ts"
import type { MessageId } from "../../../domain/ids.ts"
import { streamOf } from "../../../domain/streams.ts"
import { pageOf } from "../filtering.ts"
import { Postgres, prepared, reading, unavailable, unprepared } from "../Postgres.ts"
import { liveGeneration } from "./generations.ts"

const parkStatement = unprepared`insert into parked (stream, reason)
    select u.stream, u.reason from unnest($1::text[], $2::text[]) u(stream, reason) order by u.stream
  on conflict do nothing returning stream`
const unparkStatement = unprepared`delete from parked where stream = any ($1::text[])`
const findStatement = prepared`select stream, reason, at from parked where stream = $1
    and exists (select from message m where m.id = $2::uuid and m.org_id = $3)`
const listStatement = prepared`select stream, reason, at from parked
    where $1::text is null or stream collate "C" > $1::text collate "C" order by stream collate "C" limit $2`
// One statement, hence one snapshot: a moving message is where it was, or where it goes.
const lostStatement = unprepared`with held as materialized (select distinct m.id from claim c cross join unnest(c.messages) m(id))
    select v.id from message_view v
      where v.generation = ${liveGeneration("messages")} and v.status in ('QUEUED', 'SENDING')
        and ($1::uuid[] is null or v.id = any ($1::uuid[]))
        and not exists (select from ready r where r.lane = v.destination and r.message_id = v.id)
        and not exists (select from held h where h.id = v.id)
        and not exists (select from line_entry t where t.message_id = v.id and t.state = 'WAITING')
        and not exists (select from parked p where p.stream = 'message-' || v.id)
      limit $2`

export const layer = Layer.effect(
  Parked,
  Effect.gen(function* () {
    const { durable, bulk, reads, lookups } = yield* Postgres
    return Parked.of({
      // Durable: readers move on past these facts, and workers release batches without the message.
      park: (streams) =>
        streams.size === 0
          ? Effect.succeed([])
          : reading(durable.rows(parkStatement, [[...streams.keys()], [...streams.values()]]), (rows) =>
              rows.map(([stream]) => stream!)
            ),
      unpark: (streams) =>
        streams.length === 0 ? Effect.void : Effect.asVoid(unavailable(durable.rows(unparkStatement, [streams]))),
      find: (orgId, id) =>
        reading(lookups.query<ParkedStream>(findStatement, [streamOf(id), id, orgId]), ([row]) => row ?? null),
      lost: (among, limit) =>
        reading(bulk.rows(lostStatement, [among, limit]), (rows) => rows.map(([id]) => id as MessageId)),
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
