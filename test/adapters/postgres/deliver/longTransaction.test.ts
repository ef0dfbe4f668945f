/**
 * A claim begins where the messages of its lane begin. While any transaction of the database is open, messages that are gone can't be
 * cleared out of the index of the lane, and a claim that began at the front walked past all of them. A message that comes in before
 * that place is found by the next claim all the same, however late it commits.
 */
import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import pg from "pg"
import { describe, expect } from "vitest"
import { sessionPlanning } from "../../../../src/adapters/postgres/planning.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"

const lane = "01910000-0000-7000-8000-000000000001"
const idOf = (n: number) => `01900000-0000-7000-8000-${n.toString(16).padStart(12, "0")}`
const range = (from: number, count: number) => Array.from({ length: count }, (_, n) => idOf(from + n))
const BATCH = 200
/** So many that a claim which walks past them is noticed. */
const MANY = 8_000
/** Less than the way past them, and more than the way to where claims begin again. */
const SOME_BLOCKS = 60
const HOUR = 3_600_000

interface Claimed {
  readonly batch: string | null
  readonly messages: ReadonlyArray<string>
  /** Of the lane's index and of its rows. */
  readonly blocks: number
}

/** What one connection does to the queue. */
const sessionOf = (client: pg.Client) => {
  const began = Date.now()
  const blocks = async () => {
    const { rows } = await client.query<{ blocks: string }>(
      "select pg_stat_get_xact_blocks_fetched('ready'::regclass) + pg_stat_get_xact_blocks_fetched('ready_pkey'::regclass) as blocks"
    )
    return Number(rows[0]!.blocks)
  }
  /** The messages, due one after the other from the moment on, which counts from a minute before the test. */
  const move = (move: "wait" | "leave", ids: ReadonlyArray<string>, ms: number, line: string | null = null) =>
    client.query(
      `select move_in_queue($1::uuid[], array_fill($2::text, n), array_fill($3::uuid, n), array_fill($4::text, n),
        array(select $5::bigint + i from generate_series(1, n[1]) i), array_fill(1, n), array_fill(1, n), array_fill(0, n))
        from (select array[cardinality($1::uuid[])] as n) n`,
      [ids, move, lane, line, began - 60_000 + ms]
    )
  const claim = async (limit = BATCH): Promise<Claimed> => {
    await client.query("begin")
    const before = await blocks()
    const { rows } = await client.query<{ batch: string }>(
      "select batch from claim_due('w', $1, $1, '{}', '{}', 60000)",
      [limit]
    )
    const touched = (await blocks()) - before
    await client.query("commit")
    const batch = rows[0]?.batch ?? null
    const { rows: held } = await client.query<{ messages: ReadonlyArray<string> }>(
      "select messages::text[] from claim where batch = $1",
      [batch]
    )
    return { batch, messages: held[0]?.messages ?? [], blocks: touched }
  }
  return { client, move, claim }
}

type Session = ReturnType<typeof sessionOf>

const test = (rule: string, body: (session: Session, another: Session) => Promise<unknown>) =>
  it.live(rule, () =>
    Effect.gen(function* () {
      const connectionString = Redacted.value(yield* freshDatabase)
      const settings = { search_path: "posthaste", ...sessionPlanning }
      const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`)
      const connect = Effect.acquireRelease(
        Effect.promise(async () => {
          const client = new pg.Client({ connectionString, options: options.join(" ") })
          await client.connect()
          return client
        }),
        (client) => Effect.promise(() => client.end())
      )
      const [first, second, long] = yield* Effect.all([connect, connect, connect])
      yield* Effect.promise(async () => {
        await long.query("begin isolation level repeatable read")
        await long.query("select 1 from lane limit 1")
        await body(sessionOf(first), sessionOf(second))
      })
    })
  )

/** Leaves many behind that are gone, in a lane that stays awake. */
const passed = async ({ move, claim }: Session, many = 3_000) => {
  await move("wait", range(0, many), 0)
  const claims: Array<Claimed> = []
  for (let n = 0; n < many; n += BATCH) claims.push(await claim())
  return claims
}

describe("beside a transaction that somebody holds open", () => {
  test("a claim costs the same however many messages have gone before", async (session) => {
    const claims = await passed(session, MANY)
    expect(claims.flatMap(({ messages }) => messages)).toEqual(range(0, MANY))
    const most = Math.max(...claims.slice(0, 5).map(({ blocks }) => blocks))
    for (const { blocks } of claims) expect(blocks).toBeLessThan(most + SOME_BLOCKS)
  })

  test("so it does where each claim takes all there is", async ({ move, claim }) => {
    const costs: Array<number> = []
    for (let n = 0; n < MANY; n += BATCH) {
      await move("wait", range(n, BATCH), n)
      const { messages, blocks } = await claim()
      expect(messages).toEqual(range(n, BATCH))
      costs.push(blocks)
    }
    const most = Math.max(...costs.slice(0, 5))
    for (const blocks of costs) expect(blocks).toBeLessThan(most + SOME_BLOCKS)
  })

  test("a message that comes with an earlier time is claimed next", async (session) => {
    await passed(session)
    await session.move("wait", [idOf(MANY)], -HOUR)
    expect((await session.claim()).messages).toEqual([idOf(MANY)])
  })

  test("a message that wakes a lane asleep until a later one is claimed next", async (session) => {
    await session.move("wait", [idOf(1)], HOUR)
    expect((await session.claim()).messages).toEqual([])
    await session.move("wait", [idOf(2)], 0)
    expect((await session.claim()).messages).toEqual([idOf(2)])
  })

  test("what is put back or released is claimed next", async (session) => {
    const [early, ...others] = await passed(session)
    const { batch, messages } = early!
    await session.client.query("select put_back($1, $2::uuid[])", [batch, messages])
    expect((await session.claim()).messages).toEqual(messages)
    await passed(session)
    const { rows } = await session.client.query("select * from claim where batch = $1", [others[0]!.batch])
    const [{ lanes, dues, versions, epochs, attempts }] = rows as [Record<string, unknown>]
    await session.client.query(
      "select release($1, $2::uuid[], $3::timestamptz[], $4::uuid[], $5::int[], $6::int[], $7::int[])",
      [...[others[0]!.batch, lanes, dues, others[0]!.messages, versions, epochs, attempts]]
    )
    expect((await session.claim()).messages).toEqual(others[0]!.messages)
  })

  test("the next message of a line is claimed when its turn comes, however long it has been due", async (session) => {
    await session.move("wait", [idOf(MANY), idOf(MANY + 1)], -HOUR, "line")
    expect((await session.claim()).messages).toEqual([idOf(MANY)])
    await passed(session)
    await session.move("leave", [idOf(MANY)], -HOUR, "line")
    expect((await session.claim()).messages).toEqual([idOf(MANY + 1)])
  })

  test("a message that was put in early and is committed late is claimed next", async (session, another) => {
    // Of a lane that is awake nobody writes the row.
    await session.client.query("insert into lane (lane, ready_at) values ($1, '-infinity')", [lane])
    await another.client.query("begin")
    await another.move("wait", [idOf(MANY)], -HOUR)
    await passed(session, MANY)
    await another.client.query("commit")
    expect((await session.claim()).messages).toEqual([idOf(MANY)])
    // Nobody who puts one in is under way any more, so claims begin later.
    const costs: Array<number> = []
    for (let n = MANY + 1; n < MANY + 1 + 3; n++) {
      await session.move("wait", [idOf(n)], n)
      costs.push((await session.claim()).blocks)
    }
    expect(costs.at(-1)).toBeLessThan(SOME_BLOCKS)
  })
})
