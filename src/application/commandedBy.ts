/** The actor of a command, kept with its facts: `operator`, or `key:<id>` of an org's key. Null is Posthaste itself. */
import { Context } from "effect"

export const CommandedBy = Context.Reference<string | null>("posthaste/application/CommandedBy", {
  defaultValue: () => null
})
