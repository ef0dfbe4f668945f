/**
 * The law of a replay as data. Each `ReplayAdvanced` begins where the one before ended and accounts for every item in
 * between, so each item counts once, whichever worker reports it.
 */
import { setup } from "xstate"
import { lawOf, type Step as On } from "../machine.ts"
import type { FactOf, ReplayFact } from "./facts.ts"

export interface Progress {
  readonly matched: number
  readonly cursor: number
  readonly replayed: number
  readonly skipped: number
}

const empty: Progress = { matched: 0, cursor: 0, replayed: 0, skipped: 0 }

type Step<T extends ReplayFact["type"]> = On<Progress, FactOf<T>>

const guards = {
  isNextStretch: ({ context, event }: Step<"ReplayAdvanced">) =>
    event.from === context.cursor &&
    event.to > event.from &&
    event.to <= context.matched &&
    event.replayed + event.skipped === event.to - event.from,
  isThrough: ({ context }: Step<"ReplayCompleted">) => context.cursor === context.matched
}

const changes = {
  open: ({ event }: Step<"ReplayRequested">): Partial<Progress> => ({ matched: event.matched }),
  advance: ({ context, event }: Step<"ReplayAdvanced">): Partial<Progress> => ({
    cursor: event.to,
    replayed: context.replayed + event.replayed,
    skipped: context.skipped + event.skipped
  })
}

const law = lawOf<Progress, ReplayFact>()

const advance = { guard: "isNextStretch", actions: "advance" } as const

export const replayMachine = setup({
  types: { context: {} as Progress, events: {} as ReplayFact },
  guards: law.guards(guards),
  actions: law.changes(changes)
}).createMachine({
  id: "replay",
  context: empty,
  initial: "NEW",
  states: {
    NEW: { on: { ReplayRequested: { target: "RUNNING", actions: "open" } } },
    RUNNING: {
      on: {
        ReplayAdvanced: advance,
        ReplayCompleted: { target: "COMPLETED", guard: "isThrough" },
        ReplayCancelled: "CANCELLED"
      }
    },
    COMPLETED: {},
    // The items under way at the cancellation are still accounted for.
    CANCELLED: { on: { ReplayAdvanced: advance } }
  }
})

export const replayStatuses = ["RUNNING", "COMPLETED", "CANCELLED"] as const
export type ReplayStatus = (typeof replayStatuses)[number]
