/**
 * Who is behind a command: `operator`, or `key:<id>` of an org's key. It is kept with the facts that the command
 * leads to. Null is Posthaste itself: its workers, its replays, its clean-up.
 */
import { Context } from "effect"

export const CommandedBy = Context.Reference<string | null>("posthaste/application/CommandedBy", {
  defaultValue: () => null
})
