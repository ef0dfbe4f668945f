/** Sweeps by `forget_ended`; a cursor is the org, the time and the id of the last message looked at. */
import { DateTime, Effect, Layer } from "effect"
import { Retention } from "../../../application/ports/Retention.ts"
import { Postgres, prepared, unavailable } from "../Postgres.ts"

const sweepStatement = prepared`select removed::text, next_org, to_json(next_created) #>> '{}', next_id::text
    from forget_ended($1, $2, $3::timestamptz, $4::uuid, $5)`

export const layer = Layer.effect(
  Retention,
  Effect.gen(function* () {
    const { durable } = yield* Postgres
    const sweep: Retention["Service"]["sweep"] = Effect.fnUntraced(function* (endedBefore, from, limit) {
      const [org = null, created = null, id = null] = (from ?? "").split("/").map((part) => (part === "" ? null : part))
      const [row] = yield* unavailable(
        durable.rows(sweepStatement, [DateTime.formatIso(endedBefore), org, created, id, limit])
      )
      if (row === undefined) return null
      const [removed, ...next] = row
      return { removed: Number(removed), next: next[0] === null ? null : next.map((part) => part ?? "").join("/") }
    })
    return Retention.of({ sweep })
  })
)
