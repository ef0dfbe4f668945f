/**
 * Which commits of the store are on the disk. Some calls answer before theirs is; until a durable one comes and takes them
 * along, a crash of the database takes the last of them back. Only the queue has such calls here: projections have them
 * too, but their position goes back with their rows, and nobody remembers either.
 */
import type { Tables } from "../model/Memory.ts"
import type { Dice } from "./dice.ts"
import type { StoreCall } from "./swarm.ts"

/** What the queue changes without a fact. */
const queueOf = ({ lanes, laneRows, claims, parked }: Tables) => ({
  lanes: new Map([...lanes].map(([lane, waiting]) => [lane, [...waiting]])),
  laneRows: new Map(laneRows),
  claims: new Map(claims),
  parked: new Map(parked)
})

type QueueState = ReturnType<typeof queueOf>

const replaced = <K, V>(table: Map<K, V>, rows: ReadonlyMap<K, V>): void => {
  table.clear()
  for (const [key, row] of rows) table.set(key, row)
}

const isSame = <K, V>(a: ReadonlyMap<K, V>, b: ReadonlyMap<K, V>, same: (x: V, y: V) => boolean = Object.is) =>
  a.size === b.size && [...a].every(([key, row]) => b.has(key) && same(row, b.get(key)!))

const sameRows = <A>(a: ReadonlyArray<A>, b: ReadonlyArray<A>) =>
  a.length === b.length && a.every((row, i) => row === b[i])

export class Commits {
  /** Calls that answer before they are on the disk. One that writes a fact never does. */
  readonly asynchronous = new Set<StoreCall>(["claim", "release", "renew", "takeOver", "deferLane", "report"])
  readonly #tables: Tables
  /** The queue before each commit that a crash may take back, the earliest first. */
  #before: Array<QueueState> = []

  constructor(tables: Tables) {
    this.#tables = tables
  }

  /** Answers what `work` answers. */
  run<A>(call: StoreCall, work: () => A): A {
    const before = queueOf(this.#tables)
    const facts = this.#tables.feed.length
    const answer = work()
    if (this.#tables.feed.length > facts) this.#before = []
    else if (this.#isChanged(before)) {
      if (this.asynchronous.has(call)) this.#before.push(before)
      else this.#before = []
    }
    return answer
  }

  get pending(): number {
    return this.#before.length
  }

  /** Answers how many commits are gone. */
  crash(dice: Dice): number {
    if (this.#before.length === 0) return 0
    const kept = dice.between(0, this.#before.length - 1)
    const lost = this.#before.length - kept
    const { lanes, laneRows, claims, parked } = this.#before[kept]!
    replaced(this.#tables.lanes, lanes)
    replaced(this.#tables.laneRows, laneRows)
    replaced(this.#tables.claims, claims)
    replaced(this.#tables.parked, parked)
    this.#before = []
    return lost
  }

  #isChanged({ lanes, laneRows, claims, parked }: QueueState): boolean {
    const tables = this.#tables
    return !(
      isSame(tables.claims, claims) &&
      isSame(tables.laneRows, laneRows) &&
      isSame(tables.parked, parked) &&
      isSame<unknown, ReadonlyArray<unknown>>(tables.lanes, lanes, sameRows)
    )
  }
}
