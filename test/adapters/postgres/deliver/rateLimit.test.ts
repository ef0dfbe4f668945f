/** The law of a rate limit stands in SQL, where claims count, and in the model: one table of cases for both. */
import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import pg from "pg"
import { expect } from "vitest"
import { rateAllowance } from "../../../model/deliver/lanes.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"

const NOW = 1_800_000_000_000
const rates = [
  [1, 1_000],
  [1, 60_000],
  [7, 1_000],
  [40, 1_000],
  [50, 100],
  [100, 60_000],
  [1, 86_400_000],
  [1_000, 1_000],
  [9_999, 1_000]
] as const
const cases = rates.flatMap(([limit, periodMs]) =>
  [null, -3_600_000, -41, -15, -9.5, -1, 0].map((late) => ({
    limit,
    periodMs,
    next: late === null ? null : NOW + late
  }))
)

it.live("a rate limit is the same in SQL as in the model", () =>
  Effect.gen(function* () {
    const client = new pg.Client({
      connectionString: Redacted.value(yield* freshDatabase),
      options: "-c search_path=posthaste"
    })
    const time = (ms: string) => `'epoch'::timestamptz + ${ms}::float8 * interval '1 millisecond'`
    const { rows } = yield* Effect.promise(async () => {
      await client.connect()
      return client
        .query<{ allowed: number; from: number; step: number }>(
          `select allowed, extract(epoch from from_at)::float8 * 1000 as from, extract(epoch from step)::float8 * 1000 as step
            from jsonb_to_recordset($1) c("limit" int, "periodMs" int, next float8)
            cross join lateral rate_allowance(c."limit", c."periodMs", ${time("c.next")}, ${time("$2")})`,
          [JSON.stringify(cases), NOW]
        )
        .finally(() => client.end())
    })
    expect(rows).toHaveLength(cases.length)
    for (const [nth, { limit, periodMs, next }] of cases.entries()) {
      const { allowed, from, stepMs } = rateAllowance({ limit, periodMs }, next, NOW)
      const found = rows[nth]!
      expect({ ...cases[nth], allowed: found.allowed }).toEqual({ ...cases[nth], allowed })
      expect(found.from).toBeCloseTo(from, 1)
      expect(found.step).toBeCloseTo(stepMs, 2)
    }
  })
)
