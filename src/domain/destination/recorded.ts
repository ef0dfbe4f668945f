/** Where a fact of a destination or key meets its stored form. */
import { codecOf } from "../recorded.ts"
import { type ConfigurationFact, recorded } from "./facts.ts"

/** Whether a stored fact of this name is about a destination or key; such facts identify their journals. */
export const isConfigurationFact = (name: string): boolean => name in recorded

export const { toRecorded, fromRecorded } = codecOf<ConfigurationFact>(recorded)
