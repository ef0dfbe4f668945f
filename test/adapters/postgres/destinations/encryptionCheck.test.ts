/** Which encryption key a database takes: the first, however many start with different ones at the same moment. */
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted } from "effect"
import pg from "pg"
import { describe } from "vitest"
import { check } from "../../../../src/adapters/postgres/destinations/encryptionCheck.ts"
import * as Postgres from "../../../../src/adapters/postgres/Postgres.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"
import { PATIENCE_MS, until } from "../../../servers/until.ts"

const keyOf = (byte: number) => Redacted.make(new Uint8Array(32).fill(byte))

describe("a database that has no secrets yet", () => {
  it.live(
    "takes one of the keys with which two processes start at once, and refuses the other",
    () =>
      Effect.gen(function* () {
        const url = yield* freshDatabase
        const postgres = yield* Layer.build(Layer.fresh(Postgres.layer({ url })))
        const outside = new pg.Client({ connectionString: Redacted.value(url) })
        yield* Effect.acquireRelease(
          Effect.promise(() => outside.connect()),
          () => Effect.promise(() => outside.end())
        )
        const asked = (text: string) => Effect.promise(async () => (await outside.query(text)).rows)
        // Both have found nothing before one of them can write.
        yield* asked("begin")
        yield* asked("lock table posthaste.encryption_check in share mode")
        const starting = yield* Effect.forkChild(
          Effect.all(
            [3, 9].map((byte) => Effect.exit(Effect.provideContext(check(keyOf(byte)), postgres))),
            { concurrency: 2 }
          )
        )
        yield* Effect.promise(() =>
          until("both wait", async () => {
            const waiting =
              "select 1 from pg_locks where not granted and relation = 'posthaste.encryption_check'::regclass"
            return (await outside.query(waiting)).rowCount === 2
          })
        )
        yield* asked("commit")
        const started = (yield* Fiber.join(starting)).map(({ _tag }) => _tag)
        expect(started.toSorted()).toEqual(["Failure", "Success"])
        const again = yield* Effect.forEach([3, 9], (byte) =>
          Effect.exit(Effect.provideContext(check(keyOf(byte)), postgres))
        )
        expect(again.map(({ _tag }) => _tag)).toEqual(started)
      }),
    PATIENCE_MS
  )
})
