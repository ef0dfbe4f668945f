/** What only sessions that wait for each other can show: a message whose stream is elsewhere stays forgotten. */
import { it } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted } from "effect"
import { describe, expect } from "vitest"
import * as PostgresPorts from "../../../../src/adapters/postgres/PostgresPorts.ts"
import { Ledger, type Stored } from "../../../../src/application/ports/Ledger.ts"
import { toRecorded } from "../../../../src/domain/message/recorded.ts"
import * as Channels from "../../../../src/setup/channels.ts"
import { opened, type Step } from "../../../contracts/sample.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"
import { session } from "../../../servers/session.ts"
import { until } from "../../../servers/until.ts"

const encryptionKey = Redacted.make(new Uint8Array(32).fill(7))

/** As the follower of the log finds a message that was accepted. */
const storedOf = ({ entry, after }: Step): Stored => ({
  ids: [after.id],
  messageId: entry.messageId,
  copies: [{ version: 1, at: entry.at, actor: null, ...toRecorded(entry.facts[0]!) }],
  erased: null,
  queue: entry.queue,
  version: 1,
  expected: 0,
  logAt: 1n
})

describe("a message whose stream is elsewhere", () => {
  it.live("does not come back to the queue by a step of the follower that began while it was forgotten", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const [sweep, watcher] = [yield* session(url), yield* session(url)]
      const ask = (client: typeof sweep, text: string, values: ReadonlyArray<unknown> = []) =>
        Effect.promise(async () => (await client.query({ text, values: [...values], rowMode: "array" })).rows)
      const kept = ask(
        watcher,
        "select (select count(*) from ready), (select count(*) from copied_fact), (select count(*) from applied_change)"
      )
      const ports = Layer.merge(PostgresPorts.withoutStreams({ url, encryptionKey }), Channels.unused)
      yield* Effect.gen(function* () {
        const ledger = yield* Ledger
        const stored = storedOf(opened())
        const step = (from: string | null, to: string) =>
          ledger.advance("queue", "me", { from, to, facts: 1, stored: [stored] })
        yield* ledger.follow("queue", "me")
        expect(yield* step(null, "1/1")).toBe(true)
        expect(yield* kept).toEqual([["1", "1", "1"]])
        yield* ask(watcher, "delete from ready")

        yield* ask(sweep, "begin")
        yield* ask(sweep, "select forget_messages($1::uuid[])", [[stored.messageId]])
        const late = yield* Effect.forkChild(step("1/1", "2/2"))
        yield* Effect.promise(() =>
          until("a step that waits for the sweep", async () => {
            const { rows } = await watcher.query(
              "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
            )
            return rows.length === 1
          })
        )
        yield* ask(sweep, "commit")
        expect(yield* Fiber.join(late)).toBe(true)
        expect(yield* kept).toEqual([["0", "0", "0"]])
      }).pipe(Effect.provide(ports))
    })
  )
})
