import { DateTime, Effect, Layer } from "effect"
import { AlertProgress, type Notice } from "../../../application/ports/AlertProgress.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"

const positionStatement = prepared`select position from alert_progress`
const noticesStatement = prepared`select target_id as target, destination, at from alert_notice where destination = any ($1::uuid[])`
const advanceStatement = prepared`select advance_alerts($1, $2, $3::uuid[], $4::uuid[], $5::timestamptz[], $6) as done`

/** A row that is moved by compare-and-set, and the notices with it. */
export const layer = Layer.effect(
  AlertProgress,
  Effect.gen(function* () {
    const { durable, reads } = yield* Postgres
    return AlertProgress.of({
      position: reading(durable.rows(positionStatement, []), (rows) => rows[0]?.[0] ?? null),
      notices: (destinations) => unavailable(reads.query<Notice>(noticesStatement, [destinations])),
      advance: (from, to, notices, forget) =>
        reading(
          durable.query<{ done: boolean }>(advanceStatement, [
            from,
            to,
            notices.map(({ target }) => target),
            notices.map(({ destination }) => destination),
            notices.map(({ at }) => DateTime.formatIso(at)),
            DateTime.formatIso(forget)
          ]),
          (rows) => rows[0]!.done
        )
    })
  })
)
