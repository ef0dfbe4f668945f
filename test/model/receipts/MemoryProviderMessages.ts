/** Names of messages at their providers, looked up in the streams themselves. */
import { Effect, Layer, Result } from "effect"
import { ProviderMessages } from "../../../src/application/ports/ProviderMessages.ts"
import { fromRecorded } from "../../../src/domain/message/recorded.ts"
import { Memory, type StoredRow } from "../Memory.ts"

const tells = (row: StoredRow, name: string): boolean => {
  const fact = Result.getOrThrow(fromRecorded(row))
  return (fact.type === "AttemptSucceeded" || fact.type === "ReceiptRecorded") && fact.providerMessageId === name
}

export const layer = Layer.effect(
  ProviderMessages,
  Effect.gen(function* () {
    const { tables } = yield* Memory
    return ProviderMessages.of({
      find: (name) =>
        Effect.sync(() =>
          [...tables.streams].filter(([_, rows]) => rows.some((row) => tells(row, name))).map(([id]) => id)
        )
    })
  })
)
