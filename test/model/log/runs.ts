/** Generations of rows over plain tables: which are live, how a step is taken, what is left behind. */
import type { Step } from "../../../src/application/ports/Projections.ts"
import type { MessageId } from "../../../src/domain/ids.ts"
import type { MessageView } from "../../../src/domain/message/view.ts"
import type { Memory, Tables } from "../Memory.ts"

export const liveGeneration = ({ runs }: Tables, name: string): number | null =>
  runs.find((run) => run.name === name && run.live)?.generation ?? null

/** The compare-and-set of a step: on false the caller writes nothing. */
export const moveRun = (memory: Memory["Service"], name: string, { generation, from, to, facts }: Step): boolean => {
  const { runs } = memory.tables
  const index = runs.findIndex((run) => run.name === name && run.generation === generation && run.position === from)
  const run = runs[index]
  if (run === undefined) return false
  runs[index] = { ...run, position: to, facts: run.facts + facts }
  return true
}

/** The rows of one generation, made when they are first asked for. */
export const rowsOf = <Key, Row>(table: Map<number, Map<Key, Row>>, generation: number): Map<Key, Row> => {
  const rows = table.get(generation) ?? new Map<Key, Row>()
  table.set(generation, rows)
  return rows
}

/** Removes the generations that no run knows any more; how many rows went. */
export const clearRows = <Key, Row>({ runs }: Tables, name: string, table: Map<number, Map<Key, Row>>): number => {
  const oldest = Math.min(...runs.filter((run) => run.name === name).map(({ generation }) => generation))
  let cleared = 0
  for (const [generation, rows] of table) {
    if (generation >= oldest) continue
    cleared += rows.size
    table.delete(generation)
  }
  return cleared
}

/** The rows that people see. */
export const liveRows = <Key, Row>(
  tables: Tables,
  name: string,
  table: Map<number, Map<Key, Row>>
): ReadonlyMap<Key, Row> => {
  const generation = liveGeneration(tables, name)
  return generation === null ? new Map() : rowsOf(table, generation)
}

export const liveViews = (tables: Tables): ReadonlyMap<MessageId, MessageView> =>
  liveRows(tables, "messages", tables.views)
