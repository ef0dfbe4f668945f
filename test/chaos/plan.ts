/** What happens in a campaign, drawn from its seed before it begins: so a campaign that found something can be run again. */
import { type Dice, makeDice } from "../simulation/dice.ts"

export type Fault =
  /** SIGKILL; a supervisor starts the process again. */
  | { readonly type: "kill"; readonly process: number; readonly lastsMs: number }
  /** SIGTERM, the end in good order, and a new start. */
  | { readonly type: "restart"; readonly process: number; readonly lastsMs: number }
  /** SIGSTOP and SIGCONT, perhaps for longer than a lease lasts. */
  | { readonly type: "freeze"; readonly process: number; readonly lastsMs: number }
  /** The connections of a process to the database say nothing any more, as after a failover; perhaps new ones too. */
  | { readonly type: "silence"; readonly process: number; readonly lastsMs: number; readonly alsoNew: boolean }
  /** The clock of a machine is wrong. */
  | { readonly type: "wrongClock"; readonly process: number; readonly lastsMs: number; readonly byMs: number }
  /** The database crashes and forgets the commits that were not on the disk. */
  | { readonly type: "crashDatabase"; readonly lastsMs: number }
  | { readonly type: "freezeDatabase"; readonly lastsMs: number }
  | { readonly type: "fillDisk"; readonly lastsMs: number }

export type Kind = Fault["type"]

export const kinds: ReadonlyArray<Kind> = [
  "kill",
  "restart",
  "freeze",
  "silence",
  "wrongClock",
  "crashDatabase",
  "freezeDatabase",
  "fillDisk"
]

/** Faults that strike together, after a while without any. */
export interface Round {
  readonly quietMs: number
  readonly faults: ReadonlyArray<Fault>
}

export interface Chances {
  readonly processes: number
  readonly kinds: ReadonlyArray<Kind>
  /** No fault lasts longer. */
  readonly lastsMaxMs: number
}

/** Without an end. */
export function* planOf(seed: number, chances: Chances): Generator<Round, never> {
  const dice = makeDice(seed)
  // Every kind comes before one comes again: a short campaign sees them all.
  let left: Array<Kind> = []
  const next = () => {
    if (left.length === 0) left = shuffled(dice, chances.kinds)
    return left.pop()!
  }
  for (;;) {
    const first = faultOf(dice, next(), chances)
    const faults = [first]
    if (dice.chance(0.35)) {
      const second = faultOf(dice, next(), chances)
      if (!isSameThing(first, second)) faults.push(second)
    }
    yield { quietMs: dice.between(300, 2_000), faults }
  }
}

const isSameThing = (one: Fault, other: Fault): boolean =>
  "process" in one && "process" in other ? one.process === other.process : !("process" in one) && !("process" in other)

const faultOf = (dice: Dice, type: Kind, { processes, lastsMaxMs }: Chances): Fault => {
  const process = dice.between(0, processes - 1)
  // More short ones than long ones.
  const lastsMs = Math.round(100 + dice.next() ** 2 * (lastsMaxMs - 100))
  const alsoNew = dice.chance(0.5)
  const byMs = dice.between(-50 * 60_000, 50 * 60_000)
  switch (type) {
    case "kill":
    case "restart":
    case "freeze":
      return { type, process, lastsMs }
    case "silence":
      return { type, process, lastsMs, alsoNew }
    case "wrongClock":
      return { type, process, lastsMs, byMs }
    case "crashDatabase":
    case "freezeDatabase":
    case "fillDisk":
      return { type, lastsMs }
  }
}

const shuffled = <A>(dice: Dice, from: ReadonlyArray<A>): Array<A> => {
  const cards = [...from]
  for (let n = cards.length - 1; n > 0; n--) {
    const other = dice.between(0, n)
    ;[cards[n], cards[other]] = [cards[other]!, cards[n]!]
  }
  return cards
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`

export const inWords = (fault: Fault): string => {
  const whom = "process" in fault ? ` ${"abcdefgh"[fault.process]}` : ""
  const more =
    fault.type === "silence" && fault.alsoNew
      ? ", also for new connections"
      : fault.type === "wrongClock"
        ? ` by ${Math.round(fault.byMs / 60_000)} min`
        : ""
  return `${fault.type}${whom}${more} for ${seconds(fault.lastsMs)}`
}
