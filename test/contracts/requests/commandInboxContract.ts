/** What every adapter of `CommandInbox` promises. `layer` gives an empty store to each test. */
import { randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Duration, Effect, type Layer } from "effect"
import { COMMAND_MAX, CommandInbox, type GivenCommand } from "../../../src/application/ports/CommandInbox.ts"
import type { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { OrgId } from "../../../src/domain/ids.ts"
import { Callers } from "./Callers.ts"

const acme = OrgId.make("acme")
const LEASE = Duration.minutes(1)
const [HOLDER, OTHER] = [randomUUID(), randomUUID()]

export const commandInboxContract = <E>(name: string, layer: Layer.Layer<CommandInbox | Callers, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, CommandInbox | Callers>) =>
    it.live(rule, () => Effect.provide(body, layer))

  const take = (seen: string | null, limit = 100, holder = HOLDER, lease = LEASE) =>
    Effect.flatMap(CommandInbox, (inbox) => inbox.take(holder, lease, seen, limit))
  const begin = Effect.flatMap(Callers, (callers) => callers.begin)
  /** One transaction that commits. */
  const given = Effect.fnUntraced(function* (...requests: ReadonlyArray<string>) {
    const transaction = yield* begin
    const ids: Array<string> = []
    for (const request of requests) ids.push(yield* transaction.send(request))
    yield* transaction.commit
    return ids
  })
  const idsOf = (commands: ReadonlyArray<GivenCommand>) => commands.map(({ id }) => id)
  const accepted = (command: GivenCommand) => ({ command, problem: null, became: null })

  describe(`${name} commands of callers' transactions`, () => {
    test(
      "are here as soon as their transaction is committed, and only then, as they were written",
      Effect.gen(function* () {
        const [kept, undone] = [yield* begin, yield* begin]
        const id = yield* kept.send(`{"n": 12345678901234567890.10}`, { key: "k" })
        yield* undone.send("{}")
        expect((yield* take(null)).commands).toEqual([])
        yield* kept.commit
        yield* undone.rollback
        const { commands } = yield* take(null)
        expect(commands).toMatchObject([
          {
            id,
            orgId: "acme",
            type: "SendMessage",
            key: "k",
            request: `{"n": 12345678901234567890.10}`,
            traceparent: null
          }
        ])
      })
    )

    test(
      "wait since they were given, as long as they are not settled",
      Effect.gen(function* () {
        const inbox = yield* CommandInbox
        const begun = yield* DateTime.now
        expect(yield* inbox.waitingSince).toBeNull()
        const undone = yield* begin
        yield* undone.send("1")
        expect(yield* inbox.waitingSince).toBeNull()
        yield* undone.rollback
        yield* given("2")
        const since = yield* inbox.waitingSince
        expect(Math.abs(Duration.toMillis(DateTime.distance(begun, since!)))).toBeLessThan(60_000)
        yield* given("3")
        expect(yield* inbox.waitingSince).toEqual(since)
        const { commands } = yield* take(null)
        yield* inbox.settle(commands.map(accepted))
        expect(yield* inbox.waitingSince).toBeNull()
      })
    )

    test(
      "come in the order of their transactions, and within each in the order they were given",
      Effect.gen(function* () {
        const ids = [...(yield* given("1", "2")), ...(yield* given("3")), ...(yield* given("4", "5", "6"))]
        expect(idsOf((yield* take(null)).commands)).toEqual(ids)
        expect(idsOf((yield* take(null, 4)).commands)).toEqual(ids.slice(0, 4))
      })
    )

    test(
      "come in answers of some bytes, each at least with one",
      Effect.gen(function* () {
        const large = JSON.stringify({ payloadJson: "ü".repeat(COMMAND_MAX / 2 - 100) })
        const ids = yield* given(...Array.from({ length: 20 }, () => large))
        const { commands } = yield* take(null)
        expect(idsOf(commands)).toEqual(ids.slice(0, 17))
        yield* (yield* CommandInbox).settle(commands.map(accepted))
        expect(idsOf((yield* take(null)).commands)).toEqual(ids.slice(17))
      })
    )

    test(
      "come once to whoever says what has been seen, and wait for nobody else's transaction",
      Effect.gen(function* () {
        const open = yield* begin
        const late = yield* open.send("1")
        const first = yield* given("2")
        const one = yield* take(null)
        expect(idsOf(one.commands)).toEqual(first)
        const second = yield* given("3")
        const two = yield* take(one.seen)
        expect(idsOf(two.commands)).toEqual(second)
        expect((yield* take(two.seen)).commands).toEqual([])
        yield* open.commit
        const three = yield* take(two.seen)
        expect(idsOf(three.commands)).toEqual([late])
        // Whoever begins anew is given what is not settled.
        expect(idsOf((yield* take(null)).commands).toSorted()).toEqual([late, ...first, ...second].toSorted())
      })
    )

    test(
      "are given to one process at a time",
      Effect.gen(function* () {
        const ids = yield* given("1")
        expect(idsOf((yield* take(null)).commands)).toEqual(ids)
        expect(yield* take(null, 100, OTHER)).toEqual({ seen: null, commands: [] })
      })
    )

    test(
      "are given to another process when the lease is over",
      Effect.gen(function* () {
        const ids = yield* given("1")
        yield* take(null, 100, HOLDER, Duration.millis(1))
        yield* Effect.sleep("50 millis")
        expect(idsOf((yield* take(null, 100, OTHER)).commands)).toEqual(ids)
        expect(yield* take(null)).toEqual({ seen: null, commands: [] })
      })
    )

    test(
      "are forgotten when they are settled; to settle them once more changes nothing",
      Effect.gen(function* () {
        const [first, second] = yield* given("1", "2")
        const { commands } = yield* take(null)
        const { settle, refused } = yield* CommandInbox
        yield* settle([accepted(commands[0]!)])
        yield* settle([accepted(commands[0]!)])
        expect(idsOf((yield* take(null)).commands)).toEqual([second])
        expect(yield* refused(acme, first!)).toBeNull()
      })
    )

    test(
      "that were refused are kept with their problem, for their own org",
      Effect.gen(function* () {
        const [id] = yield* given(`{"n": 1.10}`)
        const { commands } = yield* take(null)
        const { settle, refused, unpublished, markPublished } = yield* CommandInbox
        const problem = `{"status":400,"n":1.10}`
        yield* settle([{ command: commands[0]!, problem, became: null }])
        yield* settle([{ command: commands[0]!, problem: `{"status":500}`, became: null }])
        const kept = yield* refused(acme, id!)
        expect(kept).toMatchObject({
          id,
          orgId: "acme",
          type: "SendMessage",
          key: null,
          request: `{"n": 1.10}`,
          problem
        })
        expect(DateTime.isDateTime(kept!.at)).toBe(true)
        expect(yield* refused(OrgId.make("globex"), id!)).toBeNull()
        expect((yield* unpublished(10)).map((one) => one.id)).toEqual([id])
        yield* markPublished([id!])
        expect(yield* unpublished(10)).toEqual([])
        expect(yield* refused(acme, id!)).toEqual(kept)
      })
    )

    test(
      "that were refused are published the oldest first, so many at a time",
      Effect.gen(function* () {
        const ids: Array<string> = []
        const { settle, unpublished } = yield* CommandInbox
        for (const request of ["1", "2", "3"]) {
          ids.push(...(yield* given(request)))
          const { commands } = yield* take(null)
          yield* settle(commands.map((command) => ({ command, problem: "{}", became: null })))
          yield* Effect.sleep("5 millis")
        }
        expect((yield* unpublished(2)).map(({ id }) => id)).toEqual(ids.slice(0, 2))
      })
    )
  })
}
