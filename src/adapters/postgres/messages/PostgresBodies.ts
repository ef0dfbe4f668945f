import { Effect, Layer } from "effect"
import { Bodies } from "../../../application/ports/Bodies.ts"
import type { EventId, MessageId } from "../../../domain/ids.ts"
import { Postgres, prepared, reading } from "../Postgres.ts"
import { SealedTexts } from "../SealedTexts.ts"
import { openedAnswer, openedBody } from "../store/storedTexts.ts"

const loadStatement = prepared`select coalesce(b.body, s.body), b.event_id from body b left join shared_body s on s.event_id = b.event_id
    where b.message_id = $1`
const responsesStatement = prepared`select epoch, attempt, body, headers from response where message_id = $1`
const eraseStatement = prepared`with bodies as (delete from body where message_id = $1 returning 1),
    responses as (delete from response where message_id = $1 returning 1)
    select (select count(*) from bodies) + (select count(*) from responses)`

/** What may be erased: bodies and responses, in tables beside the facts. */
export const layer = Layer.effect(
  Bodies,
  Effect.gen(function* () {
    const { durable, lookups } = yield* Postgres
    const texts = yield* SealedTexts
    const opening = (rows: ReadonlyArray<ReadonlyArray<string | null>>, at: number) =>
      texts.prepare(rows.map((row) => row[at]))
    return Bodies.of({
      load: (id: MessageId) =>
        reading(
          Effect.tap(lookups.rows(loadStatement, [id]), (rows) => opening(rows, 0)),
          ([row]) => (row?.[0] == null ? null : openedBody(texts, id, row[1] as EventId | null, row[0]))
        ),
      responses: (id: MessageId) =>
        reading(
          Effect.tap(lookups.rows(responsesStatement, [id]), (rows) => opening(rows, 2)),
          (rows) =>
            new Map(
              rows.map(([epoch, attempt, body, headers]) => [
                `${epoch}/${attempt}`,
                openedAnswer(
                  texts,
                  id,
                  { epoch: Number(epoch), attempt: Number(attempt) },
                  { body: body!, headers: headers == null ? null : JSON.parse(headers) }
                )
              ])
            )
        ),
      erase: (id: MessageId) => reading(durable.rows(eraseStatement, [id]), (rows) => Number(rows[0]![0]) > 0)
    })
  })
)
