/**
 * Data keys that stored texts name and that are not in `data_key`: lost with a row that somebody deleted, or with a restore that brought
 * the texts and not their keys. Reads the beginning of each text that is sealed, table by table.
 */
import { Effect } from "effect"
import type { DerivedRows } from "../../../application/ports/DerivedRows.ts"
import { Postgres, unavailable, unprepared } from "../Postgres.ts"
import { dataKeyIn, KEY_CHARACTERS } from "../SealedTexts.ts"

export interface SealedTable {
  readonly name: string
  readonly key: ReadonlyArray<readonly [column: string, type: string]>
  /** The column that shows whether its text is sealed. */
  readonly shown: string
}

const statementOf = ({
  name,
  key: [first],
  shown
}: SealedTable) => unprepared`select named.text, named.count, named.example from (
      select min(left(${shown}, 26)) as text, count(*) as count, min(${first![0]}::text) as example, substr(${shown}, 3, ${KEY_CHARACTERS}) as key
      from ${name} where left(${shown}, 1) = E'\\x01' and left(${shown}, 2) <> E'\\x01c' group by 4
    ) named
    where named.key not in (
      select left(encode(decode(replace(id::text, '-', ''), 'hex'), 'base64'), ${KEY_CHARACTERS}) from data_key) order by named.key`

export const lostKeysIn = (
  tables: ReadonlyArray<SealedTable>
): Effect.Effect<DerivedRows["Service"]["strays"], never, Postgres> =>
  Effect.map(Postgres, ({ bulk }) =>
    Effect.map(
      Effect.forEach(tables, (table) =>
        Effect.map(unavailable(bulk.rows(statementOf(table), [])), (rows) =>
          rows.map(([text, count, example]) => ({
            table: "data keys",
            count: Number(count),
            examples: [`${dataKeyIn(text!)} of ${table.name}, such as that of ${example}`]
          }))
        )
      ),
      (lost) => lost.flat()
    )
  )
