/**
 * A fact in its stored form: `Type@version` and JSON text. Stores keep both and look inside neither; each
 * kind of stream has a codec of its own (such as message/recorded.ts).
 */
import { Schema } from "effect"

export interface RecordedFact {
  readonly name: string
  /** JSON text, without the type: the name says it. */
  readonly data: string
}

export class UnreadableFact extends Schema.TaggedError<UnreadableFact>()("UnreadableFact", {
  name: Schema.String,
  message: Schema.String
}) {}
