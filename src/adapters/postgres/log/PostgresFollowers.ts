import { DateTime, Duration, Effect, Layer } from "effect"
import { Followers, type Notice } from "../../../application/ports/Followers.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"

const positionStatement = prepared`select position from follower where name = $1`
const beginStatement = prepared`update follower set begun = true, position = $2 where name = $1 and not begun`
const holdStatement = prepared`update follower set holder = $2::uuid, lease_until = clock_timestamp() + $3::int * interval '1 ms'
    where name = $1 and (holder = $2::uuid or lease_until < clock_timestamp()) returning true`
const advanceStatement = prepared`update follower set position = $3
    where name = $1 and position is not distinct from $2 returning true`
const noticesStatement = prepared`select target_id as target, destination, at from alert_notice where destination = any ($1::uuid[])`
const noteStatement = prepared`with forgotten as (delete from alert_notice where at < $4)
    insert into alert_notice (target_id, destination, at) select * from unnest($1::uuid[], $2::uuid[], $3::timestamptz[])
    on conflict (destination, target_id) do update set at = excluded.at`

export const layer = Layer.effect(
  Followers,
  Effect.gen(function* () {
    const { durable, reads } = yield* Postgres
    return Followers.of({
      position: (follower) => reading(durable.rows(positionStatement, [follower]), (rows) => rows[0]?.[0] ?? null),
      begin: (follower, position) => Effect.asVoid(unavailable(durable.rows(beginStatement, [follower, position]))),
      hold: (follower, holder, lease) =>
        reading(durable.rows(holdStatement, [follower, holder, Duration.toMillis(lease)]), (rows) => rows.length > 0),
      advance: (follower, from, to) =>
        reading(durable.rows(advanceStatement, [follower, from, to]), (rows) => rows.length > 0),
      notices: (destinations) => unavailable(reads.query<Notice>(noticesStatement, [destinations])),
      note: (notices, forget) =>
        Effect.asVoid(
          unavailable(
            durable.rows(noteStatement, [
              notices.map(({ target }) => target),
              notices.map(({ destination }) => destination),
              notices.map(({ at }) => DateTime.formatIso(at)),
              DateTime.formatIso(forget)
            ])
          )
        )
    })
  })
)
