/** Whose rows a query means: SQL for the generation of a projection that people see, and what becomes of older ones. */
import { Effect } from "effect"
import { type Connections, prepared, reading } from "../Postgres.ts"

export const liveGeneration = (name: string): string =>
  `(select generation from projection where name = '${name}' and live)`

/** Removes rows that were left behind, at most so many of each table; answers how many. */
export const clearing = (derived: Connections, name: string, tables: ReadonlyArray<string>) => {
  const statements = tables.map(
    (table) => prepared`delete from ${table} where ctid = any (array(
      select ctid from ${table} where generation < (select min(generation) from projection where name = '${name}') limit $1))
    returning 1`
  )
  return (limit: number) =>
    reading(
      Effect.forEach(statements, (statement) => derived.rows(statement, [limit])),
      (removed) => removed.flat().length
    )
}
