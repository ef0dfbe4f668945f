/** The names of all facts that this release can read. */
import { recorded as access } from "../../domain/access/facts.ts"
import { recorded as circuit } from "../../domain/circuit/facts.ts"
import { recorded as command } from "../../domain/command/facts.ts"
import { recorded as condition } from "../../domain/condition/facts.ts"
import { recorded as consent } from "../../domain/consent/facts.ts"
import { recorded as destination } from "../../domain/destination/facts.ts"
import { recorded as erasure } from "../../domain/erasure/facts.ts"
import { recorded as event } from "../../domain/event/facts.ts"
import { recorded as message } from "../../domain/message/facts.ts"
import { recorded as replay } from "../../domain/replay/facts.ts"

const names: ReadonlySet<string> = new Set(
  [access, circuit, command, consent, destination, erasure, event, message, condition, replay].flatMap(Object.keys)
)

/** `name` is `Type@version`. */
export const isKnownFact = (name: string): boolean => names.has(name)
