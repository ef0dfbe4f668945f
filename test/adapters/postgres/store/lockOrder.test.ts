/** What only sessions that wait for each other can show: everybody who writes locks in one order, so nobody waits in a circle. */
import { it } from "@effect/vitest"
import { Effect } from "effect"
import type pg from "pg"
import { describe, expect } from "vitest"
import { appendStatement, appendValues } from "../../../../src/adapters/postgres/store/append.ts"
import type { Append } from "../../../../src/application/ports/EventStore.ts"
import { DestinationId, MessageId } from "../../../../src/domain/ids.ts"
import { opened, started } from "../../../contracts/sample.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"
import { session } from "../../../servers/session.ts"
import { until } from "../../../servers/until.ts"

const idOf = (nth: number) => `0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a0${nth}`
const [low, high] = [DestinationId.make(idOf(1)), DestinationId.make(idOf(2))]
const plain = (destination: DestinationId) => opened({ destination }).entry
const inLine = (destination: DestinationId, orderingKey: string) => opened({ destination, orderingKey }).entry

/** Sessions that append by hand, and one that looks at who waits. */
const sessions = Effect.gen(function* () {
  const connect = session(yield* freshDatabase)
  const clients = yield* Effect.all(Array.from({ length: 5 }, () => connect))
  const watcher = clients.pop()!
  const append = (client: pg.Client, entries: ReadonlyArray<Append>) =>
    client.query(appendStatement.text, [...appendValues(entries)]).then(
      () => "appended",
      (error: { readonly code?: string }) => error.code
    )
  const waiting = (count: number) =>
    until(`${count} sessions that wait`, async () => {
      const { rows } = await watcher.query(
        "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
      )
      return rows.length === count
    })
  return { clients, append, waiting }
})

describe("two appends at once", () => {
  it.live("wait for each other when each brings a plain message to the lane where the other brings one of a line", () =>
    Effect.gen(function* () {
      const {
        clients: [first, second, holder],
        append,
        waiting
      } = yield* sessions
      yield* Effect.promise(async () => {
        await append(holder!, [plain(low), plain(high)])
        await holder!.query("update lane set ready_at = 'infinity'")
        await holder!.query("begin")
        await holder!.query("select from lane where lane = $1 for update", [low])
        const lowFirst = append(first!, [plain(low), inLine(high, "a")])
        await waiting(1)
        const highFirst = append(second!, [plain(high), inLine(low, "b")])
        await waiting(2)
        await holder!.query("commit")
        expect(await Promise.all([lowFirst, highFirst])).toEqual(["appended", "appended"])
      })
    })
  )

  it.live("wait for each other when they are about the same messages in another order", () =>
    Effect.gen(function* () {
      const {
        clients: [first, second, holder, otherHolder],
        append,
        waiting
      } = yield* sessions
      yield* Effect.promise(async () => {
        const steps = [3, 4, 5, 6].map((nth) => opened({ id: MessageId.make(idOf(nth)), destination: low }))
        await append(
          holder!,
          steps.map(({ entry }) => entry)
        )
        const [one, two, three, four] = steps.map(({ after }) => started(after).entry)
        await holder!.query("begin")
        await append(holder!, [two!])
        await otherHolder!.query("begin")
        await append(otherHolder!, [three!])
        const upwards = append(first!, [one!, two!, four!])
        await waiting(1)
        const downwards = append(second!, [four!, three!, one!])
        await waiting(2)
        await Promise.all([holder!.query("rollback"), otherHolder!.query("rollback")])
        expect(await Promise.all([upwards, downwards])).toEqual(["appended", "appended"])
      })
    })
  )
})
