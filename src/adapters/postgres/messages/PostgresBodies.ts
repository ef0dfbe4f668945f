import { Effect, Layer } from "effect"
import { Bodies } from "../../../application/ports/Bodies.ts"
import { PAGE_READ_BYTES } from "../../../application/ports/errors.ts"
import type { MessageId } from "../../../domain/ids.ts"
import { Postgres, prepared, reading } from "../Postgres.ts"

const loadStatement = prepared`select coalesce(m.body, s.body) from message m left join shared_body s on s.event_id = m.event_id
    where m.id = $1`
const responsesStatement = prepared`select epoch, attempt, body, headers, upto < total from (
      select *, sum(size) over (order by epoch, attempt rows unbounded preceding) as upto, sum(size) over () as total
      from (
        select distinct on (epoch, attempt) *, 1 + octet_length(body) + coalesce(octet_length(headers::text), 0) as size from detail
        where stream_id = $1 and body is not null and (epoch, attempt) >= ($2::int, $3::int) order by epoch, attempt, version
      ) sized
    ) summed where upto - size < ${String(PAGE_READ_BYTES)} order by epoch, attempt`
const eraseStatement = prepared`with bodies as (
      update message set body = null, event_id = null where id = $1 and (body is not null or event_id is not null) returning 1
    ), responses as (update detail set body = null, headers = null where stream_id = $1 and body is not null returning 1)
    select (select count(*) from bodies) + (select count(*) from responses)`

type ResponseRow = ReadonlyArray<string | null>

export const layer = Layer.effect(
  Bodies,
  Effect.gen(function* () {
    const { durable, lookups } = yield* Postgres
    return Bodies.of({
      load: (id: MessageId) => reading(lookups.rows(loadStatement, [id]), ([row]) => row?.[0] ?? null),
      responses: (id: MessageId, from = { epoch: 0, attempt: 0 }) =>
        reading(lookups.rows(responsesStatement, [id, from.epoch, from.attempt]), (rows) => {
          const placeOf = ([epoch, attempt]: ResponseRow) => ({ epoch: Number(epoch), attempt: Number(attempt) })
          const answers = rows.map((row) => {
            const [epoch, attempt, body, headers] = row
            const answer = { body: body!, headers: headers == null ? null : JSON.parse(headers) }
            return [`${epoch}/${attempt}`, answer] as const
          })
          const last = rows.at(-1)
          const end = last?.[4] === "t" ? placeOf(last) : null
          return { answers: new Map(answers), end }
        }),
      erase: (id: MessageId) => reading(durable.rows(eraseStatement, [id]), (rows) => Number(rows[0]![0]) > 0)
    })
  })
)
