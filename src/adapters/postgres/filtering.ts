import { DateTime } from "effect"

/** SQL for the conditions that were asked for, each given without its value (`created_at >`), which is added to `values`. */
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
  /** The end of the page before: the columns of the order, as `a/b/c`. */
  readonly cursor: string | null
  readonly limit: number
}

/** The condition that a row comes after the cursor, in descending order; none on the first page. */
export const beyond = (columns: string, types: ReadonlyArray<string>, { cursor }: Page, values: Array<unknown>) =>
  cursor === null
    ? []
    : [
        `(${columns}) < (${cursor
          .split("/")
          .map((part, n) => `$${values.push(part)}::${types[n]}`)
          .join(", ")})`
      ]

/** `rows` are one more than the page holds where another page follows. */
export const pageOf = <Row, Item>(
  rows: ReadonlyArray<Row>,
  { limit }: Page,
  itemOf: (row: Row) => Item,
  cursorOf: (last: Row) => string
) => {
  const shown = rows.slice(0, limit)
  return { items: shown.map(itemOf), nextCursor: rows.length > limit ? cursorOf(shown.at(-1)!) : null }
}
