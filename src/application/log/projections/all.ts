import type { DestinationHealth } from "../../ports/DestinationHealth.ts"
import type { MessageViews } from "../../ports/MessageViews.ts"
import { health } from "./health.ts"
import { messages } from "./messages.ts"
import type { Projection } from "./Projection.ts"

export const projections: ReadonlyArray<Projection<MessageViews | DestinationHealth>> = [messages, health]
