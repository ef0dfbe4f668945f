/**
 * Shares out the connections of a pool to those on whose behalf statements are asked: all of them together use `places`, each one
 * `ofOne` at most. So the places that one leaves are free for others at once, however much it asks for. Those who wait take turns,
 * one statement each.
 */
import { Effect } from "effect"

export interface Shares {
  readonly places: number
  readonly ofOne: number
}

/** A statement that has a place, or waits for one. */
interface Turn {
  readonly who: string
  begun: boolean
  begin: () => void
}

export const sharing = ({ places, ofOne }: Shares) => {
  let free = places
  const running = new Map<string, number>()
  /** Whose turn it is next comes first. */
  const waiting = new Map<string, Set<Turn>>()

  const count = (who: string, change: 1 | -1) => {
    const own = (running.get(who) ?? 0) + change
    if (own === 0) running.delete(who)
    else running.set(who, own)
    free -= change
  }

  /** Not in the queue any more, and whoever waited behind it goes to the end. */
  const leave = (turn: Turn) => {
    const turns = waiting.get(turn.who)
    if (turns?.delete(turn) !== true) return
    waiting.delete(turn.who)
    if (turns.size > 0) waiting.set(turn.who, turns)
  }

  const beginNext = () => {
    while (free > 0) {
      const next = [...waiting.values()].map(([first]) => first!).find(({ who }) => (running.get(who) ?? 0) < ofOne)
      if (next === undefined) return
      leave(next)
      count(next.who, 1)
      next.begun = true
      next.begin()
    }
  }

  const queue = (who: string): Turn => {
    const turn: Turn = { who, begun: false, begin: () => {} }
    const turns = waiting.get(who) ?? new Set()
    waiting.set(who, turns.add(turn))
    beginNext()
    return turn
  }

  const end = (turn: Turn) => {
    if (turn.begun) count(turn.who, -1)
    else leave(turn)
    beginNext()
  }

  const begun = (turn: Turn) =>
    Effect.callback<void>((resume) => {
      if (turn.begun) resume(Effect.void)
      else turn.begin = () => resume(Effect.void)
    })

  /** Runs it when there is a place. */
  return <A, E, R>(who: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.acquireUseRelease(
      Effect.sync(() => queue(who)),
      (turn) => Effect.andThen(begun(turn), effect),
      (turn) => Effect.sync(() => end(turn))
    )
}
