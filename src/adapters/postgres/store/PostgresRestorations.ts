/** What `continue_log` wrote down at the starts that found the database restored. */
import { type DateTime, Effect, Layer } from "effect"
import { Restorations } from "../../../application/ports/Restorations.ts"
import { Postgres, prepared, reading } from "../Postgres.ts"

const allStatement = prepared`select noticed_at, saved_at from restoration order by nth`

export const layer = Layer.effect(
  Restorations,
  Effect.gen(function* () {
    const { lookups } = yield* Postgres
    return Restorations.of({
      all: reading(lookups.query<{ noticed_at: DateTime.Utc; saved_at: DateTime.Utc }>(allStatement, []), (rows) =>
        rows.map(({ noticed_at: noticedAt, saved_at: savedAt }) => ({ noticedAt, savedAt }))
      )
    })
  })
)
