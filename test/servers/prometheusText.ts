/** Reads what `/metrics` answers, as a scraper does. */
export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export const samplesOf = (text: string): ReadonlyArray<Sample> =>
  text.split("\n").flatMap((line) => {
    const found = /^([a-z_]\w*)(?:\{(.*)\})? (\S+)$/.exec(line)
    if (found === null) return []
    const [, name, labels = "", value] = found
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, of]) => [label!, of!] as const)
    return [{ name: name!, labels: Object.fromEntries(pairs), value: Number(value) }]
  })

export const scrape = async (url: string): Promise<ReadonlyArray<Sample>> => {
  const response = await fetch(`${url}/metrics`)
  if (response.status !== 200) throw new Error(`${url}/metrics answered ${response.status}`)
  return samplesOf(await response.text())
}

/** The sum of all samples of this name that have these labels. */
export const sumOf = (samples: ReadonlyArray<Sample>, name: string, labels: Sample["labels"] = {}): number =>
  samples
    .filter((one) => one.name === name && Object.entries(labels).every(([label, value]) => one.labels[label] === value))
    .reduce((sum, { value }) => sum + value, 0)
