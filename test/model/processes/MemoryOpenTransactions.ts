import { Effect, Layer } from "effect"
import { OpenTransactions } from "../../../src/application/ports/OpenTransactions.ts"

/** Here every transaction is over at once. */
export const layer = Layer.succeed(OpenTransactions, { oldest: () => Effect.succeed(null) })
