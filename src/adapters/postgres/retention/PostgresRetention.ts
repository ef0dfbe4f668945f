/**
 * Sweeps by `forget_ended`, `forget_events` and `forget_deeds`; a cursor is the time and the id of the last one looked at, and of messages
 * the org before them.
 */
import { DateTime, Effect, Layer } from "effect"
import { Retention } from "../../../application/ports/Retention.ts"
import { Postgres, prepared, reading } from "../Postgres.ts"

const sweepStatement = prepared`select removed::text, next_org, to_json(next_created) #>> '{}', next_id::text
    from forget_ended($1, $2, $3::timestamptz, $4::uuid, $5, $6::timestamptz)`
const sweepEventsStatement = prepared`select removed::text, to_json(next_at) #>> '{}', next_id::text
    from forget_events($1, $2::timestamptz, $3::uuid, $4)`
const sweepDeedsStatement = prepared`select removed::text, to_json(next_at) #>> '{}', next_id::text
    from forget_deeds($1, $2::timestamptz, $3::uuid, $4)`

const placeIn = (cursor: string | null) => (cursor ?? "").split("/").map((part) => (part === "" ? null : part))

const sweepOf = ([removed, ...next]: ReadonlyArray<string | null>) => ({
  removed: Number(removed),
  next: next[0] == null ? null : next.map((part) => part ?? "").join("/")
})

export const layer = Layer.effect(
  Retention,
  Effect.gen(function* () {
    const { bulk } = yield* Postgres
    const sweep: Retention["Service"]["sweep"] = (endedBefore, from, limit, deadBefore) => {
      const [org = null, created = null, id = null] = placeIn(from)
      const dead = deadBefore === null ? null : DateTime.formatIso(deadBefore)
      const values = [DateTime.formatIso(endedBefore), org, created, id, limit, dead]
      return reading(bulk.rows(sweepStatement, values), ([row]) => (row === undefined ? null : sweepOf(row)))
    }
    const sweepInOrder =
      (statement: typeof sweepEventsStatement): Retention["Service"]["sweepEvents"] =>
      (before, from, limit) => {
        const [at = null, id = null] = placeIn(from)
        return reading(bulk.rows(statement, [DateTime.formatIso(before), at, id, limit]), ([row]) =>
          row === undefined ? null : sweepOf(row)
        )
      }
    return Retention.of({
      sweep,
      sweepEvents: sweepInOrder(sweepEventsStatement),
      sweepDeeds: sweepInOrder(sweepDeedsStatement)
    })
  })
)
