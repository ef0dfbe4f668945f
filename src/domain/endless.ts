/**
 * Journals that go on as long as what they are about, however often it changes: the kind of each, and the types of facts after which all
 * is as at its beginning. What was before the last of these that is old enough may be forgotten; versions go on.
 */
import { rests as ofCircuits } from "./circuit/decider.ts"
import { rests as ofOutages } from "./outage/decider.ts"
import { rests as ofBacklogs } from "./overdue/decider.ts"

export const endless: ReadonlyMap<string, ReadonlyArray<string>> = new Map<string, ReadonlyArray<string>>([
  ["circuit", ofCircuits],
  ["overdue", ofBacklogs],
  ["outage", ofOutages]
])
