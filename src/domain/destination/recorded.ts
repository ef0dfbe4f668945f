/** Where a fact of a destination or key meets its stored form. */
import { codecOf } from "../recorded.ts"
import { type ConfigurationFact, recorded } from "./facts.ts"

export const { toRecorded, fromRecorded } = codecOf<ConfigurationFact>(recorded)
