/** A database on another server than before, which counts its transactions anew: what is written there is read. */
import { it } from "@effect/vitest"
import { Effect, Layer, Logger, Redacted } from "effect"
import { describe, expect } from "vitest"
import * as PostgresPorts from "../../../../src/adapters/postgres/PostgresPorts.ts"
import { EventStore } from "../../../../src/application/ports/EventStore.ts"
import * as Channels from "../../../../src/setup/channels.ts"
import { opened } from "../../../contracts/sample.ts"
import { administer } from "../../../servers/administer.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"

const encryptionKey = Redacted.make(new Uint8Array(32).fill(7))

/** One run of a Posthaste on the database: writes a message, and answers the end of the log before and what comes after it. */
const run = Effect.fnUntraced(function* (url: Redacted.Redacted) {
  const lines: Array<string> = []
  const log = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
  const store = yield* Effect.provide(
    Effect.gen(function* () {
      const store = yield* EventStore
      const { head } = yield* store.extent
      const { id } = opened().after
      yield* store.append([opened({ id }).entry])
      for (;;) {
        const after = yield* store.readAll(head, 100)
        if (after.length > 0) return { id, head, after: after.map(({ stream }) => stream) }
        yield* Effect.sleep("20 millis")
      }
    }),
    Layer.merge(PostgresPorts.layer({ url, encryptionKey }), Channels.unused)
  ).pipe(Effect.provide(log))
  return { ...store, restored: lines.filter((line) => line.includes("restored, moved or promoted")) }
})

describe("the log of a database", () => {
  const goesOn = (where: string, change: string, why: string | null) =>
    it.live(`goes on ${where}`, () =>
      Effect.gen(function* () {
        const url = yield* freshDatabase
        const first = yield* run(url)
        expect(first.restored).toEqual([])
        yield* Effect.promise(() => administer(Redacted.value(url), change))
        const second = yield* run(url)
        expect(second.after).toEqual([`message-${second.id}`])
        expect(second.restored).toEqual(why === null ? [] : [expect.stringContaining(why)])
        const third = yield* run(url)
        expect(third.after).toEqual([`message-${third.id}`])
        expect(third.restored).toEqual([])
      })
    )

  goesOn("where it was", "select 1", null)
  goesOn(
    "on a server that counts below what is stored, although it does not tell which server it is",
    "update posthaste.event set tx = tx + 1000000000; update posthaste.log_base set system_identifier = null, timeline = null",
    "counts transactions below what is stored"
  )
  goesOn(
    "on another server",
    "update posthaste.event set tx = tx + 1000000000; update posthaste.log_base set system_identifier = 1",
    "on another server than before"
  )
  goesOn(
    "after a recovery to an earlier moment, above what readers outside have seen since",
    "update posthaste.log_base set timeline = timeline + 1",
    "recovered or promoted"
  )
})
