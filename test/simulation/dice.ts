/** The one source of chance in a simulated world: the same seed throws the same dice. */
export interface Dice {
  /** From [0, 1). */
  readonly next: () => number
  /** A whole number from [low, high], both included. */
  readonly between: (low: number, high: number) => number
  readonly chance: (probability: number) => boolean
  readonly pick: <A>(from: ReadonlyArray<A>) => A
}

/** mulberry32: 32 bits of state, fast, and good enough to pick what happens next. */
export const makeDice = (seed: number): Dice => {
  let state = Math.imul(seed, 0x9e3779b1) >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
  const between = (low: number, high: number) => low + Math.floor(next() * (high - low + 1))
  return {
    next,
    between,
    chance: (probability) => next() < probability,
    pick: (from) => from[between(0, from.length - 1)]!
  }
}
