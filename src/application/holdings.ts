/**
 * The batches this process holds. A batch is held from its claim until each of its messages was delivered,
 * dropped or handed back; then it is released. A batch that was taken over is lost: nothing is sent or
 * written for it any more.
 */
import type { Duration } from "effect"
import type { AbandonedMessage, BatchId, Claim, ClaimedMessage } from "./ports/Queue.ts"

export interface Holding {
  readonly batch: BatchId
  /** What the batch still holds. */
  messages: ReadonlyArray<ClaimedMessage>
  /** Calls that put messages back and were not answered: until then nobody knows what the batch still holds. */
  unanswered: number
  readonly lease: Duration.Duration
  /** Messages still on somebody's hands. */
  left: number
  /** What goes back to the queue when the batch is released. */
  readonly unstarted: Array<AbandonedMessage>
  readonly lost: boolean
  readonly lose: () => void
}

export interface Holdings {
  readonly add: (claim: Claim) => Holding
  readonly remove: (holding: Holding) => void
  readonly all: () => ReadonlyArray<Holding>
}

export const makeHoldings = (lease: Duration.Duration): Holdings => {
  const held = new Set<Holding>()
  return {
    add: ({ batch, messages }) => {
      let lost = false
      const holding: Holding = {
        batch,
        messages,
        unanswered: 0,
        lease,
        left: messages.length,
        unstarted: [],
        get lost() {
          return lost
        },
        lose: () => {
          lost = true
        }
      }
      held.add(holding)
      return holding
    },
    remove: (holding) => {
      held.delete(holding)
    },
    all: () => [...held]
  }
}
