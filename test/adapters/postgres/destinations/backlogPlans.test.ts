/**
 * What waits for destinations is counted by the keys of their lanes, also where nearly all that waits is of one lane: then the planner
 * believes that each lane has as much, and would read all of it for each of them. A list of 200 destinations, beside 10,000 messages of
 * one, touches so few blocks that it can't have read all of these twice.
 */
import { Effect, Exit, Layer, Redacted, Scope } from "effect"
import pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as PostgresBacklogs from "../../../../src/adapters/postgres/destinations/PostgresBacklogs.ts"
import { Postgres } from "../../../../src/adapters/postgres/Postgres.ts"
import * as PostgresProcesses from "../../../../src/adapters/postgres/processes/PostgresProcesses.ts"
import { type BacklogFilter, Backlogs, sorts } from "../../../../src/application/ports/Backlogs.ts"
import { Processes } from "../../../../src/application/ports/Processes.ts"
import { DestinationId, MessageId, OrgId } from "../../../../src/domain/ids.ts"
import { inMillis } from "../../../contracts/sample.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"

const WAITING = 10_000
const LANES = 200
const idOf = (n: string) => `('01910000-0000-7000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`
const laneOf = (n: number) => DestinationId.make(`01910000-0000-7000-8000-${n.toString(16).padStart(12, "0")}`)

const fill = `
  insert into destination (id, org_id, channel, version, settings, secrets, created_at, updated_at)
    select ${idOf("n")}, 'acme', 'webhook', 1, '{}', '{}', now(), now() from generate_series(1, ${LANES}) n;
  insert into ready (lane, due_at, message_id, version, epoch, attempt)
    select ${idOf("1")}, now() - n * interval '1 millisecond', gen_random_uuid(), 1, 1, 0 from generate_series(1, ${WAITING}) n;
  insert into line_entry (message_id, lane, line, state, due_at, version, epoch, attempt)
    select gen_random_uuid(), ${idOf("1")}, 'a', 'WAITING', now(), 1, 1, 0 from generate_series(1, ${WAITING}) n;
  analyze`

const scope = Scope.makeUnsafe()
let client: pg.Client

beforeAll(async () => {
  const url = Redacted.value(await Effect.runPromise(Scope.provide(freshDatabase, scope)))
  client = new pg.Client({ connectionString: url, options: "-c search_path=posthaste" })
  await client.connect()
  await client.query(fill)
})

afterAll(async () => {
  await client?.end()
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

interface Touched {
  readonly "Shared Hit Blocks": number
  readonly "Shared Read Blocks": number
}

/** The blocks that the first statement of `ask` touches. */
const blocksOf = async (ask: Effect.Effect<unknown, unknown, Backlogs | Processes>): Promise<number> => {
  const asked: Array<{ readonly text: string; readonly values: ReadonlyArray<unknown> }> = []
  const query = ({ text }: { readonly text: string }, values: ReadonlyArray<unknown>) =>
    Effect.sync(() => {
      asked.push({ text, values })
      return []
    })
  const postgres = Layer.succeed(Postgres, { reads: { query } } as never)
  const ports = Layer.mergeAll(PostgresBacklogs.layer, PostgresProcesses.layer).pipe(Layer.provide(postgres))
  await Effect.runPromiseExit(Effect.provide(ask, ports))
  const [{ text, values }] = asked as [(typeof asked)[number]]
  // The second time nothing is planned any more.
  for (let n = 0; n < 2; n++) {
    const { rows } = await client.query(`explain (analyze, buffers, format json) ${text}`, [...values])
    const touched = rows[0]["QUERY PLAN"][0].Plan as Touched
    if (n === 1) return touched["Shared Hit Blocks"] + touched["Shared Read Blocks"]
  }
  return Number.NaN
}

/** Of all that waits some hundred blocks, and some of each lane. */
const BLOCKS_MAX = 6_000

describe("what waits for destinations", () => {
  const filters: ReadonlyArray<BacklogFilter> = [{}, { waiting: true }, { waiting: false }]
  it.each(sorts.flatMap((sort) => filters.map((filter) => ({ sort, filter }))))(
    "is counted by the keys of the lanes: %j",
    async ({ sort, filter }) => {
      const list = Effect.flatMap(Backlogs, (backlogs) =>
        backlogs.list(OrgId.make("acme"), filter, sort, { limit: 50, cursor: null })
      )
      expect(await blocksOf(list)).toBeLessThan(BLOCKS_MAX)
    }
  )

  it("of one destination touches a few blocks beside another's backlog", async () => {
    expect(await blocksOf(Effect.flatMap(Backlogs, (backlogs) => backlogs.of(laneOf(2))))).toBeLessThan(30)
    const message = MessageId.make("01910000-0000-7000-8000-000000000000")
    const turn = Effect.flatMap(Backlogs, (backlogs) => backlogs.turn(laneOf(2), message, inMillis(0)))
    expect(await blocksOf(turn)).toBeLessThan(30)
  })

  it("is counted so for the figures of the installation too", async () => {
    const lanes = Array.from({ length: LANES }, (_, n) => laneOf(n + 1))
    expect(await blocksOf(Effect.flatMap(Processes, ({ counts }) => counts(lanes)))).toBeLessThan(BLOCKS_MAX)
  })
})
