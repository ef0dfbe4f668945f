/** Lists that are filtered and come in pages. */
import { DateTime } from "effect"

/**
 * Only the conditions that were asked for, as SQL whose values are added to `values`, so that each combination gets the
 * plan it deserves. A condition is everything of it but its value, such as `created_at >`.
 */
export const conditionsOf = <Filter extends object>(
  conditions: ReadonlyArray<readonly [keyof Filter, string]>,
  filter: Filter,
  values: Array<unknown>
): ReadonlyArray<string> =>
  conditions.flatMap(([field, condition]) => {
    const value: unknown = filter[field]
    if (value === undefined) return []
    return [`${condition} $${values.push(DateTime.isDateTime(value) ? DateTime.formatIso(value) : value)}`]
  })

export interface Page {
  /** Where the page before ended: the columns the list is ordered by, as `a/b/c`. */
  readonly cursor: string | null
  readonly limit: number
}

/** Nothing on the first page; on others the condition that a row comes after the cursor, in descending order. */
export const beyond = (columns: string, types: ReadonlyArray<string>, { cursor }: Page, values: Array<unknown>) =>
  cursor === null
    ? []
    : [
        `(${columns}) < (${cursor
          .split("/")
          .map((part, n) => `$${values.push(part)}::${types[n]}`)
          .join(", ")})`
      ]

/** The page that these rows are: one more was asked for than it holds, to know whether another follows. */
export const pageOf = <Row, Item>(
  rows: ReadonlyArray<Row>,
  { limit }: Page,
  itemOf: (row: Row) => Item,
  cursorOf: (last: Row) => string
) => {
  const shown = rows.slice(0, limit)
  return { items: shown.map(itemOf), nextCursor: rows.length > limit ? cursorOf(shown.at(-1)!) : null }
}
