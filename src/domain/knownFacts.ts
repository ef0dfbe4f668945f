/** The names of all facts that this release can read. */
import { recorded as access } from "./access/facts.ts"
import { recorded as circuit } from "./circuit/facts.ts"
import { recorded as command } from "./command/facts.ts"
import { recorded as condition } from "./condition/facts.ts"
import { recorded as consent } from "./consent/facts.ts"
import { recorded as destination } from "./destination/facts.ts"
import { recorded as erasure } from "./erasure/facts.ts"
import { recorded as event } from "./event/facts.ts"
import { recorded as message } from "./message/facts.ts"
import { recorded as replay } from "./replay/facts.ts"

const names: ReadonlySet<string> = new Set(
  [access, circuit, command, consent, destination, erasure, event, message, condition, replay].flatMap(Object.keys)
)

/** `name` is `Type@version`. */
export const isKnownFact = (name: string): boolean => names.has(name)
