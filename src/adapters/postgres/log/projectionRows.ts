/** Rows of a projection as parameters, and as they are selected. */
import { DateTime } from "effect"
import type { JournalName } from "../../../application/ports/Journals.ts"
import type { Step } from "../../../application/ports/Projections.ts"
import { messageOf } from "../../../domain/streams.ts"
import { literal } from "../literal.ts"
import { type Connections, prepared, reading } from "../Postgres.ts"
import { streamIdOf } from "../store/PostgresJournals.ts"

/** No text of ours holds it: what people write has no control characters, and JSON escapes them. */
const SEPARATOR = "\u001e"

/** One column of texts; null and the empty text are the same there. */
export const joined = <Row>(rows: ReadonlyArray<Row>, textOf: (row: Row) => string | null): string =>
  rows.map((row) => textOf(row) ?? "").join(SEPARATOR)

/**
 * Writes steps of a projection. `call` is the SQL function that does, whose first parameters are generation, from, to and facts; the
 * rows follow them.
 */
export const stepping = (derived: Connections, call: string) => {
  const statement = prepared`select ${call} as done`
  return ({ generation, from, to, facts }: Step, rows: ReadonlyArray<unknown>) =>
    reading(derived.query<{ done: boolean }>(statement, [generation, from, to, facts, ...rows]), ([row]) => row!.done)
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
