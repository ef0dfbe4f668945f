/** The law of a lasting condition as data: it begins once, and only a begun one can end. */
import { setup } from "xstate"
import type { ConditionFact } from "./facts.ts"

export const conditionMachine = setup({ types: { events: {} as ConditionFact } }).createMachine({
  id: "condition",
  initial: "ABSENT",
  states: { ABSENT: { on: { ConditionBegan: "PRESENT" } }, PRESENT: { on: { ConditionEnded: "ABSENT" } } }
})
