/** Texts that are stored sealed: what a thief of the database finds, what opens and what does not, and how keys rotate. */
import { createHash } from "node:crypto"
import { expect, it } from "@effect/vitest"
import { Duration, Effect, Exit, Fiber, Latch, Layer, Redacted, Schedule } from "effect"
import { describe } from "vitest"
import { rekey } from "../../../../src/adapters/postgres/destinations/rekey.ts"
import { sealing } from "../../../../src/adapters/postgres/destinations/sealing.ts"
import { sealClear } from "../../../../src/adapters/postgres/messages/sealClear.ts"
import * as Postgres from "../../../../src/adapters/postgres/Postgres.ts"
import * as PostgresPorts from "../../../../src/adapters/postgres/PostgresPorts.ts"
import * as SealedTexts from "../../../../src/adapters/postgres/SealedTexts.ts"
import { StoreUnavailable } from "../../../../src/application/errors.ts"
import { LogReader } from "../../../../src/application/log/LogReader.ts"
import { Bodies } from "../../../../src/application/ports/Bodies.ts"
import { CommandInbox } from "../../../../src/application/ports/CommandInbox.ts"
import { Erasures } from "../../../../src/application/ports/Erasures.ts"
import { EventStore, type UsedKey } from "../../../../src/application/ports/EventStore.ts"
import { Events } from "../../../../src/application/ports/Events.ts"
import { CLAIMED_BODY_MAX, Queue } from "../../../../src/application/ports/Queue.ts"
import { ReceiptInbox } from "../../../../src/application/ports/ReceiptInbox.ts"
import { Streams } from "../../../../src/application/ports/Streams.ts"
import { verify } from "../../../../src/application/truth/verify.ts"
import { EventId, MessageId, OrgId } from "../../../../src/domain/ids.ts"
import * as Channels from "../../../../src/setup/channels.ts"
import { bodiesContract } from "../../../contracts/messages/bodiesContract.ts"
import { ended } from "../../../contracts/replays/deadLetterSamples.ts"
import { newLane, newMessageId, next, now, opened, settled, started, unreachable } from "../../../contracts/sample.ts"
import { refused } from "../../../contracts/written.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"
import { session } from "../../../servers/session.ts"

type Key = Redacted.Redacted<Uint8Array>
const keyOf = (byte: number): Key => Redacted.make(new Uint8Array(32).fill(byte))
const [old, young, strange] = [keyOf(3), keyOf(9), keyOf(77)]
const acme = OrgId.make("acme")

bodiesContract(
  "postgres, sealed,",
  Layer.unwrap(
    Effect.map(freshDatabase, (url) => PostgresPorts.layer({ url, encryptionKey: old, sealsBodies: true }))
  ).pipe(Layer.merge(Channels.unused))
)

/** A database, its ports with this or that key, and SQL on it. */
const aDatabase = Effect.gen(function* () {
  const url = yield* freshDatabase
  const client = yield* session(url)
  const sql = (text: string, values: ReadonlyArray<unknown> = []) =>
    Effect.promise(async () => (await client.query<Record<string, string>>(text, [...values])).rows)
  const under = (keys: readonly [Key, ...ReadonlyArray<Key>], sealsBodies = true) =>
    Layer.fresh(
      PostgresPorts.layer({ url, encryptionKey: keys[0], olderKeys: keys.slice(1), sealsBodies }).pipe(
        Layer.merge(Channels.unused)
      )
    )
  const aDayLater = sql("update data_key set at = at - interval '1 day'")
  /** Everything that is stored, as text. */
  const everything = Effect.gen(function* () {
    const tables = yield* sql("select tablename as name from pg_tables where schemaname = 'posthaste'")
    const rows = yield* Effect.forEach(tables, ({ name }) => sql(`select t::text as row from ${name} t`))
    return rows.flat().map(({ row }) => row!)
  })
  const sealClearTexts = (progress: (done: number) => Effect.Effect<void> = () => Effect.void) =>
    sealClear(progress).pipe(
      Effect.provide(
        Layer.provideMerge(SealedTexts.layer(Effect.succeed(sealing(old)), true), Layer.fresh(Postgres.layer({ url })))
      )
    )
  return { url, sql, under, aDayLater, everything, sealClearTexts }
})

const hashOf = (text: string) => createHash("sha256").update(text).digest("hex")
const used = (key: string, body: string): UsedKey => ({ orgId: acme, key, requestHash: hashOf(body) })

const append = (...steps: ReadonlyArray<ReturnType<typeof next>>) =>
  Effect.flatMap(EventStore, (store) =>
    Effect.forEach(steps, ({ entry }) => Effect.map(store.append([entry]), ([result]) => result!))
  )

/** A message with a body and, to its first attempt, an answer. */
const answered = (body: string, answer: string, key: string | null = null) => {
  const queued = opened({ orgId: acme, body, ...(key !== null && { idempotency: used(key, body) }) })
  const first = started(queued.after)
  const headers = { "x-answer": answer }
  const failed = settled(first.after, unreachable(), { response: { epoch: 1, attempt: 1, body: answer, headers } })
  return { id: queued.after.id, steps: [queued, first, failed], last: failed.after }
}

const anEvent = (body: string, key: string) => {
  const id = EventId.make(newMessageId())
  const message = opened({ orgId: acme, eventId: id, body: { ofEvent: id } })
  const event = {
    ...{ id, at: now(), actor: null, body, idempotency: { key, requestHash: hashOf(body) }, messages: [message.entry] },
    fact: {
      ...({ type: "EventPublished", orgId: acme, eventType: "order.paid", matched: 1, correlationId: null } as const),
      ...{ dossierId: null, orderingKey: null, metadata: null, deliverAt: null, expiresAt: null }
    }
  }
  return { id, message: message.after, event }
}

/** Each message once: those above were started without a claim, and wait under two times. */
const onceEach = <A extends { readonly messageId: MessageId }>(messages: ReadonlyArray<A>) => [
  ...new Map(messages.map((message) => [message.messageId, message])).values()
]

const claim = Effect.flatMap(Queue, (queue) =>
  queue.claim({
    ...{ worker: "w", limit: 50, perLane: 50, room: new Map(), fullOrgs: new Set<never>() },
    lease: Duration.minutes(5)
  })
)

const isDefect = (exit: Exit.Exit<unknown, unknown>, words: RegExp) => {
  expect(Exit.isFailure(exit)).toBe(true)
  expect(String(Exit.isFailure(exit) && exit.cause)).toMatch(words)
}

describe("sealed texts", () => {
  it.live("are found by nobody who has the database and no key, and read as they were by whoever has it", () =>
    Effect.gen(function* () {
      const { under, sql, everything } = yield* aDatabase
      const [bodyMark, answerMark, eventMark, editedMark, refusedMark] = [
        "body",
        "answer",
        "event",
        "edited",
        "refused"
      ].map((what) => `mark of the ${what}`) as [string, string, string, string, string]
      const body = JSON.stringify({ mark: bodyMark })
      const first = answered(body, answerMark, "key-1")
      const { id: eventId, message, event } = anEvent(JSON.stringify(eventMark), "key-2")
      const died = answered('"first"', "no")
      const command = { orgId: acme, type: "SendMessage", key: null, traceparent: null }
      yield* Effect.gen(function* () {
        yield* append(...first.steps, ...died.steps)
        yield* (yield* Events).publish([event])
        const cancelled = settled(started(died.last).after, {
          type: "Refused",
          error: { code: "http_400", message: "no", retryable: false },
          status: 400,
          durationMs: 1
        })
        yield* append(started(died.last), cancelled)
        yield* append(
          next(
            cancelled.after,
            { type: "ReplayMessage", now: now(), reason: null, edited: true },
            { opening: { body: JSON.stringify(editedMark), idempotency: null } }
          )
        )
        yield* sql("select send($1, $2)", [
          acme,
          { channel: "webhook", to: "nobody", payloadJson: { mark: refusedMark } }
        ])
        const inbox = yield* CommandInbox
        const { commands } = yield* inbox.take(newMessageId(), Duration.seconds(9), null, 10)
        yield* inbox.settle(commands.map((command) => ({ command, problem: "{}", became: null })))
      }).pipe(Effect.provide(under([old])))

      const stored = yield* everything
      const hashes = [body, event.body].map(hashOf)
      for (const mark of [bodyMark, answerMark, eventMark, editedMark, refusedMark, ...hashes]) {
        const forms = [mark, Buffer.from(mark).toString("hex"), Buffer.from(mark).toString("base64").slice(0, -4)]
        expect(stored.filter((row) => forms.some((form) => row.includes(form)))).toEqual([])
      }
      // Requests that were refused are still found by whom they were for.
      expect(stored.filter((row) => row.includes("nobody"))).toHaveLength(1)

      // Another process, which seals nothing, opens all the same.
      yield* Effect.gen(function* () {
        const bodies = yield* Bodies
        expect(yield* bodies.load(first.id)).toBe(body)
        expect(yield* bodies.load(message.id)).toBe(event.body)
        expect(yield* bodies.load(died.id)).toBe(JSON.stringify(editedMark))
        expect(yield* (yield* Events).body(eventId)).toBe(event.body)
        expect([...(yield* bodies.responses(first.id)).answers]).toEqual([
          ["1/1", { body: answerMark, headers: { "x-answer": answerMark } }]
        ])
        expect((yield* (yield* EventStore).acceptedUnder(acme, "key-1"))!.requestHash).toBe(hashOf(body))
        expect((yield* (yield* Events).publishedUnder(acme, "key-2"))!.requestHash).toBe(hashOf(event.body))
        const [again] = yield* append(opened({ orgId: acme, idempotency: used("key-1", body) }))
        expect(again).toMatchObject({ type: "DuplicateKey", messageId: first.id, requestHash: hashOf(body) })
        const [twice] = yield* (yield* Events).publish([{ ...event, id: EventId.make(newMessageId()), messages: [] }])
        expect(twice).toMatchObject({ type: "DuplicateKey", eventId, requestHash: hashOf(event.body) })
        const claimed = onceEach((yield* claim)!.messages)
        expect(claimed.map((one) => [one.messageId, one.body]).sort()).toEqual(
          [
            [first.id, body],
            [message.id, event.body],
            [died.id, JSON.stringify(editedMark)]
          ].sort()
        )
        const [refused] = yield* (yield* CommandInbox).unpublished(10)
        expect(JSON.parse(refused!.request)).toMatchObject({ to: "nobody", payloadJson: { mark: refusedMark } })
        expect(refused).toMatchObject({ orgId: command.orgId, type: command.type, key: command.key })
      }).pipe(Effect.provide(under([old], false)))
    }).pipe(Effect.scoped)
  )

  it.live("are found by nobody either where the streams of messages are elsewhere, and don't answer", () =>
    Effect.gen(function* () {
      const { url, everything } = yield* aDatabase
      const first = answered('"mark of the body"', "mark of the answer", "key-1")
      const { event } = anEvent('"mark of the event"', "key-2")
      const silent = Layer.succeed(Streams, {
        append: () => Effect.fail(new StoreUnavailable({ cause: null })),
        read: () => Effect.succeed([]),
        remove: () => Effect.succeed(true),
        follow: () => Effect.never
      })
      yield* Effect.gen(function* () {
        const store = yield* EventStore
        for (const { entry } of first.steps) yield* Effect.flip(store.append([{ ...entry, fence: null, gate: null }]))
        yield* (yield* Events).publish([event])
      }).pipe(
        Effect.provide(
          Layer.fresh(PostgresPorts.layerOverStreams({ url, encryptionKey: old, sealsBodies: true })).pipe(
            Layer.provide(silent)
          )
        )
      )
      const stored = yield* everything
      for (const mark of ["mark of", hashOf('"mark of the body"'), hashOf(event.body)]) {
        expect(stored.filter((row) => row.includes(mark))).toEqual([])
      }
      expect(stored.filter((row) => row.includes("\u0001")).length).toBeGreaterThanOrEqual(5)
    }).pipe(Effect.scoped)
  )

  it.live("stay in the clear where nobody asks for it, and the setting may change at any time", () =>
    Effect.gen(function* () {
      const { under, sql } = yield* aDatabase
      const rounds = [false, true, false].map((seals) => ({ seals, ...answered(`"${seals}"`, `answer ${seals}`) }))
      for (const { seals, steps } of rounds) yield* append(...steps).pipe(Effect.provide(under([old], seals)))
      const stored = yield* sql(
        "select b.body, r.body as answer from message b join detail r on r.stream_id = b.id where r.body is not null order by r.ctid"
      )
      expect(stored.map((row) => Object.values(row).map((text) => text.startsWith("\u0001")))).toEqual([
        [false, false],
        [true, true],
        [false, false]
      ])
      const read = Effect.forEach(rounds, ({ id }) => Effect.flatMap(Bodies, ({ load }) => load(id)))
      for (const seals of [true, false]) {
        expect(yield* Effect.provide(read, under([old], seals))).toEqual(['"false"', '"true"', '"false"'])
      }
      // A clear text that begins as a sealed one does is none.
      const odd = answered("\u0001b\u0000".slice(0, 2), "\u0001answer")
      yield* Effect.gen(function* () {
        yield* append(...odd.steps)
        expect(yield* (yield* Bodies).load(odd.id)).toBe("\u0001b")
        expect((yield* (yield* Bodies).responses(odd.id)).answers.get("1/1")!.body).toBe("\u0001answer")
      }).pipe(Effect.provide(under([old], false)))
    }).pipe(Effect.scoped)
  )

  it.live("open where they belong and nowhere else", () =>
    Effect.gen(function* () {
      const { under, sql } = yield* aDatabase
      const [mine, theirs] = [answered('"mine"', "to me", "a"), answered('"theirs"', "to them", "b")]
      const { id: eventId, message, event } = anEvent('"event"', "c")
      const other = anEvent('"other"', "b")
      const again = started(mine.last)
      const second = settled(again.after, unreachable(), {
        response: { epoch: 1, attempt: 2, body: "later", headers: null }
      })
      yield* Effect.gen(function* () {
        yield* append(...mine.steps, again, second, ...theirs.steps)
        yield* (yield* Events).publish([event, other.event])
      }).pipe(Effect.provide(under([old])))
      yield* sql("update message b set body = t.body from message t where b.id = $1 and t.id = $2", [
        ...[mine.id, theirs.id]
      ])
      yield* sql(
        "update detail r set body = (select body from detail t where t.stream_id = r.stream_id and t.attempt = 2) where r.stream_id = $1 and r.attempt = 1",
        [mine.id]
      )
      yield* sql(
        "update idempotency i set request_hash = (select t.request_hash from idempotency t where t.key = 'b') where i.key = 'a'"
      )
      yield* sql(
        "update shared_body s set body = (select t.body from shared_body t where t.event_id = $2) where s.event_id = $1",
        [...[eventId, other.id]]
      )
      yield* Effect.gen(function* () {
        const bodies = yield* Bodies
        const moved = /TextDoesNotOpen: it was changed, or belongs to something else/
        isDefect(yield* Effect.exit(bodies.load(mine.id)), moved)
        isDefect(yield* Effect.exit(bodies.responses(mine.id)), moved)
        isDefect(yield* Effect.exit((yield* EventStore).acceptedUnder(acme, "a")), moved)
        // An event's in the place of a message's, also under the other's mark.
        const anEvents = "select request_hash from event_idempotency e where e.key = i.key"
        yield* sql(`update idempotency i set request_hash = (${anEvents}) where key = 'b'`)
        isDefect(yield* Effect.exit((yield* EventStore).acceptedUnder(acme, "b")), /sealed as something else/)
        yield* sql(
          `update idempotency i set request_hash = overlay((${anEvents}) placing 'k' from 2 for 1) where key = 'b'`
        )
        isDefect(yield* Effect.exit((yield* EventStore).acceptedUnder(acme, "b")), moved)
        isDefect(yield* Effect.exit((yield* Events).body(eventId)), moved)
        isDefect(yield* Effect.exit(bodies.load(message.id)), moved)
        expect(yield* bodies.load(theirs.id)).toBe('"theirs"')
        expect(yield* bodies.load(other.message.id)).toBe('"other"')
        // What a claim can't open holds up nothing else, and nobody is given a body that is not its own.
        const { messages, unreadable } = (yield* claim)!
        expect(
          onceEach(messages)
            .map(({ body }) => body)
            .sort()
        ).toEqual(['"other"', '"theirs"'])
        expect(
          onceEach(unreadable!)
            .map(({ messageId, defect }) => [messageId, (defect as Error).message])
            .sort()
        ).toEqual([mine.id, message.id].map((id) => [id, "it was changed, or belongs to something else"]).sort())
      }).pipe(Effect.provide(under([old])))
    }).pipe(Effect.scoped)
  )

  it.live("need the key that their data key names, also large ones", () =>
    Effect.gen(function* () {
      const { under, sql, url, aDayLater } = yield* aDatabase
      const large = answered(`"${"x".repeat(CLAIMED_BODY_MAX)}"`, "ok")
      yield* append(...large.steps).pipe(Effect.provide(under([old])))
      const refused = yield* Effect.flip(Layer.build(under([young])))
      expect((refused as Error).message).toMatch(/no encryption key that is given sealed the secrets of this database/)
      // A process that was started before the others had a newer key, and that does not have the data key yet.
      yield* aDayLater
      yield* Effect.gen(function* () {
        yield* rekey(young, [old], () => Effect.void).pipe(Effect.provide(Layer.fresh(Postgres.layer({ url }))))
        const claimed = onceEach((yield* claim)!.messages)
        expect(claimed.map(({ body, isBodyLarge }) => [body, isBodyLarge])).toEqual([[null, true]])
        isDefect(
          yield* Effect.exit((yield* Bodies).load(large.id)),
          /the key that it was sealed with is not there, or does not open/
        )
      }).pipe(Effect.provide(under([old])))
      yield* sql("delete from encryption_check")
      const without = yield* Effect.flip(Layer.build(under([old])))
      expect((without as Error).message).toMatch(
        /^bodies of this database are sealed with an encryption key that is not given/
      )
    }).pipe(Effect.scoped)
  )

  it.live("come with their key, whatever the database has lost of it", () =>
    Effect.gen(function* () {
      const { under, sql } = yield* aDatabase
      const [before, after] = [answered('"before"', "a"), answered('"after"', "b")]
      yield* Effect.gen(function* () {
        yield* append(...before.steps)
        // As after a restore, or the promotion of a server that lagged behind.
        yield* sql("truncate data_key")
        yield* append(...after.steps)
      }).pipe(Effect.provide(under([old])))
      expect(yield* sql("select count(*)::text from data_key")).toEqual([{ count: "1" }])
      // A process that has opened nothing yet.
      const { messages, unreadable } = (yield* Effect.provide(claim, under([old])))!
      expect(
        onceEach(messages)
          .map(({ body }) => body)
          .sort()
      ).toEqual(['"after"', '"before"'])
      expect(unreadable).toBeUndefined()
    }).pipe(Effect.scoped)
  )

  it.live("have one data key for all processes that start within a day, and another one after that", () =>
    Effect.gen(function* () {
      const { under, sql, aDayLater, everything } = yield* aDatabase
      const count = Effect.map(sql("select count(*)::int as count from data_key"), ([row]) => Number(row!["count"]))
      const first = answered('"first"', "a")
      yield* append(...first.steps).pipe(Effect.provide(under([old])))
      yield* append(...answered('"second"', "b").steps).pipe(Effect.provide(under([old])))
      expect(yield* count).toBe(1)
      // It goes with what it seals, also where somebody else brought it.
      yield* append(...answered('"third"', "c").steps).pipe(
        (work) => Effect.andThen(sql("truncate data_key"), work),
        Effect.provide(under([old]))
      )
      expect(yield* count).toBe(1)
      expect(
        yield* Effect.provide(
          Effect.flatMap(Bodies, ({ load }) => load(first.id)),
          under([old])
        )
      ).toBe('"first"')
      // One that an older encryption key has sealed is for reading.
      yield* append(...answered('"fourth"', "d").steps).pipe(Effect.provide(under([young, old])))
      expect(yield* count).toBe(2)
      yield* aDayLater
      yield* append(...answered('"fifth"', "e").steps).pipe(Effect.provide(under([young, old])))
      expect(yield* count).toBe(3)
      // Nobody works with one that was changed, and what is sealed meanwhile opens.
      yield* sql("update data_key set sealed = 'AAAA' where at > clock_timestamp() - interval '1 day'")
      const last = answered('"last"', "f")
      yield* append(...last.steps).pipe(Effect.provide(under([young, old])))
      expect(
        yield* Effect.provide(
          Effect.flatMap(Bodies, ({ load }) => load(last.id)),
          under([young, old])
        )
      ).toBe('"last"')
      expect((yield* everything).filter((row) => /"(first|second|third|fourth|fifth|last)"/.test(row))).toEqual([])
    }).pipe(Effect.scoped)
  )

  it.live("whose data key is gone are named by a check, table by table, and nothing else is", () =>
    Effect.gen(function* () {
      const { url, under, sql, aDayLater } = yield* aDatabase
      const mine = answered('"mine"', "thanks", "k")
      yield* append(...mine.steps).pipe(Effect.provide(under([old])))
      const [lost] = yield* sql("select id from data_key")
      yield* aDayLater
      const theirs = anEvent('"theirs"', "k")
      yield* Effect.flatMap(Events, ({ publish }) => publish([theirs.event])).pipe(Effect.provide(under([old])))
      // In the clear, and yet it begins as what is sealed does.
      yield* append(opened({ orgId: acme, body: '\u0001b"odd"' })).pipe(Effect.provide(under([old], false)))
      const check = Effect.map(
        verify(() => Effect.void),
        ({ findings }) => findings.flatMap(({ table, examples }) => (table === "data keys" ? examples : [])).toSorted()
      ).pipe(
        Effect.provide(
          Layer.fresh(
            Layer.provideMerge(
              Layer.merge(LogReader.layer, Channels.unused),
              PostgresPorts.truth({ url, sealing: Effect.succeed(sealing(old)) })
            )
          )
        )
      )
      expect(yield* check).toEqual([])
      yield* sql("delete from data_key where id = $1", [lost!["id"]])
      expect(yield* check).toEqual(
        [
          ["message", mine.id],
          ["detail", mine.id],
          ["idempotency", acme]
        ]
          .map(([table, example]) => `${lost!["id"]} of ${table}, such as that of ${example}`)
          .toSorted()
      )
    }).pipe(Effect.scoped)
  )

  it.live("hide receipts that wait, hand them out as they came, and are found there by an erasure", () =>
    Effect.gen(function* () {
      const { under, sql, everything, aDayLater } = yield* aDatabase
      const phone = "4915177700017"
      const account = newLane()
      /** As Meta reports. */
      const about = (to: string, name: string) => ({
        ...{ orgId: acme, account },
        raw: JSON.stringify({ id: `wamid.of-${name}`, recipient_id: to, errors: [{ title: `+${to} is no number` }] })
      })
      const add = (...receipts: ReadonlyArray<ReturnType<typeof about>>) =>
        Effect.flatMap(ReceiptInbox, (inbox) => inbox.add(receipts))
      const claimed = Effect.flatMap(ReceiptInbox, ({ claim }) => claim(100, Duration.minutes(1)))
      const rawOf = (receipts: ReadonlyArray<{ readonly raw: string }>) => receipts.map(({ raw }) => raw).toSorted()
      const isDue = sql("update receipt_inbox set due_at = clock_timestamp()")

      const ofPerson = [about(phone, "first"), about(phone, "second"), about("4915177700018", "text-of-4915177700017-")]
      const ofOther = [about("4930222", "another"), about("493", "third")]
      yield* Effect.provide(add(ofPerson[0]!, ofPerson[0]!, ofOther[0]!), under([old]))
      yield* aDayLater
      // With another data key, in the clear, and once more.
      yield* Effect.provide(add(ofPerson[1]!, ofOther[1]!, ofPerson[0]!), under([old]))
      const spelled = (text: string) => [
        text,
        ...["hex", "base64"].map((form) =>
          Buffer.from(text)
            .toString(form as "hex")
            .slice(0, -2)
        )
      ]
      const marks = [phone, "wamid.of", "4930222"].flatMap(spelled)
      expect((yield* everything).filter((row) => marks.some((mark) => row.includes(mark)))).toEqual([])
      yield* Effect.provide(add(ofPerson[2]!), under([old], false))

      yield* Effect.gen(function* () {
        const held = yield* claimed
        expect(rawOf(held)).toEqual(rawOf([...ofPerson, ...ofOther]))
        expect(new Set(held.map(({ account }) => account))).toEqual(new Set([account]))
        const person = yield* ended(refused(), now(), { orgId: acme, to: phone, dossierId: "mine" })
        const erasures = yield* Erasures
        yield* erasures.open({
          ...{ id: newMessageId(), orgId: acme, by: "dossierId", reason: null },
          sought: ["mine"]
        })
        const job = (yield* erasures.take(Duration.minutes(1)))!
        expect(yield* erasures.erase(job, [person.id], [])).toBe(true)
        yield* isDue
        expect(rawOf(yield* claimed)).toEqual(rawOf(ofOther))

        // One that does not open holds up none, and is handed out when its key is back.
        const [lost] = yield* sql("delete from data_key where at < clock_timestamp() - interval '1 day' returning *")
        yield* isDue
        yield* Effect.gen(function* () {
          expect(rawOf(yield* claimed)).toEqual(rawOf([ofOther[1]!]))
          yield* sql("insert into data_key (id, sealed, sealed_by, at) values ($1, $2, $3, $4)", [
            ...[lost!["id"], lost!["sealed"], lost!["sealed_by"], lost!["at"]]
          ])
          expect(yield* claimed).toEqual([])
          yield* isDue
          expect(rawOf(yield* claimed)).toEqual(rawOf(ofOther))
        }).pipe(Effect.provide(under([old])))
      }).pipe(Effect.provide(under([old])))
    }).pipe(Effect.scoped)
  )

  it.live("hide no receipt from an erasure that comes while its stretch begins, sealed with another key", () =>
    Effect.gen(function* () {
      const { under, sql, url, aDayLater } = yield* aDatabase
      const phone = "4915177700017"
      const add = (name: string) =>
        Effect.flatMap(ReceiptInbox, (inbox) =>
          inbox.add([
            { orgId: acme, account: newLane(), raw: JSON.stringify({ id: `wamid.${name}`, recipient_id: phone }) }
          ])
        ).pipe(Effect.provide(under([old])))
      yield* add("first")
      yield* aDayLater
      yield* Effect.gen(function* () {
        const person = yield* ended(refused(), now(), { orgId: acme, to: phone, dossierId: "mine" })
        const erasures = yield* Erasures
        yield* erasures.open({
          ...{ id: newMessageId(), orgId: acme, by: "dossierId", reason: null },
          sought: ["mine"]
        })
        const job = (yield* erasures.take(Duration.minutes(1)))!
        // A projector is in the middle of a step, so the stretch waits; which keys there are it has looked up before.
        const projector = yield* session(url)
        yield* Effect.promise(() => projector.query("begin; select from projection for update"))
        const stretch = yield* Effect.forkScoped(erasures.erase(job, [person.id], []))
        const waits = sql(
          "select from pg_stat_activity where wait_event_type = 'Lock' and query like '%erase_streams%'"
        )
        yield* Effect.repeat(waits, { until: (rows) => rows.length > 0, schedule: Schedule.spaced("20 millis") })
        yield* add("second")
        yield* Effect.promise(() => projector.query("commit"))
        const left = Effect.map(sql("select from receipt_inbox"), (rows) => rows.length)
        if (!(yield* Fiber.join(stretch))) {
          expect(yield* left).toBe(2)
          expect(yield* erasures.erase(job, [person.id], [])).toBe(true)
        }
        expect(yield* left).toBe(0)
      }).pipe(Effect.provide(under([old])))
    }).pipe(Effect.scoped)
  )

  it.live(
    "are left as they are by another key: the keys of the processes are sealed anew, and the old key can go",
    () =>
      Effect.gen(function* () {
        const { under, sql, url, aDayLater } = yield* aDatabase
        const mine = answered('"mine"', "thanks", "k")
        for (const steps of [mine.steps, answered('"other"', "b").steps]) {
          yield* append(...steps).pipe(Effect.provide(under([old])))
          yield* aDayLater
        }
        const texts =
          "select body from message union all select body from detail where body is not null union all select request_hash from idempotency order by 1"
        const stored = yield* sql(texts)
        const run = rekey(young, [old], () => Effect.void).pipe(Effect.provide(Layer.fresh(Postgres.layer({ url }))))
        // Both processes had a key of their own.
        expect(yield* run).toEqual({ values: 2, destinations: 0 })
        expect(yield* run).toEqual({ values: 0, destinations: 0 })
        expect(yield* sql(texts)).toEqual(stored)
        const read = Effect.gen(function* () {
          const bodies = yield* Bodies
          return [yield* bodies.load(mine.id), (yield* bodies.responses(mine.id)).answers.get("1/1")?.body]
        })
        expect(yield* Effect.provide(read, under([young]))).toEqual(['"mine"', "thanks"])
        for (const keys of [[old], [strange]] as const) {
          expect(Exit.isFailure(yield* Effect.exit(Layer.build(under(keys))))).toBe(true)
        }
      }).pipe(Effect.scoped)
  )

  it.live("also become those that were stored in the clear, over cuts", () =>
    Effect.gen(function* () {
      const { under, sql, everything, sealClearTexts } = yield* aDatabase
      const ROWS = 2_400
      yield* sql(
        `with ids as (select n, gen_random_uuid() as id from generate_series(1, ${ROWS}) n),
            bodies as (insert into message (id, org_id, channel, destination, accepted_at, data, body) select id, 'acme', 'webhook', id, now(), '{}', '"clear ' || n || '"' from ids),
            keys as (insert into idempotency (org_id, key, message_id, request_hash, at) select 'acme', 'key ' || n, id, 'clear hash', now() from ids)
          insert into detail (stream_id, version, epoch, attempt, body, headers)
            select id, 3, 1, 1, 'clear answer ' || n, case when n % 2 = 0 then '{"x": "clear header"}'::json end from ids`
      )
      const early = anEvent('"clear event"', "e")
      yield* Effect.flatMap(Events, ({ publish }) => publish([early.event])).pipe(Effect.provide(under([old], false)))
      const request = { to: "nobody", metadata: { customer: "seven" }, payloadJson: "clear request" }
      yield* sql("select send($1, $2)", [acme, request])
      yield* sql(`insert into refused_command (id, org_id, type, key, request, problem)
          select id, org_id, type, key, request, '{}' from sql_command`)
      yield* sql("truncate sql_command")

      const reached = yield* Latch.make()
      const cut = yield* Effect.forkChild(
        sealClearTexts((done) => (done >= 1_000 ? Effect.andThen(reached.open, Effect.never) : Effect.void))
      )
      yield* reached.await
      yield* Fiber.interrupt(cut)
      const clear = () => Effect.map(everything, (rows) => rows.filter((row) => row.includes("clear ")).length)
      expect(yield* clear()).toBeGreaterThan(ROWS)
      const [left] = yield* sql(
        `select count(*)::int as texts from (
            select body from message where body is not null union all select body from shared_body union all select body from detail where body is not null
            union all select request_hash from idempotency union all select request_hash from event_idempotency
            union all select request ->> 'payloadJson' from refused_command
          ) t where body not like E'\\x01%'`
      )
      expect(yield* sealClearTexts()).toBe(left!["texts"])
      expect(yield* clear()).toBe(0)
      expect(yield* sealClearTexts()).toBe(0)
      // No key seals twice with one nonce.
      const texts = yield* sql(
        "select body from message where body is not null union all select body from detail where body is not null union all select request_hash from idempotency"
      )
      const heads = texts.map(({ body }) => Buffer.from(body!.slice(2), "base64").toString("hex", 0, 28))
      expect(new Set(heads).size).toBe(3 * ROWS)

      yield* Effect.gen(function* () {
        const bodies = yield* Bodies
        const [some] = yield* sql("select message_id from idempotency where key = 'key 8'")
        const id = MessageId.make(some!["message_id"]!)
        expect(yield* bodies.load(id)).toBe('"clear 8"')
        expect((yield* bodies.responses(id)).answers.get("1/1")).toEqual({
          body: "clear answer 8",
          headers: { x: "clear header" }
        })
        expect((yield* (yield* EventStore).acceptedUnder(acme, "key 8"))!.requestHash).toBe("clear hash")
        expect(yield* (yield* Events).body(early.id)).toBe('"clear event"')
        expect(yield* bodies.load(early.message.id)).toBe('"clear event"')
        const [refused] = yield* (yield* CommandInbox).unpublished(10)
        expect(JSON.parse(refused!.request)).toEqual(request)
        // Whoever is erased is still found in it.
        const sought = (field: string, ...values: ReadonlyArray<string>) =>
          Effect.map(sql("select id from sought_commands($1, $2, $3)", [acme, field, values]), (rows) => rows.length)
        expect([yield* sought("metadata", "customer", "seven"), yield* sought("recipient", "nobody")]).toEqual([1, 1])
      }).pipe(Effect.provide(under([old])))
    }).pipe(Effect.scoped)
  )

  it.live("do not take the place of what others write meanwhile", () =>
    Effect.gen(function* () {
      const { under, sql, sealClearTexts } = yield* aDatabase
      const [edited, erased] = [answered('"before"', "a"), answered('"erased"', "b")]
      yield* append(...edited.steps, ...erased.steps).pipe(Effect.provide(under([old], false)))
      // They can be read, and whoever seals them waits for who is changing them: for the table of one, for the row of the other.
      yield* sql("begin")
      yield* sql("lock table message in share row exclusive mode")
      yield* sql("update message set body = $2 where id = $1", [edited.id, '"meanwhile"'])
      yield* sql("delete from detail where stream_id = $1", [erased.id])
      const run = yield* Effect.forkChild(sealClearTexts())
      const waits = Effect.map(
        sql(
          `select count(*)::int as waiting from (select pg_stat_clear_snapshot()) anew, pg_stat_activity
            where wait_event_type = 'Lock' and datname = current_database()`
        ),
        ([row]) => Number(row!["waiting"]) > 0
      )
      yield* Effect.repeat(Effect.delay(waits, "20 millis"), { until: (isWaiting) => isWaiting })
      yield* sql("commit")
      yield* Fiber.join(run)
      yield* Effect.gen(function* () {
        const bodies = yield* Bodies
        expect(yield* bodies.load(edited.id)).toBe('"meanwhile"')
        expect((yield* bodies.responses(erased.id)).answers).toEqual(new Map())
      }).pipe(Effect.provide(under([old])))
      // The next run takes what that one left.
      expect(yield* sealClearTexts()).toBe(1)
    }).pipe(Effect.scoped)
  )
})
