/** The rate limit stands in the domain, which explains it, and in SQL, where claims count: one table of cases for both. */
import pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type RateLimit, slotsFree, taken } from "../../../../src/domain/delivery/rateLimit.ts"
import { inDatabase } from "../../../servers/administer.ts"
import { postgres } from "../../../servers/postgres.ts"

const NOW = 1_800_000_000_000
const rates: ReadonlyArray<RateLimit> = [
  { limit: 1, periodMs: 1_000 },
  { limit: 1, periodMs: 60_000 },
  { limit: 7, periodMs: 1_000 },
  { limit: 40, periodMs: 1_000 },
  { limit: 100, periodMs: 60_000 },
  { limit: 1_000, periodMs: 1_000 },
  { limit: 9_999, periodMs: 1_000 }
]
/** When the lane was worth a visit, seen from now; null: it never handed out anything. */
const offsets = [null, -3_600_000, -1_000, -41, -20, -12.5, -1, 0, 0.5, 1, 9, 20, 24, 25, 26, 143, 1_000]
const counts = [1, 2, 25]
const cases = rates.flatMap((rate) =>
  offsets.flatMap((offset) => counts.map((count) => ({ rate, at: offset === null ? null : NOW + offset, count })))
)

let client: pg.Client
beforeAll(async () => {
  const { url, template } = await postgres()
  client = new pg.Client({ connectionString: inDatabase(url, template) })
  await client.connect()
})
afterAll(() => client.end())

const time = (parameter: string) => `'epoch'::timestamptz + ${parameter}::float8 * interval '1 millisecond'`

describe("slots of a rate limit", () => {
  it("are as many, and come as late, in SQL as in the domain", async () => {
    const { rows } = await client.query<{ free: number; next: number }>(
      `select posthaste.slots_free(c.lim, c.period, ${time("c.at")}, ${time("$5")}) as free,
          (extract(epoch from posthaste.slots_taken(c.lim, c.period, ${time("c.at")}, ${time("$5")}, c.n)) * 1000)::float8 as next
        from unnest($1::int[], $2::int[], $3::float8[], $4::int[]) with ordinality c(lim, period, at, n, nth) order by nth`,
      [
        cases.map(({ rate }) => rate.limit),
        cases.map(({ rate }) => rate.periodMs),
        cases.map(({ at }) => at),
        cases.map(({ count }) => count),
        NOW
      ]
    )
    expect(rows.map(({ free }) => free)).toEqual(cases.map(({ rate, at }) => slotsFree(rate, at, NOW)))
    for (const [i, { rate, at, count }] of cases.entries()) {
      // PostgreSQL counts in microseconds.
      expect(rows[i]!.next).toBeCloseTo(taken(rate, at, NOW, count), 1)
    }
    expect(new Set(rows.map(({ free }) => free)).size).toBeGreaterThan(5)
  })
})
