import { Context, type DateTime } from "effect"
import type { RecordedFact } from "../../domain/recorded.ts"
import type { StreamVersion } from "./EventStore.ts"
import type { FromStore } from "./errors.ts"

/** `<kind>-<id>`, such as `circuit-<destination>`. Never `message-…`: those are EventStore's. */
export type JournalName = `${string}-${string}`

export interface JournalFact extends RecordedFact {
  readonly version: StreamVersion
  readonly at: DateTime.Utc
  readonly actor: string | null
}

export interface StreamPart {
  readonly after: StreamVersion
  readonly limit: number
}

/**
 * The streams of everything but messages, with the promises of `EventStore.append`: all facts or none, only on top of
 * `expected`, and an `Appended` survives any crash. Each append is a commit of its own. The domain decodes them.
 */
export class Journals extends Context.Service<
  Journals,
  {
    readonly load: (journal: JournalName, part?: StreamPart) => FromStore<ReadonlyArray<JournalFact>>
    readonly last: (journal: JournalName) => FromStore<JournalFact | null>
    readonly append: (
      journal: JournalName,
      expected: StreamVersion,
      facts: ReadonlyArray<RecordedFact>,
      at: DateTime.Utc,
      actor: string | null
    ) => FromStore<"Appended" | "VersionConflict">
    /** Consents whose last fact is a withdrawal that was not applied. */
    readonly openWithdrawals: (limit: number) => FromStore<ReadonlyArray<JournalName>>
  }
>()("posthaste/application/ports/Journals") {}
