/**
 * Journals in the log of messages. A journal's stream id is the UUIDv5 of its name, so that one primary key decides all races.
 */
import { createHash } from "node:crypto"
import { DateTime, Effect, Layer } from "effect"
import { type JournalFact, type JournalName, Journals } from "../../../application/ports/Journals.ts"
import { Pulse } from "../../../application/ports/Pulse.ts"
import { orgTold } from "../../../domain/audit/entry.ts"
import { keptActor, type RecordedFact } from "../../../domain/recorded.ts"
import { Postgres, prepared, reading } from "../Postgres.ts"

const columns = `e.version, (extract(epoch from e.at) * 1000)::bigint, e.name, e.data, coalesce(d.actor, e.actor), d.data
    from event e left join detail d on d.stream_id = e.stream_id and d.version = e.version`
const loadStatement = prepared`select ${columns} where e.stream_id = $1 and e.version > $2 order by e.version limit $3`
const lastStatement = prepared`select ${columns} where e.stream_id = $1 order by e.version desc limit 1`
// Only the first fact of a journal must name its org.
const ORG =
  "case fact.org when '' then (select org_id from event where stream_id = $1 and version = 1) else fact.org end"
// The `where` refuses a wrong `expected`, the primary key the second of two racers; without its first row none of an append is written.
const appendStatement = prepared`with fact as (
      select f.name, f.data, f.forgettable, f.org, f.n
      from unnest($4::text[], $5::text[], $10::text[], $8::text[]) with ordinality f(name, data, forgettable, org, n)
    ), head as (
      insert into event (stream_id, stream, tx, at, actor, version, name, data, org_id)
        select $1, $2, log_tx(), $6, $7, $3::int + 1, fact.name, fact.data::json, ${ORG} from fact
        where fact.n = 1 and $3::int = (select coalesce(max(version), 0) from event where stream_id = $1)
      on conflict do nothing
      returning version
    ), rest as (
      insert into event (stream_id, stream, tx, at, actor, version, name, data, org_id)
        select $1, $2, log_tx(), $6, $7, $3::int + fact.n, fact.name, fact.data::json, ${ORG}
        from fact cross join head where fact.n > 1
    ), opened as (
      insert into withdrawal (stream) select $2 from head where $9 on conflict do nothing
    ), closed as (
      delete from withdrawal where stream = $2 and not $9 and exists (select from head)
    ), details as (
      insert into detail (stream_id, version, data, actor) select $1, $3::int + fact.n, fact.forgettable::json, $11
        from fact cross join head where fact.forgettable is not null or $11::text is not null
    )
    select version from head`
const openStatement = prepared`select stream from withdrawal limit $1`

/** Random; never to change. */
const NAMESPACE = Buffer.from("6d1f7c1c5b0e4b6f9c5b2a0e8f4d3c21", "hex")

export const streamIdOf = (journal: JournalName): string => {
  const bytes = createHash("sha1").update(NAMESPACE).update(journal).digest().subarray(0, 16)
  bytes[6] = (bytes[6]! & 0x0f) | 0x50
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5")
}

const factOf = ([version, at, name, data, actor, forgettable]: ReadonlyArray<string | null>): JournalFact => ({
  version: Number(version),
  at: DateTime.makeUnsafe(Number(at)),
  name: name!,
  data: data!,
  forgettable: forgettable ?? null,
  actor: actor ?? null
})

export const layer = Layer.effect(
  Journals,
  Effect.gen(function* () {
    const { durable, lookups } = yield* Postgres
    const pulse = yield* Pulse
    return Journals.of({
      load: (journal, part) =>
        reading(lookups.rows(loadStatement, [streamIdOf(journal), part?.after ?? 0, part?.limit ?? null]), (rows) =>
          rows.map(factOf)
        ),
      last: (journal) =>
        reading(lookups.rows(lastStatement, [streamIdOf(journal)]), ([row]) =>
          row === undefined ? null : factOf(row)
        ),
      append: (journal, expected, facts: ReadonlyArray<RecordedFact>, at, actor) =>
        reading(
          durable.rows(appendStatement, [
            streamIdOf(journal),
            journal,
            expected,
            facts.map(({ name }) => name),
            facts.map(({ data }) => data),
            DateTime.formatIso(at),
            keptActor(actor),
            facts.map(orgTold),
            facts.at(-1)?.name === "ConsentWithdrawn@1",
            facts.map(({ forgettable }) => forgettable ?? null),
            keptActor(actor) === actor ? null : actor
          ]),
          (rows) => (rows.length === 1 ? ("Appended" as const) : ("VersionConflict" as const))
        ).pipe(Effect.tap(() => pulse.wake("log"))),
      openWithdrawals: (limit) =>
        reading(durable.rows(openStatement, [limit]), (rows) => rows.map(([stream]) => stream as JournalName))
    })
  })
)
