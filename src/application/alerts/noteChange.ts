/** Appends what a look at the world has changed to a journal, once, however many processes look at the same time. */
import { DateTime, Effect } from "effect"
import type { RecordedFact } from "../../domain/recorded.ts"
import { appendToJournal, command } from "../command.ts"
import { type JournalFact, type JournalName, Journals } from "../ports/Journals.ts"

export const noteChange = (
  journal: JournalName,
  changed: (history: ReadonlyArray<JournalFact>, now: DateTime.Utc) => ReadonlyArray<RecordedFact>
) =>
  command(
    {
      load: Effect.flatMap(Journals, (journals) => journals.load(journal)),
      decide: Effect.fnUntraced(function* (history: ReadonlyArray<JournalFact>) {
        const at = yield* DateTime.now
        const facts = changed(history, at)
        return {
          entry: facts.length === 0 ? null : { expected: history.at(-1)?.version ?? 0, facts, at },
          answer: null
        }
      }),
      append: appendToJournal(journal)
    },
    { tries: 1 }
    // Another process looked at the same time and was first.
  ).pipe(Effect.catchTag("Overtaken", () => Effect.void))
