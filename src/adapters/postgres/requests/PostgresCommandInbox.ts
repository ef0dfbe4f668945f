import { DateTime, Duration, Effect, Layer } from "effect"
import { CommandInbox, type GivenCommand, type RefusedCommand } from "../../../application/ports/CommandInbox.ts"
import { literal } from "../literal.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"

const takeStatement = prepared`select seen, tx, n, id, org_id, type, key, request, traceparent from take_commands($1::uuid, $2::int, $3::pg_snapshot, $4::int)`
// The time of a UUIDv7.
const waitingSinceStatement = prepared`select ('x' || translate(left(id::text, 13), '-', ''))::bit(48)::bigint from sql_command order by tx, n limit 1`
const settleStatement = prepared`select settle_commands($1::xid8[], $2::bigint[], $3::int[], $4::text[], $5::int[], $6::uuid[])`
const refusedColumns = `id, org_id as "orgId", type, key, request::text, problem::text, at`
const refusedStatement = prepared`select ${refusedColumns} from refused_command where org_id = $1 and id = $2`
const unpublishedStatement = prepared`select ${refusedColumns} from refused_command
    where not published and at > clock_timestamp() - interval '1 day' order by at limit $1`
const markPublishedStatement = prepared`update refused_command set published = true where id = any ($1::uuid[])`

export const layer = Layer.effect(
  CommandInbox,
  Effect.gen(function* () {
    const { durable, reads } = yield* Postgres
    return CommandInbox.of({
      take: (holder, lease, seen, limit) =>
        reading(durable.rows(takeStatement, [holder, Duration.toMillis(lease), seen, limit]), (rows) => ({
          seen: rows[0]?.[0] ?? null,
          commands: rows.flatMap(
            ([, tx, n, id, orgId, type, key, request, traceparent]): ReadonlyArray<GivenCommand> =>
              tx === null
                ? []
                : [
                    {
                      place: { tx: tx!, n: n! },
                      id: id!,
                      orgId: orgId!,
                      type: type!,
                      key: key ?? null,
                      request: request!,
                      traceparent: traceparent!
                    }
                  ]
          )
        })),
      waitingSince: reading(reads.rows(waitingSinceStatement, []), ([row]) =>
        row === undefined ? null : DateTime.makeUnsafe(Number(row[0]))
      ),
      settle: (settlements) => {
        const numbered = settlements.map((settlement, index) => ({ ...settlement, i: index + 1 }))
        const refused = numbered.filter(({ problem }) => problem !== null)
        const aliases = numbered.filter(({ became }) => became !== null)
        return Effect.asVoid(
          unavailable(
            durable.rows(settleStatement, [
              literal(settlements.map(({ command }) => command.place.tx)),
              literal(settlements.map(({ command }) => command.place.n)),
              literal(refused.map(({ i }) => i)),
              refused.map(({ problem }) => problem),
              literal(aliases.map(({ i }) => i)),
              literal(aliases.map(({ became }) => became!))
            ])
          )
        )
      },
      refused: (orgId, id) =>
        reading(reads.query<RefusedCommand>(refusedStatement, [orgId, id]), ([row]) => row ?? null),
      unpublished: (limit) => unavailable(reads.query<RefusedCommand>(unpublishedStatement, [limit])),
      markPublished: (ids) => Effect.asVoid(unavailable(durable.rows(markPublishedStatement, [literal(ids)])))
    })
  })
)
