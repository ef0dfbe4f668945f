/** The headers of every request: Posthaste's name, and that it takes no compressed answers. */
import manifest from "../../../../package.json" with { type: "json" }

export const agentHeaders: ReadonlyArray<string> = [
  ...["user-agent", `Posthaste/${manifest.version}`],
  ...["accept-encoding", "identity"]
]
