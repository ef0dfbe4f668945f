/**
 * Journals stay in PostgreSQL. Each fact of a journal is copied to EventStoreDB before its append answers, so that the log has
 * facts in the order they happened. When the copy fails, forwardJournals.ts makes it later.
 */
import { Effect, Layer } from "effect"
import { Journals } from "../../application/ports/Journals.ts"
import type { StreamKeys } from "../../application/ports/StreamKeys.ts"
import type { EventStoreDb } from "./EventStoreDb.ts"
import { write } from "./forwardJournals.ts"

/** Over journals that are kept elsewhere. */
export const layer = Layer.effect(
  Journals,
  Effect.gen(function* () {
    const journals = yield* Journals
    const services = yield* Effect.context<EventStoreDb | StreamKeys>()
    const append: typeof journals.append = (journal, expected, facts, at, actor) =>
      Effect.tap(journals.append(journal, expected, facts, at, actor), (answer) => {
        if (answer !== "Appended") return Effect.void
        const copies = facts.map((fact, n) => ({ ...fact, version: expected + n + 1, at, actor }))
        return Effect.ignore(Effect.provideContext(write(journal, copies), services))
      })
    return Journals.of({ ...journals, append })
  })
)
