/** What SQL leaves of a fact is what the domain says, for a sample of every shape, and can be read. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { it } from "@effect/vitest"
import { Effect, Layer, Redacted, Result } from "effect"
import pg from "pg"
import { describe, expect, vi } from "vitest"
import * as Postgres from "../../../../src/adapters/postgres/Postgres.ts"
import { fromRecorded as commandFact } from "../../../../src/domain/command/facts.ts"
import { fromRecorded as dossierFact } from "../../../../src/domain/consent/facts.ts"
import { erasedFact } from "../../../../src/domain/erasure/erased.ts"
import { fromRecorded as eventFact } from "../../../../src/domain/event/facts.ts"
import { fromRecorded as messageFact } from "../../../../src/domain/message/recorded.ts"
import { fromRecorded as replayFact } from "../../../../src/domain/replay/facts.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"
import { session } from "../../../servers/session.ts"

const PATIENCE = { timeout: 60_000, interval: 20 }

const folder = join(import.meta.dirname, "../../../domain/facts")
const samples = readdirSync(folder).map((file) => ({
  name: file.replace(".json", ""),
  data: readFileSync(join(folder, file), "utf8")
}))
interface Recorded {
  readonly name: string
  readonly data: string
}
/** Those that can hold something of a person. */
const readers = [messageFact, eventFact, dossierFact, replayFact, commandFact].map(
  (read) => (fact: Recorded) => Result.isSuccess(read(fact) as Result.Result<unknown, unknown>)
)
const reader = (fact: Recorded) => readers.find((reads) => reads(fact))

describe("what lists show of an erased message", () => {
  it.live("is what was written last, whichever projection is told of the erasure meanwhile", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      yield* Layer.build(Postgres.layer({ url }))
      const [lists, audit] = [yield* session(url), yield* session(url)]
      yield* Effect.promise(async () => {
        const id = "018f2f4e-7a3c-7000-8000-000000000000"
        const view = { version: 1, status: "QUEUED", to: "4915112345678", correlationId: "Erika", lastError: null }
        await lists.query(
          `insert into message_view (generation, id, org_id, version, status, channel, recipient, created_at, view)
             values (1, $1, 'acme', 1, 'QUEUED', 'whatsapp', $2, now(), $3)`,
          [id, view.to, view]
        )
        await lists.query("insert into erased_stream (stream_id) values ($1)", [id])
        // The step that lists the message holds its row, and has not ended.
        await lists.query("begin")
        await lists.query("update message_view set version = 2, status = 'CANCELLED', view = $2 where id = $1", [
          id,
          { ...view, version: 2, status: "CANCELLED" }
        ])
        const told = audit.query("select erase_again(array[$1::uuid])", [id])
        await vi.waitFor(async () => {
          const { rows } = await lists.query(
            "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
          )
          expect(rows).toHaveLength(1)
        }, PATIENCE)
        await lists.query("commit")
        await told
        const { rows } = await lists.query("select version, status, recipient, view from message_view")
        expect(rows).toEqual([
          {
            ...{ version: 2, status: "CANCELLED", recipient: "erased" },
            view: { version: 2, status: "CANCELLED", to: "erased", correlationId: null, lastError: null }
          }
        ])
      })
    }).pipe(Effect.scoped)
  )
})

describe("an erased fact", () => {
  it.live("is in SQL what it is in the domain, and one that can be read", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      yield* Layer.build(Postgres.layer({ url }))
      yield* Effect.promise(async () => {
        const client = new pg.Client({ connectionString: Redacted.value(url), options: "-c search_path=posthaste" })
        client.on("error", () => {})
        await client.connect()
        let read = 0
        const whatsApp = {
          name: "MessageQueued@1",
          data: JSON.stringify({ to: "4915112345678", traceparent: "00-a", routingKey: "r" })
        }
        const selections = [
          { filter: { to: "4915112345678", errorCode: "http_400" } },
          { filter: { to: "018f2f4e-7a3c-7000-8000-000000000000" }, dismiss: true },
          { waiting: { to: "4915112345678", correlationId: "c", channel: "whatsapp" } },
          { ids: ["018f2f4e-7a3c-7000-8000-000000000000"] }
        ].map((selection) => ({
          name: "ReplayRequested@1",
          data: JSON.stringify({
            orgId: "acme",
            selection,
            reason: "Erika",
            matched: 1,
            requestedAt: "2026-01-01T00:00:00.000Z"
          })
        }))
        for (const sample of [...samples, whatsApp, ...selections]) {
          const { rows } = await client.query<{ data: unknown }>("select erased_fact($1, $2) as data", [
            sample.name,
            sample.data
          ])
          const erased = erasedFact(sample)
          expect([sample.name, rows[0]!.data]).toEqual([sample.name, JSON.parse(erased.data)])
          const reads = reader(sample)
          // Consents stay as they are.
          if (reads === undefined || /^(Consent|Withdrawal)/.test(sample.name)) continue
          read += 1
          expect([sample.name, reads(erased)]).toEqual([sample.name, true])
        }
        expect(read).toBeGreaterThanOrEqual(20)
        await client.end()
      })
    }).pipe(Effect.scoped)
  )

  it("of a job says what it is for, and not whom", () => {
    const erased = (selection: object) =>
      JSON.parse(erasedFact({ name: "ReplayRequested@1", data: JSON.stringify({ selection, reason: "Erika" }) }).data)
    expect(erased({ filter: { to: "4915112345678", errorCode: "http_400" }, dismiss: true })).toEqual({
      selection: { filter: { to: "erased", errorCode: "http_400" }, dismiss: true },
      reason: null
    })
    expect(erased({ waiting: { to: "4915112345678", correlationId: "c" } }).selection).toEqual({
      waiting: { to: "erased", correlationId: "erased" }
    })
    const endpoint = { filter: { to: "018f2f4e-7a3c-7000-8000-000000000000" } }
    expect(erased(endpoint).selection).toEqual(endpoint)
  })

  it("says nothing of a person", () => {
    const data = {
      ...{ to: "4915112345678", dossierId: "case", orderingKey: "k", correlationId: "c", metadata: { a: "b" } },
      ...{
        providerMessageId: "wamid",
        error: { code: "http_400", message: "Erika", retryable: false },
        reason: "Erika"
      },
      ...{ traceparent: "00-a", routingKey: "r", status: 400 }
    }
    expect(JSON.parse(erasedFact({ name: "MessageCancelled@1", data: JSON.stringify(data) }).data)).toEqual({
      ...{
        to: "erased",
        dossierId: null,
        orderingKey: null,
        correlationId: null,
        metadata: null,
        providerMessageId: null
      },
      ...{ error: { code: "http_400", message: "erased", retryable: false }, reason: null, status: 400 }
    })
  })
})
