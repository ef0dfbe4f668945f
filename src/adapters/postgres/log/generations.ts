import { Effect } from "effect"
import type { Step } from "../../../application/ports/Projections.ts"
import { type Connections, prepared, reading } from "../Postgres.ts"

export const liveGeneration = (name: string): string =>
  `(select generation from projection where name = '${name}' and live)`

/** Removes rows of older generations, at most `limit` of each table; answers how many. */
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

/** Writes steps by the SQL function `call`, whose parameters are generation, from, to, facts, then the rows. */
export const stepping = (derived: Connections, call: string) => {
  const statement = prepared`select ${call} as done`
  return ({ generation, from, to, facts }: Step, rows: ReadonlyArray<unknown>) =>
    reading(derived.query<{ done: boolean }>(statement, [generation, from, to, facts, ...rows]), ([row]) => row!.done)
}
