import { Context, type DateTime } from "effect"
import type { RecordedFact } from "../../domain/recorded.ts"
import type { FromStore } from "../errors.ts"
import type { StreamVersion } from "./EventStore.ts"

/** `<kind>-<id>`, such as `circuit-<destination>` or `replay-<id>`. Never `message-…`: those are EventStore's. */
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
 * The streams of everything but messages: circuits, replay jobs. They are facts with the same promise as
 * `EventStore.append`: all facts or none, only on top of `expected`, one winner among racers, and an `Appended`
 * survives any crash. They are short and written rarely, so each append is a commit of its own.
 *
 * The domain that wrote the facts knows their meaning; a journal keeps name and JSON text.
 */
export class Journals extends Context.Service<
  Journals,
  {
    /** Empty for a journal without facts. With `part` the facts after a version, no more than `limit`. */
    readonly load: (journal: JournalName, part?: StreamPart) => FromStore<ReadonlyArray<JournalFact>>
    /** Null for a journal without facts. It reads no other fact, however many there are. */
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
