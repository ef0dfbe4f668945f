import { Effect, Layer } from "effect"
import { Bodies } from "../../../application/ports/Bodies.ts"
import type { MessageId } from "../../../domain/ids.ts"
import { Postgres, prepared, reading } from "../Postgres.ts"

const loadStatement = prepared`select coalesce(b.body, s.body) from body b left join shared_body s on s.event_id = b.event_id
    where b.message_id = $1`
const responsesStatement = prepared`select epoch || '/' || attempt, body, headers from response where message_id = $1`
const eraseStatement = prepared`with bodies as (delete from body where message_id = $1 returning 1),
    responses as (delete from response where message_id = $1 returning 1)
    select (select count(*) from bodies) + (select count(*) from responses)`

/** What may be erased: bodies and responses, in tables beside the facts. */
export const layer = Layer.effect(
  Bodies,
  Effect.gen(function* () {
    const { durable, lookups } = yield* Postgres
    return Bodies.of({
      load: (id: MessageId) => reading(lookups.rows(loadStatement, [id]), (rows) => rows[0]?.[0] ?? null),
      responses: (id: MessageId) =>
        reading(
          lookups.rows(responsesStatement, [id]),
          (rows) =>
            new Map(
              rows.map(([key, body, headers]) => [
                key!,
                { body: body!, headers: headers == null ? null : JSON.parse(headers) }
              ])
            )
        ),
      erase: (id: MessageId) => reading(durable.rows(eraseStatement, [id]), (rows) => Number(rows[0]![0]) > 0)
    })
  })
)
