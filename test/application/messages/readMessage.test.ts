import { describe, expect, it } from "@effect/vitest"
import { DateTime, Effect } from "effect"
import { TestClock } from "effect/testing"
import { entryOf } from "../../../src/application/entry.ts"
import { readAttempts } from "../../../src/application/messages/readAttempts.ts"
import { readEvents, readMessage } from "../../../src/application/messages/readMessage.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { PAGE_READ_BYTES } from "../../../src/application/ports/errors.ts"
import { MessageId, OrgId } from "../../../src/domain/ids.ts"
import { replay } from "../../../src/domain/message/decider.ts"
import type { MessageFact } from "../../../src/domain/message/facts.ts"
import { delivered, failed, lane, noon, noonPlus, queued, started, succeeded } from "../../domain/message/samples.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const acme = OrgId.make("acme")
const id = MessageId.make("0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a02")

/** Appends each with its own time, as writers with clocks of their own would. */
const store = (facts: ReadonlyArray<readonly [DateTime.Utc, MessageFact, string?]>) =>
  Effect.gen(function* () {
    const events = yield* EventStore
    for (const [at, fact, body] of facts) {
      const { version, facts: history } = yield* events.load(id)
      const before = replay(history.map((stored) => stored.fact))
      const { epoch, attempt } = before.progress
      const response = body === undefined ? null : { epoch, attempt, body, headers: null }
      yield* events.append([entryOf(id, before, version, [fact], at, { response }).entry])
    }
  })

const history = [
  [noon, queued()],
  [noonPlus(10), started(1)],
  [noonPlus(30), failed(1, noonPlus(40)), "try later"],
  // A worker whose clock is behind.
  [noonPlus(20), started(2)],
  [noonPlus(50), succeeded(2)],
  [noonPlus(50), delivered("response")]
] as const

describe("a message read at a time", () => {
  it.effect("is what was known by then, and its history ends at the first fact that was later", () =>
    Effect.gen(function* () {
      yield* store(history)
      const statusAt = (milliseconds: number) =>
        Effect.map(readMessage(acme, id, noonPlus(milliseconds)), ({ status, attempts }) => `${status} ${attempts}`)
      expect(yield* statusAt(0)).toBe("QUEUED 0")
      expect(yield* statusAt(10)).toBe("SENDING 1")
      // The second attempt bears an earlier time than the failure before it: it can't have been known yet.
      expect(yield* statusAt(25)).toBe("SENDING 1")
      expect(yield* statusAt(30)).toBe("SENDING 2")
      expect(yield* statusAt(50)).toBe("DELIVERED 2")
      expect((yield* readMessage(acme, id, null)).status).toBe("DELIVERED")
    }).pipe(Effect.provide(MemoryPorts.layer))
  )

  it.effect("is not found before it was accepted", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(DateTime.toEpochMillis(noon))
      yield* store(history)
      expect((yield* Effect.flip(readMessage(acme, id, noonPlus(-1))))._tag).toBe("MessageNotFound")
    }).pipe(Effect.provide(MemoryPorts.layer))
  )
})

describe("what happened to a message", () => {
  it.effect("is told with the status after each fact, and each attempt with its response", () =>
    Effect.gen(function* () {
      yield* store(history)
      expect((yield* readEvents(acme, id)).map(({ status }) => status)).toEqual([
        "QUEUED",
        "SENDING",
        "QUEUED",
        "SENDING",
        "SENT",
        "DELIVERED"
      ])
      const { items: attempts } = yield* readAttempts(acme, id, { cursor: null, limit: 10 })
      expect(attempts.map(({ number, status, answer }) => [number, status, answer?.body ?? null])).toEqual([
        [1, 503, "try later"],
        [2, 200, null]
      ])
    }).pipe(Effect.provide(MemoryPorts.layer))
  )

  it.effect("is told in pages where the answers to its attempts are large, each attempt once and with its answer", () =>
    Effect.gen(function* () {
      const attempts = Array.from({ length: 12 }, (_, n) => n + 1)
      const body = (n: number) => String(n).padEnd(PAGE_READ_BYTES / 5, "x")
      const retry = { strategy: "fixed", baseMs: 0, attemptsMax: 20, jitter: [1, 1] } as const
      yield* store([
        [noon, queued({ retry })],
        ...attempts.flatMap((n) => [
          [noonPlus(n), started(n)] as const,
          [noonPlus(n), failed(n, noonPlus(n)), body(n)] as const
        ])
      ])
      const pages = []
      for (let cursor: string | null = null; ; ) {
        const page: Effect.Success<ReturnType<typeof readAttempts>> = yield* readAttempts(acme, id, {
          cursor,
          limit: 7
        })
        pages.push(page.items)
        if (page.nextCursor === null) break
        cursor = page.nextCursor
      }
      expect(pages.map((items) => items.length)).toEqual([5, 5, 2])
      const told = pages.flat().map(({ number, answer }) => [number, answer?.body === body(number)])
      expect(told).toEqual(attempts.map((n) => [n, true]))
    }).pipe(Effect.provide(MemoryPorts.layer))
  )

  it.effect("is told to its org only, and only of messages that are", () =>
    Effect.gen(function* () {
      yield* store(history)
      const globex = OrgId.make("globex")
      const never = MessageId.make(lane)
      const refusals = yield* Effect.all([
        Effect.flip(readMessage(globex, id, null)),
        Effect.flip(readEvents(globex, id)),
        Effect.flip(readAttempts(globex, id, { cursor: null, limit: 10 })),
        Effect.flip(readMessage(acme, never, null))
      ])
      expect(refusals.map(({ _tag }) => _tag)).toEqual(Array(4).fill("MessageNotFound"))
    }).pipe(Effect.provide(MemoryPorts.layer))
  )
})
