import type { AuditTrail } from "../../ports/AuditTrail.ts"
import type { DestinationHealth } from "../../ports/DestinationHealth.ts"
import type { MessageViews } from "../../ports/MessageViews.ts"
import type { Timelines } from "../../ports/Timelines.ts"
import { activity, audit } from "./audit.ts"
import { health } from "./health.ts"
import { messages } from "./messages.ts"
import type { Projection } from "./Projection.ts"

/** Everything that is folded from the log and kept. */
export const projections: ReadonlyArray<Projection<MessageViews | AuditTrail | Timelines | DestinationHealth>> = [
  messages,
  audit,
  activity,
  health
]
