/** What facts in EventStoreDB say of a person: who can read it, who can't, and what becomes of it when its key is thrown away. */
import { randomUUID } from "node:crypto"
import { describe, expect, it, vi } from "@effect/vitest"
import { Duration, Effect, Layer, Redacted, type Scope } from "effect"
import pg from "pg"
import * as EventStoreDb from "../../../src/adapters/eventstoredb/EventStoreDb.ts"
import * as EventStoreDbArchive from "../../../src/adapters/eventstoredb/EventStoreDbArchive.ts"
import * as EventStoreDbErasures from "../../../src/adapters/eventstoredb/EventStoreDbErasures.ts"
import * as EventStoreDbEventStore from "../../../src/adapters/eventstoredb/EventStoreDbEventStore.ts"
import * as EventStoreDbEvents from "../../../src/adapters/eventstoredb/EventStoreDbEvents.ts"
import * as EventStoreDbJournals from "../../../src/adapters/eventstoredb/EventStoreDbJournals.ts"
import { write as copyJournal } from "../../../src/adapters/eventstoredb/forwardJournals.ts"
import { areAnyPersonal, judged, eventsOf as sealedEventsOf } from "../../../src/adapters/eventstoredb/sealedFacts.ts"
import { rekey } from "../../../src/adapters/postgres/destinations/rekey.ts"
import { sealing } from "../../../src/adapters/postgres/destinations/sealing.ts"
import * as Postgres from "../../../src/adapters/postgres/Postgres.ts"
import * as PostgresPorts from "../../../src/adapters/postgres/PostgresPorts.ts"
import { LogReader } from "../../../src/application/log/LogReader.ts"
import { Archive } from "../../../src/application/ports/Archive.ts"
import { type ErasureJob, Erasures } from "../../../src/application/ports/Erasures.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { Events } from "../../../src/application/ports/Events.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { Ledger } from "../../../src/application/ports/Ledger.ts"
import { Retention } from "../../../src/application/ports/Retention.ts"
import { verifyStreams } from "../../../src/application/store/verifyStreams.ts"
import type { AttemptOutcome } from "../../../src/domain/delivery/outcome.ts"
import { EventId, type OrgId } from "../../../src/domain/ids.ts"
import { streamOf } from "../../../src/domain/streams.ts"
import * as Channels from "../../../src/setup/channels.ts"
import { ended } from "../../contracts/replays/deadLetterSamples.ts"
import { newMessageId, newOrg, next, now, opened, type Sample, settled, started } from "../../contracts/sample.ts"
import { write } from "../../contracts/written.ts"
import { eventStore, eventsOf, json } from "../../servers/eventStore.ts"
import { freshDatabase } from "../../servers/freshDatabase.ts"

const PHONE = "4915177700017"
const marks = [PHONE, "case of Erikalotte", "of-mustermann", "amqp:mustermann"]
const keyOf = (byte: number) => Redacted.make(new Uint8Array(32).fill(byte))
const [old, young] = [keyOf(7), keyOf(9)]

interface Wishes {
  readonly sealsFacts?: boolean
  readonly keys?: readonly [typeof old, ...ReadonlyArray<typeof old>]
  readonly ledger?: (ledger: Ledger["Service"]) => Partial<Ledger["Service"]>
  readonly retention?: Partial<Retention["Service"]>
}

/** One database and one server; each `process` is another Posthaste on both, which follows nothing. */
const world = Effect.gen(function* () {
  const server = yield* eventStore()
  const url = yield* freshDatabase
  const process = ({ sealsFacts = true, keys = [old], ledger, retention }: Wishes = {}) => {
    const [encryptionKey, ...olderKeys] = keys
    const postgres = { url, encryptionKey, olderKeys, sealsFacts }
    const changed = Layer.effect(
      Ledger,
      Effect.map(Ledger, (inner) => Ledger.of({ ...inner, ...ledger?.(inner) }))
    )
    const deleting = Layer.effect(
      Retention,
      Effect.map(Retention, (inner) => Retention.of({ ...inner, ...retention }))
    )
    const truth = { url, sealing: Effect.succeed(sealing(encryptionKey, olderKeys)), sealsFacts }
    return Layer.mergeAll(EventStoreDbErasures.layer, EventStoreDbArchive.layer, EventStoreDbEvents.layer).pipe(
      Layer.provideMerge(Layer.merge(EventStoreDbEventStore.layer, EventStoreDbJournals.layer)),
      Layer.provideMerge(EventStoreDb.layer(Redacted.make(server.url), "fail")),
      Layer.provideMerge(Layer.merge(changed, deleting)),
      Layer.provideMerge(Layer.merge(PostgresPorts.truthWithoutStreams(truth), PostgresPorts.withoutStreams(postgres))),
      (stores) => Layer.provideMerge(Layer.merge(LogReader.layer, Channels.unused), stores),
      Layer.fresh
    )
  }
  const sql = (statement: string, values: ReadonlyArray<unknown> = []) =>
    Effect.promise(async () => {
      const client = new pg.Client({ connectionString: Redacted.value(url), options: "-c search_path=posthaste" })
      await client.connect()
      const { rows } = await client.query(statement, [...values])
      await client.end()
      return rows as ReadonlyArray<Record<string, unknown>>
    })
  const written = () =>
    server.log.all.map(({ stream, data, metadata }) => [stream, Buffer.from(data), Buffer.from(metadata)].join(" "))
  /** Events that say something of the person to whoever reads EventStoreDB. */
  const traces = () => written().filter((event) => marks.some((mark) => event.includes(mark)))
  return { server, url, process, sql, written, traces }
})

const test = (rule: string, body: Effect.Effect<void, unknown, Scope.Scope>) => it.live(rule, () => Effect.scoped(body))

const saying = (message: string): AttemptOutcome => ({
  ...{ type: "Refused", status: 400, durationMs: 3 },
  error: { code: "http_400", message, retryable: false }
})

/** A message of the person that was refused, cancelled by hand or not; and who did it came by a broker. */
const ofPerson = Effect.fnUntraced(function* (orgId: OrgId = newOrg()) {
  const gone = yield* ended(saying(`no such number: ${PHONE}`), now(), {
    orgId,
    to: PHONE,
    dossierId: "case of Erikalotte",
    correlationId: "of-mustermann"
  })
  const dismissal = next(gone, { type: "DismissMessage", reason: "the case of Erikalotte" })
  return yield* write({ ...dismissal, entry: { ...dismissal.entry, actor: "amqp:mustermann" } })
})

const begun = Effect.fnUntraced(function* (orgId: OrgId) {
  const erasures = yield* Erasures
  const opened = yield* erasures.open({
    ...{ id: newMessageId(), orgId, by: "dossierId", reason: null },
    sought: ["case of Erikalotte"]
  })
  expect(opened).not.toBe("Elsewhere")
  return (yield* erasures.take(Duration.seconds(30)))!
})

const progress = ({ orgId, id }: ErasureJob) => Effect.flatMap(Erasures, ({ get }) => get(orgId, id))

const factsOf = ({ id }: Sample) =>
  Effect.map(
    Effect.flatMap(EventStore, ({ load }) => load(id)),
    ({ facts }) => facts
  )

/** But for the queue: no worker has taken these messages from it. */
const violations = Effect.gen(function* () {
  const found: Array<string> = []
  yield* verifyStreams({
    violation: ({ rule, stream, version }) => Effect.sync(() => found.push(`${rule} ${stream} ${version}`)),
    progress: () => Effect.void
  })
  return found.filter((violation) => !violation.startsWith("misplaced"))
})

describe("facts in EventStoreDB that are sealed", () => {
  test(
    "say nothing of a person to whoever reads them there, and everything to Posthaste",
    Effect.gen(function* () {
      const { server, process, traces, sql } = yield* world
      yield* Effect.gen(function* () {
        const message = yield* ofPerson()
        const facts = yield* factsOf(message)
        expect(facts.map(({ fact }) => fact.type)).toContain("MessageDismissed")
        expect(facts[0]).toMatchObject({ fact: { to: PHONE, dossierId: "case of Erikalotte" }, actor: null })
        expect(facts.at(-1)).toMatchObject({ fact: { reason: "the case of Erikalotte" }, actor: "amqp:mustermann" })
        // So does whoever reads the log, or many at once, or the whole stream as it was stored.
        const store = yield* EventStore
        expect((yield* store.loadMany([message.id])).get(message.id)!.facts).toEqual(facts)
        const stream = streamOf(message.id)
        const archived = (yield* (yield* Archive).streams([stream])).get(stream)!
        expect(archived.map(({ data }) => data).join()).toContain(PHONE)
        expect((yield* store.readAll(null, 10)).map(({ data }) => data)).toEqual(archived.map(({ data }) => data))

        expect(traces()).toEqual([])
        const [first, second] = eventsOf(server, stream)
        expect(json(first!.data)).toMatchObject({ to: "erased", dossierId: null, eventType: "invoice.paid" })
        expect(json(first!.metadata)).toEqual({ at: expect.any(String), actor: null, sealed: expect.any(String) })
        // What says nothing of a person is as it always was.
        expect(json(second!.metadata)).toEqual({ at: expect.any(String), actor: null })
        expect(yield* sql("select count(*)::int from stream_key")).toEqual([{ count: 1 }])
      }).pipe(Effect.provide(process()))
    })
  )

  test(
    "open after the encryption key has changed, and to no other key",
    Effect.gen(function* () {
      const { url, process } = yield* world
      const message = yield* Effect.provide(ofPerson(), process())
      const postgres = Layer.fresh(Postgres.layer({ url }))
      yield* rekey(young, [old], () => Effect.void).pipe(Effect.provide(postgres))
      const facts = yield* Effect.provide(factsOf(message), process({ keys: [young] }))
      expect(facts[0]!.fact).toMatchObject({ to: PHONE })
    })
  )

  test(
    "have one key for a message, whoever reserves it first and whatever the setting says then",
    Effect.gen(function* () {
      const { process, traces, sql } = yield* world
      const message = opened({ to: PHONE })
      yield* Effect.gen(function* () {
        const { reserve, withdraw } = yield* Ledger
        const asked = () => reserve([{ id: randomUUID(), entry: message.entry, isPersonal: () => true }])
        const [one, other] = yield* Effect.all([asked(), asked()], { concurrency: 2 })
        const keyIn = (of: typeof one) => Redacted.value((of[0] as { key: Redacted.Redacted<Uint8Array> }).key)
        expect(keyIn(one)).toHaveLength(32)
        expect(keyIn(one)).toEqual(keyIn(other))
        yield* write(message)
        // One that is never written leaves none.
        const never = { id: randomUUID(), entry: opened({ to: PHONE }).entry, isPersonal: () => true }
        yield* reserve([never])
        const kept = yield* sql("select count(*)::int from stream_key")
        yield* withdraw([never.id])
        expect([kept, yield* sql("select count(*)::int from stream_key")]).toEqual([[{ count: 2 }], [{ count: 1 }]])
      }).pipe(Effect.provide(process()))
      const start = started(message.after)
      yield* write(start, settled(start.after, saying(PHONE))).pipe(Effect.provide(process({ sealsFacts: false })))
      expect(traces()).toEqual([])
      expect(yield* sql("select count(*)::int from stream_key")).toEqual([{ count: 1 }])
    })
  )

  test(
    "are not judged where nothing is sealed, not even where somebody asks for a key that nobody has",
    Effect.gen(function* () {
      const { process, server } = yield* world
      yield* Effect.gen(function* () {
        const neverAsked = () => {
          throw new Error("somebody asked whether they say anything of a person")
        }
        const [answer] = yield* (yield* Ledger).reserve([
          { id: randomUUID(), entry: opened({ to: PHONE }).entry, isPersonal: neverAsked }
        ])
        expect(answer).toMatchObject({ type: "Reserved", key: null })
        const message = yield* write(opened({ to: PHONE }))
        expect(json(eventsOf(server, streamOf(message.id))[0]!.data)).toMatchObject({ to: PHONE })
      }).pipe(Effect.provide(process({ sealsFacts: false })))
    })
  )

  test(
    "are parsed once, whoever asks whether they say anything of a person",
    Effect.gen(function* () {
      const saying = { name: "MessageCancelled@1", data: '{"reason":"Erikalotte","traceparent":"1-2"}' }
      const silent = { name: "AttemptStarted@1", data: '{"epoch":1,"attempt":1}' }
      const facts = [saying, silent].map((fact, n) =>
        judged({ id: randomUUID(), version: n + 1, at: now(), actor: null, ...fact })
      )
      const parse = vi.spyOn(JSON, "parse")
      expect([areAnyPersonal(facts), areAnyPersonal(facts.slice(1))]).toEqual([true, false])
      const events = yield* sealedEventsOf("message-1", Redacted.make(new Uint8Array(32)), facts)
      const texts = parse.mock.calls.map(([text]) => text)
      parse.mockRestore()
      expect(texts).toEqual([saying.data, silent.data])
      expect(events.map(({ data }) => data)).toEqual([{ reason: null }, { epoch: 1, attempt: 1 }])
    })
  )

  test(
    "are no history that anybody takes for true when they were changed, or belong elsewhere",
    Effect.gen(function* () {
      const { server, process } = yield* world
      yield* Effect.gen(function* () {
        const [one, other] = [yield* ofPerson(), yield* ofPerson()]
        const [mine, theirs] = [eventsOf(server, streamOf(one.id))[0]!, eventsOf(server, streamOf(other.id))[0]!]
        Object.assign(mine, { metadata: theirs.metadata })
        // Nor in another place of its own stream.
        const moved = yield* ofPerson()
        const events = eventsOf(server, streamOf(moved.id))
        Object.assign(events[0]!, { metadata: events.at(-1)!.metadata })
        const shown = (yield* (yield* Archive).streams([streamOf(moved.id)])).get(streamOf(moved.id))!
        expect(shown[0]!.data).toBe("null")
        const wrong = [one, moved].map(({ id }) => `unreadable-fact ${streamOf(id)} 1`)
        expect((yield* violations).toSorted()).toEqual(wrong.toSorted())
        const archived = (yield* (yield* Archive).streams([streamOf(other.id)])).get(streamOf(other.id))!
        expect(archived[0]!.data).toContain(PHONE)
      }).pipe(Effect.provide(process()))
    })
  )

  test(
    "are named when their key is not there and nobody erased them, and read as if they had been erased",
    Effect.gen(function* () {
      const { process, sql } = yield* world
      yield* Effect.gen(function* () {
        const [lost] = [yield* ofPerson(), yield* ofPerson()]
        expect(yield* violations).toEqual([])
        yield* sql("delete from stream_key where stream_id = $1", [lost.id])
        expect(yield* violations).toEqual([`no-key ${streamOf(lost.id)} 1`])
        expect((yield* factsOf(lost))[0]!.fact).toMatchObject({ to: "erased", dossierId: null })
      }).pipe(Effect.provide(process()))
    })
  )
})

describe("the erasure of a person whose facts are in EventStoreDB", () => {
  test(
    "throws the keys away: nobody reads of them any more, and the history is one that the law allows",
    Effect.gen(function* () {
      const { process, traces, sql } = yield* world
      yield* Effect.gen(function* () {
        const erasures = yield* Erasures
        const orgId = newOrg()
        const [gone, stays] = [yield* ofPerson(orgId), yield* ofPerson()]
        const job = yield* begun(orgId)
        expect(yield* erasures.erase(job, [gone.id], [])).toBe(true)
        expect(yield* erasures.close(job)).toBe(true)
        expect(yield* progress(job)).toMatchObject({ messages: 1, forgotten: 0 })

        const facts = yield* factsOf(gone)
        expect(facts[0]!.fact).toMatchObject({ to: "erased", dossierId: null, correlationId: null })
        expect(facts.at(-1)).toMatchObject({ fact: { reason: null }, actor: "amqp" })
        expect((yield* factsOf(stays))[0]!.fact).toMatchObject({ to: PHONE })
        expect(yield* violations).toEqual([])
        const left = yield* sql("select stream_id, sealed is null as thrown from stream_key order by 2")
        expect(left).toEqual([
          { stream_id: stays.id, thrown: false },
          { stream_id: gone.id, thrown: true }
        ])
        expect(JSON.stringify(yield* sql("select * from copied_fact where stream_id = $1", [gone.id]))).not.toContain(
          PHONE
        )

        // What is written later says nothing of them either.
        const replayed = next(gone, { type: "ReplayMessage", now: now(), reason: "the case of Erikalotte" })
        yield* write({ ...replayed, entry: { ...replayed.entry, actor: "amqp:mustermann" } })
        expect((yield* factsOf(gone)).at(-1)).toMatchObject({
          fact: { type: "MessageReplayed", reason: null },
          actor: "amqp"
        })
        expect(traces()).toEqual([])
      }).pipe(Effect.provide(process()))
    })
  )

  test(
    "reaches what a writer with the key in hand appends, and the copy that comes to PostgreSQL after it",
    Effect.gen(function* () {
      const { process, sql, traces } = yield* world
      const orgId = newOrg()
      const message = yield* Effect.provide(ofPerson(orgId), process())
      const erase = Effect.gen(function* () {
        const job = yield* begun(orgId)
        expect(yield* (yield* Erasures).erase(job, [message.id], [])).toBe(true)
      }).pipe(Effect.provide(process()), Effect.orDie)
      // The erasure comes between the reservation and the append; the copies are made after it.
      const slow = process({
        ledger: ({ reserve }) => ({ reserve: (intents) => Effect.tap(reserve(intents), () => erase) })
      })
      const receipt = next(message, {
        ...{ type: "RecordReceipt", receipt: "sent", providerMessageId: PHONE, epoch: null, attempt: null },
        ...{ reportedAt: now(), error: null }
      })
      yield* Effect.provide(write(receipt), slow)
      const last = (yield* Effect.provide(factsOf(message), process())).at(-1)!
      expect(last.fact).toMatchObject({ providerMessageId: null })
      expect(JSON.stringify(yield* sql("select * from copied_fact"))).not.toContain(PHONE)
      expect(traces()).toEqual([])
    })
  )

  test(
    "forgets messages whose facts are in the clear, and counts them; no step of it is lost by a crash",
    Effect.gen(function* () {
      const { process, server, sql } = yield* world
      const orgId = newOrg()
      const [clear, plain] = yield* Effect.all([
        ofPerson(orgId),
        write(opened({ orgId, metadata: null, to: newMessageId() }))
      ]).pipe(Effect.provide(process({ sealsFacts: false })))
      const sealed = yield* Effect.provide(ofPerson(orgId), process())
      const all = [clear.id, plain.id, sealed.id]

      const crashes = process({ retention: { forget: () => Effect.die(new Error("the process is gone")) } })
      const job = yield* Effect.provide(begun(orgId), crashes)
      yield* Effect.gen(function* () {
        const erasures = yield* Erasures
        expect((yield* Effect.exit(erasures.erase(job, all, [])))._tag).toBe("Failure")
        expect(server.log.stream(streamOf(clear.id))).toBe("tombstoned")
        expect((yield* Effect.exit(erasures.close(job)))._tag).toBe("Failure")
        expect(yield* progress(job)).toMatchObject({ endedAt: null })
      }).pipe(Effect.provide(crashes))

      yield* Effect.gen(function* () {
        expect(yield* (yield* Erasures).close(job)).toBe(true)
        expect(yield* progress(job)).toMatchObject({ messages: 3, forgotten: 1 })
        expect(yield* factsOf(clear)).toEqual([])
        expect((yield* factsOf(plain)).length).toBe(1)
        expect((yield* factsOf(sealed)).length).toBe(5)
        expect(yield* (yield* Ledger).known([...all])).toEqual(new Set([plain.id, sealed.id]))
        expect(yield* sql("select 1 from erased_elsewhere")).toEqual([])
        expect(yield* sql("select 1 from stream_key where stream_id = $1", [clear.id])).toEqual([])
      }).pipe(Effect.provide(process()))
    })
  )

  test(
    "takes events and their journals along, and waits for messages that an event owes",
    Effect.gen(function* () {
      const { process, server, traces } = yield* world
      const orgId = newOrg()
      const details = { dossierId: "case of Erikalotte", correlationId: "of-mustermann" }
      const journal = (id: EventId) => `event-${id}` as const
      const publishing = (messages: number) => {
        const id = EventId.make(randomUUID())
        const steps = Array.from({ length: messages }, () =>
          opened({ orgId, to: PHONE, eventId: id, body: { ofEvent: id }, ...details })
        )
        const fact = {
          ...({ type: "EventPublished", orgId, eventType: "a", matched: messages, orderingKey: null } as const),
          ...{ metadata: null, deliverAt: null, expiresAt: null, ...details }
        }
        const event = { id, fact, at: now(), actor: null, body: "{}", idempotency: null }
        return { ...event, messages: steps.map(({ entry }) => entry) }
      }
      const copied = Effect.fnUntraced(function* (id: EventId) {
        expect(yield* copyJournal(journal(id), yield* (yield* Journals).load(journal(id)))).toBe(true)
      })
      const [clear, event, owing] = [publishing(0), publishing(0), publishing(1)]
      yield* Effect.gen(function* () {
        // As whoever follows the log does.
        yield* (yield* Ledger).follow("queue", "a process")
        yield* (yield* Events).publish([clear])
        yield* copied(clear.id)
      }).pipe(Effect.provide(process({ sealsFacts: false })))
      expect(traces()).toHaveLength(1)

      yield* Effect.gen(function* () {
        const erasures = yield* Erasures
        const ledger = yield* Ledger
        yield* (yield* Events).publish([event])
        yield* copied(event.id)
        yield* ledger.owe([owing])
        expect(traces()).toHaveLength(1)
        const ids = [clear.id, event.id, owing.id]

        const job = yield* begun(orgId)
        const found = yield* erasures.find(job, 10)
        expect(found.events.toSorted()).toEqual(ids.toSorted())
        expect(found.messages).toEqual(owing.messages.map(({ messageId }) => messageId))
        expect(yield* erasures.erase(job, [], found.events)).toBe(true)
        expect(yield* erasures.find(job, 10)).toEqual({ messages: found.messages, events: [] })
        yield* (yield* EventStore).append(owing.messages)
        yield* ledger.settled(found.messages)
        expect(yield* erasures.find(job, 10)).toEqual({ messages: [], events: [] })

        expect(server.log.stream(journal(clear.id))).toBe("tombstoned")
        const [published] = (yield* (yield* Archive).streams([journal(event.id)])).get(journal(event.id))!
        expect(JSON.parse(published!.data)).toMatchObject({ dossierId: null, correlationId: null, eventType: "a" })
        // A copy that is made later, of facts that were read before, says nothing either.
        yield* copyJournal(journal(owing.id), [
          {
            name: "EventPublished@1",
            data: JSON.stringify({ ...owing.fact, type: undefined }),
            version: 1,
            at: now(),
            actor: null
          }
        ])
        const [late] = (yield* (yield* Archive).streams([journal(owing.id)])).get(journal(owing.id))!
        expect(JSON.parse(late!.data)).toMatchObject({ dossierId: null, correlationId: null })
        expect(traces()).toHaveLength(1)
      }).pipe(Effect.provide(process()))
    })
  )
})
