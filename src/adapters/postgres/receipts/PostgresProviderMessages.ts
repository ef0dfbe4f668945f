/** Names of messages at their providers: an index on the facts that tell them (schema/0001_streams.sql). */
import { Effect, Layer } from "effect"
import { ProviderMessages } from "../../../application/ports/ProviderMessages.ts"
import type { MessageId } from "../../../domain/ids.ts"
import { Postgres, prepared, reading } from "../Postgres.ts"

// Its condition is the index's, or the index would not be used.
const findStatement = prepared`select distinct stream_id from event
    where name in ('AttemptSucceeded@1', 'ReceiptRecorded@1', 'ReceiptRecorded@2') and data ->> 'providerMessageId' = $1`

export const layer = Layer.effect(
  ProviderMessages,
  Effect.gen(function* () {
    const { lookups } = yield* Postgres
    return ProviderMessages.of({
      find: (name) => reading(lookups.rows(findStatement, [name]), (rows) => rows.map(([id]) => id as MessageId))
    })
  })
)
