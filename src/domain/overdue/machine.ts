/** The law of an overdue backlog as data: it begins once, and only a begun one can end. */
import { setup } from "xstate"
import type { OverdueFact } from "./facts.ts"

export const overdueMachine = setup({ types: { events: {} as OverdueFact } }).createMachine({
  id: "overdue",
  initial: "CALM",
  states: {
    CALM: { on: { OverdueBegan: "LATE" } },
    LATE: { on: { OverdueEnded: "CALM" } }
  }
})
