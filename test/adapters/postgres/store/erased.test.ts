/** What SQL leaves of a fact is what the domain says, for a sample of every shape, and can be read. */
import { randomUUID } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { it } from "@effect/vitest"
import { Effect, Layer, Redacted, Result } from "effect"
import pg from "pg"
import { describe, expect } from "vitest"
import * as Postgres from "../../../../src/adapters/postgres/Postgres.ts"
import { fromRecorded as commandFact } from "../../../../src/domain/command/facts.ts"
import { fromRecorded as dossierFact } from "../../../../src/domain/consent/facts.ts"
import { erasedActor, erasedFact } from "../../../../src/domain/erasure/erased.ts"
import { fromRecorded as eventFact } from "../../../../src/domain/event/facts.ts"
import { fromRecorded as messageFact } from "../../../../src/domain/message/recorded.ts"
import { fromRecorded as replayFact } from "../../../../src/domain/replay/facts.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"

const _PATIENCE = { timeout: 60_000, interval: 20 }

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
/** Values that a field may have in a fact that no release can read, or that another one wrote. */
const values: ReadonlyArray<unknown> = [
  ...[undefined, null, true, 0, 7.5, "", "Erika", "erased", "4915112345678"],
  ...["018f2f4e-7a3c-7000-8000-000000000000", "018F2F4E-7A3C-7000-8000-000000000000"],
  ...[
    [],
    ["to", "correlationId", "message"],
    [{ to: "Erika" }],
    {},
    { to: 7 },
    { message: 7 },
    { message: "Erika", to: null }
  ],
  ...[
    { filter: null },
    { filter: ["correlationId"] },
    { filter: { to: "Erika", correlationId: null } },
    { filter: "Erika" }
  ],
  ...[
    { waiting: null },
    { waiting: ["correlationId"] },
    { waiting: { to: [], correlationId: 7 } },
    { waiting: 7, filter: {} }
  ]
]
const fields =
  "to dossierId orderingKey correlationId metadata traceparent routingKey providerMessageId error reason key detail selection".split(
    " "
  )
const names = [
  ..."MessageQueued@1 MessageBlocked@1 MessageBlocked MessageReplayed@2 ReplayRequested@1 ReplayRequested ReplayRequested@".split(
    " "
  ),
  ..."CommandRefused@1 CommandRefused EventErased@9 Unheard@1 @1".split(" "),
  ""
]
const odd = names.flatMap((name) => [
  ...values.filter((value) => value !== undefined).map((value) => ({ name, data: JSON.stringify(value) })),
  ...fields.flatMap((field) => values.map((value) => ({ name, data: JSON.stringify({ [field]: value, other: 1 }) })))
])
const reader = (fact: Recorded) => readers.find((reads) => reads(fact))

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

  it.live("is in SQL what it is in the domain where it has a shape that no release wrote", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      yield* Layer.build(Postgres.layer({ url }))
      yield* Effect.promise(async () => {
        const client = new pg.Client({ connectionString: Redacted.value(url), options: "-c search_path=posthaste" })
        client.on("error", () => {})
        await client.connect()
        const { rows } = await client.query<{ data: unknown }>(
          "select erased_fact(f.name, f.data) as data from unnest($1::text[], $2::json[]) with ordinality f(name, data, n) order by n",
          [odd.map(({ name }) => name), odd.map(({ data }) => data)]
        )
        const said = (n: number, left: unknown) => [odd[n], left]
        expect(rows.map(({ data }, n) => said(n, data))).toEqual(
          odd.map((fact, n) => said(n, JSON.parse(erasedFact(fact).data)))
        )
        const actors = [null, "amqp", "amqp:invoice-17", "amqps:invoice-17", "sql:invoice-17", "alice@example.com"]
        const left = await client.query<{ actor: string | null }>(
          "select erased_actor(actor) as actor from unnest($1::text[]) with ordinality a(actor, n) order by n",
          [actors]
        )
        expect(left.rows.map(({ actor }) => actor)).toEqual(actors.map(erasedActor))
        await client.end()
      })
    }).pipe(Effect.scoped)
  )

  it.live("tells of a command that was refused no more by which key it came", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      yield* Layer.build(Postgres.layer({ url }))
      yield* Effect.promise(async () => {
        const client = new pg.Client({ connectionString: Redacted.value(url), options: "-c search_path=posthaste" })
        client.on("error", () => {})
        await client.connect()
        const refused = async (to: string) => {
          const id = randomUUID()
          await client.query(
            "insert into refused_command (id, org_id, type, request, problem) values ($1, 'acme', 'SendMessage', $2, '{}')",
            [id, JSON.stringify({ to })]
          )
          await client.query(
            `insert into event (stream_id, stream, tx, at, actor, version, name, data)
              values (gen_random_uuid(), 'command-' || $1, log_tx(), clock_timestamp(), 'amqp:of-somebody', 1, 'CommandRefused@1', $2)`,
            [id, JSON.stringify({ orgId: "acme", command: "SendMessage", key: "of-somebody", detail: to })]
          )
        }
        await refused("4915112345678")
        await refused("4915112345679")
        await client.query("select erase_requests(gen_random_uuid(), 'acme', 'recipient', array['4915112345678'])")
        const { rows } = await client.query(
          "select actor, data ->> 'detail' as detail from event order by version, position"
        )
        expect(rows).toEqual([
          { actor: "amqp", detail: "erased" },
          { actor: "amqp:of-somebody", detail: "4915112345679" }
        ])
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
