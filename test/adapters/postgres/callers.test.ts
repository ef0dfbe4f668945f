/** `send` and `publish` as drivers of other languages call them, and the errors that a caller's own transaction gets. */
import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import pg from "pg"
import { describe, expect } from "vitest"
import { freshDatabase } from "../../servers/freshDatabase.ts"

const connected = Effect.flatMap(freshDatabase, (url) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new pg.Client({ connectionString: Redacted.value(url), options: "-c search_path=posthaste" })
      await client.connect()
      return client
    }),
    (client) => Effect.promise(() => client.end())
  )
)
const text = '{"n": 1e2, "z": -0, "d": 1.10}'

describe("a caller's transaction", () => {
  it.live.each([
    ["literals", `select send('acme', '${text}', 'k') as id`, [], text],
    ["jsonb", "select send($1, $2::jsonb, $3) as id", ["acme", text, "k"], '{"d": 1.10, "n": 100, "z": 0}'],
    ["text", "select send($1::text, $2::text, $3::text) as id", ["acme", text, "k"], text],
    ["varchar", "select send($1::varchar, $2::varchar, $3::varchar) as id", ["acme", text, "k"], text],
    ["names", "select send(org => 'acme', message => $1::text) as id", [text], text],
    ["an event as jsonb", "select publish($1, $2::jsonb) as id", ["acme", '{"a":1}'], '{"a": 1}'],
    ["an event as text", "select publish('acme', $1::text, null) as id", ['{"a":1}'], '{"a":1}']
  ] as const)("sends with %s", ([, sql, values, stored]) =>
    Effect.gen(function* () {
      const client = yield* connected
      const { rows } = yield* Effect.promise(() => client.query(sql, [...values]))
      const found = yield* Effect.promise(() => client.query("select id, request from sql_command"))
      expect(found.rows).toEqual([{ id: rows[0].id, request: stored }])
    })
  )

  it.live.each([
    ["a text that is encoded twice", JSON.stringify(text), "encoded twice"],
    ["no JSON", "{", "invalid input syntax for type json"],
    ["more than 256 KiB", JSON.stringify({ a: "x".repeat(256 * 1024) }), "at most 262144 bytes"],
    [
      "numbers that jsonb prints with 131,072 digits",
      `{"a":[${Array(9).fill("1e131071").join(",")}]}`,
      "bytes, and has"
    ]
  ])("is told at once of %s", ([, message, reason]) =>
    Effect.gen(function* () {
      const client = yield* connected
      const ask = () => client.query("select send('acme', $1::jsonb)", [message])
      const error = yield* Effect.flip(Effect.tryPromise({ try: ask, catch: (failure) => failure as Error }))
      expect(error.message).toContain(reason)
    })
  )
})
