import { Effect, Layer } from "effect"
import { ProviderMessages } from "../../../application/ports/ProviderMessages.ts"
import type { MessageId } from "../../../domain/ids.ts"
import { Postgres, prepared, reading } from "../Postgres.ts"

const findStatement = prepared`select distinct stream_id from detail where data ->> 'providerMessageId' = $1`

export const layer = Layer.effect(
  ProviderMessages,
  Effect.gen(function* () {
    const { lookups } = yield* Postgres
    return ProviderMessages.of({
      find: (name) => reading(lookups.rows(findStatement, [name]), (rows) => rows.map(([id]) => id as MessageId))
    })
  })
)
