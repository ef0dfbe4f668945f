/** Which messages each replay is for, and which replays want work: `replay` and `replay_item`. */
import { DateTime, Duration, Effect, Layer, Schema } from "effect"
import { type Opening, type ReplayItem, type ReplayJob, Replays } from "../../../application/ports/Replays.ts"
import { ReplaySelection } from "../../../domain/replay/facts.ts"
import { pageOf } from "../filtering.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"
import { isDeadLetter } from "./deadLetters.ts"

const columns = `id, org_id as "orgId", selection, reason, matched, requested_at as "requestedAt"`
const getStatement = prepared`select ${columns} from replay where id = $1 and org_id = $2`
const knownStatement = prepared`select ${columns}, request_hash as "requestHash" from replay where org_id = $1 and key = $2`
// Ids are made of the time, so they sort as the requests came.
const listStatement = prepared`select ${columns} from replay where org_id = $1 and ($2::uuid is null or id < $2) order by id desc limit $3`
const itemsStatement = prepared`select message_id as "messageId", epoch from replay_item where replay_id = $1 and number > $2 order by number limit $3`
const takeStatement = prepared`update replay set next_at = statement_timestamp() + make_interval(secs => $1 / 1000.0)
    where id = (
      select id from replay where next_at <= statement_timestamp() order by next_at limit 1 for update skip locked
    ) and next_at <= statement_timestamp() returning ${columns}`
const backStatement = prepared`update replay set next_at = statement_timestamp() + make_interval(secs => $2 / 1000.0)
    where id = $1 and next_at < 'infinity'`
const closeStatement = prepared`with items as (delete from replay_item where replay_id = $1)
    update replay set next_at = 'infinity' where id = $1`

const encodeSelection = Schema.encodeSync(ReplaySelection)
const decodeSelection = Schema.decodeUnknownSync(ReplaySelection)

interface JobRow extends Omit<ReplayJob, "selection"> {
  readonly selection: unknown
}

const jobOf = (row: JobRow): ReplayJob => ({ ...row, selection: decodeSelection(row.selection) })

/**
 * Request, key and items in one statement. The key's unique constraint decides which of two racers opened it;
 * the other finds no row of its own and writes no items.
 */
const openQuery = ({ id, orgId, selection, reason, requestedAt, set, idempotency }: Opening) => {
  const values: Array<unknown> = [
    id,
    orgId,
    idempotency?.key ?? null,
    idempotency?.requestHash ?? null,
    JSON.stringify(encodeSelection(selection)),
    reason,
    DateTime.formatIso(requestedAt)
  ]
  let found: string
  if (Array.isArray(set)) {
    const items = set as ReadonlyArray<ReplayItem>
    values.push(
      items.map(({ messageId }) => messageId),
      items.map(({ epoch }) => epoch)
    )
    found = "select m.id, m.epoch, m.number from unnest($8::uuid[], $9::int[]) with ordinality m(id, epoch, number)"
  } else {
    found = `select id, (view ->> 'epoch')::int as epoch, row_number() over (order by created_at, id) as number
      from message_view where ${isDeadLetter(orgId, set as Exclude<typeof set, ReadonlyArray<unknown>>, values)}`
  }
  const text = `with found as materialized (${found}),
    opened as (
      insert into replay (id, org_id, key, request_hash, selection, reason, requested_at, matched, next_at)
        select $1, $2, $3, $4, $5, $6, $7, (select count(*) from found), clock_timestamp()
      on conflict do nothing
      returning ${columns}
    ),
    items as (
      insert into replay_item (replay_id, number, message_id, epoch)
        select o.id, f.number, f.id, f.epoch from opened o cross join found f
    )
    select * from opened`
  return { text, values }
}

export const layer = Layer.effect(
  Replays,
  Effect.gen(function* () {
    const { bulk, durable, reads } = yield* Postgres

    const open = Effect.fnUntraced(function* (opening: Opening) {
      const { text, values } = openQuery(opening)
      const [opened] = yield* unavailable(bulk.query<JobRow>({ text }, values))
      if (opened !== undefined) return { type: "Opened", job: jobOf(opened) } as const
      const [known] = yield* unavailable(
        durable.query<JobRow & { readonly requestHash: string }>(knownStatement, [
          opening.orgId,
          opening.idempotency?.key ?? null
        ])
      )
      // Without a key there is nothing to collide with but the id, which is new.
      if (known === undefined) return yield* Effect.die(new Error(`a replay with the new id ${opening.id} exists`))
      const { requestHash, ...job } = known
      return { type: "DuplicateKey", job: jobOf(job), requestHash } as const
    })

    return Replays.of({
      open,
      list: (orgId, page) =>
        reading(reads.query<JobRow>(listStatement, [orgId, page.cursor, page.limit + 1]), (rows) =>
          pageOf(rows, page, jobOf, ({ id }) => id)
        ),
      get: (orgId, id) =>
        reading(reads.query<JobRow>(getStatement, [id, orgId]), ([row]) => (row === undefined ? null : jobOf(row))),
      items: (id, after, limit) => unavailable(reads.query<ReplayItem>(itemsStatement, [id, after, limit])),
      take: (lease) =>
        reading(durable.query<JobRow>(takeStatement, [Duration.toMillis(lease)]), ([row]) =>
          row === undefined ? null : jobOf(row)
        ),
      back: (id, pause) => Effect.asVoid(unavailable(durable.query(backStatement, [id, Duration.toMillis(pause)]))),
      close: (id) => Effect.asVoid(unavailable(bulk.query(closeStatement, [id])))
    })
  })
)
