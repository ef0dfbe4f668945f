/** Where a fact of lateness meets its stored form. */
import { codecOf } from "../recorded.ts"
import { type LatenessFact, recorded } from "./facts.ts"

export const { toRecorded, fromRecorded } = codecOf<LatenessFact>(recorded)
