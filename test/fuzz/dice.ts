/** Random choices from a seed: the same seed makes the same requests. */
export interface Dice {
  /** From 0 up to, not including, 1. */
  readonly next: () => number
  readonly below: (count: number) => number
  readonly chance: (probability: number) => boolean
  readonly pick: <A>(choices: ReadonlyArray<A>) => A
}

/** Mulberry32: short, and random enough to choose requests. */
export const diceOf = (seed: number): Dice => {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (count: number) => Math.floor(next() * count)
  return {
    next,
    below,
    chance: (probability) => next() < probability,
    pick: (choices) => choices[below(choices.length)]!
  }
}
