import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import pg from "pg"
import { expect } from "vitest"
import { sessionPlanning } from "../../../../src/adapters/postgres/planning.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"
import { slowdown } from "../../../servers/slowdown.ts"

const FULL = 4_000

it.live("a claim walks past four thousand lanes that are full within twenty milliseconds", () =>
  Effect.gen(function* () {
    const settings = Object.entries({ search_path: "posthaste", ...sessionPlanning }).map(
      ([name, value]) => `-c ${name}=${value}`
    )
    const client = new pg.Client({
      connectionString: Redacted.value(yield* freshDatabase),
      options: settings.join(" ")
    })
    yield* Effect.promise(async () => {
      await client.connect()
      try {
        const { rows } = await client.query<{ lane: string }>(
          `insert into lane (lane, org_id, ready_at)
            select gen_random_uuid(), 'org', now() - interval '1 hour' from generate_series(1, ${FULL}) returning lane::text`
        )
        const room = JSON.stringify(Object.fromEntries(rows.map(({ lane }) => [lane, 0])))
        const claim = () =>
          client.query("select batch from claim_due('w', 500, 16, $1, $2, 60000)", [room, '{"other": true}'])
        await claim()
        const took: Array<number> = []
        for (let n = 0; n < 15; n++) {
          const began = performance.now()
          expect((await claim()).rows).toEqual([])
          took.push((performance.now() - began) / slowdown())
        }
        expect(took.toSorted((a, b) => a - b)[4]).toBeLessThan(20)
      } finally {
        await client.end()
      }
    })
  })
)
