/** Bodies and responses, written by the event store, read and erased here. */
import { Effect, Layer } from "effect"
import { Bodies } from "../../../src/application/ports/Bodies.ts"
import { bodyIn, eraseIn, Memory } from "../Memory.ts"

export const layer = Layer.effect(
  Bodies,
  Effect.gen(function* () {
    const { tables } = yield* Memory
    return Bodies.of({
      load: (id) => Effect.sync(() => bodyIn(tables, id)),
      responses: (id) => Effect.sync(() => new Map(tables.responses.get(id))),
      erase: (id) => Effect.sync(() => eraseIn(tables, id))
    })
  })
)
