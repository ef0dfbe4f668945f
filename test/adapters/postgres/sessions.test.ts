import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { describe, expect } from "vitest"
import * as Postgres from "../../../src/adapters/postgres/Postgres.ts"
import { administer } from "../../servers/administer.ts"
import { freshDatabase } from "../../servers/freshDatabase.ts"

describe("a session", () => {
  it.live("compiles no query, whatever the database does by default", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const name = new URL(Redacted.value(url)).pathname.slice(1)
      yield* Effect.promise(() => administer(Redacted.value(url), `alter database ${name} set jit = on`))
      yield* Effect.gen(function* () {
        const { listen: _, connections: __, ...all } = yield* Postgres.Postgres
        for (const connections of Object.values(all))
          expect(yield* connections.query({ text: "show jit" }, [])).toEqual([{ jit: "off" }])
      }).pipe(Effect.provide(Postgres.layer({ url })))
    })
  )

  it.live("commits to the disk wherever an answer relies on it, whatever the database does by default", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const name = new URL(Redacted.value(url)).pathname.slice(1)
      yield* Effect.promise(() =>
        administer(Redacted.value(url), `alter database ${name} set synchronous_commit = off`)
      )
      yield* Effect.gen(function* () {
        const postgres = yield* Postgres.Postgres
        const commitOf = (pool: "appends" | "durable" | "bulk" | "queue") =>
          Effect.map(
            postgres[pool].query<{ synchronous_commit: string }>({ text: "show synchronous_commit" }, []),
            ([row]) => row!.synchronous_commit
          )
        expect(yield* Effect.all([commitOf("appends"), commitOf("durable"), commitOf("bulk")])).toEqual(
          Array.from({ length: 3 }, () => "on")
        )
        expect(yield* commitOf("queue")).toBe("off")
      }).pipe(Effect.provide(Postgres.layer({ url })))
    })
  )
})
