/**
 * Turns of the event loop, shared out by org. One thread works for everybody, and what it does in one turn of its loop keeps everybody
 * waiting. So in one turn each org has so much taken up and no more. The rest waits for the next turns, in the order it came, and those
 * who wait take turns too. What waits costs next to nothing: no byte of its body is decoded, and nothing is built for it.
 */

/** What one has in a turn of the loop: so many small requests, or one piece of work of a millisecond or two. */
export const PIECE = 16
/** What all have together. */
const OF_ALL = 4 * PIECE

export interface Turns {
  /** Calls `begin` in this turn of the loop, at once, or in one of the next. */
  readonly take: (who: string, weight: number, begin: () => void) => void
  /** What was taken up weighed so much more: who took it has as much less of this turn, and all others too. */
  readonly exceed: (who: string, weight: number) => void
}

interface Waiting {
  readonly weight: number
  readonly begin: () => void
}

/** `nextTurn` calls back when the loop has turned. */
export const makeTurns = (nextTurn: (turned: () => void) => void = setImmediate): Turns => {
  let left = OF_ALL
  let isTurning = false
  const used = new Map<string, number>()
  /** Whose turn it is next comes first. */
  const waiting = new Map<string, Array<Waiting>>()

  const mayUse = (who: string, weight: number) => weight <= left && (used.get(who) ?? 0) + weight <= PIECE

  const use = (who: string, weight: number) => {
    left -= weight
    used.set(who, (used.get(who) ?? 0) + weight)
    turnSoon()
  }

  const turnSoon = () => {
    if (isTurning) return
    isTurning = true
    nextTurn(turn)
  }

  const turn = () => {
    isTurning = false
    left = OF_ALL
    used.clear()
    // Whoever goes to the end of the line comes by again, until nobody may.
    for (const [who, line] of waiting) {
      const [first] = line
      if (!mayUse(who, first!.weight)) continue
      waiting.delete(who)
      line.shift()
      if (line.length > 0) waiting.set(who, line)
      use(who, first!.weight)
      first!.begin()
    }
    if (waiting.size > 0) turnSoon()
  }

  const take: Turns["take"] = (who, weight, begin) => {
    const line = waiting.get(who)
    if (line === undefined && mayUse(who, weight)) {
      use(who, weight)
      begin()
    } else {
      if (line === undefined) waiting.set(who, [{ weight, begin }])
      else line.push({ weight, begin })
      turnSoon()
    }
  }

  return { take, exceed: use }
}
