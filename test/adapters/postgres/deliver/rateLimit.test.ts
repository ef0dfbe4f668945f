/** The rate limit stands in the domain, which explains it, and in SQL, where claims count: one table of cases for both. */
import { randomUUID } from "node:crypto"
import { Effect, Exit, Redacted, Scope } from "effect"
import pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import {
  horizonOf,
  intervalOf,
  nextSlot,
  type RateLimit,
  type SlotsOfLane,
  slotsAfter,
  slotsFree,
  visitAt
} from "../../../../src/domain/delivery/rateLimit.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"
import { until } from "../../../servers/until.ts"

const NOW = 1_800_000_000_000
const rates: ReadonlyArray<RateLimit> = [
  { limit: 1, periodMs: 1_000 },
  { limit: 1, periodMs: 60_000 },
  { limit: 7, periodMs: 1_000 },
  { limit: 40, periodMs: 1_000 },
  { limit: 100, periodMs: 60_000 },
  { limit: 1, periodMs: 86_400_000 },
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

const scope = Scope.makeUnsafe()
let client: pg.Client
let other: pg.Client
beforeAll(async () => {
  const url = Redacted.value(await Effect.runPromise(Scope.provide(freshDatabase, scope)))
  const session = async () => {
    const one = new pg.Client({ connectionString: url, options: "-c search_path=posthaste" })
    await one.connect()
    return one
  }
  client = await session()
  other = await session()
})
afterAll(async () => {
  await client.end()
  await other.end()
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

const time = (ms: string) => `'epoch'::timestamptz + ${ms}::float8 * interval '1 millisecond'`
const millis = (at: string) => `(extract(epoch from ${at}) * 1000)::float8`

/** PostgreSQL counts in microseconds. */
const expectTimes = (found: ReadonlyArray<number>, wanted: ReadonlyArray<number>) => {
  expect(found).toHaveLength(wanted.length)
  for (const [n, at] of wanted.entries()) expect(found[n]).toBeCloseTo(at, 1)
}

interface Row {
  readonly next: number | null
  readonly returned: ReadonlyArray<number>
  readonly slotAt: number | null
  readonly now: number
}

const columns = `${millis("next_slot_at")} as next, ${millis("slot_at")} as "slotAt", ${millis("clock_timestamp()")} as now,
  array(select ${millis("r")} from unnest(returned_slots) r) as returned`

/** A new lane; times are counted from now. */
const makeLane = async (rate: RateLimit | null, { next, returned, slotAt = null }: Partial<Row>) => {
  const id = randomUUID()
  const later = (ms: string) => `clock_timestamp() + ${ms}::float8 * interval '1 millisecond'`
  const { rows } = await client.query<Row>(
    `insert into lane (lane, ready_at, rate_limit, rate_period_ms, next_slot_at, slot_at, returned_slots)
      values ($1, 'infinity', $2, $3, ${later("$4")}, ${later("$5")},
        nullif(array(select ${later("r")} from unnest($6::float8[]) r), '{}'))
      returning ${columns}`,
    [id, rate?.limit, rate?.periodMs, next, slotAt, returned ?? []]
  )
  return { id, before: rows[0]! }
}

const laneOf = async (id: string) => {
  const { rows } = await client.query<Row>(`select ${columns} from lane where lane = $1`, [id])
  return rows[0]!
}

/** As a lane is after slots up to `last` were taken; it is visited again no earlier than was said before. */
const expectTaken = async (rate: RateLimit, id: string, { next, returned, slotAt }: Row, last: number) => {
  const wanted = slotsAfter(rate, { nextSlotAt: next, returned }, last)
  const after = await laneOf(id)
  expect(after.next).toBeCloseTo(wanted.nextSlotAt!, 1)
  expect(after.slotAt).toBeCloseTo(Math.max(slotAt ?? 0, visitAt(rate, wanted.nextSlotAt!)), 1)
  expectTimes(after.returned, wanted.returned)
}

const taken = async (session: pg.Client, id: string, leadMs: number) => {
  const { rows } = await session.query<{ readonly slot: number | null; readonly said: number }>(
    "select slot, said from take_slot($1, $2)",
    [id, leadMs]
  )
  return rows[0]!
}

describe("slots of a rate limit", () => {
  it("are the same in SQL as in the domain", async () => {
    const { rows } = await client.query<{ free: ReadonlyArray<number>; interval: number; horizon: number }>(
      `select array(select ${millis("s")} from unnest(slots_free((c ->> 'limit')::int, (c ->> 'period')::int, ${time("(c ->> 'next')")},
            array(select ${time("r")} from jsonb_array_elements_text(c -> 'returned') r), ${time("$2")}, (c ->> 'max')::int)) s) as free,
          slot_interval_ms((c ->> 'limit')::int, (c ->> 'period')::int) as interval,
          slot_horizon_ms((c ->> 'limit')::int, (c ->> 'period')::int) as horizon
        from jsonb_array_elements($1::jsonb) with ordinality j(c, nth) order by nth`,
      [
        JSON.stringify(cases.map(({ rate, ...others }) => ({ limit: rate.limit, period: rate.periodMs, ...others }))),
        NOW
      ]
    )
    for (const [i, { rate, next, returned, max }] of cases.entries()) {
      expectTimes(rows[i]!.free, slotsFree(rate, { nextSlotAt: next, returned }, NOW, max))
      expect(rows[i]!.interval).toBeCloseTo(intervalOf(rate), 6)
      expect(rows[i]!.horizon).toBeCloseTo(horizonOf(rate), 6)
    }
    expect(new Set(rows.map(({ free }) => free.length)).size).toBeGreaterThan(5)
  })

  it.each(rates)("leave a lane as the domain says when they are taken: $limit in $periodMs ms", async (rate) => {
    // Counted from when slots are handed out next, or from now.
    for (const last of [-700, 0, 5_000]) {
      for (const next of [null, 800]) {
        for (const slotAt of [null, -60_000, 90_000_000]) {
          const returned = [-300, 50, 400]
          const { id, before } = await makeLane(rate, { next, returned, slotAt })
          const at = (before.next ?? before.now) + last
          await client.query(`select slots_taken(l, ${time("$2")}) from lane l where lane = $1`, [id, at])
          await expectTaken(rate, id, before, at)
        }
      }
    }
  })

  it("are given to a request that missed its own as the domain says", async () => {
    const rate = { limit: 20, periodMs: 1_000 }
    const lanes: ReadonlyArray<SlotsOfLane> = [
      { nextSlotAt: null, returned: [] },
      { nextSlotAt: -5_000, returned: [-900] },
      { nextSlotAt: 1_500, returned: [] },
      { nextSlotAt: 1_500, returned: [-10, 600, 900] },
      { nextSlotAt: 600_000, returned: [] },
      { nextSlotAt: 600_000, returned: [300_000] }
    ]
    const found: Array<boolean> = []
    for (const lane of lanes) {
      for (const lead of [0, 750]) {
        const { id, before } = await makeLane(rate, { next: lane.nextSlotAt, returned: lane.returned })
        const { slot, said } = await taken(client, id, lead)
        const wanted = nextSlot({ nextSlotAt: before.next, returned: before.returned }, said, said + lead)
        found.push(wanted !== null)
        if (wanted === null) {
          expect(slot).toBeNull()
          expect(await laneOf(id)).toMatchObject({ next: before.next, returned: before.returned, slotAt: null })
        } else {
          expect(slot).toBeCloseTo(wanted, 1)
          await expectTaken(rate, id, before, wanted)
        }
      }
    }
    expect(new Set(found).size).toBe(2)
    const { slot, said } = await taken(client, (await makeLane(null, {})).id, 100)
    expect(slot).toBe(said)
  })

  it("are given to one of two requests that ask at the same time", async () => {
    const { id } = await makeLane({ limit: 20, periodMs: 1_000 }, { next: 1_000 })
    const { rows } = await other.query<{ readonly pid: number }>("select pg_backend_pid() as pid")
    await client.query("begin")
    const first = await taken(client, id, 0)
    const asked = taken(other, id, 0)
    await until("the other request waits", async () => {
      const waits = await client.query("select where cardinality(pg_blocking_pids($1)) > 0", [rows[0]!.pid])
      return waits.rows.length > 0
    })
    await client.query("commit")
    expect((await asked).slot! - first.slot!).toBeGreaterThan(intervalOf({ limit: 20, periodMs: 1_000 }) - 0.1)
  })

  it("come back in order, each once, if they were handed out under this limit and are still to come", async () => {
    const give = (id: string, slots: ReadonlyArray<number>) =>
      client.query(`select return_slots($1, array(select ${time("s")} from unnest($2::float8[]) s))`, [id, slots])
    // All far enough ahead for a machine that takes its time.
    const { id, before } = await makeLane(
      { limit: 1, periodMs: 60_000 },
      { next: 4_000_000, returned: [1_500_000, 2_500_000] }
    )
    const [early, late] = [before.now + 1_000_000, before.now + 2_000_000]
    await give(id, [late, before.now - 1, before.next!, before.next! + 60_000, before.returned[0]!, early, late])
    expectTimes((await laneOf(id)).returned, [early, before.returned[0]!, late, before.returned[1]!])
    const unlimited = await makeLane(null, { next: 4_000_000 })
    await give(unlimited.id, [early])
    expect((await laneOf(unlimited.id)).returned).toEqual([])
  })
})
