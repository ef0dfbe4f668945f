/**
 * Sweeps by `forget_ended`, `forget_events` and `forget_deeds`; a cursor is the time and the id of the last one looked at, and of messages
 * the org before them.
 */
import { DateTime, Effect, Layer } from "effect"
import { type Before, Retention } from "../../../application/ports/Retention.ts"
import { Postgres, prepared, reading } from "../Postgres.ts"

const sweepStatement = prepared`select removed::text, next_org, to_json(next_created) #>> '{}', next_id::text
    from forget_ended($1, $2, $3, $4, $5, $6::timestamptz, $7::uuid, $8)`
const sweepEventsStatement = prepared`select removed::text, to_json(next_at) #>> '{}', next_id::text
    from forget_events($1, $2, $3, $4::timestamptz, $5::uuid, $6)`
const sweepDeedsStatement = prepared`select removed::text, to_json(next_at) #>> '{}', next_id::text
    from forget_deeds($1, $2::timestamptz, $3::uuid, $4)`

/** The parts of a cursor. */
export const placeIn = (cursor: string | null) => (cursor ?? "").split("/").map((part) => (part === "" ? null : part))

const sweepOf = ([removed, ...next]: ReadonlyArray<string | null>) => ({
  removed: Number(removed),
  next: next[0] == null ? null : next.map((part) => part ?? "").join("/")
})

const valuesOf = ({ now, ended, daysMax }: Omit<Before, "dead">) => [
  DateTime.formatIso(now),
  daysMax,
  ended && DateTime.formatIso(ended)
]

export const layer = Layer.effect(
  Retention,
  Effect.gen(function* () {
    const { bulk } = yield* Postgres
    const sweep: Retention["Service"]["sweep"] = (before, from, limit) => {
      const [org = null, created = null, id = null] = placeIn(from)
      const { dead, ...ended } = before
      const values = [...valuesOf(ended), dead && DateTime.formatIso(dead), org, created, id, limit]
      return reading(bulk.rows(sweepStatement, values), ([row]) => (row === undefined ? null : sweepOf(row)))
    }
    const sweepInOrder = (
      statement: typeof sweepEventsStatement,
      before: ReadonlyArray<unknown>,
      from: string | null,
      limit: number
    ) => {
      const [at = null, id = null] = placeIn(from)
      return reading(bulk.rows(statement, [...before, at, id, limit]), ([row]) =>
        row === undefined ? null : sweepOf(row)
      )
    }
    const sweepEvents: Retention["Service"]["sweepEvents"] = (before, from, limit) =>
      sweepInOrder(sweepEventsStatement, valuesOf(before), from, limit)
    const sweepDeeds: Retention["Service"]["sweepDeeds"] = (doneBefore, from, limit) =>
      sweepInOrder(sweepDeedsStatement, [DateTime.formatIso(doneBefore)], from, limit)
    return Retention.of({ sweep, sweepEvents, sweepDeeds })
  })
)
