/**
 * Counters, gauges and histograms as Prometheus or OpenMetrics text. Effect's metrics take 3 µs for a message, these
 * 0.5, and have no exemplars. Beyond `seriesMax` label sets a family counts under `other`, so callers can't fill
 * memory.
 */

const SERIES_MAX = 200
const OTHER = "other"

type Kind = "counter" | "gauge" | "histogram"

interface Family {
  readonly name: string
  readonly kind: Kind
  readonly write: (lines: Array<string>, openMetrics: boolean) => void
}

interface Exemplar {
  readonly traceId: string
  readonly value: number
  readonly atSeconds: number
}

interface Counter {
  value: number
}

export interface Histogram {
  /** One per bound and one beyond; not cumulative. */
  readonly counts: Array<number>
  sum: number
  readonly exemplars: Array<Exemplar | undefined>
}

const escaped = (text: string): string => text.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n")

const numberText = (value: number): string =>
  value === Number.POSITIVE_INFINITY
    ? "+Inf"
    : value === Number.NEGATIVE_INFINITY
      ? "-Inf"
      : Number.isNaN(value)
        ? "NaN"
        : String(value)

const labelText = (names: ReadonlyArray<string>, values: ReadonlyArray<string>, more = ""): string => {
  const pairs = names.map((name, i) => `${name}="${escaped(values[i] ?? "")}"`)
  if (more !== "") pairs.push(more)
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`
}

interface Series<Cell> {
  readonly values: ReadonlyArray<string>
  readonly cell: Cell
}

const makeCells = <Cell>(arity: number, make: () => Cell, seriesMax: number) => {
  const cells = new Map<string, Series<Cell>>()
  const add = (key: string, values: ReadonlyArray<string>): Cell => {
    const cell = make()
    cells.set(key, { values, cell })
    return cell
  }
  return {
    all: () => cells.values(),
    of: (values: ReadonlyArray<string>): Cell => {
      const key = values.length === 1 ? values[0]! : values.join("\u0000")
      const known = cells.get(key)
      if (known !== undefined) return known.cell
      if (cells.size < seriesMax) return add(key, values)
      const others = new Array<string>(arity).fill(OTHER)
      const otherKey = others.join("\u0000")
      return cells.get(otherKey)?.cell ?? add(otherKey, others)
    }
  }
}

interface Options {
  readonly name: string
  readonly help: string
  readonly labels?: ReadonlyArray<string>
  readonly seriesMax?: number
}

export type Reading = readonly [labels: ReadonlyArray<string>, value: number]

export interface Registry {
  readonly counter: (options: Options) => (...labels: ReadonlyArray<string>) => Counter
  readonly gauge: (options: Options) => (...labels: ReadonlyArray<string>) => Counter
  readonly histogram: (
    options: Options & { readonly bounds: ReadonlyArray<number> }
  ) => (...labels: ReadonlyArray<string>) => Histogram
  /** Called at each scrape. Without readings the family is left out. */
  readonly read: (options: Options & { readonly kind: "counter" | "gauge" }, now: () => ReadonlyArray<Reading>) => void
  readonly text: (openMetrics: boolean) => string
}

export const contentTypes = {
  plain: "text/plain; version=0.0.4; charset=utf-8",
  openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
} as const

/** OpenMetrics omits a counter's `_total`. */
const familyName = (name: string, kind: Kind, openMetrics: boolean): string =>
  openMetrics && kind === "counter" ? name.replace(/_total$/, "") : name

const head = ({ name, help }: Options, kind: Kind, openMetrics: boolean): ReadonlyArray<string> => {
  const family = familyName(name, kind, openMetrics)
  return [`# HELP ${family} ${help.replace(/\\/g, "\\\\").replace(/\n/g, "\\n")}`, `# TYPE ${family} ${kind}`]
}

export const makeRegistry = (): Registry => {
  const families: Array<Family> = []

  const numbers = (kind: "counter" | "gauge") => (options: Options) => {
    const { name, labels = [], seriesMax = SERIES_MAX } = options
    const cells = makeCells<Counter>(labels.length, () => ({ value: 0 }), seriesMax)
    // Present from the start, so that its first increase shows.
    if (labels.length === 0) cells.of([])
    families.push({
      name,
      kind,
      write: (lines, openMetrics) => {
        lines.push(...head(options, kind, openMetrics))
        for (const { values, cell } of cells.all())
          lines.push(`${name}${labelText(labels, values)} ${numberText(cell.value)}`)
      }
    })
    return (...values: ReadonlyArray<string>) => cells.of(values)
  }

  return {
    counter: numbers("counter"),
    gauge: numbers("gauge"),
    histogram: (options) => {
      const { name, labels = [], bounds, seriesMax = SERIES_MAX } = options
      const cells = makeCells<Histogram>(
        labels.length,
        () => ({ counts: new Array<number>(bounds.length + 1).fill(0), sum: 0, exemplars: [] }),
        seriesMax
      )
      if (labels.length === 0) cells.of([])
      const limits = [...bounds.map(numberText), "+Inf"]
      families.push({
        name,
        kind: "histogram",
        write: (lines, openMetrics) => {
          lines.push(...head(options, "histogram", openMetrics))
          for (const { values, cell } of cells.all()) {
            let count = 0
            for (const [i, limit] of limits.entries()) {
              count += cell.counts[i]!
              const exemplar = openMetrics ? cell.exemplars[i] : undefined
              const mark =
                exemplar === undefined
                  ? ""
                  : ` # {trace_id="${exemplar.traceId}"} ${numberText(exemplar.value)} ${exemplar.atSeconds.toFixed(3)}`
              lines.push(`${name}_bucket${labelText(labels, values, `le="${limit}"`)} ${count}${mark}`)
            }
            const own = labelText(labels, values)
            lines.push(`${name}_sum${own} ${numberText(cell.sum)}`, `${name}_count${own} ${count}`)
          }
        }
      })
      return (...values) => cells.of(values)
    },
    read: (options, now) => {
      const { name, labels = [], kind, seriesMax = SERIES_MAX } = options
      families.push({
        name,
        kind,
        write: (lines, openMetrics) => {
          const readings = now()
          if (readings.length === 0) return
          lines.push(...head(options, kind, openMetrics))
          for (const [values, value] of readings.slice(0, seriesMax))
            lines.push(`${name}${labelText(labels, values)} ${numberText(value)}`)
        }
      })
    },
    text: (openMetrics) => {
      const lines: Array<string> = []
      for (const family of families.toSorted((a, b) => (a.name < b.name ? -1 : 1))) family.write(lines, openMetrics)
      if (openMetrics) lines.push("# EOF")
      return `${lines.join("\n")}\n`
    }
  }
}

/** `traceId` becomes the exemplar of the bucket. */
export const observe = (
  histogram: Histogram,
  bounds: ReadonlyArray<number>,
  value: number,
  exemplar: { readonly traceId: string; readonly atSeconds: number } | null = null
): void => {
  let i = 0
  while (i < bounds.length && value > bounds[i]!) i++
  histogram.counts[i]!++
  histogram.sum += value
  if (exemplar !== null) histogram.exemplars[i] = { ...exemplar, value }
}
