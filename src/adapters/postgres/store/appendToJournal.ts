/**
 * Facts that commit with their change, a statement's CTE: where it answers no row there is no fact.
 */
import { DateTime, Effect } from "effect"
import { CommandedBy } from "../../../application/commandedBy.ts"
import type { JournalName } from "../../../application/ports/Journals.ts"
import { orgTold } from "../../../domain/audit/entry.ts"
import type { ConfigurationFact } from "../../../domain/destination/facts.ts"
import { toRecorded } from "../../../domain/destination/facts.ts"
import type { RecordedFact } from "../../../domain/recorded.ts"
import { streamIdOf } from "./PostgresJournals.ts"

/** An SQL call; its seven parameters begin at `$first`. */
export const appendToJournalSql = (first: number): string => {
  const [journal, stream, names, data, at, actor, orgs] = Array.from({ length: 7 }, (_, n) => `$${first + n}`)
  return `append_to_journal(${journal}::text, ${stream}::uuid, ${names}::text[], ${data}::text[], ${at}::timestamptz, ${actor}::text, ${orgs}::text[])`
}

export const appendToJournalValues = (
  journal: JournalName,
  facts: ReadonlyArray<RecordedFact>,
  at: DateTime.Utc,
  actor: string | null
): ReadonlyArray<unknown> => [
  journal,
  streamIdOf(journal),
  facts.map(({ name }) => name),
  facts.map(({ data }) => data),
  DateTime.formatIso(at),
  actor,
  facts.map(orgTold)
]

export const configurationFactValues = Effect.fnUntraced(function* (
  journal: JournalName,
  facts: ReadonlyArray<ConfigurationFact>,
  at: DateTime.Utc
) {
  return appendToJournalValues(journal, facts.map(toRecorded), at, yield* CommandedBy)
})
