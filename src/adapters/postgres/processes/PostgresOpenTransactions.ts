/** What the server's own views tell of its sessions. Of those of other users they tell a member of pg_read_all_stats only. */
import { Duration, Effect, Layer } from "effect"
import { type OpenTransaction, OpenTransactions } from "../../../application/ports/OpenTransactions.ts"
import { Postgres, prepared, reading } from "../Postgres.ts"

/** A slot knows no time. It is too old when so many transactions have begun since. */
const SLOT_AGE_MAX = 100_000

// A snapshot of another database holds back nothing here; a transaction there that may write keeps the log from being read on,
// and one that is prepared or replicates may do either. Vacuum does not wait for vacuum.
const oldestStatement = prepared`select kind, pid, name, database, since from (
      select 'transaction' as kind, pid, application_name as name, datname::text as database, coalesce(xact_start, backend_start) as since
        from pg_stat_activity
        where pid <> pg_backend_pid() and backend_type <> 'autovacuum worker'
          and (backend_xid is not null or (backend_xmin is not null and (datname is null or datname = current_database())))
      union all
      select 'prepared', null, gid, database::text, prepared from pg_prepared_xacts
      union all
      select 'slot', active_pid, slot_name::text, database::text, null from pg_replication_slots where age(xmin) > ${SLOT_AGE_MAX}
    ) held
    where since is null or since < clock_timestamp() - $1::float8 * interval '1 millisecond'
    order by since nulls last limit 1`

export const layer = Layer.effect(
  OpenTransactions,
  Effect.map(Postgres, ({ reads }) =>
    OpenTransactions.of({
      oldest: (longerThan) =>
        reading(
          reads.query<OpenTransaction>(oldestStatement, [Duration.toMillis(longerThan)]),
          ([oldest = null]) => oldest
        )
    })
  )
)
