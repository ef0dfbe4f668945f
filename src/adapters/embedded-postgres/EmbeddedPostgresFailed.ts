import { Schema } from "effect"

/** Failure of the built-in server; `message` is one line for the operator. */
export class EmbeddedPostgresFailed extends Schema.TaggedError<EmbeddedPostgresFailed>()("EmbeddedPostgresFailed", {
  message: Schema.String
}) {}
