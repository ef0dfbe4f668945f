import { Effect, Layer } from "effect"
import { type JournalName, Journals } from "../../../src/application/ports/Journals.ts"
import { addToJournal, Memory, versionOf } from "../Memory.ts"

/** Journals over a plain map. */
export const layer = Layer.effect(
  Journals,
  Effect.gen(function* () {
    const { tables } = yield* Memory
    return Journals.of({
      load: (journal, { after, limit } = { after: 0, limit: Number.POSITIVE_INFINITY }) =>
        Effect.sync(() =>
          (tables.journals.get(journal) ?? []).filter(({ version }) => version > after).slice(0, limit)
        ),
      last: (journal) => Effect.sync(() => tables.journals.get(journal)?.at(-1) ?? null),
      append: (journal, expected, facts, at, actor) =>
        Effect.sync(() => {
          if (versionOf(tables, journal) !== expected) return "VersionConflict"
          addToJournal(tables, journal, facts, at, actor)
          return "Appended"
        }),
      openWithdrawals: (limit) =>
        Effect.sync(() =>
          [...tables.journals]
            .flatMap(([journal, facts]) =>
              facts.at(-1)?.name === "ConsentWithdrawn@1" ? [journal as JournalName] : []
            )
            .slice(0, limit)
        )
    })
  })
)
