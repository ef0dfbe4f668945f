/**
 * Laws of the functions of the database, read from their files and from the statements in the code: each is defined once,
 * in the file of its name; each is called; and what is called is one of them or comes with PostgreSQL.
 */
import { readdirSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"
import pg from "pg"
import { beforeAll, describe, expect, it } from "vitest"
import { constantNames, filled } from "../../../src/adapters/postgres/constants.ts"
import { planning } from "../../../src/adapters/postgres/planning.ts"
import { inDatabase } from "../../servers/administer.ts"
import { postgres } from "../../servers/postgres.ts"

const src = join(import.meta.dirname, "../../../src")
const filesOf = (folder: string, ending: string) =>
  readdirSync(join(src, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(ending))
    .map((file) => ({ file, text: readFileSync(join(src, folder, file), "utf8") }))

const withoutComments = (sql: string) => sql.replaceAll(/--.*$/gm, "")
const functions = filesOf("adapters/postgres/functions", ".sql").map(({ file, text }) => ({
  name: basename(file, ".sql"),
  sql: withoutComments(text)
}))
const names = functions.map(({ name }) => name)

/** By users, in their own transactions (docs/sql.md). */
const forCallers = new Set(["send", "publish", "outcome"])

/** The SQL in a file of code: its literals that begin like a statement, or name a function first. */
const statementsIn = (code: string): ReadonlyArray<string> =>
  (code.match(/`[^`]*`|"[^"\n]*"/g) ?? [])
    .map((literal) => literal.slice(1, -1).replaceAll(/\$\{[^}]*\}/g, "x"))
    .filter((text) => /^\s*(select|insert|update|delete|with|truncate|[a-z_]+\()/.test(text))

const statements = filesOf("adapters/postgres", ".ts").flatMap(({ text }) => statementsIn(text))

/** What is called in SQL: a name before a bracket, but for the names of what was called. */
const calledIn = (sql: string): ReadonlySet<string> => {
  const bare = withoutComments(sql)
    .replaceAll(/'[^']*'/g, "''")
    .replaceAll(/\b(function|table|type|index|into|as|with|on|join|from|,)\s+\w+\s+\(/g, " (")
    .replaceAll(/\)\s*(with ordinality\s+)?(as\s+)?\w+\(/g, ") (")
    .replaceAll(/create or replace function \w+\(/g, "(")
  return new Set([...bare.matchAll(/(?<![.\w])([a-z_]\w*)\(/g)].map(([, name]) => name!))
}

let own: ReadonlySet<string>
/** Numbers of locks by what they are for: of many lanes, of many lines, and of many orgs. */
let locks: ReadonlyArray<Readonly<Record<"lane" | "line" | "org", string>>>
beforeAll(async () => {
  const { url, template } = await postgres()
  const client = new pg.Client({ connectionString: inDatabase(url, template) })
  await client.connect()
  await client.query("set search_path = posthaste")
  const named = await client.query(
    `select lane_bucket(id) - lock_key(0) as lane, line_bucket(id, 'a') - lock_key(0) as line, org_lock(id::text) - lock_key(0) as org
      from (select gen_random_uuid() as id from generate_series(1, 5000)) ids`
  )
  locks = named.rows
  const known = await client.query<{ name: string }>(
    "select proname as name from pg_proc where pronamespace = 'pg_catalog'::regnamespace union select word from pg_get_keywords()"
  )
  await client.end()
  own = new Set(known.rows.map(({ name }) => name))
})

describe("functions of the database", () => {
  it("are defined once, each in the file of its name", () => {
    const defined = [...functions, ...filesOf("adapters/postgres/schema", ".sql").map(({ text }) => ({ sql: text }))]
      .flatMap(({ sql }) => [...withoutComments(sql).matchAll(/create (?:or replace )?function (\w+)/g)])
      .map(([, name]) => name!)
    // What callers use has a form for jsonb and one for text.
    const forms = [...names, "publish", "send"]
    expect(defined.toSorted()).toEqual(forms.toSorted())
    expect(names.length).toBeGreaterThan(20)
  })

  it.each(names.filter((name) => !forCallers.has(name)))("%s is called", (name) => {
    const others = functions.filter((each) => each.name !== name).map(({ sql }) => sql)
    const triggered = functions.some(({ sql }) => sql.includes(`execute function ${name}()`))
    expect(triggered || [...others, ...statements].some((sql) => calledIn(sql).has(name))).toBe(true)
  })

  it("join no list with another: without hashes the server compares each with each", () => {
    const list = String.raw`unnest\((?:[^()]|\([^()]*\))*\)`
    const joined = new RegExp(String.raw`(?:from|,)\s+${list}(?:(?!\bthen\b)[^;])*?(?<!cross )\bjoin\s+${list}`)
    expect("select from unnest(a, f(b)) x(i, j) join unnest(c) y(i) on x.i = y.i").toMatch(joined)
    expect(functions.filter(({ sql }) => joined.test(sql)).map(({ name }) => name)).toEqual([])
  })

  it("call, and are called beside, nothing that is neither theirs nor PostgreSQL's", () => {
    const unknown = (called: ReadonlySet<string>) =>
      [...called].filter((name) => !names.includes(name) && !own.has(name))
    expect(functions.flatMap(({ sql }) => unknown(calledIn(sql)))).toEqual([])
    expect(statements.flatMap((sql) => unknown(calledIn(sql)))).toEqual([])
  })

  it("and statements leave the schema to the connection", () => {
    expect([...functions.map(({ sql }) => sql), ...statements].filter((sql) => /\bposthaste\./.test(sql))).toEqual([])
  })

  it("hold no constant that is not known, and each constant is held", () => {
    const texts = functions.map(({ sql }) => sql)
    for (const sql of texts) expect(() => filled(sql)).not.toThrow()
    expect(constantNames.filter((name) => texts.every((sql) => !sql.includes(`{{${name}}}`)))).toEqual([])
  })

  it("write no fact's name or JSON by hand", () => {
    expect(functions.filter(({ sql }) => /'\w+@\d+'|json_build_object/.test(sql)).map(({ name }) => name)).toEqual([])
  })

  it("are planned by name, and each name is one of them", () => {
    expect(Object.keys(planning).filter((name) => !names.includes(name))).toEqual([])
  })

  it("name locks apart: those of lanes, of lines and of orgs have numbers of their own", () => {
    const bounds = (["lane", "line", "org"] as const).map((kind) => {
      const numbers = locks.map((one) => Number(one[kind]))
      return [Math.min(...numbers), Math.max(...numbers)]
    })
    // By their upper bits, which all come up in so many draws.
    expect(bounds.map(([least]) => least! >> 6)).toEqual([1, 2, 4])
    expect(bounds.map(([, most]) => most! >> 6)).toEqual([1, 3, 7])
  })
})
