/** Bodies and responses, written by the event store, read and erased here. */
import { Effect, Layer } from "effect"
import { Bodies } from "../../../src/application/ports/Bodies.ts"
import { Memory } from "../Memory.ts"

export const layer = Layer.effect(
  Bodies,
  Effect.gen(function* () {
    const { bodies, responses } = (yield* Memory).tables
    return Bodies.of({
      load: (id) => Effect.sync(() => bodies.get(id) ?? null),
      responses: (id) => Effect.sync(() => new Map(responses.get(id))),
      erase: (id) =>
        Effect.sync(() => {
          const hadBody = bodies.delete(id)
          const hadResponses = responses.delete(id)
          return hadBody || hadResponses
        })
    })
  })
)
