/**
 * The rows of the projections `audit` and `activity`, compared with what their facts make of them now. A row of a fact that the
 * projection has not read is not looked for; every other row must be there, and be the same.
 */
import { Effect } from "effect"
import { auditRowsOf, timelineOf } from "../log/projections/audit.ts"
import { Archive } from "../ports/Archive.ts"
import { DerivedRows, type Entries } from "../ports/DerivedRows.ts"
import type { LoggedFact } from "../ports/EventStore.ts"
import { differenceOf, type Violation } from "./disagreements.ts"

interface Row {
  readonly stream: string
  readonly version: number
}

/** In words; null when there is none. */
const faultOf = (fold: Row | undefined, row: unknown): string | null => {
  if (fold === undefined) return row === undefined ? null : "there is an entry that its fact does not make"
  if (row === undefined) return "its entry is missing"
  const { stream: _, ...made } = fold
  return differenceOf(made, row)
}

/** One violation at most for each of these streams and projections. Each stream is whole, and lawful. */
export const wrongEntries = Effect.fnUntraced(function* (streams: ReadonlyArray<ReadonlyArray<LoggedFact>>) {
  if (streams.length === 0) return []
  const { order } = yield* Archive
  const facts = streams.flat()
  const [audited, timeline] = [yield* auditRowsOf(facts), yield* timelineOf(facts)]
  // After the facts were read: what is not there by now must be in no fact that was.
  const { audit, activity } = yield* (yield* DerivedRows).entries(streams.map(([first]) => first!.stream))

  const compare = (rule: "wrong-audit" | "wrong-activity", made: ReadonlyArray<Row>, { at, rows }: Entries) => {
    const isRead = ({ position }: LoggedFact) => at !== null && order(position, at) <= 0
    const expected = Map.groupBy(made, ({ stream }) => stream)
    const found = Map.groupBy(rows, ({ stream }) => stream)
    return streams.flatMap((history): ReadonlyArray<Violation> => {
      const { stream } = history[0]!
      for (const fact of history.filter(isRead)) {
        const { version } = fact
        const fold = expected.get(stream)?.find((row) => row.version === version)
        const row = found.get(stream)?.find((each) => each.version === version)?.row
        const detail = faultOf(fold, row)
        if (detail !== null) return [{ rule, stream, version, detail }]
      }
      const stray = found.get(stream)?.find(({ version }) => version > history.length)
      return stray === undefined ? [] : [{ rule, stream, version: stray.version, detail: "there is no such fact" }]
    })
  }
  return [...compare("wrong-audit", audited, audit), ...compare("wrong-activity", timeline.rows, activity)]
})
