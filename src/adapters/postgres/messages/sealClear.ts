/**
 * Seals what was stored in the clear before POSTHASTE_SEAL_BODIES was set: bodies, answers, hashes of requests, and requests that were
 * refused; but for receipts, which soon go. Stretch by stretch in the order of the keys of each table; what is sealed is passed over, so
 * a run that was cut off is repeated. A row that changes meanwhile stays as whoever changed it wrote it. May run beside working
 * processes.
 */
import { Effect, Schedule } from "effect"
import type { StoreUnavailable } from "../../../application/errors.ts"
import type { OrgId } from "../../../domain/ids.ts"
import { Postgres, prepared, unavailable, unprepared } from "../Postgres.ts"
import { clearTexts, type Kind, SealedTexts, type Texts } from "../SealedTexts.ts"
import type { SealedTable } from "../store/lostKeys.ts"
import { storedHash } from "../store/storedTexts.ts"

interface Table extends SealedTable {
  /** The text to be sealed. */
  readonly text: string
  readonly sealed: (texts: Texts, key: ReadonlyArray<string>, text: string) => string
  /** `n.sealed` in its place. */
  readonly set: string
}

const bodies = (name: string, id: string, kind: Kind): Table => ({
  name,
  key: [[id, "uuid"]],
  text: "body",
  shown: "body",
  sealed: (texts, [id], text) => texts.seal(kind, id!, text),
  set: "body = n.sealed"
})

/** Where texts are that were in the clear before. */
const tables: ReadonlyArray<Table> = [
  bodies("message", "id", "body"),
  bodies("shared_body", "event_id", "eventBody"),
  {
    name: "detail",
    key: [
      ["stream_id", "uuid"],
      ["epoch", "int"],
      ["attempt", "int"]
    ],
    // As storedTexts.ts puts both together.
    text: "case when body is not null then json_build_array(body, headers)::text end",
    shown: "body",
    sealed: (texts, key, text) => texts.seal("answer", key.join("/"), text),
    set: "body = n.sealed, headers = null"
  },
  ...(["idempotency", "event_idempotency"] as const).map(
    (name): Table => ({
      name,
      key: [
        ["org_id", "text"],
        ["key", "text"]
      ],
      text: "request_hash",
      shown: "request_hash",
      sealed: (texts, [orgId, key], requestHash) =>
        storedHash(
          texts,
          { orgId: orgId as OrgId, key: key!, requestHash },
          name === "idempotency" ? "keyOfMessage" : "keyOfEvent"
        ),
      set: "request_hash = n.sealed"
    })
  ),
  {
    name: "refused_command",
    key: [["id", "uuid"]],
    text: "request::text",
    shown: "request ->> 'sealed'",
    sealed: (texts, [id], text) => texts.seal("refused", id!, text),
    set: "request = sealed_request(t.request, n.sealed)"
  }
]

/** Wherever a sealed text is for longer than an append takes. */
export const sealedTables: ReadonlyArray<SealedTable> = [
  ...tables,
  { name: "receipt_inbox", key: [["id", "bigint"]], shown: "raw" }
]

const ROWS_AT_ONCE = 1_000
const BYTES_AT_ONCE = 8 * 1024 * 1024

/** The next rows behind a key, without the text of those that are sealed or have none; fewer where their texts are long. */
const readStatement = ({ name, key, text, shown }: Table) => {
  const columns = key.map(([column]) => column).join(", ")
  const after = key.map(([_column, type], n) => `$${n + 1}::${type}`).join(", ")
  return prepared`select ${key.map(([column]) => `${column}::text`).join(", ")}, xmin::text, clear from (
      select *, sum(coalesce(octet_length(clear), 0)) over (order by ${columns}) - coalesce(octet_length(clear), 0) as before from (
        select ${columns}, xmin, case when left(${shown}, 1) = E'\\x01' and left(${shown}, 2) <> E'\\x01c' then null else ${text} end as clear
          from ${name} where $${key.length + 1}::boolean or (${columns}) > (${after}) order by ${columns} limit ${ROWS_AT_ONCE}
      ) page
    ) measured where before < ${BYTES_AT_ONCE} order by ${columns}`
}

// Rows are locked in the order of their keys, so that two who write them wait for each other.
const writeStatement = ({ name, key, set }: Table) => {
  const given = [...key.map(([column, type]) => `${column} ${type}`), "version text", "sealed text"]
  const same = key.map(([column]) => `t.${column} = g.${column}`).join(" and ")
  return prepared`update ${name} t set ${set} from (
      select t.ctid as place, g.sealed from unnest(${given.map((each, n) => `$${n + 1}::${each.split(" ")[1]}[]`).join(", ")})
        g(${given.map((each) => each.split(" ")[0]).join(", ")})
      join ${name} t on ${same} and t.xmin::text = g.version
      order by ${key.map(([column]) => `t.${column}`).join(", ")} for update of t
    ) n where t.ctid = n.place returning 1`
}

/** About: what vacuum last found. */
const rowsStatement = unprepared`select coalesce(sum(greatest(reltuples, 0)), 0)::bigint from pg_class
    where oid = any (array(select name::regclass from unnest($1::text[]) name))`

const smallest: Readonly<Record<string, string>> = {
  uuid: "00000000-0000-0000-0000-000000000000",
  int: "0",
  text: ""
}

const again = { times: 5, schedule: Schedule.exponential("100 millis") }

/** How many texts were sealed. */
export const sealClear = (
  progress: (done: number, total: number) => Effect.Effect<void>
): Effect.Effect<number, StoreUnavailable, Postgres> =>
  Effect.gen(function* () {
    const { durable, reads } = yield* Postgres
    const texts = yield* SealedTexts
    const [estimate] = yield* unavailable(reads.rows(rowsStatement, [tables.map(({ name }) => name)]))
    const total = Number(estimate![0])
    let seen = 0
    let count = 0
    for (const table of tables) {
      const width = table.key.length
      const reading = readStatement(table)
      const writing = texts.writing(writeStatement(table))
      let after: ReadonlyArray<string> | null = null
      for (;;) {
        const from: ReadonlyArray<string> = after ?? table.key.map(([_column, type]) => smallest[type]!)
        const rows = yield* unavailable(reads.rows(reading, [...from, after === null]))
        const clear = rows.flatMap((row) => {
          const [text, version, key] = [row[width + 1], row[width]!, row.slice(0, width) as ReadonlyArray<string>]
          return text == null ? [] : [{ key, version, text: clearTexts.open(text, {}) }]
        })
        if (clear.length > 0) {
          const write = Effect.suspend(() =>
            durable.rows(
              ...writing([
                ...table.key.map((_, nth) => clear.map(({ key }) => key[nth])),
                clear.map(({ version }) => version),
                clear.map(({ key, text }) => table.sealed(texts, key, text))
              ])
            )
          )
          count += (yield* unavailable(Effect.retry(write, again))).length
        }
        if (rows.length === 0) break
        seen += rows.length
        yield* progress(seen, Math.max(total, seen))
        after = rows.at(-1)!.slice(0, width) as ReadonlyArray<string>
      }
    }
    return count
  })
