/** Rows of a projection as parameters, and as they are selected. */
import { DateTime } from "effect"
import type { ProjectionName } from "../../../application/log/projections/Projection.ts"
import type { JournalName } from "../../../application/ports/Journals.ts"
import type { Step } from "../../../application/ports/Projections.ts"
import { messageOf } from "../../../domain/streams.ts"
import { literal } from "../literal.ts"
import { type Connections, prepared, reading, unprepared } from "../Postgres.ts"
import { streamIdOf } from "../store/PostgresJournals.ts"
import { owedJson, owing } from "./PostgresStreamsAside.ts"

/** No text of ours holds it: what people write has no control characters, and JSON escapes them. */
const SEPARATOR = "\u001e"

/** One column of texts; null and the empty text are the same there. */
export const joined = <Row>(rows: ReadonlyArray<Row>, textOf: (row: Row) => string | null): string =>
  rows.map((row) => textOf(row) ?? "").join(SEPARATOR)

/**
 * Writes steps of a projection. `call` is the SQL function that does, whose first parameters are generation, from, to and facts; the
 * rows follow them. What a step owes or makes up for is written in the same statement, and only if the step is.
 */
export const stepping = (derived: Connections, name: ProjectionName, call: string) => {
  const plain = prepared`select ${call} as done`
  return (step: Step, rows: ReadonlyArray<unknown>) => {
    const { generation, from, to, facts, owes = [], makesUp } = step
    const values = [generation, from, to, facts, ...rows]
    const isPlain = owes.length === 0 && makesUp === undefined
    const asked = isPlain
      ? derived.query<{ done: boolean }>(plain, values)
      : derived.query<{ done: boolean }>(unprepared`${withAsides(name, call, values.length)}`, [
          ...values,
          JSON.stringify(makesUp === undefined ? [] : [makesUp]),
          owedJson(owes)
        ])
    return reading(asked, ([row]) => row!.done)
  }
}

// Whoever makes up holds the run first, as every step does, and then the row of what is owed, which tells who was faster: the
// position of the run stays.
const withAsides = (name: ProjectionName, call: string, values: number) => {
  const owes = owing(`'${name}'`, "$1", `$${values + 2}`, "(select done from step)")
  return `
  with run as materialized (
    select 1 from projection p where p.name = '${name}' and p.generation = $1 and p.position is not distinct from $2 for update
  ), owed as materialized (
    select s.stream from stream_aside s
      join json_to_recordset($${values + 1}::json) o(stream text, versions int[]) on o.stream = s.stream and o.versions = s.versions
    where exists (select 1 from run) and s.reader = '${name}' and s.generation = $1 for update of s
  ), step as materialized (
    select case when (select count(*) from owed) = json_array_length($${values + 1}::json) then ${call} else false end as done
  ), made_up as (
    delete from stream_aside s using owed o
      where (select done from step) and s.reader = '${name}' and s.generation = $1 and s.stream = o.stream
  ), owes as (
    ${owes}
  ) select done from step`
}

interface Row {
  readonly stream: string
  readonly version: number
  readonly at: DateTime.Utc
}

/** Which fact each row is of, and when that was: three columns. */
export const placed = (rows: ReadonlyArray<Row>) =>
  [
    literal(rows.map(streamIdIn)),
    literal(rows.map(({ version }) => version)),
    literal(rows.map(({ at }) => DateTime.toEpochMillis(at)))
  ] as const

/** What the log calls the stream by. */
const streamIdIn = ({ stream }: Row): string => messageOf(stream) ?? streamIdOf(stream as JournalName)

/** Which fact a selected row is of, and when that was. */
export interface Place {
  readonly stream_id: string
  readonly version: number
  readonly at: DateTime.Utc
}

/** What was selected, under the id that its fact gives it. */
export const placedItem = <Item extends Place>({ stream_id, version, ...item }: Item) => ({
  id: `${stream_id}.${version}`,
  ...item
})

/** Where a list that is ordered by time, stream and version goes on. */
export const cursorOf = ({ at, stream_id, version }: Place): string =>
  `${DateTime.formatIso(at)}/${stream_id}/${version}`
