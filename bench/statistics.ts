/** What is said about many measurements. */

/** The nearest-rank percentile; NaN of nothing. */
export const percentile = (values: ReadonlyArray<number>, p: number): number => {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil((p / 100) * sorted.length) - 1)] ?? Number.NaN
}

export const median = (values: ReadonlyArray<number>): number => percentile(values, 50)
