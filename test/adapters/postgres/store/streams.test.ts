/** Checking, exporting and importing over a real database, with what can go wrong in one planted by hand. */

import { beforeAll, describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Stream } from "effect"
import pg from "pg"
import * as PostgresQueue from "../../../../src/adapters/postgres/deliver/PostgresQueue.ts"
import * as PostgresEvents from "../../../../src/adapters/postgres/events/PostgresEvents.ts"
import * as PostgresBodies from "../../../../src/adapters/postgres/messages/PostgresBodies.ts"
import * as Postgres from "../../../../src/adapters/postgres/Postgres.ts"
import * as PostgresPulse from "../../../../src/adapters/postgres/PostgresPulse.ts"
import * as PostgresRetention from "../../../../src/adapters/postgres/retention/PostgresRetention.ts"
import { LogReader } from "../../../../src/application/log/LogReader.ts"
import { projectOnce } from "../../../../src/application/log/projections/keepProjections.ts"
import { EventStore } from "../../../../src/application/ports/EventStore.ts"
import { exportStreams } from "../../../../src/application/truth/exportStreams.ts"
import { importStreams } from "../../../../src/application/truth/importStreams.ts"
import { ownLog } from "../../../../src/application/truth/logStream.ts"
import { repair } from "../../../../src/application/truth/repair.ts"
import * as Verify from "../../../../src/application/truth/verify.ts"
import * as Channels from "../../../../src/setup/channels.ts"
import * as PostgresPorts from "../../../../src/setup/postgresPorts.ts"
import { opened } from "../../../contracts/sample.ts"
import { type Populated, populated } from "../../../contracts/store/everyPlace.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"

const portsOn = (url: Redacted.Redacted) => {
  const working = Layer.mergeAll(
    PostgresQueue.layer,
    PostgresBodies.layer,
    PostgresEvents.layer,
    PostgresRetention.layer
  ).pipe(Layer.provide(PostgresPulse.layer), Layer.provide(Postgres.layer({ url })))
  return Layer.provideMerge(LogReader.layer, Layer.mergeAll(PostgresPorts.truth({ url }), working, Channels.unused))
}

type Ports = Layer.Success<ReturnType<typeof portsOn>>
type Sql = (text: string) => Promise<ReadonlyArray<Record<string, unknown>>>

const inStore = <A, E>(url: Redacted.Redacted, body: Effect.Effect<A, E, Ports>) =>
  Effect.provide(body, portsOn(url), { local: true })

const sqlOn = (url: Redacted.Redacted) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const client = new pg.Client({ connectionString: Redacted.value(url) })
        await client.connect()
        return client
      }),
      (client) => Effect.promise(() => client.end())
    ),
    (client): Sql =>
      async (text) =>
        (await client.query(text)).rows
  )

const projectAll = Effect.gen(function* () {
  while ((yield* projectOnce()) > 0) {}
})

/** Every example of what is wrong, with its table. */
const verify = Effect.map(
  Verify.verify(() => Effect.void, 1_000),
  ({ findings, ...verified }) => ({
    violations: findings.flatMap(({ table, examples }) => examples.map((example) => `${table}: ${example}`)),
    verified
  })
)

const exported = (withBodies: boolean) =>
  Effect.gen(function* () {
    return yield* Stream.runCollect(exportStreams(yield* ownLog, withBodies))
  })

const imported = (lines: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    return yield* importStreams(Stream.fromIterable(lines), yield* ownLog, () => Effect.void)
  })

const test = (rule: string, body: (url: Redacted.Redacted) => Effect.Effect<void, unknown, never>) =>
  it.live(rule, () => Effect.scoped(Effect.flatMap(freshDatabase, body)))

describe("a check of all streams", () => {
  test("finds nothing wrong with a store that is right, projected or not", (url) =>
    inStore(
      url,
      Effect.gen(function* () {
        yield* populated
        const before = yield* verify
        yield* projectAll
        const after = yield* verify
        expect([before.violations, after.violations]).toEqual([[], []])
        const { facts } = yield* (yield* EventStore).extent
        expect(after.verified).toEqual({ facts, streams: 19, messages: 14, waiting: 9, bodiless: 0 })
      })
    ))

  const id = (sample: { readonly id: string }) => `'${sample.id}'`
  const corruptions: ReadonlyArray<
    readonly [what: string, plant: (at: Populated) => string, violation: (at: Populated) => string]
  > = [
    [
      "a version that is missing",
      (at) => `delete from posthaste.event where stream_id = ${id(at.retrying)} and version = 2`,
      (at) => `laws: message-${at.retrying.id}, version 2: `
    ],
    [
      "a fact that its law forbids",
      (at) =>
        `update posthaste.event set name = 'MessageDelivered@1', data = '{"proof":"response"}' where stream_id = ${id(at.retrying)} and version = 2`,
      (at) => `laws: message-${at.retrying.id}, version 2: `
    ],
    [
      "a fact that nobody can read",
      (at) =>
        `update posthaste.event set data = '{"epoch":"one"}' where stream_id = ${id(at.delivered)} and version = 2`,
      (at) => `laws: message-${at.delivered.id}, version 2: `
    ],
    [
      "a fact that no release wrote",
      (at) =>
        `update posthaste.event set name = 'AttemptStarted@9' where stream_id = ${id(at.delivered)} and version = 2`,
      (at) => `laws: message-${at.delivered.id}, version 2: `
    ],
    [
      "a circuit's fact that its law forbids",
      (at) => `update posthaste.event set name = 'CircuitClosed@1', data = '{}' where stream = '${at.circuit}'`,
      (at) => `laws: ${at.circuit}, version 1: `
    ],
    [
      "a journal with a gap",
      (at) => `update posthaste.event set version = 2 where stream = 'endpoint-${at.circuit.slice(8)}'`,
      (at) => `laws: endpoint-${at.circuit.slice(8)}, version 1: `
    ],
    [
      "a row of the list that says something else",
      (at) => `update posthaste.message_view set status = 'QUEUED' where id = ${id(at.delivered)}`,
      (at) => `list: message-${at.delivered.id}`
    ],
    [
      "a row of the list that is found under something else",
      (at) => `update posthaste.message_view set due_at = now() where id = ${id(at.delivered)}`,
      (at) => `list: message-${at.delivered.id}`
    ],
    [
      "a message that is not in the list",
      (at) => `delete from posthaste.message_view where id = ${id(at.delivered)}`,
      (at) => `list: message-${at.delivered.id}`
    ],
    [
      "a row of the list that stayed behind",
      (at) => `update posthaste.message_view set version = 1 where id = ${id(at.delivered)}`,
      (at) => `list: message-${at.delivered.id}`
    ],
    [
      "a waiting message that is not in the queue",
      (at) => `delete from posthaste.ready where message_id = ${id(at.waiting)}`,
      (at) => `queue: message-${at.waiting.id}`
    ],
    [
      "a waiting message that is due at another time",
      (at) => `update posthaste.ready set due_at = due_at + interval '1 second' where message_id = ${id(at.waiting)}`,
      (at) => `queue: message-${at.waiting.id}`
    ],
    [
      "a waiting message that is in the queue twice",
      (at) =>
        `insert into posthaste.ready select lane, due_at + interval '1 second', message_id, version, epoch, attempt from posthaste.ready where message_id = ${id(at.waiting)}`,
      (at) => `queue: message-${at.waiting.id}`
    ],
    [
      "a claimed message that waits as well",
      (at) =>
        `insert into posthaste.ready select lanes[1], dues[1], messages[1], versions[1], epochs[1], attempts[1] from posthaste.claim where ${id(at.held)} = any (messages)`,
      (at) => `queue: message-${at.held.id}`
    ],
    [
      "an attempt that no worker holds",
      (at) => `delete from posthaste.claim where ${id(at.underWay)} = any (messages)`,
      (at) => `queue: message-${at.underWay.id}`
    ],
    [
      "a message in doubt that nobody would ask about",
      (at) => `delete from posthaste.ready where message_id = ${id(at.doubtful)}`,
      (at) => `queue: message-${at.doubtful.id}`
    ],
    [
      "a message that ended and waits",
      (at) => `insert into posthaste.ready values (gen_random_uuid(), now(), ${id(at.cancelled)}, 2, 1, 0)`,
      (at) => `queue: message-${at.cancelled.id}`
    ],
    [
      "a message that waits and has no stream",
      () =>
        "insert into posthaste.ready values (gen_random_uuid(), now(), '00000000-0000-4000-8000-000000000001', 2, 1, 0)",
      () => `queue: message-00000000-0000-4000-8000-000000000001`
    ],
    [
      "a message that is not in its line",
      (at) => `delete from posthaste.line_entry where message_id = ${id(at.behind)}`,
      (at) => `queue: message-${at.behind.id}`
    ],
    [
      "a message that is in a line and ended",
      (at) => `update posthaste.line_entry set message_id = ${id(at.cancelled)} where message_id = ${id(at.behind)}`,
      (at) => `queue: message-${at.cancelled.id}`
    ],
    [
      "a body that was erased",
      (at) => `update posthaste.message set body = 'secret' where id = ${id(at.erased)}`,
      (at) => `bodies: message-${at.erased.id}`
    ],
    [
      "a body that belongs to nobody",
      () =>
        "insert into posthaste.message (id, org_id, channel, destination, accepted_at, data) select '00000000-0000-4000-8000-000000000001', org_id, channel, destination, accepted_at, data from posthaste.message limit 1",
      () => `rows of messages without facts: message-00000000-0000-4000-8000-000000000001`
    ],
    [
      "a lane that obeys another circuit",
      (at) => `update posthaste.lane set circuit = 'CLOSED' where lane = '${at.circuit.slice(8)}'`,
      (at) => `circuits: ${at.circuit}`
    ],
    [
      "an event that is in no list",
      (at) => `delete from posthaste.publication where id = '${at.told}'`,
      (at) => `events: event-${at.told}`
    ],
    [
      "an event's body that is gone",
      (at) => `delete from posthaste.shared_body where event_id = '${at.told}'`,
      (at) => `events: event-${at.told}`
    ],
    [
      "an event's body that nobody has",
      (at) => `update posthaste.shared_body set held = false where event_id = '${at.unwanted}'`,
      (at) => `events: event-${at.unwanted}`
    ],
    [
      "an event's fact that its law forbids",
      (at) =>
        `update posthaste.event set name = 'EventErased@1', data = '{"orgId":"o","reason":null}' where stream = 'event-${at.told}'`,
      (at) => `laws: event-${at.told}, version 1: `
    ],
    [
      "counts that are not those of the list",
      (at) =>
        `update posthaste.message_count set count = count + 1 where status = 'DELIVERED' and org_id = '${at.orgId}'`,
      (at) => `counts: ${at.orgId}`
    ]
  ]

  describe("on a store with all of them", () => {
    let found: ReadonlyArray<string> = []
    let stores: ReadonlyArray<Populated> = []
    let left: ReadonlyArray<string> = []

    beforeAll(
      () =>
        Effect.runPromise(
          Effect.scoped(
            Effect.gen(function* () {
              const url = yield* freshDatabase
              const sql = yield* sqlOn(url)
              yield* inStore(
                url,
                Effect.gen(function* () {
                  stores = yield* Effect.forEach(corruptions, () => populated)
                  yield* projectAll
                  expect((yield* verify).violations).toEqual([])
                  for (const [nth, [, plant]] of corruptions.entries()) {
                    yield* Effect.promise(() => sql(plant(stores[nth]!)))
                  }
                  found = (yield* verify).violations
                  yield* repair
                  left = (yield* verify).violations
                })
              )
            })
          )
        ),
      300_000
    )

    for (const [nth, [what, , violation]] of corruptions.entries()) {
      it(`names ${what}`, () => {
        expect(found).toContainEqual(expect.stringContaining(violation(stores[nth]!)))
      })
    }

    it("repairs the queue where the facts allow it, and names the rest again", () => {
      const isOfQueue = (violation: string) => violation.startsWith("queue: ")
      expect(found.filter(isOfQueue).length).toBeGreaterThan(8)
      expect(left.filter(isOfQueue)).toEqual([])
      // An event that was in no list is in it again.
      const told = corruptions.findIndex(([what]) => what === "an event that is in no list")
      expect([...left.filter((each) => !isOfQueue(each)), `events: event-${stores[told]!.told}`].toSorted()).toEqual(
        found.filter((each) => !isOfQueue(each)).toSorted()
      )
    })

    it("accuses nothing else", () => {
      const planted = corruptions.map(([, , violation], nth) => violation(stores[nth]!))
      const of = (what: string) => stores[corruptions.findIndex(([each]) => each === what)]!
      const more = found.filter((each) => !planted.some((one) => each.startsWith(one)) && !each.startsWith("counts: "))
      expect(more).toEqual([
        // Its place in the line was given to another.
        `queue: message-${of("a message that is in a line and ended").behind.id}`,
        `events: event-${of("an event's fact that its law forbids").told}`
      ])
    })
  })

  test("names a line whose head nobody was given", (url) =>
    Effect.scoped(
      Effect.gen(function* () {
        const sql = yield* sqlOn(url)
        yield* inStore(
          url,
          Effect.gen(function* () {
            const { behind } = yield* populated
            yield* Effect.promise(() => sql("delete from posthaste.line_entry where state = 'GIVEN'"))
            expect((yield* verify).violations).toContainEqual(expect.stringContaining(`lines: lane ${behind.lane}`))
          })
        )
      })
    ))
})

/** What a store is made of that follows from facts, in a form that can be compared. */
const derivedRows = async (sql: Sql) => ({
  ready: await sql("select * from posthaste.ready order by 1, 2, 3"),
  lines: await sql(
    "select message_id, lane, line, row_number() over (partition by lane, line order by nth), state, due_at, version, epoch, attempt from posthaste.line_entry order by 1"
  ),
  claims: await sql(
    "select m.* from posthaste.claim c, unnest(c.messages, c.lanes, c.dues, c.versions, c.epochs, c.attempts) m(message, lane, due, version, epoch, attempt) order by 1"
  ),
  views: await sql("select * from posthaste.message_view order by id"),
  counts: await sql("select * from posthaste.message_count order by org_id, channel, status"),
  circuits: await sql(
    "select lane, circuit, generation, failures, blocked_until, circuit_stream from posthaste.lane where generation > 0 order by 1"
  ),
  replays: await sql(
    "select id, org_id, selection::text, reason, matched, requested_at from posthaste.replay order by 1"
  ),
  bodies: await sql("select *, data::text, null as accepted_at from posthaste.message order by 1"),
  responses: await sql(
    "select *, data::text, headers::text from posthaste.detail where data is not null or body is not null order by 1, 2"
  ),
  keys: await sql("select org_id, key, message_id, request_hash from posthaste.idempotency order by 1, 2")
})

describe("an export", () => {
  test("imported into an empty store makes the same store, and is the same export again", (url) =>
    Effect.scoped(
      Effect.gen(function* () {
        const one = yield* sqlOn(url)
        const first = yield* inStore(
          url,
          Effect.gen(function* () {
            const { held } = yield* populated
            // What was claimed and not begun waits again elsewhere.
            const putBack = `select posthaste.put_back(batch, messages) from posthaste.claim where '${held.id}' = any (messages)`
            yield* Effect.promise(() => one(putBack))
            yield* projectAll
            return yield* exported(true)
          })
        )
        const other = yield* freshDatabase
        const second = yield* inStore(
          other,
          Effect.gen(function* () {
            const taken = yield* imported(first)
            expect(taken).toEqual({ known: 0, written: first.length - 2, isOlder: false })
            expect((yield* verify).violations).toEqual([])
            return yield* exported(true)
          })
        )
        expect(second).toEqual(first)
        const two = yield* sqlOn(other)
        const [was, is] = yield* Effect.promise(() => Promise.all([derivedRows(one), derivedRows(two)]))
        // The replay is listed though nobody asked for it by way of the port here.
        expect({ ...is, replays: [] }).toEqual({ ...was, replays: [] })
        expect(is.replays).toHaveLength(1)
      })
    ))

  test("leaves out bodies and answers unless they are asked for", (url) =>
    Effect.scoped(
      Effect.gen(function* () {
        const lines = yield* inStore(url, Effect.andThen(populated, exported(false)))
        expect(lines.join("\n")).not.toMatch(/"body":|"responses":|said “no”/)
        expect(lines.filter((line) => line.includes('"key":{'))).toHaveLength(2)
        const other = yield* freshDatabase
        yield* inStore(
          other,
          Effect.gen(function* () {
            yield* imported(lines)
            const { violations, verified } = yield* verify
            expect(violations).toEqual([])
            expect(verified.bodiless).toBe(12)
            expect(yield* exported(false)).toEqual(lines)
          })
        )
      })
    ))

  test("is refused by a store that holds another history, which stays as it is", (url) =>
    Effect.scoped(
      Effect.gen(function* () {
        const lines = yield* inStore(url, Effect.andThen(populated, exported(false)))
        const other = yield* freshDatabase
        yield* inStore(
          other,
          Effect.gen(function* () {
            yield* (yield* EventStore).append([opened().entry])
            expect(yield* Effect.flip(imported(lines))).toMatchObject({ _tag: "OtherHistory", position: 1 })
            expect((yield* (yield* EventStore).extent).facts).toBe(1)
          })
        )
      })
    ))

  test("goes on where it was cut off, and changes nothing when it is imported again", (url) =>
    Effect.scoped(
      Effect.gen(function* () {
        const lines = yield* inStore(url, Effect.andThen(populated, exported(true)))
        const other = yield* freshDatabase
        yield* inStore(
          other,
          Effect.gen(function* () {
            expect(yield* Effect.flip(imported(lines.slice(0, 20)))).toMatchObject({ _tag: "NotAnExport", line: 20 })
            expect((yield* (yield* EventStore).extent).facts).toBe(19)
            expect(yield* imported(lines)).toEqual({ known: 19, written: lines.length - 21, isOlder: false })
            const all = lines.length - 2
            expect(yield* imported(lines)).toEqual({ known: all, written: 0, isOlder: false })
            expect((yield* verify).violations).toEqual([])
            yield* (yield* EventStore).append([opened().entry])
            expect(yield* imported(lines)).toEqual({ known: all, written: 0, isOlder: true })
          })
        )
      })
    ))
})
