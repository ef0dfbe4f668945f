/** The law of an outage as data: it begins once, and only a begun one can end. */
import { setup } from "xstate"
import type { OutageFact } from "./facts.ts"

export const outageMachine = setup({ types: { events: {} as OutageFact } }).createMachine({
  id: "outage",
  initial: "REACHED",
  states: {
    REACHED: { on: { BrokerLost: "LOST" } },
    LOST: { on: { BrokerBack: "REACHED" } }
  }
})
