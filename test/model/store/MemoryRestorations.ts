/** A store in memory is never restored. */
import { Effect, Layer } from "effect"
import { Restorations } from "../../../src/application/ports/Restorations.ts"

export const layer = Layer.succeed(Restorations, { all: Effect.succeed([]) })
