import { Effect, Layer } from "effect"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { addToJournal, Memory } from "../Memory.ts"

/** Journals over a plain map. */
export const layer = Layer.effect(
  Journals,
  Effect.gen(function* () {
    const { tables } = yield* Memory
    return Journals.of({
      load: (journal, { after, limit } = { after: 0, limit: Number.POSITIVE_INFINITY }) =>
        Effect.sync(() => (tables.journals.get(journal) ?? []).slice(after, after + limit)),
      append: (journal, expected, facts, at, actor) =>
        Effect.sync(() => {
          const history = tables.journals.get(journal) ?? []
          if (history.length !== expected) return "VersionConflict"
          addToJournal(tables, journal, facts, at, actor)
          return "Appended"
        })
    })
  })
)
