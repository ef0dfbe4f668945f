/** The rate limit stands in the domain, which explains it, and in SQL, where claims count: one table of cases for both. */
import pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { intervalOf, type RateLimit, slotsFree } from "../../../../src/domain/delivery/rateLimit.ts"
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
/** Up to where slots are handed out, seen from now; null: none ever was. */
const offsets = [null, -3_600_000, -41, -1, 0, 0.5, 9, 20, 143, 249, 251, 1_000]
/** Slots that came back. */
const returns: ReadonlyArray<ReadonlyArray<number>> = [[], [-5, 3, 8.5]]
const cases = rates.flatMap((rate) =>
  offsets.flatMap((offset) =>
    returns.flatMap((returned) =>
      [1, 25].map((max) => ({
        rate,
        max,
        next: offset === null ? null : NOW + offset,
        returned: returned.map((at) => NOW + at)
      }))
    )
  )
)

let client: pg.Client
beforeAll(async () => {
  const { url, template } = await postgres()
  client = new pg.Client({ connectionString: inDatabase(url, template) })
  await client.connect()
})
afterAll(() => client.end())

const time = (ms: string) => `'epoch'::timestamptz + ${ms}::float8 * interval '1 millisecond'`
const millis = (at: string) => `(extract(epoch from ${at}) * 1000)::float8`

describe("slots of a rate limit", () => {
  it("are the same in SQL as in the domain", async () => {
    const { rows } = await client.query<{ free: ReadonlyArray<number>; interval: number }>(
      `select array(select ${millis("s")} from unnest(posthaste.slots_free((c ->> 'limit')::int, (c ->> 'period')::int, ${time("(c ->> 'next')")},
            array(select ${time("r")} from jsonb_array_elements_text(c -> 'returned') r), ${time("$2")}, (c ->> 'max')::int)) s) as free,
          posthaste.slot_interval_ms((c ->> 'limit')::int, (c ->> 'period')::int) as interval
        from jsonb_array_elements($1::jsonb) with ordinality j(c, nth) order by nth`,
      [
        JSON.stringify(cases.map(({ rate, ...others }) => ({ limit: rate.limit, period: rate.periodMs, ...others }))),
        NOW
      ]
    )
    for (const [i, { rate, next, returned, max }] of cases.entries()) {
      const wanted = slotsFree(rate, { nextSlotAt: next, returned }, NOW, max)
      expect(rows[i]!.free).toHaveLength(wanted.length)
      // PostgreSQL counts in microseconds.
      for (const [n, at] of wanted.entries()) expect(rows[i]!.free[n]).toBeCloseTo(at, 1)
      expect(rows[i]!.interval).toBeCloseTo(intervalOf(rate), 6)
    }
    expect(new Set(rows.map(({ free }) => free.length)).size).toBeGreaterThan(5)
  })
})
