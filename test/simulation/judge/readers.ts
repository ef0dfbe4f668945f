/**
 * What people may rely on of the readers of the log: a stream that can't be read is parked and holds up no other. Rows that are built anew
 * once it can be read have all of it, and nothing twice.
 */
import type { MessageId } from "../../../src/domain/ids.ts"
import { liveGeneration } from "../../model/log/runs.ts"
import { factAt, type Tables } from "../../model/Memory.ts"
import { EPOCH } from "../clock.ts"
import type { World } from "../world.ts"
import type { Ledger } from "./ledger.ts"

const projections = ["messages", "health"]

/** As the log calls it. */
const streamOf = (id: MessageId) => `message-${id}`

export class Readers {
  readonly #world: World
  readonly #tables: Tables
  readonly #ledger: Ledger

  constructor(world: World, tables: Tables, ledger: Ledger) {
    this.#world = world
    this.#tables = tables
    this.#ledger = ledger
  }

  #check(law: string, holds: boolean, explain: () => string): void {
    if (!holds) this.#world.violate(law, explain())
  }

  /** True while the lists may lack facts of this message: it is parked, or was so and they are not yet built anew. */
  mayLack(id: MessageId): boolean {
    const world = this.#world
    return this.#tables.parked.has(streamOf(id)) || (world.wasUnreadable.has(id) && world.lacksRepair())
  }

  /** For a while nothing was wrong but that some streams could not be read. */
  whileUnreadable(behindMax: number): void {
    const { feed, runs } = this.#tables
    const old = feed.filter((entry) => {
      const row = factAt(this.#tables, entry)
      return row === undefined || row.at.epochMilliseconds <= EPOCH + this.#world.timeline.now - behindMax
    }).length
    for (const { name, position, live } of runs) {
      if (!live) continue
      this.#check(
        "I34 what can't be read holds up nothing else",
        Number(position ?? 0) >= old,
        () => `${name} stands at ${position} of ${old}`
      )
    }
    if (this.#tables.parked.size > 0) this.#world.tally("a projection went on past what it can't read")
  }

  /** Who reads the log has not come to its end. */
  unfinished(): ReadonlyArray<string> {
    const { runs, feed, parked } = this.#tables
    // A projection that has not begun has no run yet.
    const behind = projections.filter((name) => {
      const run = runs.find((each) => each.live && each.name === name)
      return Number(run?.position ?? 0) < feed.length
    })
    return [
      ...behind.map((name) => `${name} lags`),
      ...[...parked.keys()].map((stream) => `${stream} is parked`),
      ...(this.#world.isBeingRebuilt() ? ["rows are built anew"] : [])
    ]
  }

  atTheEnd(): void {
    const { health } = this.#tables
    let successes = 0
    for (const id of this.#ledger.keys()) {
      const facts = this.#tables.streams.get(id)!
      successes += facts.filter(({ name }) => name.startsWith("AttemptSucceeded@")).length
    }
    const counted = [...(health.get(liveGeneration(this.#tables, "health") ?? 0)?.values() ?? [])]
      .flatMap(({ buckets }) => buckets)
      .reduce((sum, { succeeded }) => sum + succeeded, 0)
    this.#check("I35 each success is counted once", counted === successes, () => `${counted} of ${successes}`)
  }
}
