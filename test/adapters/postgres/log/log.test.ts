/**
 * The log of all facts under transactions that commit slowly, late, out of order or not at all: what `EventStore.readAll`
 * promises about them, and who is named when one of them keeps everybody waiting.
 */
import { randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Duration, Effect, Redacted, Schedule, type Scope } from "effect"
import type pg from "pg"
import { EventStore, type LoggedFact } from "../../../../src/application/ports/EventStore.ts"
import type { StoreUnavailable } from "../../../../src/application/ports/errors.ts"
import { Projections } from "../../../../src/application/ports/Projections.ts"
import * as PostgresPorts from "../../../../src/setup/postgresPorts.ts"
import { opened, started } from "../../../contracts/sample.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"
import { session } from "../../../servers/session.ts"
import { PATIENCE_MS, pause, until } from "../../../servers/until.ts"

const encryptionKey = Redacted.make(new Uint8Array(32).fill(7))
/** Transactions of each slow writer. */
const ROUNDS = 8

const test = (
  rule: string,
  body: (url: Redacted.Redacted) => Effect.Effect<void, StoreUnavailable, EventStore | Projections | Scope.Scope>
) =>
  it.live(
    rule,
    () =>
      Effect.gen(function* () {
        const url = yield* freshDatabase
        yield* Effect.scoped(body(url)).pipe(Effect.provide(PostgresPorts.layer({ url, encryptionKey })))
      }),
    300_000
  )

/** Other databases of the same server keep everybody waiting too, for as long as their own tests write. */
const eventually = <A, E, R>(effect: Effect.Effect<A, E, R>, holds: (answer: A) => boolean) =>
  Effect.repeat(effect, { until: holds, schedule: Schedule.spaced("20 millis") }).pipe(
    Effect.timeout(PATIENCE_MS),
    Effect.orDie
  )

const place = ({ stream, version }: Pick<LoggedFact, "stream" | "version">) => `${stream}@${version}`

describe("the log under slow commits", () => {
  test("shows a reader every fact that was committed, once, and nothing that was not", (url) =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const shared = Array.from({ length: 2 }, () => ({ name: `test-${randomUUID()}`, id: randomUUID() }))
      const committed = new Set<string>()
      /** How often something was committed on each of the shared streams. */
      const commits = shared.map(() => 0)
      /** Up to where the reader has come that trusts the sequence alone. */
      let passed = 0
      let slowAreDone = false

      /** The place of the fact, null where somebody else wrote that version. */
      const write = async (one: pg.Client, stream: { readonly name: string; readonly id: string }) => {
        const { rows } = await one.query(
          `insert into event (stream_id, stream, tx, at, version, name, data)
            select $1, $2, log_tx(), now(), coalesce(max(version), 0) + 1, 'Tested@1', '{}'
            from event where stream_id = $1
          on conflict do nothing returning version, position`,
          [stream.id, stream.name]
        )
        const [row] = rows
        return row === undefined
          ? null
          : { fact: place({ stream: stream.name, version: row.version }), position: Number(row.position) }
      }

      /** Commits again and again on the streams that slow writers write to as well. */
      const brisk = yield* session(url, "brisk writer")
      const briskWriter = Effect.promise(async () => {
        for (let i = 0; !slowAreDone; i++) {
          const nth = i % shared.length
          const written = await write(brisk, shared[nth]!)
          if (written !== null) {
            committed.add(written.fact)
            commits[nth]! += 1
          }
          await pause(1)
        }
      })

      /**
       * Takes its place in the order early. Others, who came later, commit on the same stream first; and it commits only when somebody
       * has read beyond its own, or not at all.
       */
      const slowWriter = Effect.fnUntraced(function* (n: number) {
        const one = yield* session(url, `slow writer ${n}`)
        yield* Effect.promise(async () => {
          for (let i = 0; i < ROUNDS; i++) {
            await one.query("begin")
            await one.query("select pg_current_xact_id()")
            const own = (await write(one, { name: `test-${randomUUID()}`, id: randomUUID() }))!
            const nth = (n + i) % shared.length
            const before = commits[nth]!
            // The one that was under way may have begun earlier.
            await until("a later commit on the same stream", () => commits[nth]! >= before + 2)
            await until("a reader beyond the fact", () => passed > own.position)
            let both = await write(one, shared[nth]!)
            while (both === null) both = await write(one, shared[nth]!)
            await pause((7 * n + 13 * i) % 40)
            const isUndone = i % 4 === 3
            await one.query(isUndone ? "rollback" : "commit")
            if (!isUndone) for (const { fact } of [own, both]) committed.add(fact)
          }
        })
      })

      /** What the product itself writes meanwhile. */
      const quickWriter = Effect.gen(function* () {
        while (!slowAreDone) {
          const queued = opened()
          const begun = started(queued.after)
          for (const { entry } of [queued, begun]) {
            yield* store.append([entry])
            committed.add(place({ stream: `message-${entry.messageId}`, version: entry.expected + 1 }))
          }
          yield* Effect.sleep("1 millis")
        }
      })

      const seen: Array<LoggedFact> = []
      const last = opened().entry
      /** To the fact that was written when all others were done. */
      const subscriber = Effect.gen(function* () {
        let after: string | null = null
        while (seen.at(-1)?.messageId !== last.messageId) {
          const page: ReadonlyArray<LoggedFact> = yield* store.readAll(after, 50)
          seen.push(...page)
          after = page.at(-1)?.position ?? after
          if (page.length < 50) yield* Effect.sleep("2 millis")
        }
      })

      /** One that trusts the sequence alone, to know that this run would have misled it. */
      const naive = yield* session(url, "naive reader")
      const naively = new Set<string>()
      const naiveSubscriber = Effect.promise(async () => {
        while (!slowAreDone) {
          const { rows } = await naive.query(
            "select coalesce(stream, 'message-' || stream_id) as stream, version, position from event where position > $1 order by position limit 50",
            [passed]
          )
          for (const row of rows) naively.add(place(row))
          passed = Number(rows.at(-1)?.position ?? passed)
          if (rows.length < 50) await pause(2)
        }
      })

      const slowWriters = Effect.all(
        Array.from({ length: 4 }, (_, n) => Effect.scoped(slowWriter(n))),
        { concurrency: "unbounded" }
      ).pipe(Effect.ensuring(Effect.sync(() => (slowAreDone = true))))
      const writers = Effect.all([slowWriters, briskWriter, quickWriter, quickWriter, naiveSubscriber], {
        concurrency: "unbounded"
      })
      yield* Effect.all(
        [
          subscriber,
          Effect.andThen(writers, store.append([last])).pipe(
            Effect.andThen(Effect.sync(() => committed.add(place({ stream: `message-${last.messageId}`, version: 1 }))))
          )
        ],
        { concurrency: "unbounded" }
      )

      const places = seen.map(place)
      const known = new Set(places)
      expect([...committed].filter((fact) => !known.has(fact))).toEqual([])
      expect(places.length).toBe(known.size)
      expect(known.size).toBe(committed.size)

      // A stream can come out of version order: gated by version it does not.
      const reached = new Map<string, number>()
      const early = new Map<string, Set<number>>()
      const gated: Array<string> = []
      let inversions = 0
      for (const { stream, version } of seen) {
        const waiting = early.get(stream) ?? new Set()
        early.set(stream, waiting.add(version))
        let next = (reached.get(stream) ?? 0) + 1
        if (version > next) inversions++
        for (; waiting.delete(next); next++) gated.push(place({ stream, version: next }))
        reached.set(stream, next - 1)
      }
      expect(gated.length).toBe(seen.length)
      expect(inversions).toBeGreaterThan(0)
      expect([...committed].filter((fact) => !naively.has(fact)).length).toBeGreaterThan(0)

      // Whoever reads it later reads the same in the same order.
      const later = yield* eventually(store.readAll(null, 100_000), (facts) => facts.length >= places.length)
      expect(later.map(place)).toEqual(places)
    }))

  test("waits for an open transaction, names it, and goes on when it has ended", (url) =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const { stall } = yield* Projections
      const forAMoment = Duration.millis(200)
      const one = yield* session(url, "the nightly report")
      const before = DateTime.nowUnsafe()
      yield* Effect.promise(async () => {
        await one.query("begin")
        await one.query("select pg_current_xact_id()")
      })
      const begun = DateTime.nowUnsafe()
      const waiting = opened().entry
      yield* store.append([waiting])
      expect(yield* store.readAll(null, 10)).toEqual([])
      // Nobody can read it yet, so everybody lacks it.
      expect(DateTime.toEpochMillis((yield* store.unreadSince(null))!)).toBe(DateTime.toEpochMillis(waiting.at))
      expect(yield* stall(Duration.hours(1))).toBeNull()
      yield* Effect.sleep("400 millis")
      const { rows } = yield* Effect.promise(() => one.query("select pg_backend_pid() as pid"))
      const found = yield* eventually(stall(forAMoment), (one) => one?.pid === rows[0].pid)
      expect(found).toMatchObject({ application: "the nightly report" })
      expect(Duration.toMillis(DateTime.distance(before, found!.since))).toBeGreaterThan(-1_000)
      expect(Duration.toMillis(DateTime.distance(found!.since, begun))).toBeGreaterThan(-1_000)
      yield* Effect.promise(() => one.query("commit"))
      yield* eventually(store.readAll(null, 10), (facts) => facts.length === 1)
      expect((yield* stall(Duration.zero))?.pid).not.toBe(rows[0].pid)
    }))

  test("is not kept waiting by who only reads", (url) =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const one = yield* session(url, "a long look")
      yield* Effect.promise(async () => {
        await one.query("begin isolation level repeatable read")
        await one.query("select count(*) from event")
      })
      yield* store.append([opened().entry])
      yield* eventually(store.readAll(null, 10), (facts) => facts.length === 1)
      const { rows } = yield* Effect.promise(() => one.query("select pg_backend_pid() as pid"))
      expect((yield* (yield* Projections).stall(Duration.zero))?.pid).not.toBe(rows[0].pid)
    }))

  test("goes on in order when its base was raised, as on another server, and still waits for an open transaction", (url) =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const append = Effect.gen(function* () {
        const { entry } = opened()
        yield* store.append([entry])
        return entry.messageId
      })
      const before = [yield* append, yield* append]
      const read = yield* eventually(store.readAll(null, 10), (facts) => facts.length === 2)
      const one = yield* session(url, "the move")
      // What a server with lower transaction ids is given: more than all that is stored.
      yield* Effect.promise(() => one.query("update log_base set base = base + 1000000000000"))
      const after = [yield* append, yield* append]
      const whole = yield* eventually(store.readAll(null, 10), (facts) => facts.length === 4)
      expect(whole.map(({ messageId }) => messageId)).toEqual([...before, ...after])
      const rest = yield* store.readAll(read.at(-1)!.position, 10)
      expect(rest.map(({ messageId }) => messageId)).toEqual(after)
      expect((yield* store.extent).head).toBe(whole.at(-1)!.position)

      yield* Effect.promise(async () => {
        await one.query("begin")
        await one.query("select pg_current_xact_id()")
      })
      const hidden = yield* append
      expect(yield* store.readAll(whole.at(-1)!.position, 10)).toEqual([])
      yield* Effect.promise(() => one.query("commit"))
      const found = yield* eventually(store.readAll(whole.at(-1)!.position, 10), (facts) => facts.length === 1)
      expect(found[0]!.messageId).toBe(hidden)
    }))
})
