/** Where a fact about a replay meets its stored form. */
import { codecOf } from "../recorded.ts"
import { type ReplayFact, recorded } from "./facts.ts"

export const { toRecorded, fromRecorded } = codecOf<ReplayFact>(recorded)
