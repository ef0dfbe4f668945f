import pg from "pg"

/** Every row of every table, as a dump has it: one a line, behind the name of its table. */
export const dumpOf = async (database: string): Promise<string> => {
  const client = new pg.Client({ connectionString: database })
  await client.connect()
  const { rows } = await client.query<{ name: string }>(
    "select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = 'posthaste'"
  )
  const texts: Array<string> = []
  for (const { name } of rows) {
    const table = await client.query<{ row: string }>(`select t::text as row from ${name} t`)
    texts.push(...table.rows.map(({ row }) => `${name} ${row}`))
  }
  await client.end()
  return texts.join("\n")
}
