/** Who is named as keeping the database from clearing away what was deleted. Other tests have transactions on this server too. */
import { it } from "@effect/vitest"
import { Duration, Effect, Layer, Redacted } from "effect"
import pg from "pg"
import { describe, expect } from "vitest"
import * as Postgres from "../../../src/adapters/postgres/Postgres.ts"
import * as PostgresProcesses from "../../../src/adapters/postgres/processes/PostgresProcesses.ts"
import { Processes } from "../../../src/application/ports/Processes.ts"
import { freshDatabase } from "../../servers/freshDatabase.ts"

const session = (url: string, name: string, ...statements: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new pg.Client({ connectionString: url, application_name: name })
      await client.connect()
      for (const statement of statements) await client.query(statement)
      return client
    }),
    (client) => Effect.promise(() => client.end())
  )

describe("an old transaction", () => {
  it.live("is the one that keeps its view of the database, and not one that is only open", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const url = yield* freshDatabase
        const [text, elsewhere] = [Redacted.value(url), Redacted.value(yield* freshDatabase)]
        yield* session(text, "only open", "begin", "select 1 from posthaste.ready limit 1")
        yield* session(elsewhere, "a look elsewhere", "begin isolation level repeatable read", "select 1")
        const look = yield* session(text, "a long look", "begin isolation level repeatable read", "select 1")
        const { rows } = yield* Effect.promise(() => look.query<{ pid: number }>("select pg_backend_pid() as pid"))
        const layer = PostgresProcesses.layer.pipe(Layer.provide(Postgres.layer({ url })))
        yield* Effect.gen(function* () {
          const { oldestTransaction: oldest } = yield* Processes
          const isHarmless = (name = "") => ["only open", "a look elsewhere"].includes(name)
          for (;;) {
            const found = yield* oldest(Duration.millis(100))
            expect(isHarmless(found?.name), found?.name).toBe(false)
            if (found?.name === "a long look") {
              expect(found).toMatchObject({ kind: "transaction", pid: rows[0]!.pid })
              break
            }
            yield* Effect.sleep("20 millis")
          }
          expect(yield* oldest(Duration.hours(1))).toBeNull()
          yield* Effect.promise(() => look.query("commit"))
          const after = (yield* oldest(Duration.millis(100)))?.name
          expect(after === "a long look" || isHarmless(after), after).toBe(false)
        }).pipe(Effect.provide(layer))
      })
    )
  )
})
