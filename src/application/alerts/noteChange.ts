/**
 * Appends what a look at the world has changed to a journal, once, however many processes look at the same time. The journal is of
 * something that is or is not, so its last fact tells all: looks are frequent, and such a journal may go on for years.
 */
import { DateTime, Effect } from "effect"
import type { RecordedFact } from "../../domain/recorded.ts"
import { appendToJournal, command } from "../command.ts"
import { type JournalFact, type JournalName, Journals } from "../ports/Journals.ts"

export const noteChange = (
  journal: JournalName,
  changed: (last: JournalFact | null, now: DateTime.Utc) => ReadonlyArray<RecordedFact>
) =>
  command(
    {
      load: Effect.flatMap(Journals, (journals) => journals.last(journal)),
      decide: Effect.fnUntraced(function* (last: JournalFact | null) {
        const at = yield* DateTime.now
        const facts = changed(last, at)
        return {
          entry: facts.length === 0 ? null : { expected: last?.version ?? 0, facts, at },
          answer: null
        }
      }),
      append: appendToJournal(journal)
    },
    { tries: 1 }
    // Another process looked at the same time and was first.
  ).pipe(Effect.catchTag("Overtaken", () => Effect.void))
