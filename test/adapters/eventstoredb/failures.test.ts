/**
 * What the adapter makes of a server that fails, of a process that dies in the middle, and of two who do the same. These
 * need a server that fails when told to, so they run against the stand-in always.
 */
import { describe, expect, it } from "@effect/vitest"
import { Context, Deferred, type Duration, Effect, Fiber, Layer, Redacted, Schedule, type Scope } from "effect"
import pg from "pg"
import * as EventStoreDb from "../../../src/adapters/eventstoredb/EventStoreDb.ts"
import * as EventStoreDbEventStore from "../../../src/adapters/eventstoredb/EventStoreDbEventStore.ts"
import * as EventStoreDbPorts from "../../../src/adapters/eventstoredb/EventStoreDbPorts.ts"
import * as EventStoreDbRetention from "../../../src/adapters/eventstoredb/EventStoreDbRetention.ts"
import { tidy } from "../../../src/adapters/eventstoredb/tidy.ts"
import * as PostgresPorts from "../../../src/adapters/postgres/PostgresPorts.ts"
import { mendMessages } from "../../../src/application/deliver/mendMessages.ts"
import { Bodies } from "../../../src/application/ports/Bodies.ts"
import { Destinations } from "../../../src/application/ports/Destinations.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { Ledger } from "../../../src/application/ports/Ledger.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import { Retention } from "../../../src/application/ports/Retention.ts"
import { SetAside } from "../../../src/application/ports/SetAside.ts"
import { journalOf } from "../../../src/domain/destination/changes.ts"
import * as Channels from "../../../src/setup/channels.ts"
import { asWorker } from "../../contracts/deliver/claims.ts"
import { makeEndpoint, webhook } from "../../contracts/destinations/samples.ts"
import { ended, projected } from "../../contracts/replays/deadLetterSamples.ts"
import { allRead, forgetMessages, sum } from "../../contracts/retention/forgetting.ts"
import {
  delivered,
  endedBefore,
  inMillis,
  newLane,
  newOrg,
  next,
  now,
  opened,
  type StorePorts,
  settled,
  started,
  unreachable
} from "../../contracts/sample.ts"
import { refused } from "../../contracts/written.ts"
import { eventStore, eventsOf, type Fault, json } from "../../servers/eventStore.ts"
import { freshDatabase } from "../../servers/freshDatabase.ts"

type Change = (ledger: Ledger["Service"]) => Partial<Ledger["Service"]>

/** One database and one server. Each `process` is another Posthaste on both. */
const world = (version?: string) =>
  Effect.gen(function* () {
    const server = yield* eventStore(version === undefined ? {} : { version })
    const url = yield* freshDatabase
    const streams = Redacted.make(server.url)
    const postgres = () =>
      PostgresPorts.withoutStreams({ url, encryptionKey: Redacted.make(new Uint8Array(32).fill(7)) })
    return {
      server,
      /** A whole one. */
      process: Layer.build(
        EventStoreDbPorts.layer(streams).pipe(Layer.provideMerge(Layer.suspend(postgres)), Layer.merge(Channels.unused))
      ),
      /** One that appends but never follows the log, and whose ledger does as the test says. */
      crippled: (change: Change = () => ({})) => {
        const ledger = Layer.effect(
          Ledger,
          Effect.map(Ledger, (inner) => Ledger.of({ ...inner, ...change(inner) }))
        )
        return Layer.build(
          EventStoreDbEventStore.layer.pipe(
            Layer.provide(EventStoreDb.layer(streams, "fail")),
            Layer.provideMerge(Layer.provideMerge(ledger, postgres()))
          )
        )
      },
      sql: (statement: string) =>
        Effect.promise(async () => {
          const client = new pg.Client({ connectionString: Redacted.value(url) })
          await client.connect()
          const { rows } = await client.query(statement)
          await client.end()
          return rows as ReadonlyArray<Record<string, unknown>>
        })
    }
  })

const test = (rule: string, body: Effect.Effect<void, unknown, Scope.Scope>) => it.live(rule, () => Effect.scoped(body))

/** Looks again and again, for as long as a busy machine may need. */
const until = <A, E, R>(look: Effect.Effect<A, E, R>, holds: (found: A) => boolean) =>
  look.pipe(Effect.repeat({ until: holds, schedule: Schedule.spaced("20 millis") }), Effect.timeout("2 minutes"))

/** A process that dies once what it appends is in the server, before it changes the queue. */
const dying = Effect.fnUntraced(function* (crippled: Effect.Success<ReturnType<typeof world>>["crippled"]) {
  const died = yield* Deferred.make<void>()
  const context = yield* crippled(() => ({
    apply: () => Effect.andThen(Deferred.succeed(died, undefined), Effect.never)
  }))
  const store = Context.get(context, EventStore)
  return {
    context,
    append: (entry: Parameters<typeof store.append>[0][number]) =>
      Effect.raceFirst(store.append([entry]), Deferred.await(died))
  }
})

const streamOf = ({ after }: { after: { id: string } }) => `message-${after.id}`

/** What can be claimed within `atMost`: as soon as something can, and then what comes in a little while more. */
const claimedWithin = (context: Context.Context<Queue>, atMost: Duration.Input) =>
  Effect.gen(function* () {
    const queue = Context.get(context, Queue)
    const found: Array<string> = []
    const look = Effect.map(queue.claim(asWorker("test")), (claim) => {
      found.push(...(claim?.messages ?? []).map(({ messageId }) => messageId))
    })
    yield* look.pipe(
      Effect.andThen(Effect.sleep("30 millis")),
      Effect.repeat({ until: () => found.length > 0 }),
      Effect.timeoutOption(atMost)
    )
    yield* Effect.sleep("300 millis")
    yield* look
    return found
  })

const followed = ({ sql }: Effect.Success<ReturnType<typeof world>>) =>
  Effect.map(
    sql("select position, facts::int from posthaste.log_follower where name = 'queue'"),
    ([row]) => row ?? { position: null, facts: 0 }
  )

describe("an append", () => {
  for (const fault of [
    "lostAck",
    "lostAnswer",
    "notLeader",
    "unavailable",
    "deadlineExceeded",
    "unknown"
  ] as const satisfies ReadonlyArray<Fault>) {
    test(
      `that meets ${fault} is written once and answered as written`,
      Effect.gen(function* () {
        const { server, crippled } = yield* world()
        const store = Context.get(yield* crippled(), EventStore)
        const queued = opened()
        const start = started(queued.after)
        server.inject({ rpc: "append", fault })
        expect(yield* store.append([queued.entry])).toEqual([{ type: "Appended", version: 1 }])
        server.inject({ rpc: "append", fault })
        expect(yield* store.append([start.entry])).toEqual([{ type: "Appended", version: 2 }])
        // A busy machine may miss the deadline of a further try.
        expect(server.calls("append")).toBeGreaterThanOrEqual(4)
        expect(server.calls("append")).toBeLessThanOrEqual(8)
        expect(eventsOf(server, streamOf(queued)).map(({ type }) => type)).toEqual([
          "MessageQueued@1",
          "AttemptStarted@1"
        ])
      })
    )
  }

  test(
    "that loses its ack and then its idempotence is found by its own ids in the stream",
    Effect.gen(function* () {
      const { server, crippled } = yield* world()
      const store = Context.get(yield* crippled(), EventStore)
      const queued = opened()
      server.inject({ rpc: "append", fault: "lostAck" })
      server.inject({ rpc: "append", fault: "forgetsIds" })
      expect(yield* store.append([queued.entry])).toEqual([{ type: "Appended", version: 1 }])
    })
  )

  test(
    "that somebody else was faster than is a conflict, however its answer came",
    Effect.gen(function* () {
      const { server, crippled } = yield* world()
      const store = Context.get(yield* crippled(), EventStore)
      const queued = opened()
      yield* store.append([queued.entry])
      yield* store.append([started(queued.after).entry])
      server.inject({ rpc: "append", fault: "unavailable" })
      expect(yield* store.append([started(queued.after).entry])).toEqual([{ type: "VersionConflict" }])
      expect(eventsOf(server, streamOf(queued))).toHaveLength(2)
    })
  )

  test(
    "leaves facts that people can read: name, data, who and when",
    Effect.gen(function* () {
      const { server, crippled } = yield* world()
      const store = Context.get(yield* crippled(), EventStore)
      const queued = opened({ correlationId: "order 17" })
      yield* store.append([{ ...queued.entry, actor: "key_17" }])
      const [event] = eventsOf(server, streamOf(queued))
      expect(event).toMatchObject({ type: "MessageQueued@1", contentType: "application/json", revision: 0 })
      expect(event!.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5/)
      expect(json(event!.data)).toMatchObject({ eventType: "invoice.paid", orgId: expect.any(String) })
      expect(json(event!.metadata)).toEqual({
        at: new Date(queued.entry.at.epochMilliseconds).toISOString(),
        actor: "key_17",
        $correlationId: "order 17"
      })
    })
  )

  test(
    "works with a server of 20.10, which knows neither features nor BatchAppend",
    Effect.gen(function* () {
      const { server, process } = yield* world("20.10.5")
      const context = yield* process
      const queued = opened()
      yield* Context.get(context, EventStore).append([queued.entry])
      expect(yield* claimedWithin(context, "1 minute")).toEqual([queued.after.id])
      expect(eventsOf(server, streamOf(queued))).toHaveLength(1)
    })
  )
})

describe("a server that does not answer", () => {
  for (const fault of ["silent", "unavailable"] as const) {
    test(
      `because it is ${fault} makes appends and loads fail within seconds, and nothing is accepted`,
      Effect.gen(function* () {
        const { server, process } = yield* world()
        const context = yield* process
        const store = Context.get(context, EventStore)
        const queued = opened()
        server.inject({ rpc: "append", fault, times: 1_000 })
        server.inject({ rpc: "read", fault, times: 1_000 })
        const began = Date.now()
        const [appending, loading] = yield* Effect.all(
          [Effect.flip(store.append([queued.entry])), Effect.flip(store.load(queued.after.id))],
          { concurrency: 2 }
        )
        expect([appending._tag, loading._tag]).toEqual(["StoreUnavailable", "StoreUnavailable"])
        // Three seconds and a half by itself. A busy machine takes longer, but not for ever.
        expect(Date.now() - began).toBeLessThan(20_000)
        // Nor does it go on asking: at most every 250 ms, for 1.5 s.
        expect(server.calls("append")).toBeLessThanOrEqual(12)
        expect(eventsOf(server, streamOf(queued))).toEqual([])
        // An append that was given up may still be on its way: it fares no better.
        server.heal("read")
        expect(yield* Context.get(context, Queue).claim(asWorker("test"))).toBeNull()
        expect((yield* store.load(queued.after.id)).version).toBe(0)
      })
    )
  }

  test(
    "because it is down is used again when it is back, without anybody doing anything",
    Effect.gen(function* () {
      const { server, process } = yield* world()
      const context = yield* process
      const store = Context.get(context, EventStore)
      const [before, during, after] = [opened(), opened(), opened()]
      yield* store.append([before.entry])
      server.down()
      const failed = yield* Effect.forEach(
        Array.from({ length: 100 }, () => during.entry),
        (entry) => Effect.flip(store.append([{ ...entry, messageId: opened().after.id }])),
        { concurrency: "unbounded" }
      )
      expect(new Set(failed.map(({ _tag }) => _tag))).toEqual(new Set(["StoreUnavailable"]))
      yield* Effect.promise(server.up)
      const again = Effect.retry(store.append([after.entry]), { times: 20 })
      expect(yield* again).toEqual([{ type: "Appended", version: 1 }])
      expect((yield* store.load(before.after.id)).version).toBe(1)
      expect([...(yield* claimedWithin(context, "1 minute"))].toSorted()).toEqual(
        [before.after.id, after.after.id].toSorted()
      )
      // The follower is at it again too.
      yield* until(store.extent, ({ facts }) => facts === 2)
    })
  )
})

describe("a process that dies between append and queue change", () => {
  test(
    "loses nothing: whoever follows the log puts the message in the queue, once",
    Effect.gen(function* () {
      const { crippled, process } = yield* world()
      const queued = opened({ orderingKey: null })
      const dead = yield* dying(crippled)
      yield* dead.append(queued.entry)
      expect(yield* Context.get(dead.context, Queue).claim(asWorker("test"))).toBeNull()
      const alive = yield* process
      expect(yield* claimedWithin(alive, "1 minute")).toEqual([queued.after.id])
      expect(yield* Context.get(alive, Bodies).load(queued.after.id)).toBe('{"number":12345678901234567890}')
    })
  )

  test(
    "after a settlement loses neither the retry nor the answer",
    Effect.gen(function* () {
      const { crippled, process, server } = yield* world()
      const whole = yield* crippled()
      const store = Context.get(whole, EventStore)
      const queued = opened()
      yield* store.append([queued.entry])
      const claim = yield* Context.get(whole, Queue).claim(asWorker("test", "200 millis"))
      const start = started(queued.after, { fence: claim!.batch })
      yield* store.append([start.entry])
      const failed = settled(start.after, unreachable(), {
        fence: claim!.batch,
        response: { epoch: 1, attempt: 1, body: "come back later", headers: null }
      })
      yield* (yield* dying(crippled)).append(failed.entry)
      expect(eventsOf(server, streamOf(queued))).toHaveLength(3)
      const alive = yield* process
      expect(yield* claimedWithin(alive, "1 minute")).toEqual([queued.after.id])
      expect((yield* Context.get(alive, Bodies).responses(queued.after.id)).answers).toEqual(
        new Map([["1/1", { body: "come back later", headers: null }]])
      )
    })
  )

  test(
    "after a replay with another body never sends the one before",
    Effect.gen(function* () {
      const { crippled, process } = yield* world()
      const whole = yield* crippled()
      const store = Context.get(whole, EventStore)
      const queued = opened({ body: '"old"', retry: { strategy: "fixed", baseMs: 0, attemptsMax: 1 } })
      const start = started(queued.after)
      const dead = settled(start.after, unreachable())
      for (const { entry } of [queued, start, dead]) yield* store.append([entry])
      yield* Context.get(whole, Queue).claim(asWorker("test"))
      const again = next(
        dead.after,
        { type: "ReplayMessage", now: now(), reason: null, edited: true },
        { opening: { body: '"new"', idempotency: null } }
      )
      yield* (yield* dying(crippled)).append(again.entry)
      const bodies = Context.get(whole, Bodies)
      expect(yield* bodies.load(queued.after.id)).toBe('"old"')
      expect(yield* Context.get(whole, Queue).claim(asWorker("test"))).toBeNull()
      const alive = yield* process
      expect(yield* claimedWithin(alive, "1 minute")).toEqual([queued.after.id])
      expect(yield* bodies.load(queued.after.id)).toBe('"new"')
    })
  )
})

describe("a process that dies between reservation and append", () => {
  const orgId = newOrg()
  const keyed = (requestHash: string) => opened({ orgId, idempotency: { orgId, key: "order 17", requestHash } })

  test(
    "leaves a key that is finished by whoever repeats the request, under the id that was reserved",
    Effect.gen(function* () {
      const { crippled, process, server, sql } = yield* world()
      const first = keyed("same")
      server.inject({ rpc: "append", fault: "silent", times: 100 })
      yield* Effect.scoped(
        Effect.flatMap(crippled(), (died) => Effect.flip(Context.get(died, EventStore).append([first.entry])))
      )
      // Until another process is there, so that a try of the first that was still on its way has met its fate too.
      const alive = yield* process
      server.heal()
      const store = Context.get(alive, EventStore)
      expect(yield* store.acceptedUnder(orgId, "order 17")).toBeNull()
      yield* sql("update posthaste.idempotency set at = at - interval '1 minute'")
      expect(yield* store.append([keyed("other").entry])).toEqual([
        { type: "DuplicateKey", messageId: first.after.id, requestHash: "same" }
      ])
      expect(eventsOf(server, streamOf(first))).toEqual([])
      expect(yield* store.append([keyed("same").entry, keyed("same").entry])).toEqual([
        { type: "DuplicateKey", messageId: first.after.id, requestHash: "same" },
        { type: "DuplicateKey", messageId: first.after.id, requestHash: "same" }
      ])
      expect(eventsOf(server, streamOf(first))).toHaveLength(1)
      expect(yield* claimedWithin(alive, "1 minute")).toEqual([first.after.id])
      expect(yield* Context.get(alive, Bodies).load(first.after.id)).toBe('{"number":12345678901234567890}')
    })
  )

  test(
    "or only stood still, meets the message that somebody else finished for it",
    Effect.gen(function* () {
      const { crippled, process, server, sql } = yield* world()
      const first = keyed("same")
      const reserved = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      const state = yield* crippled((ledger) => ({
        reserve: (intents) =>
          Effect.tap(ledger.reserve(intents), () =>
            Effect.andThen(Deferred.succeed(reserved, undefined), Deferred.await(goOn))
          )
      }))
      const appending = yield* Effect.forkChild(Context.get(state, EventStore).append([first.entry]))
      yield* Deferred.await(reserved)
      yield* sql("update posthaste.idempotency set at = at - interval '1 minute'")
      const alive = yield* process
      const duplicate = { type: "DuplicateKey", messageId: first.after.id, requestHash: "same" }
      expect(yield* Context.get(alive, EventStore).append([keyed("same").entry])).toEqual([duplicate])
      yield* Deferred.succeed(goOn, undefined)
      expect(yield* Fiber.join(appending)).toEqual([duplicate])
      expect(eventsOf(server, streamOf(first))).toHaveLength(1)
      expect(yield* claimedWithin(alive, "1 minute")).toEqual([first.after.id])
    })
  )
})

describe("a claim", () => {
  test(
    "is on the disk of Postgres before its attempt is started in EventStoreDB",
    Effect.gen(function* () {
      const { crippled, server, sql } = yield* world()
      const context = yield* crippled()
      const store = Context.get(context, EventStore)
      const queued = opened()
      yield* store.append([queued.entry])
      const claim = yield* Context.get(context, Queue).claim(asWorker("test"))
      const [claimed] = yield* sql("select pg_current_wal_insert_lsn() as at")
      server.inject({ rpc: "append", fault: { slowMs: 100 } })
      const gate = { lane: queued.after.lane, generation: 0 }
      const starting = yield* Effect.forkChild(
        store.append([started(queued.after, { fence: claim!.batch, gate }).entry])
      )
      yield* Effect.sleep("1 millis").pipe(Effect.repeat({ until: () => server.calls("append") === 2 }))
      expect(yield* sql(`select pg_current_wal_flush_lsn() >= '${claimed!["at"]}' as flushed`)).toEqual([
        { flushed: true }
      ])
      yield* Fiber.join(starting)
    })
  )
})

describe("a queue change that comes late", () => {
  for (const orderingKey of [null, "customer 17"]) {
    test(
      `does not bring back a message that has moved on (${orderingKey === null ? "no" : "with an"} ordering key)`,
      Effect.gen(function* () {
        const { crippled, process, sql } = yield* world()
        const goOn = yield* Deferred.make<void>()
        const slow = yield* crippled((ledger) => ({
          apply: (stored, begun) => Effect.andThen(Deferred.await(goOn), ledger.apply(stored, begun))
        }))
        const alive = yield* process
        const store = Context.get(alive, EventStore)
        const queue = Context.get(alive, Queue)
        const queued = opened({ orderingKey, destination: newLane() })
        const late = yield* Effect.forkChild(Context.get(slow, EventStore).append([queued.entry]))
        expect(yield* claimedWithin(alive, "1 minute")).toEqual([queued.after.id])
        const start = started(queued.after)
        const failed = settled(start.after, unreachable(3_600_000))
        for (const { entry } of [start, failed]) yield* store.append([entry])
        yield* Deferred.succeed(goOn, undefined)
        expect(yield* Fiber.join(late)).toEqual([{ type: "Appended", version: 1 }])
        yield* Effect.sleep("400 millis")
        expect(yield* queue.claim(asWorker("test"))).toBeNull()
        expect(yield* sql("select version, attempt from posthaste.ready")).toEqual([{ version: 3, attempt: 1 }])
      })
    )
  }

  test(
    "by more than a minute is left to whoever follows the log",
    Effect.gen(function* () {
      const { crippled, sql } = yield* world()
      const late = yield* crippled((ledger) => ({
        apply: (stored, begun) => ledger.apply(stored, `${begun}`.replace(/^\d{4}/, "2020"))
      }))
      yield* Context.get(late, EventStore).append([opened().entry])
      expect(yield* sql("select 1 from posthaste.ready")).toEqual([])
    })
  )
})

describe("a line", () => {
  test(
    "waits for an append that takes long, and goes on without one that never comes",
    Effect.gen(function* () {
      const place = yield* world()
      const { server } = place
      const context = yield* place.process
      const store = Context.get(context, EventStore)
      const [destination, dead] = [newLane(), newLane()]
      const line = () => opened({ destination, orderingKey: "k" })
      const [slow, quick] = [line(), line()]
      server.inject({ rpc: "append", fault: { slowMs: 700 }, stream: streamOf(slow) })
      yield* store.append([slow.entry, quick.entry])
      expect(yield* claimedWithin(context, "1 minute")).toEqual([slow.after.id])
      // The process that reserved a place is gone before it appended.
      const [never, next] = [
        opened({ destination: dead, orderingKey: "k" }),
        opened({ destination: dead, orderingKey: "k" })
      ]
      yield* Context.get(context, Ledger).reserve([
        { id: crypto.randomUUID(), entry: never.entry, isPersonal: () => false }
      ])
      yield* store.append([next.entry])
      expect(yield* Context.get(context, Queue).claim(asWorker("early"))).toBeNull()
      expect(yield* claimedWithin(context, "1 minute")).toEqual([next.after.id])
      const places = yield* place.sql(`select message_id from posthaste.line_entry where lane = '${dead}'`)
      expect(places).toEqual([{ message_id: next.after.id }])
    })
  )
})

describe("whoever follows the log", () => {
  test(
    "is one process at a time, and another one takes its place when it ends",
    Effect.gen(function* () {
      const place = yield* world()
      const { process, sql } = place
      const holder = Effect.map(
        sql("select holder from posthaste.log_follower where name = 'queue'"),
        ([row]) => row?.["holder"] ?? null
      )
      const first = yield* Effect.scoped(
        Effect.gen(function* () {
          yield* process
          const one = yield* until(holder, (name) => name !== null)
          yield* process
          yield* Effect.sleep("1500 millis")
          expect(yield* holder).toBe(one)
          return one
        })
      )
      const alive = yield* process
      yield* until(holder, (name) => name !== null && name !== first)
      const queued = opened()
      yield* Context.get(alive, EventStore).append([queued.entry])
      yield* until(followed(place), ({ facts }) => facts === 1)
    })
  )

  test(
    "gets past events of others, by the server's checkpoints, and past messages that are not ours",
    Effect.gen(function* () {
      const place = yield* world()
      const { process, server } = place
      const context = yield* process
      const proposed = (type: string) => ({
        id: crypto.randomUUID(),
        type,
        contentType: "application/json",
        data: Buffer.from("{}"),
        metadata: Buffer.from("")
      })
      server.log.append(`message-${opened().after.id}`, "any", [proposed("MessageQueued@1")])
      server.log.append("message-of-somebody", "any", [proposed("Hello")])
      for (let i = 0; i < 700; i++) server.log.append(`invoice-${i}`, "any", [proposed("InvoicePaid")])
      const isPast = ({ position }: Record<string, unknown>) =>
        position !== null && BigInt(String(position).split("/")[0]!) > server.log.all[400]!.position
      expect(yield* until(followed(place), isPast)).toMatchObject({ facts: 0 })
      const queued = opened()
      yield* Context.get(context, EventStore).append([queued.entry])
      expect((yield* Context.get(context, EventStore).readAll(null, 10)).map(({ messageId }) => messageId)).toEqual([
        queued.after.id
      ])
    })
  )

  for (const kind of ["impossible", "unreadable"]) {
    test(
      `sets a message with an ${kind} history aside, serves all others, and serves it once it can be read`,
      Effect.gen(function* () {
        const place = yield* world()
        const { crippled, process, server } = place
        const [broken, sound] = [opened(), opened()]
        yield* (yield* dying(crippled)).append(broken.entry)
        const [first] = eventsOf(server, streamOf(broken))
        const wrong = kind === "impossible" ? first! : { ...first!, type: "MessageWeighed@1" }
        server.log.append(streamOf(broken), 0, [{ ...wrong, id: crypto.randomUUID() }])
        yield* (yield* dying(crippled)).append(sound.entry)
        const context = yield* process
        const ids = [broken.after.id, sound.after.id]
        // What was readable of it may be handed out before the rest is met.
        const waiting = yield* claimedWithin(context, "1 minute")
        expect(waiting).toContain(sound.after.id)
        const setAside = Context.get(context, SetAside)
        const found = yield* setAside
          .find(ids)
          .pipe(
            Effect.repeat({ until: (all) => all.size > 0, schedule: Schedule.spaced("20 millis") }),
            Effect.timeout("1 minute")
          )
        expect([...found.keys()]).toEqual([broken.after.id])
        expect(found.get(broken.after.id)!.detail).toContain("version 2")
        // Tried again, it is judged by its facts alone.
        const { setAside: again } = yield* Effect.provideContext(mendMessages([broken.after.id]), context)
        expect(again).toMatchObject([{ reason: kind === "impossible" ? "unlawful" : "unreadable" }])
        server.log.repair(streamOf(broken), 1)
        yield* Effect.provideContext(mendMessages([broken.after.id], { strays: true }), context)
        expect((yield* setAside.find(ids)).size).toBe(0)
        if (!waiting.includes(broken.after.id)) {
          expect(yield* claimedWithin(context, "1 minute")).toEqual([broken.after.id])
        }
      })
    )
  }

  test(
    "passes over what is left of a message that was forgotten while its facts were read",
    Effect.gen(function* () {
      const place = yield* world()
      const { crippled, process, server, sql } = place
      const queued = opened()
      const start = started(queued.after)
      const end = settled(start.after, delivered)
      const store = Context.get(yield* crippled(), EventStore)
      for (const { entry } of [queued, start, end]) yield* store.append([{ ...entry, fence: null }])
      const { length } = eventsOf(server, streamOf(queued))
      // It is known here still, and its stream is gone there.
      server.log.delete(streamOf(queued), "softly")
      yield* process
      yield* until(followed(place), ({ facts }) => facts === length)
      expect(yield* sql("select message_id, detail from posthaste.set_aside")).toEqual([])
    })
  )

  test(
    "goes on where it was when its subscription breaks",
    Effect.gen(function* () {
      const place = yield* world()
      const { process, server } = place
      const context = yield* process
      const store = Context.get(context, EventStore)
      yield* store.append([opened().entry])
      yield* until(followed(place), ({ facts }) => facts === 1)
      server.down()
      yield* Effect.promise(server.up)
      const { entry } = opened()
      yield* Effect.retry(store.append([entry]), { times: 20 })
      yield* until(followed(place), ({ facts }) => facts === 2)
    })
  )
})

describe("a dead letter whose life is over", () => {
  // A sweep looks at one org.
  const orgId = newOrg()
  const sweptAt = Effect.fnUntraced(function* (context: Context.Context<StorePorts>) {
    const before = { ...endedBefore(inMillis(-60_000)), dead: inMillis(60_000) }
    return sum(yield* Effect.provideContext(Effect.andThen(allRead, forgetMessages(before)), context))
  })
  const dead = (context: Context.Context<StorePorts>) =>
    Effect.gen(function* () {
      const sample = yield* ended(refused(), inMillis(-1_000), { orgId })
      yield* projected([sample])
      return sample
    }).pipe(Effect.provideContext(context))

  test(
    "stays when it was replayed before its list knows it, and is forgotten by the next pass when the one before was cut off",
    Effect.gen(function* () {
      const { process, server } = yield* world()
      const context = yield* process
      const store = Context.get(context, EventStore)
      const cutOff = yield* dead(context)
      const replayed = yield* dead(context)
      const again = next(replayed, { type: "ReplayMessage", now: now(), reason: null })
      yield* store.append([again.entry])
      // The pass that ended its stream had no time to say so.
      server.log.delete(`message-${cutOff.id}`, "forEver")
      expect(yield* sweptAt(context)).toBe(1)
      expect((yield* store.load(replayed.id)).version).toBe(again.after.version)
      expect(yield* Context.get(context, Bodies).load(cutOff.id)).toBeNull()
    })
  )

  test(
    "can't be replayed any more from the moment its stream ends",
    Effect.gen(function* () {
      const { process, server } = yield* world()
      const context = yield* process
      const store = Context.get(context, EventStore)
      const sample = yield* dead(context)
      server.log.delete(`message-${sample.id}`, "forEver")
      const again = next(sample, { type: "ReplayMessage", now: now(), reason: null })
      expect(yield* store.append([again.entry])).toEqual([{ type: "VersionConflict" }])
      expect((yield* store.load(sample.id)).version).toBe(0)
    })
  )
})

describe("a journal that was written in Postgres", () => {
  /** Appends and sweeps, and neither copies journals nor tidies up: what it does not tell the server, nobody does. */
  const sweeping = Effect.fnUntraced(function* ({ crippled, server }: Effect.Success<ReturnType<typeof world>>) {
    const alone = yield* crippled()
    const db = EventStoreDb.layer(Redacted.make(server.url), "fail")
    const retention = yield* Effect.provide(Retention, EventStoreDbRetention.layer.pipe(Layer.provide(db))).pipe(
      Effect.provideContext(alone)
    )
    const tidyUp = tidy(0n).pipe(Effect.provide(db), Effect.provideContext(alone), Effect.retry({ times: 20 }))
    return { alone, retention, tidyUp, journals: Context.get(alone, Journals) }
  })
  const versionsIn = (server: Effect.Success<ReturnType<typeof eventStore>>, stream: string) =>
    Effect.sync(() =>
      eventsOf(server, stream)
        .map(({ revision }) => revision + 1)
        .join()
    )
  /** Lives until the server has the journal as far as this, and whoever copied it has said so. */
  const copied = (
    { process, server, sql }: Effect.Success<ReturnType<typeof world>>,
    stream: string,
    versions: string
  ) => {
    const copiedTo = sql("select position from posthaste.log_follower where name = 'journals'")
    const end = sql(
      "select tx || ':' || position as position from posthaste.event order by tx desc, position desc limit 1"
    )
    const found = Effect.all([versionsIn(server, stream), copiedTo, end])
    return Effect.scoped(
      Effect.andThen(
        process,
        until(found, ([there, [to], [last]]) => there === versions && to?.["position"] === last?.["position"])
      )
    )
  }

  test(
    "is gone there too with the destination that it tells of",
    Effect.gen(function* () {
      const place = yield* world()
      const { server, sql } = place
      const { alone, retention, journals } = yield* sweeping(place)
      const orgId = newOrg()
      const { destination } = yield* Effect.gen(function* () {
        const destination = yield* makeEndpoint(orgId)
        yield* (yield* Destinations).remove(webhook, orgId, destination.id)
        return { destination }
      }).pipe(Effect.provideContext(alone))
      const settings = journalOf(webhook, destination.id)
      yield* copied(place, settings, "1,2")
      const prefixes = new Map([[webhook.name, webhook.journal]])
      const end = "'9223372036854775807/9223372036854775807'"
      yield* sql(`update posthaste.projection set position = ${end}`)
      yield* sql(`update posthaste.alert_progress set position = ${end}`)
      const sweep = retention.forgetDestinations(inMillis(60_000), prefixes, 100)
      yield* Effect.retry(sweep, { times: 20 })
      expect(yield* journals.load(settings)).toEqual([])
      yield* until(Effect.andThen(sweep, versionsIn(server, settings)), (versions) => versions === "")
    })
  )

  test(
    "is copied to a stream of its name, in order and once",
    Effect.gen(function* () {
      const { crippled, process, server } = yield* world()
      const postgres = Context.get(yield* crippled(), Journals)
      const fact = (n: number) => ({ name: "CircuitOpened@1", data: JSON.stringify({ n }) })
      const at = now()
      for (let i = 0; i < 30; i++) yield* postgres.append("circuit-17", i, [fact(i)], at, "operator")
      const alive = yield* process
      yield* Effect.sync(() => eventsOf(server, "circuit-17").length).pipe(
        Effect.tap(Effect.sleep("20 millis")),
        Effect.repeat({ until: (count) => count === 30 }),
        Effect.timeout("60 seconds")
      )
      // What is written through the adapter is there at once.
      yield* Context.get(alive, Journals).append("circuit-17", 30, [fact(30)], at, null)
      const events = eventsOf(server, "circuit-17")
      expect(events.map(({ data }) => json(data))).toEqual(Array.from({ length: 31 }, (_, n) => ({ n })))
      yield* Effect.sleep("700 millis")
      expect(eventsOf(server, "circuit-17")).toHaveLength(31)
      expect(
        (yield* Context.get(alive, EventStore).readAll(null, 100)).map(({ stream, version }) => [stream, version])
      ).toEqual(Array.from({ length: 31 }, (_, n) => ["circuit-17", n + 1]))
    })
  )
})
