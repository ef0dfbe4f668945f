/** Rows that stand for one fact each: named and sorted by its time, then by its stream and version. */
import { DateTime } from "effect"
import type { Step } from "../../../src/application/ports/Projections.ts"
import type { MessageId } from "../../../src/domain/ids.ts"
import { messageOf, streamOf } from "../../../src/domain/streams.ts"
import { rowsOf } from "../log/runs.ts"
import type { Tables } from "../Memory.ts"

interface Row {
  readonly stream: string
  readonly version: number
  readonly at: DateTime.Utc
}

/** As text it sorts the way the list does. */
export const placeOf = ({ at, stream, version }: Row): string =>
  `${String(DateTime.toEpochMillis(at)).padStart(16, "0")} ${stream} ${String(version).padStart(9, "0")}`

/** What is there already is left as it is, and what was forgotten stays so. */
export const addRows = <A extends Row>(
  { forgotten }: Tables,
  table: Map<number, Map<string, A>>,
  { generation }: Step,
  added: ReadonlyArray<A>
): void => {
  const rows = rowsOf(table, generation)
  for (const row of added) {
    const messageId = messageOf(row.stream)
    if (messageId !== null && forgotten.has(messageId)) continue
    if (!rows.has(placeOf(row))) rows.set(placeOf(row), row)
  }
}

export const newestFirst = <A extends Row>(
  rows: ReadonlyArray<A>,
  { cursor, limit }: { readonly cursor: string | null; readonly limit: number }
): { readonly items: ReadonlyArray<A>; readonly nextCursor: string | null } => {
  const left = rows
    .filter((row) => cursor === null || placeOf(row) < cursor)
    .toSorted((a, b) => (placeOf(a) > placeOf(b) ? -1 : 1))
  const items = left.slice(0, limit)
  return { items, nextCursor: left.length > limit ? placeOf(items.at(-1)!) : null }
}

export const forgetEntries = (tables: Tables, id: MessageId): void => forgetJournal(tables, streamOf(id))

/** Those of versions before one. */
export const forgetJournal = ({ audit, timelines }: Tables, name: string, before = Number.POSITIVE_INFINITY): void => {
  for (const rows of [...audit.values(), ...timelines.values()]) {
    for (const [place, { stream, version }] of rows) if (stream === name && version < before) rows.delete(place)
  }
}
