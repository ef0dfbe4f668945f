/**
 * Pages of lists whose filters no single index answers, or whose rows may be large: a page looks at a bounded number of rows in the order
 * of an index and takes the matching ones. So its work depends on no filter and no statistics, and it may be short, or empty, and yet
 * have a next page. It ends at PAGE_READ_BYTES.
 */
import { PAGE_READ_BYTES } from "../../application/ports/errors.ts"
import { conditionsOf, type Page } from "./filtering.ts"

/** Rows looked at for a page. */
export const ROWS_MAX = 10_000

type Conditions<Filter> = ReadonlyArray<readonly [keyof Filter, string]>

interface Searched {
  /** Conditions that one index answers. */
  readonly found: ReadonlyArray<string>
  /** Conditions on each of its rows. */
  readonly wanted: ReadonlyArray<string>
}

/**
 * Splits a filter. `ranges` go along the order of the list; each of `indexed` has an index that goes on in that order, and the first one
 * asked for is used: the most selective stands first.
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

export const isWanted = (wanted: ReadonlyArray<string>): string =>
  wanted.length === 0 ? "true" : `(${wanted.join(" and ")}) is true`

interface Bounded {
  readonly rows: (most: number) => string
  readonly wanted: ReadonlyArray<string>
  readonly order: string
  readonly columns: string
  /** Bytes of a row, as SQL; without it rows are small. */
  readonly size?: string
  /** In place of ROWS_MAX, where a look costs more than the row. */
  readonly most?: number
}

const lookedAt = ({ wanted, most = ROWS_MAX }: Bounded, { limit }: Page): number =>
  wanted.length === 0 ? limit + 1 : Math.max(most, limit + 1)

export interface Looked {
  readonly wanted: boolean
  /** The last that was looked at; more may follow. */
  readonly cut: boolean
}

/** SQL for the rows of a page, as `Looked`: the wanted ones, and the last one where more may follow. */
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

/** SQL for the first rows up to PAGE_READ_BYTES, the last one cut. */
export const within = (
  rows: string,
  { order, columns, size }: Required<Pick<Bounded, "order" | "columns" | "size">>
): string =>
  `select ${columns}, wanted, cut or upto >= ${PAGE_READ_BYTES} as cut from (
      select *, sum(size) over (order by ${order} rows unbounded preceding) as upto
      from (select *, coalesce(${size}, 0) as size from (${rows}) rows) sized
    ) summed where upto - size < ${PAGE_READ_BYTES} order by ${order}`

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
