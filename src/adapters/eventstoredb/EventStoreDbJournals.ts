/**
 * Journals stay where they are, and what is written to one is copied before it is answered, so that the log tells things in
 * the order they happened. Where that fails, the copy is made up for (forwardJournals.ts).
 */
import { Effect, Layer } from "effect"
import { Journals } from "../../application/ports/Journals.ts"
import type { EventStoreDb } from "./EventStoreDb.ts"
import { write } from "./forwardJournals.ts"

/** Over journals that are kept elsewhere. */
export const layer = Layer.effect(
  Journals,
  Effect.gen(function* () {
    const journals = yield* Journals
    const services = yield* Effect.context<EventStoreDb>()
    const append: typeof journals.append = (journal, expected, facts, at, actor) =>
      Effect.tap(journals.append(journal, expected, facts, at, actor), (answer) => {
        if (answer !== "Appended") return Effect.void
        const copies = facts.map((fact, n) => ({ ...fact, version: expected + n + 1, at, actor }))
        return Effect.ignore(Effect.provideContext(write(journal, copies), services))
      })
    return Journals.of({ ...journals, append })
  })
)
