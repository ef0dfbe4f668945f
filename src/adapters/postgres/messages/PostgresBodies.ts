import { Effect, Layer } from "effect"
import { Bodies } from "../../../application/ports/Bodies.ts"
import type { MessageId } from "../../../domain/ids.ts"
import { Postgres, unavailable } from "../Postgres.ts"

const loadStatement = { name: "body", text: "select body from body where message_id = $1" }
const responsesStatement = {
  name: "responses",
  text: "select epoch || '/' || attempt, body from response where message_id = $1"
}
const eraseStatement = {
  name: "erase",
  text: `with bodies as (delete from body where message_id = $1 returning 1),
    responses as (delete from response where message_id = $1 returning 1)
    select (select count(*) from bodies) + (select count(*) from responses)`
}

/** What may be erased: bodies and responses, in tables beside the facts. */
export const layer = Layer.effect(
  Bodies,
  Effect.gen(function* () {
    const { durable, reads } = yield* Postgres
    return Bodies.of({
      load: (id: MessageId) =>
        unavailable(reads.rows(loadStatement, [id])).pipe(Effect.map((rows) => rows[0]?.[0] ?? null)),
      responses: (id: MessageId) =>
        unavailable(reads.rows(responsesStatement, [id])).pipe(
          Effect.map((rows) => new Map(rows.map(([key, body]) => [key!, body!] as const)))
        ),
      erase: (id: MessageId) =>
        unavailable(durable.rows(eraseStatement, [id])).pipe(Effect.map((rows) => Number(rows[0]![0]) > 0))
    })
  })
)
