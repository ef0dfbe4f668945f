/**
 * A server that fails, a process that dies in the middle, and two that do the same. These need a server that fails when told to, so they
 * run against the stand-in always.
 */
import { randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Redacted, Schedule, type Scope } from "effect"
import pg from "pg"
import * as EventStoreDb from "../../../src/adapters/eventstoredb/EventStoreDb.ts"
import { Bodies } from "../../../src/application/ports/Bodies.ts"
import { type Append, EventStore } from "../../../src/application/ports/EventStore.ts"
import { Events } from "../../../src/application/ports/Events.ts"
import { Parked } from "../../../src/application/ports/Parked.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import { Streams } from "../../../src/application/ports/Streams.ts"
import { EventId } from "../../../src/domain/ids.ts"
import { toRecorded } from "../../../src/domain/message/recorded.ts"
import * as Channels from "../../../src/setup/channels.ts"
import * as PostgresPorts from "../../../src/setup/postgresPorts.ts"
import { asWorker } from "../../contracts/deliver/claims.ts"
import {
  delivered,
  newLane,
  newOrg,
  next,
  now,
  opened,
  type Step,
  settled,
  started,
  unreachable
} from "../../contracts/sample.ts"
import { eventStore, eventsOf, type Fault, json } from "../../servers/eventStore.ts"
import { freshDatabase } from "../../servers/freshDatabase.ts"

type Change = (streams: Streams["Service"]) => Partial<Streams["Service"]>
const BODY = '{"number":12345678901234567890}'

/** One database and one server. Each `process` is another Posthaste on both, with streams that do as the test says. */
const world = (version?: string) =>
  Effect.gen(function* () {
    const server = yield* eventStore(version === undefined ? {} : { version })
    const url = yield* freshDatabase
    const process = (change: Change = () => ({})) => {
      const streams = Layer.effect(
        Streams,
        Effect.map(Streams, (inner) => Streams.of({ ...inner, ...change(inner) }))
      ).pipe(Layer.provide(Layer.fresh(EventStoreDb.layer(Redacted.make(server.url), "wait"))))
      const encryptionKey = Redacted.make(new Uint8Array(32).fill(7))
      return Layer.build(
        PostgresPorts.layerOverStreams({ url, encryptionKey }).pipe(
          Layer.provide(streams),
          Layer.merge(Channels.unused),
          Layer.fresh
        )
      )
    }
    const sql = (statement: string) =>
      Effect.promise(async () => {
        const client = new pg.Client({ connectionString: Redacted.value(url), options: "-c search_path=posthaste" })
        await client.connect()
        const { rows } = await client.query(statement)
        await client.end()
        return rows as ReadonlyArray<Record<string, unknown>>
      })
    return { server, process, sql, age: sql("update append_intent set at = at - interval '1 hour'") }
  })
type World = Effect.Success<ReturnType<typeof world>>

const test = (rule: string, body: Effect.Effect<void, unknown, Scope.Scope>) => it.live(rule, () => Effect.scoped(body))

/** Looks again and again, for as long as a busy machine may need. */
const until = <A, E, R>(look: Effect.Effect<A, E, R>, holds: (found: A) => boolean) =>
  look.pipe(Effect.repeat({ until: holds, schedule: Schedule.spaced("20 millis") }), Effect.timeout("1 minute"))

const streamOf = ({ after }: { after: { id: string } }) => `message-${after.id}`
const startedData = ({ after }: Step) => toRecorded(started(after).entry.facts[0]!).data
const storeOf = (context: Context.Context<EventStore>) => Context.get(context, EventStore)
const append = (context: Context.Context<EventStore>, ...steps: ReadonlyArray<Step>) =>
  Effect.forEach(steps, ({ entry }) => storeOf(context).append([entry]))

/** A process that dies before or after an append reaches the server. */
const dying = Effect.fnUntraced(function* (
  { process }: World,
  when: "before" | "after",
  act: (context: Context.Context<EventStore | Events>) => Effect.Effect<unknown, unknown>
) {
  const died = yield* Deferred.make<void>()
  const die = Effect.andThen(Deferred.succeed(died, undefined), Effect.never)
  yield* Effect.scoped(
    Effect.gen(function* () {
      const context = yield* process((inner) => ({
        append: (writing) => (when === "before" ? die : Effect.andThen(inner.append(writing), die)),
        follow: () => Effect.never
      }))
      yield* Effect.raceFirst(Effect.ignore(act(context)), Deferred.await(died))
    })
  )
})

/** What can be claimed: as soon as something can, and then what comes in a little while more. */
const claimed = (context: Context.Context<Queue>) =>
  Effect.gen(function* () {
    const found: Array<string> = []
    const look = Effect.map(Context.get(context, Queue).claim(asWorker("test")), (claim) => {
      found.push(...(claim?.messages ?? []).map(({ messageId }) => messageId))
    })
    yield* until(look, () => found.length > 0)
    yield* Effect.sleep("300 millis")
    yield* look
    return found
  })

const position = ({ sql }: World) =>
  Effect.map(sql("select position from stream_follower"), ([row]) => row?.["position"])
const followed = (place: World) =>
  until(
    position(place),
    (at) => at != null && BigInt(String(at).split("/")[0]!) >= place.server.log.all.at(-1)!.position
  )

describe("an append", () => {
  const faults = ["lostAck", "lostAnswer", "notLeader", "unavailable", "deadlineExceeded", "unknown"] as const
  for (const fault of faults satisfies ReadonlyArray<Fault>) {
    test(
      `that meets ${fault} is written once and answered as written`,
      Effect.gen(function* () {
        const { server, process } = yield* world()
        const store = storeOf(yield* process())
        const queued = opened()
        for (const [n, { entry }] of [queued, started(queued.after)].entries()) {
          server.inject({ rpc: "append", fault })
          expect(yield* store.append([entry])).toEqual([{ type: "Appended", version: n + 1 }])
        }
        // A busy machine may miss the deadline of a further try.
        expect(server.calls("append")).toBeGreaterThanOrEqual(4)
        expect(server.calls("append")).toBeLessThanOrEqual(8)
        const names = eventsOf(server, streamOf(queued)).map(({ type }) => type)
        expect(names).toEqual(["MessageQueued@1", "AttemptStarted@1"])
      })
    )
  }

  test(
    "that loses its ack and then its idempotence is found by its own ids; one that another was faster than is a conflict",
    Effect.gen(function* () {
      const { server, process } = yield* world()
      const context = yield* process()
      const queued = opened()
      server.inject({ rpc: "append", fault: "lostAck" })
      server.inject({ rpc: "append", fault: "forgetsIds" })
      expect(yield* append(context, queued)).toEqual([[{ type: "Appended", version: 1 }]])
      yield* append(context, started(queued.after))
      server.inject({ rpc: "append", fault: "unavailable" })
      expect(yield* append(context, started(queued.after))).toEqual([[{ type: "VersionConflict" }]])
      expect(eventsOf(server, streamOf(queued))).toHaveLength(2)
    })
  )

  test(
    "leaves facts that people can read: name, data, by which key and when",
    Effect.gen(function* () {
      const { server, process } = yield* world()
      const queued = opened()
      yield* storeOf(yield* process()).append([{ ...queued.entry, actor: "key_17" }])
      const [event] = eventsOf(server, streamOf(queued))
      expect(event).toMatchObject({ type: "MessageQueued@1", contentType: "application/json", revision: 0 })
      expect(event!.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5/)
      expect(json(event!.data)).toMatchObject({ eventType: "invoice.paid", orgId: expect.any(String) })
      const at = new Date(queued.entry.at.epochMilliseconds).toISOString()
      expect(json(event!.metadata)).toEqual({ at, actor: "key_17", writing: expect.any(String) })
    })
  )

  test(
    "works with a server of 20.10, which knows neither features nor BatchAppend",
    Effect.gen(function* () {
      const { server, process } = yield* world("20.10.5")
      const context = yield* process()
      const queued = opened()
      yield* append(context, queued)
      expect(yield* claimed(context)).toEqual([queued.after.id])
      expect(eventsOf(server, streamOf(queued))).toHaveLength(1)
    })
  )

  test(
    "of one line goes there in its order, however slow the first is",
    Effect.gen(function* () {
      const { server, process } = yield* world()
      const context = yield* process()
      const destination = newLane()
      const [slow, quick, other] = [
        opened({ destination, orderingKey: "k" }),
        opened({ destination, orderingKey: "k" }),
        opened()
      ]
      server.inject({ rpc: "append", fault: { slowMs: 500 }, stream: streamOf(slow) })
      yield* storeOf(context).append([slow.entry, quick.entry, other.entry])
      expect(server.log.all.map(({ stream }) => stream)).toEqual([other, slow, quick].map(streamOf))
      expect((yield* claimed(context)).toSorted()).toEqual([slow.after.id, other.after.id].toSorted())
    })
  )
})

describe("a server that does not answer", () => {
  for (const fault of ["silent", "unavailable"] as const) {
    test(
      `because it is ${fault} makes appends and loads fail within seconds, and nothing is accepted`,
      Effect.gen(function* () {
        const { server, process } = yield* world()
        const context = yield* process()
        const store = storeOf(context)
        const queued = opened()
        server.inject({ rpc: "append", fault, times: 1_000 })
        server.inject({ rpc: "read", fault, times: 1_000 })
        const began = Date.now()
        const asked = [Effect.flip(store.append([queued.entry])), Effect.flip(store.load(queued.after.id))]
        const failed = yield* Effect.all(asked, { concurrency: 2 })
        expect(failed.map(({ _tag }) => _tag)).toEqual(["StoreUnavailable", "StoreUnavailable"])
        // Three seconds and a half by itself. A busy machine takes longer, but not for ever.
        expect(Date.now() - began).toBeLessThan(20_000)
        // Nor does it go on asking: at most every 250 ms, for 1.5 s.
        expect(server.calls("append")).toBeLessThanOrEqual(12)
        expect(eventsOf(server, streamOf(queued))).toEqual([])
        server.heal("read")
        expect(yield* Context.get(context, Queue).claim(asWorker("test"))).toBeNull()
        expect((yield* store.load(queued.after.id)).version).toBe(0)
      })
    )
  }

  test(
    "because it is down is used again when it is back, and followed from where it was",
    Effect.gen(function* () {
      const place = yield* world()
      const { server, process, sql } = place
      const context = yield* process()
      const store = storeOf(context)
      const [before, after] = [opened(), opened()]
      yield* store.append([before.entry])
      yield* followed(place)
      server.down()
      const failed = yield* Effect.forEach(
        Array.from({ length: 100 }, () => opened().entry),
        (entry) => Effect.flip(store.append([entry])),
        { concurrency: "unbounded" }
      )
      expect(new Set(failed.map(({ _tag }) => _tag))).toEqual(new Set(["StoreUnavailable"]))
      yield* Effect.promise(server.up)
      expect(yield* Effect.retry(store.append([after.entry]), { times: 20 })).toEqual([
        { type: "Appended", version: 1 }
      ])
      expect((yield* claimed(context)).toSorted()).toEqual([before.after.id, after.after.id].toSorted())
      yield* followed(place)
      expect(
        yield* sql("select from append_intent where message_id = any (array(select stream_id from event))")
      ).toEqual([])
    })
  )
})

describe("a process that dies between the append and its copy", () => {
  const queued = () => opened({ orderingKey: null })

  test(
    "loses nothing: the follower puts the message in the queue, once",
    Effect.gen(function* () {
      const place = yield* world()
      const message = queued()
      yield* dying(place, "after", (context) => append(context, message))
      const alive = yield* place.process()
      expect(yield* claimed(alive)).toEqual([message.after.id])
      expect(yield* Context.get(alive, Bodies).load(message.after.id)).toBe(BODY)
      yield* followed(place)
      expect(yield* place.sql("select from append_intent")).toEqual([])
    })
  )

  test(
    "is noticed by whoever loads the message or appends to it, before the follower comes",
    Effect.gen(function* () {
      const place = yield* world()
      const message = queued()
      const first = yield* place.process(() => ({ follow: () => Effect.never }))
      yield* append(first, message)
      const start = started(message.after)
      yield* dying(place, "after", (context) => append(context, start))
      expect(yield* append(first, started(message.after))).toEqual([[{ type: "VersionConflict" }]])
      expect((yield* storeOf(first).load(message.after.id)).version).toBe(2)
      expect(yield* append(first, settled(start.after, delivered))).toEqual([[{ type: "Appended", version: 4 }]])
    })
  )

  test(
    "after a settlement loses neither the retry nor the answer",
    Effect.gen(function* () {
      const place = yield* world()
      const message = queued()
      const first = yield* place.process(() => ({ follow: () => Effect.never }))
      yield* append(first, message)
      const claim = yield* Context.get(first, Queue).claim(asWorker("test", "200 millis"))
      const start = started(message.after, { fence: claim!.batch })
      yield* append(first, start)
      const answer = { body: "come back later", headers: null }
      const response = { epoch: 1, attempt: 1, ...answer }
      const failed = settled(start.after, unreachable(), { fence: claim!.batch, response })
      yield* dying(place, "after", (context) => append(context, failed))
      expect(yield* claimed(yield* place.process())).toEqual([message.after.id])
      const { answers } = yield* Context.get(first, Bodies).responses(message.after.id)
      expect(answers).toEqual(new Map([["1/1", answer]]))
    })
  )

  test(
    "after a replay with another body never sends the one before",
    Effect.gen(function* () {
      const place = yield* world()
      const message = opened({ body: '"old"', retry: { strategy: "fixed", baseMs: 0, attemptsMax: 1 } })
      const start = started(message.after)
      const dead = settled(start.after, unreachable())
      const first = yield* place.process(() => ({ follow: () => Effect.never }))
      yield* append(first, message, start, dead)
      yield* Context.get(first, Queue).claim(asWorker("test"))
      const replay = { type: "ReplayMessage", now: now(), reason: null, edited: true } as const
      const again = next(dead.after, replay, { opening: { body: '"new"', idempotency: null } })
      yield* dying(place, "after", (context) => append(context, again))
      expect(yield* Context.get(first, Bodies).load(message.after.id)).toBe('"old"')
      expect(yield* claimed(yield* place.process())).toEqual([message.after.id])
      expect(yield* Context.get(first, Bodies).load(message.after.id)).toBe('"new"')
    })
  )

  test(
    "or stands still, does not bring back a message that has moved on",
    Effect.gen(function* () {
      const place = yield* world()
      const message = opened({ orderingKey: "customer 17" })
      const goOn = yield* Deferred.make<void>()
      const slow = yield* place.process((inner) => ({
        append: (writing) => Effect.tap(inner.append(writing), () => Deferred.await(goOn)),
        follow: () => Effect.never
      }))
      const late = yield* Effect.forkChild(append(slow, message))
      yield* until(
        Effect.sync(() => eventsOf(place.server, streamOf(message))),
        ({ length }) => length === 1
      )
      const alive = yield* place.process()
      expect(yield* claimed(alive)).toEqual([message.after.id])
      const start = started(message.after)
      yield* append(alive, start, settled(start.after, unreachable(3_600_000)))
      yield* Deferred.succeed(goOn, undefined)
      expect(yield* Fiber.join(late)).toEqual([[{ type: "Appended", version: 1 }]])
      expect(yield* Context.get(alive, Queue).claim(asWorker("test"))).toBeNull()
      expect(yield* place.sql("select version, attempt from ready")).toEqual([{ version: 3, attempt: 1 }])
    })
  )
})

describe("a process that dies between the reservation and the append", () => {
  const orgId = newOrg()
  const keyed = (requestHash: string) => opened({ orgId, idempotency: { orgId, key: "order 17", requestHash } })
  const duplicate = ({ after }: Step) => ({ type: "DuplicateKey", messageId: after.id, requestHash: "same" })

  test(
    "leaves a key whose message is finished by a repeat of the request, under the id that was reserved",
    Effect.gen(function* () {
      const place = yield* world()
      const first = keyed("same")
      yield* dying(place, "before", (context) => append(context, first))
      expect(eventsOf(place.server, streamOf(first))).toEqual([])
      const alive = yield* place.process()
      const repeats: ReadonlyArray<Append> = [keyed("same").entry, keyed("same").entry]
      expect(yield* storeOf(alive).append(repeats)).toEqual([duplicate(first), duplicate(first)])
      expect(eventsOf(place.server, streamOf(first))).toHaveLength(1)
      expect(yield* claimed(alive)).toEqual([first.after.id])
      expect(yield* Context.get(alive, Bodies).load(first.after.id)).toBe(BODY)
    })
  )

  test(
    "and whose request is not repeated leaves nothing: its stream can't begin any more, and its key is free",
    Effect.gen(function* () {
      const place = yield* world()
      const [first, other] = [keyed("same"), keyed("other")]
      yield* dying(place, "before", (context) => append(context, first))
      yield* place.age
      const alive = yield* place.process()
      yield* until(place.sql("select from append_intent"), ({ length }) => length === 0)
      expect(place.server.log.stream(streamOf(first))).toBe("tombstoned")
      expect(yield* storeOf(alive).acceptedUnder(orgId, "order 17")).toBeNull()
      expect(yield* append(alive, other)).toEqual([[{ type: "Appended", version: 1 }]])
    })
  )

  test(
    "is never taken for one that appended: what is stored is copied, however late, and not given up",
    Effect.gen(function* () {
      const place = yield* world()
      const first = keyed("same")
      yield* dying(place, "after", (context) => append(context, first))
      yield* place.age
      const alive = yield* place.process(() => ({ follow: () => Effect.succeed({ take: Effect.never }) }))
      yield* until(place.sql("select from append_intent"), ({ length }) => length === 0)
      expect(yield* claimed(alive)).toEqual([first.after.id])
      expect(yield* append(alive, keyed("same"))).toEqual([[duplicate(first)]])
    })
  )

  test(
    "or stands still there until its message is given up, is told that it is not stored",
    Effect.gen(function* () {
      const place = yield* world()
      const first = keyed("same")
      const [reserved, goOn] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const slow = yield* place.process((inner) => ({
        append: (writing) =>
          Deferred.succeed(reserved, undefined).pipe(
            Effect.andThen(Deferred.await(goOn)),
            Effect.andThen(inner.append(writing))
          ),
        follow: () => Effect.never
      }))
      const late = yield* Effect.forkChild(Effect.flip(append(slow, first)))
      yield* Deferred.await(reserved)
      yield* place.age
      yield* place.process()
      yield* until(place.sql("select from append_intent"), ({ length }) => length === 0)
      yield* Deferred.succeed(goOn, undefined)
      expect((yield* Fiber.join(late))._tag).toBe("StoreUnavailable")
    })
  )

  test(
    "of an event leaves its messages to another process, each once and with its body",
    Effect.gen(function* () {
      const place = yield* world()
      const id = EventId.make(randomUUID())
      const steps = [newLane(), newLane(), newLane()].map((destination) =>
        opened({ orgId, destination, eventId: id, body: { ofEvent: id } })
      )
      const nothing = {
        correlationId: null,
        dossierId: null,
        orderingKey: null,
        metadata: null,
        deliverAt: null,
        expiresAt: null
      }
      const fact = { type: "EventPublished", orgId, eventType: "order.paid", matched: 3, ...nothing } as const
      const event = { id, fact, at: now(), actor: null, body: '{"n":1.10}', idempotency: null }
      const messages = steps.map(({ entry }) => entry)
      yield* dying(place, "before", (context) => Context.get(context, Events).publish([{ ...event, messages }]))
      yield* place.age
      const alive = yield* place.process()
      const ids = steps.map(({ after }) => after.id)
      yield* until(storeOf(alive).loadMany(ids), ({ size }) => size === 3)
      for (const each of ids) {
        expect((yield* storeOf(alive).load(each)).version).toBe(1)
        expect(yield* Context.get(alive, Bodies).load(each)).toBe(event.body)
      }
      const { items } = yield* Context.get(alive, Events).messagesOf(id, { cursor: null, limit: 9 })
      expect(items.toSorted()).toEqual(ids.toSorted())
      yield* until(place.sql("select from append_intent"), ({ length }) => length === 0)
    })
  )
})

describe("a claim", () => {
  test(
    "is on the disk of Postgres before its attempt is started in EventStoreDB",
    Effect.gen(function* () {
      const { process, server, sql } = yield* world()
      // Nothing else may commit meanwhile.
      const context = yield* process(() => ({ follow: () => Effect.never }))
      const queued = opened()
      yield* append(context, queued)
      const claim = yield* Context.get(context, Queue).claim(asWorker("test"))
      const [at] = yield* sql("select pg_current_wal_insert_lsn() as at")
      server.inject({ rpc: "append", fault: { slowMs: 100 } })
      const gate = { lane: queued.after.lane, generation: 0 }
      const starting = yield* Effect.forkChild(append(context, started(queued.after, { fence: claim!.batch, gate })))
      yield* until(
        Effect.sync(() => server.calls("append")),
        (calls) => calls === 2
      )
      const flushed = yield* sql(`select pg_current_wal_flush_lsn() >= '${at!["at"]}' as flushed`)
      expect(flushed).toEqual([{ flushed: true }])
      yield* Fiber.join(starting)
    })
  )
})

describe("the follower", () => {
  test(
    "is one process at a time, and another one takes its place when it ends",
    Effect.gen(function* () {
      const place = yield* world()
      const holder = Effect.map(place.sql("select holder from stream_follower"), ([row]) => row?.["holder"] ?? null)
      const first = yield* Effect.scoped(
        Effect.gen(function* () {
          yield* place.process()
          const one = yield* until(holder, (name) => name !== null)
          yield* place.process()
          yield* Effect.sleep("1500 millis")
          expect(yield* holder).toBe(one)
          return one
        })
      )
      yield* append(yield* place.process(), opened())
      yield* followed(place)
      expect(yield* holder).not.toBe(first)
    })
  )

  test(
    "gets past events of others, by the server's checkpoints, and copies no message that is not ours",
    Effect.gen(function* () {
      const place = yield* world()
      const { process, server, sql } = place
      const proposed = (type: string) => ({
        ...{ id: randomUUID(), type, contentType: "application/json" },
        ...{ data: Buffer.from("{}"), metadata: Buffer.from("") }
      })
      const foreign = opened().after.id
      server.log.append(`message-${foreign}`, "any", [proposed("MessageQueued@1")])
      server.log.append("message-of-somebody", "any", [proposed("Hello")])
      for (let i = 0; i < 700; i++) server.log.append(`invoice-${i}`, "any", [proposed("InvoicePaid")])
      const context = yield* process()
      const passed = server.log.all[400]!.position
      yield* until(position(place), (at) => at != null && BigInt(String(at).split("/")[0]!) > passed)
      const queued = opened()
      yield* append(context, queued)
      yield* followed(place)
      expect((yield* storeOf(context).load(foreign)).version).toBe(0)
      expect(yield* sql("select stream_id from event")).toEqual([{ stream_id: queued.after.id }])
    })
  )

  for (const kind of ["impossible", "unreadable", "unstorable"] as const) {
    test(
      `parks a message with an ${kind} history and goes on`,
      Effect.gen(function* () {
        const place = yield* world()
        const { process, server } = place
        const [broken, sound] = [opened(), opened()]
        yield* dying(place, "after", (context) => append(context, broken))
        const [first] = eventsOf(server, streamOf(broken))
        const start = { ...first!, type: "AttemptStarted@1", data: Buffer.from(startedData(broken)) }
        const wrong = { impossible: first!, unreadable: { ...first!, type: "MessageWeighed@1" }, unstorable: start }[
          kind
        ]
        const actor = kind === "unstorable" ? "key\u0000" : null
        const metadata = Buffer.from(JSON.stringify({ writing: randomUUID(), actor }))
        server.log.append(streamOf(broken), 0, [{ ...wrong, id: randomUUID(), metadata }])
        yield* dying(place, "after", (context) => append(context, sound))
        const context = yield* process()
        // What was readable of it may be handed out before the rest is met.
        yield* until(claimed(context), (ids) => ids.includes(sound.after.id))
        const listed = Context.get(context, Parked).list({ cursor: null, limit: 9 })
        const parked = yield* until(listed, ({ items }) => items.length > 0)
        expect(parked.items).toMatchObject([
          { stream: streamOf(broken), reason: kind === "unreadable" ? "unreadable" : "failed" }
        ])
      })
    )
  }

  test(
    "removes the streams of forgotten messages, which can't be appended to any more, and brings none of them back",
    Effect.gen(function* () {
      const place = yield* world()
      const { process, server, sql } = place
      const queued = opened()
      const start = started(queued.after)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const context = yield* process()
          yield* append(context, queued, start)
          yield* followed(place)
          yield* sql(`select forget(array['${queued.after.id}']::uuid[], array[2])`)
          yield* until(
            Effect.sync(() => server.log.stream(streamOf(queued))),
            (stream) => stream === "tombstoned"
          )
          expect(yield* append(context, settled(start.after, delivered))).toEqual([[{ type: "VersionConflict" }]])
        })
      )
      yield* sql("update stream_follower set position = null")
      const context = yield* process()
      yield* followed(place)
      expect((yield* storeOf(context).load(queued.after.id)).version).toBe(0)
      expect(yield* sql("select from event")).toEqual([])
    })
  )
})

describe("a database", () => {
  test(
    "whose streams are in one place does not start with the other",
    Effect.gen(function* () {
      const [url, other] = [yield* freshDatabase, yield* freshDatabase]
      const server = yield* eventStore()
      const encryptionKey = Redacted.make(new Uint8Array(32).fill(7))
      const here = (url: Redacted.Redacted) => Layer.fresh(PostgresPorts.layer({ url, encryptionKey }))
      const elsewhere = (url: Redacted.Redacted) =>
        Layer.fresh(PostgresPorts.layerOverStreams({ url, encryptionKey })).pipe(
          Layer.provide(EventStoreDb.layer(Redacted.make(server.url), "wait"))
        )
      const written = Effect.flatMap(EventStore, (store) => store.append([opened().entry]))
      yield* Effect.scoped(Effect.provide(written, elsewhere(url)))
      yield* Effect.scoped(Effect.provide(written, here(other)))
      expect(String(yield* Effect.flip(Effect.scoped(Layer.build(here(url)))))).toContain("set EVENTSTORE_URL")
      expect(String(yield* Effect.flip(Effect.scoped(Layer.build(elsewhere(other)))))).toContain("unset EVENTSTORE_URL")
    })
  )
})
