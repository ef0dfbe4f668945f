/** A row for each process and task. Whoever reports also forgets rows of processes that are gone. */
import { Effect, Layer } from "effect"
import { BrokerReports, REPORT_HOLDS_MS } from "../../../application/ports/BrokerReports.ts"
import type { BrokerReach } from "../../../domain/outage/decider.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"

const isHeld = `reported_at > clock_timestamp() - interval '${REPORT_HOLDS_MS} milliseconds'`
const reportStatement = prepared`with gone as (
      delete from broker_report where not (${isHeld}) and (task, process) <> ($2, $1)
    )
    insert into broker_report as r (process, task, away) values ($1, $2, $3::boolean)
    on conflict (task, process) do update set
      away = excluded.away, reported_at = excluded.reported_at,
      since = case when r.away = excluded.away then r.since else excluded.since end`
// A task is done since the first of those who do it began, and not done since the last of them stopped.
const reachStatement = prepared`select bool_or(away) as away,
      case when bool_or(away) then min(since) filter (where away) else max(since) end as since
    from (
      select bool_and(away) as away, case when bool_and(away) then max(since) else min(since) filter (where not away) end as since
      from broker_report where ${isHeld} group by task
    ) t having count(*) > 0`

export const layer = Layer.effect(
  BrokerReports,
  Effect.gen(function* () {
    const { queue, reads } = yield* Postgres
    return BrokerReports.of({
      report: (process, task, away) => Effect.asVoid(unavailable(queue.rows(reportStatement, [process, task, away]))),
      reach: reading(reads.query<BrokerReach>(reachStatement, []), ([row]) => row ?? null)
    })
  })
)
