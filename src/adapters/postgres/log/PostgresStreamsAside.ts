/**
 * Streams that readers of the log owe facts of. Projections write theirs with their steps (`stepping` in projectionRows.ts).
 */
import { Effect, Layer } from "effect"
import type { SetAsideReason } from "../../../application/ports/SetAside.ts"
import {
  type AsideReader,
  type StreamAside,
  StreamsAside,
  TRIED_EVERY_MS
} from "../../../application/ports/StreamsAside.ts"
import { Postgres, prepared, reading, unavailable, unprepared } from "../Postgres.ts"

const DETAIL_MAX = 1_000

/** As the statements below read them. */
export const owedJson = (streams: ReadonlyArray<StreamAside>): string =>
  JSON.stringify(
    streams.map(({ stream, versions, reason, detail }) => ({
      ...{ stream, versions, reason },
      detail: detail.replaceAll("\u0000", "\ufffd").slice(0, DETAIL_MAX)
    }))
  )

/** Owes the facts that `streams` names, a parameter, where `condition` holds. */
export const owing = (reader: string, generation: string, streams: string, condition: string): string =>
  `insert into stream_aside as s (reader, generation, stream, versions, reason, detail, again_at)
    select ${reader}, ${generation}, o.stream, o.versions, o.reason, o.detail,
      clock_timestamp() + interval '${TRIED_EVERY_MS} milliseconds'
    from json_to_recordset(${streams}::json) o(stream text, versions int[], reason text, detail text)
    where ${condition} order by o.stream
  on conflict (reader, generation, stream) do update
    set versions = array(select distinct v from unnest(s.versions || excluded.versions) v order by v)`

const ofStatement = prepared`select stream, reason, detail from stream_aside where reader = $1 and generation = $2`
const oweStatement = unprepared`${owing("$1::text", "$2::int", "$3", "true")}`
const dueStatement = prepared`update stream_aside s
    set again_at = clock_timestamp() + interval '${TRIED_EVERY_MS} milliseconds', tries = tries + 1
    where (s.reader, s.generation, s.stream) in (
      select d.reader, d.generation, d.stream from stream_aside d
      where d.reader = $1 and d.generation = $2 and d.again_at <= clock_timestamp()
      order by d.again_at limit $3 for update skip locked)
    returning s.stream, s.versions`
const madeUpStatement = unprepared`delete from stream_aside
    where reader = $1 and generation = $2 and stream = $3 and versions = $4::int[]`

interface AsideRow {
  readonly stream: string
  readonly reason: SetAsideReason
  readonly detail: string
}

export const layer = Layer.effect(
  StreamsAside,
  Effect.gen(function* () {
    const { durable, derived, reads } = yield* Postgres
    return StreamsAside.of({
      of: ({ name, generation }: AsideReader) =>
        reading(
          reads.query<AsideRow>(ofStatement, [name, generation]),
          (rows) => new Map(rows.map(({ stream, reason, detail }) => [stream, { reason, detail }]))
        ),
      // Durable: the reader moves on past these facts.
      owe: ({ name, generation }, streams) =>
        streams.length === 0
          ? Effect.void
          : Effect.asVoid(unavailable(durable.rows(oweStatement, [name, generation, owedJson(streams)]))),
      due: ({ name, generation }, limit) =>
        unavailable(
          derived.query<{ stream: string; versions: ReadonlyArray<number> }>(dueStatement, [name, generation, limit])
        ),
      madeUp: ({ name, generation }, { stream, versions }) =>
        Effect.asVoid(unavailable(derived.rows(madeUpStatement, [name, generation, stream, versions])))
    })
  })
)
