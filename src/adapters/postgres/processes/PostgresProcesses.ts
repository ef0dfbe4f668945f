/** A row per process, renewed by the process itself. Whoever registers also forgets rows that nobody renews. */
import { type DateTime, Effect, Layer } from "effect"
import {
  KEPT_FOR_MS,
  type Process,
  Processes,
  type Registration,
  SEEN_WITHIN_MS
} from "../../../application/ports/Processes.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"

const registerStatement = prepared`with forgotten as (
      delete from process where last_seen < now() - interval '${KEPT_FOR_MS} milliseconds' and id <> $1
    )
    insert into process as p (id, host, pid, roles, version, since, last_seen, clock_offset_ms, broker)
      values ($1, $2, $3, $4::text[], $5, now(), clock_timestamp(), $6, $7)
    on conflict (id) do update set last_seen = excluded.last_seen, clock_offset_ms = excluded.clock_offset_ms
    returning last_seen as at`
const leaveStatement = prepared`delete from process where id = $1`
const listStatement = prepared`select id, host, pid, roles, version, broker, since, last_seen as "lastSeen", clock_offset_ms as "clockOffsetMs",
      last_seen > clock_timestamp() - interval '${SEEN_WITHIN_MS} milliseconds' as alive
    from process order by since, id`

export const layer = Layer.effect(
  Processes,
  Effect.gen(function* () {
    const { queue, reads } = yield* Postgres
    return Processes.of({
      register: ({ id, host, pid, roles, version, clockOffsetMs, broker }: Registration) =>
        reading(
          queue.query<{ at: DateTime.Utc }>(registerStatement, [id, host, pid, roles, version, clockOffsetMs, broker]),
          (rows) => rows[0]!.at
        ),
      leave: (id) => Effect.asVoid(unavailable(queue.rows(leaveStatement, [id]))),
      list: unavailable(reads.query<Process>(listStatement, []))
    })
  })
)
