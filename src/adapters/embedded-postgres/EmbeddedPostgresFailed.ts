import { Schema } from "effect"

/** The built-in server can't serve. `message` is one line for the person who started Posthaste. */
export class EmbeddedPostgresFailed extends Schema.TaggedError<EmbeddedPostgresFailed>()("EmbeddedPostgresFailed", {
  message: Schema.String
}) {}
