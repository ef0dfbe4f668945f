/** Fronts of journals that go on for ever: which are old enough, and forgetting them. A cursor is the journal's id and the version. */
import { DateTime, Effect } from "effect"
import type { Position } from "../../../application/ports/EventStore.ts"
import type { JournalName } from "../../../application/ports/Journals.ts"
import type { JournalFront } from "../../../application/ports/Ledger.ts"
import { type Connections, prepared, reading } from "../Postgres.ts"
import { streamIdOf } from "../store/PostgresJournals.ts"

const restingStatement = prepared`select stream_id::text, version::text, stream, is_front from resting_fronts($1, $2::uuid, $3, $4)`
const forgetStatement = prepared`select forget_fronts($1, $2::uuid[], $3::text[], $4::int[], $5::text[])::text`

export const restingFronts = (bulk: Connections, restedBefore: DateTime.Utc, from: string | null, limit: number) => {
  const [id = null, version = null] = from?.split("/") ?? []
  return reading(bulk.rows(restingStatement, [DateTime.formatIso(restedBefore), id, version, limit]), (rows) => {
    const last = rows.at(-1)
    return {
      fronts: rows.flatMap(([_id, version, stream, isFront]) =>
        isFront === "t" ? [{ stream: stream!, version: Number(version) }] : []
      ),
      next: last === undefined || rows.length < limit ? null : `${last[0]}/${last[1]}`
    }
  })
}

/** `place`: where it stands in the log, if that is another than here. */
export const forgetFronts = (
  bulk: Connections,
  restedBefore: DateTime.Utc,
  fronts: ReadonlyArray<JournalFront & { readonly place?: Position }>
) => {
  if (fronts.length === 0) return Effect.succeed(0)
  const values = [
    DateTime.formatIso(restedBefore),
    fronts.map(({ stream }) => streamIdOf(stream as JournalName)),
    fronts.map(({ stream }) => stream),
    fronts.map(({ version }) => version),
    fronts.map(({ place = null }) => place)
  ]
  return reading(bulk.rows(forgetStatement, values), ([row]) => (row![0] === null ? null : Number(row![0])))
}
