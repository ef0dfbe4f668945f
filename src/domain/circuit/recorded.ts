/** Where a fact of a circuit meets its stored form. */
import { codecOf } from "../recorded.ts"
import { type CircuitFact, recorded } from "./facts.ts"

export const { toRecorded, fromRecorded } = codecOf<CircuitFact>(recorded)
