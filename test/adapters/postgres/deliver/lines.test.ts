/** What only two sessions at the same moment can show about lines. */
import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import pg from "pg"
import { describe, expect } from "vitest"
import { freshDatabase } from "../../../servers/freshDatabase.ts"
import { until } from "../../../servers/until.ts"

const lane = "0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01"
const head = "0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a02"
const next = "0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a03"

const move = `select posthaste.change_lines(array[$1::uuid], array['${lane}'::uuid], array['a'], array[$2], array[now()],
  array[1], array[1], array[0])`

describe("a line", () => {
  it.live(
    "moves up for a message that comes while its head goes, whichever commits first",
    () =>
      Effect.gen(function* () {
        const url = Redacted.value(yield* freshDatabase)
        yield* Effect.promise(async () => {
          const [going, coming] = [new pg.Client(url), new pg.Client(url)]
          await Promise.all([going.connect(), coming.connect()])
          await going.query(move, [head, "wait"])

          await going.query("begin")
          await going.query(move, [head, "pass"])
          const came = coming.query(move, [next, "wait"])
          await new Promise((resolve) => setTimeout(resolve, 100))
          await going.query("commit")
          await came
          const ready = await going.query("select message_id from posthaste.ready where message_id <> $1", [head])
          expect(ready.rows).toEqual([{ message_id: next }])

          await Promise.all([going.end(), coming.end()])
        })
      }),
    300_000
  )

  it.live("moves up for a message that is coming while the dead letter that holds it is erased", () =>
    Effect.gen(function* () {
      const url = Redacted.value(yield* freshDatabase)
      yield* Effect.promise(async () => {
        const clients = [new pg.Client(url), new pg.Client(url), new pg.Client(url)] as const
        await Promise.all(clients.map((client) => client.connect()))
        const [coming, erasing, watching] = clients
        await coming.query(move, [head, "wait"])
        await coming.query("update posthaste.line_entry set state = 'DEAD'")
        await coming.query("delete from posthaste.ready")

        await coming.query("begin")
        await coming.query(move, [next, "wait"])
        const { rows } = await erasing.query<{ pid: number }>("select pg_backend_pid() as pid")
        let isDone = false
        const erased = erasing
          .query("select posthaste.erase_streams(gen_random_uuid(), 'acme', array[$1::uuid], '{}')", [head])
          .then(() => {
            isDone = true
          })
        await until("an erasure that is done, or waits for who comes", async () => {
          const waits = await watching.query("select 1 where cardinality(pg_blocking_pids($1)) > 0", [rows[0]!.pid])
          return isDone || waits.rows.length > 0
        })
        await coming.query("commit")
        await erased
        const ready = await watching.query("select message_id from posthaste.ready")
        expect(ready.rows).toEqual([{ message_id: next }])
        await Promise.all(clients.map((client) => client.end()))
      })
    })
  )
})
