/**
 * Pages of lists that filter by more than one index answers, or whose rows may be large. A page looks at so many rows of its list in their
 * order, which an index gives, and takes those that the other filters are true of. So it may have fewer items than it may hold, even
 * none, and says where the next page begins: the work of a page depends on no filter, and on no statistics of the server. Nor are more
 * bytes of rows fetched than a page may have: it ends there.
 */
import { PAGE_READ_BYTES } from "../../application/errors.ts"
import { conditionsOf, type Page } from "./filtering.ts"

/** The most rows that are looked at for a page. */
export const ROWS_MAX = 10_000

type Conditions<Filter> = ReadonlyArray<readonly [keyof Filter, string]>

export interface Searched {
  /** Conditions that one index answers, in the order of the list. */
  readonly found: ReadonlyArray<string>
  /** Conditions on each row that it gives. */
  readonly wanted: ReadonlyArray<string>
}

/**
 * What was asked for. `ranges` go along the order of the list. Each of `indexed` has an index that begins with it and goes on in that order:
 * the first that was asked for is used, so what selects least stands first.
 */
export const searched = <Filter extends object>(
  filter: Filter,
  by: {
    readonly ranges: Conditions<Filter>
    readonly indexed: Conditions<Filter>
    readonly others: Conditions<Filter>
  },
  values: Array<unknown>
): Searched => {
  const first = by.indexed.find(([field]) => filter[field] !== undefined)
  const rest = by.indexed.filter((condition) => condition !== first)
  return {
    found: conditionsOf(first === undefined ? by.ranges : [...by.ranges, first], filter, values),
    wanted: conditionsOf([...rest, ...by.others], filter, values)
  }
}

/** Whether a row is wanted, as SQL. */
export const isWanted = (wanted: ReadonlyArray<string>): string =>
  wanted.length === 0 ? "true" : `(${wanted.join(" and ")}) is true`

interface Bounded {
  readonly rows: (most: number) => string
  readonly wanted: ReadonlyArray<string>
  readonly order: string
  readonly columns: string
  /** How many bytes a row has, as SQL; without it rows are small. */
  readonly size?: string
  /** Where a look at a row takes more than the row. */
  readonly most?: number
}

/** How many rows to look at for a page: where every row is wanted, as many as it holds, and one more to know whether another follows. */
const lookedAt = ({ wanted, most = ROWS_MAX }: Bounded, { limit }: Page): number =>
  wanted.length === 0 ? limit + 1 : Math.max(most, limit + 1)

/** A row that was looked at. */
export interface Looked {
  readonly wanted: boolean
  /** It is the last that was looked at, and more may follow. */
  readonly cut: boolean
}

/**
 * SQL for the rows of a page, as `Looked`: those that are wanted, and the last one where more may follow. `rows` is the
 * SQL for the first rows in `order`, `columns` is what is shown of each.
 */
export const boundedRows = (asked: Bounded, page: Page): string => {
  const { rows, wanted, order, columns, size } = asked
  const most = lookedAt(asked, page)
  const looked = `select * from (
      select *, ${isWanted(wanted)} as wanted, row_number() over (order by ${order}) = ${most} as cut from (${rows(most)}) found
    ) looked where wanted or cut order by ${order} limit ${page.limit + 1}`
  return size === undefined
    ? `select ${columns}, wanted, cut from (${looked}) shown order by ${order}`
    : within(looked, { order, columns, size })
}

/** SQL for the first rows of a page, as `Looked`, as many as have so many bytes: the one with which they have them is cut. */
export const within = (
  rows: string,
  { order, columns, size }: Required<Pick<Bounded, "order" | "columns" | "size">>
): string =>
  `select ${columns}, wanted, cut or upto >= ${PAGE_READ_BYTES} as cut from (
      select *, sum(size) over (order by ${order} rows unbounded preceding) as upto
      from (select *, coalesce(${size}, 0) as size from (${rows}) rows) sized
    ) summed where upto - size < ${PAGE_READ_BYTES} order by ${order}`

/** The page that these rows are. */
export const pageOfRows = <Row extends Looked, Item>(
  rows: ReadonlyArray<Row>,
  { limit }: Page,
  itemOf: (row: Row) => Item,
  cursorOf: (last: Row) => string
) => {
  const shown = rows.slice(0, limit)
  const goesOn = rows.length > limit || rows.at(-1)?.cut === true
  return {
    items: shown.filter(({ wanted }) => wanted).map(itemOf),
    nextCursor: goesOn ? cursorOf(shown.at(-1)!) : null
  }
}
