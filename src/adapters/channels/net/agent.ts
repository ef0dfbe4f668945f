/** The headers of every request: Posthaste's name, and that it takes no compressed answers. */
import manifest from "../../../../package.json" with { type: "json" }

export const agent = { "user-agent": `Posthaste/${manifest.version}`, "accept-encoding": "identity" }

export const agentHeaders: ReadonlyArray<string> = Object.entries(agent).flat()
