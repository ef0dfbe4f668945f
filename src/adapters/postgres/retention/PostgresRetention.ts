/**
 * Sweeps by `forget_ended`, `forget_events`, `forget_deeds` and `forget_destinations`; a cursor is the time and the id of the last one looked
 * at, and of messages the org before them. Fronts of journals are the matter of fronts.ts.
 */
import { DateTime, Effect, Layer } from "effect"
import { type Before, Retention } from "../../../application/ports/Retention.ts"
import { journalsOf } from "../../../domain/destination/changes.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"
import { streamIdOf } from "../store/PostgresJournals.ts"
import { forgetFronts, restingFronts } from "./fronts.ts"

const sweepStatement = prepared`select removed::text, next_org, to_json(next_created) #>> '{}', next_id::text
    from forget_ended($1, $2, $3, $4, $5, $6::timestamptz, $7::uuid, $8)`
const sweepEventsStatement = prepared`select removed::text, to_json(next_at) #>> '{}', next_id::text
    from forget_events($1, $2, $3, $4::timestamptz, $5::uuid, $6)`
const sweepDeedsStatement = prepared`select removed::text, to_json(next_at) #>> '{}', next_id::text
    from forget_deeds($1, $2::timestamptz, $3::uuid, $4)`

const removedStatement = prepared`select id, channel, to_json(removed_at) #>> '{}' from destination
    where removed_at < $1 and ($2::timestamptz is null or (removed_at, id) > ($2, $3::uuid)) order by removed_at, id limit $4`
const forgetDestinationsStatement = prepared`select forget_destinations($1, $2::uuid[], $3::uuid[], $4::uuid[], $5::text[])`
const goesOnStatement = prepared`select from looked_through where destination = any ($1::uuid[]) and goes_on limit 1`
const forgetLanesStatement = prepared`select forget_lanes($1)`

/** Before the first destination that was removed. */
const FIRST = "-infinity/00000000-0000-0000-0000-000000000000"

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
    const sweepFronts: Retention["Service"]["sweepFronts"] = Effect.fnUntraced(function* (restedBefore, from, limit) {
      const { fronts, next } = yield* restingFronts(bulk, restedBefore, from, limit)
      const removed = yield* forgetFronts(bulk, restedBefore, fronts)
      return removed === null ? null : { removed, next }
    })
    const sweepDestinations: Retention["Service"]["sweepDestinations"] = Effect.fnUntraced(function* (
      removedBefore,
      prefixes,
      from,
      limit
    ) {
      const before = DateTime.formatIso(removedBefore)
      const [at = null, after = null] = placeIn(from)
      if (from === null) yield* bulk.rows(forgetLanesStatement, [limit])
      const removed = yield* bulk.rows(removedStatement, [before, at, after, limit])
      const journals = removed.flatMap(([id, channel]) => {
        const prefix = prefixes.get(channel!)
        return prefix === undefined ? [] : journalsOf(prefix, id!).map((journal) => ({ id: id!, journal }))
      })
      const [last] = removed.slice(-1)
      const next = removed.length < limit ? null : `${last![2]}/${last![0]}`
      if (journals.length === 0) return { removed: 0, next }
      const [row] = yield* bulk.rows(forgetDestinationsStatement, [
        before,
        [...new Set(journals.map(({ id }) => id))],
        journals.map(({ id }) => id),
        journals.map(({ journal }) => streamIdOf(journal)),
        journals.map(({ journal }) => journal)
      ])
      if (row![0] === null) return null
      // The same ones again, for the next stretch of their messages.
      const [further] = yield* bulk.rows(goesOnStatement, [removed.map(([id]) => id)])
      return { removed: Number(row![0]), next: further === undefined ? next : (from ?? FIRST) }
    }, unavailable)
    return Retention.of({ sweep, sweepEvents, sweepDeeds, sweepFronts, sweepDestinations })
  })
)
