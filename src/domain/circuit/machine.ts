/** The law of a circuit as data: which fact may follow which. It cannot wait: the times are in the facts. */
import { DateTime } from "effect"
import { setup } from "xstate"
import type { MessageId } from "../ids.ts"
import { lawOf, type Step as On } from "../machine.ts"
import type { CircuitFact, CircuitFactOf } from "./facts.ts"

export interface CircuitMemory {
  /** In a row, when it opened. */
  readonly failures: number
  /** Openings since it was last closed: each makes the next open time longer. */
  readonly openings: number
  readonly until: DateTime.Utc | null
  readonly probe: MessageId | null
}

const calm: CircuitMemory = { failures: 0, openings: 0, until: null, probe: null }

type Step<T extends CircuitFact["type"]> = On<CircuitMemory, CircuitFactOf<T>>

const guards = {
  followsFailures: ({ event }: Step<"CircuitOpened">) => event.openings === 1 && event.failures >= 1,
  isNextOpening: ({ context, event }: Step<"CircuitReopened">) => event.openings === context.openings + 1,
  /** A permit begins after the open time, so it also ends after it. */
  outlastsSilence: ({ context, event }: Step<"CircuitProbed">) =>
    context.until !== null && DateTime.isGreaterThan(event.expiresAt, context.until)
}

const changes = {
  open: ({ event }: Step<"CircuitOpened">): Partial<CircuitMemory> => ({
    failures: event.failures,
    openings: event.openings,
    until: event.until
  }),
  permit: ({ event }: Step<"CircuitProbed">): Partial<CircuitMemory> => ({
    probe: event.probe,
    until: event.expiresAt
  }),
  reopen: ({ event }: Step<"CircuitReopened">): Partial<CircuitMemory> => ({
    openings: event.openings,
    until: event.until,
    probe: null
  }),
  hold: (): Partial<CircuitMemory> => ({ until: null, probe: null }),
  calmDown: (): Partial<CircuitMemory> => calm
}

const law = lawOf<CircuitMemory, CircuitFact>()

const byHand = {
  CircuitHeld: { target: "HELD", actions: "hold" },
  CircuitReset: { target: "CLOSED", actions: "calmDown" }
} as const

export const circuitMachine = setup({
  types: { context: {} as CircuitMemory, events: {} as CircuitFact },
  guards: law.guards(guards),
  actions: law.changes(changes)
}).createMachine({
  id: "circuit",
  context: calm,
  initial: "CLOSED",
  states: {
    CLOSED: {
      on: {
        CircuitOpened: { target: "OPEN", guard: "followsFailures", actions: "open" },
        CircuitHeld: byHand.CircuitHeld
      }
    },
    OPEN: { on: { CircuitProbed: { target: "HALF_OPEN", guard: "outlastsSilence", actions: "permit" }, ...byHand } },
    HALF_OPEN: {
      on: {
        // The earlier permit ran out, or its probe gave it back undecided.
        CircuitProbed: { actions: "permit" },
        CircuitClosed: { target: "CLOSED", actions: "calmDown" },
        CircuitReopened: { target: "OPEN", guard: "isNextOpening", actions: "reopen" },
        ...byHand
      }
    },
    HELD: { on: { CircuitReset: byHand.CircuitReset } }
  }
})

export const circuitStatuses = ["CLOSED", "OPEN", "HALF_OPEN", "HELD"] as const
export type CircuitStatus = (typeof circuitStatuses)[number]
