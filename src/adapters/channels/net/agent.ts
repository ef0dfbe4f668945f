/** How Posthaste introduces itself, and that it wants answers as they are. */
import manifest from "../../../../package.json" with { type: "json" }

export const agentHeaders: ReadonlyArray<string> = [
  ...["user-agent", `Posthaste/${manifest.version}`],
  ...["accept-encoding", "identity"]
]
