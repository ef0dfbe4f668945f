/** Rows that stand for one fact each: named and sorted by its time, then by its stream and version. */
import { DateTime } from "effect"

interface Row {
  readonly stream: string
  readonly version: number
  readonly at: DateTime.Utc
}

/** As text it sorts the way the list does. */
export const placeOf = ({ at, stream, version }: Row): string =>
  `${String(DateTime.toEpochMillis(at)).padStart(16, "0")} ${stream} ${String(version).padStart(9, "0")}`

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
