/** The law of lateness as data: it begins once, and only what has begun can end. */
import { setup } from "xstate"
import type { LatenessFact } from "./facts.ts"

export const latenessMachine = setup({ types: { events: {} as LatenessFact } }).createMachine({
  id: "lateness",
  initial: "CALM",
  states: {
    CALM: { on: { LatenessBegan: "LATE" } },
    LATE: { on: { LatenessEnded: "CALM" } }
  }
})
