/** Where a fact of overdue backlog meets its stored form. */
import { codecOf } from "../recorded.ts"
import { type OverdueFact, recorded } from "./facts.ts"

export const { toRecorded, fromRecorded } = codecOf<OverdueFact>(recorded)
