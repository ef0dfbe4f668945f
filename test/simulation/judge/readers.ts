/**
 * What people may rely on of whoever reads the log: a stream that can't be read holds up no other, its own facts are told in their
 * order, and once it can be read all of it is told, and nothing twice.
 */
import type { MessageId } from "../../../src/domain/ids.ts"
import { liveGeneration } from "../../model/log/runs.ts"
import type { Tables } from "../../model/Memory.ts"
import { EPOCH } from "../clock.ts"
import type { World } from "../world.ts"
import type { Ledger } from "./ledger.ts"

const projections = ["messages", "audit", "activity", "health"]

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

  /** Whether the lists may lack this fact. */
  isOwed(id: MessageId, version: number): boolean {
    const generation = liveGeneration(this.#tables, "messages")
    return [...this.#tables.streamsAside.values()].some(
      ({ reader, stream, versions }) =>
        reader.name === "messages" &&
        reader.generation === generation &&
        stream === streamOf(id) &&
        versions.includes(version)
    )
  }

  /** After each call of the store. */
  look(): void {
    const { streamsAside, audit } = this.#tables
    for (const { reader, stream, versions } of streamsAside.values()) {
      if (reader.name !== "audit") continue
      const told = [...(audit.get(reader.generation)?.values() ?? [])].filter((row) => row.stream === stream)
      this.#check(
        "I36 no fact is told before an earlier one of its stream",
        told.every(({ version }) => version < versions[0]!),
        () => `${stream} owes ${versions}`
      )
    }
  }

  /** For a while nothing was wrong but that some streams could not be read. */
  whileUnreadable(behindMax: number): void {
    const { feed, runs } = this.#tables
    const old = feed.filter(({ stream, messageId, version }) => {
      const row = (messageId === null ? this.#tables.journals.get(stream) : this.#tables.streams.get(messageId))![
        version - 1
      ]!
      return row.at.epochMilliseconds <= EPOCH + this.#world.timeline.now - behindMax
    }).length
    for (const { name, position, live } of runs) {
      if (!live) continue
      this.#check(
        "I34 what can't be read holds up nothing else",
        Number(position ?? 0) >= old,
        () => `${name} stands at ${position} of ${old}`
      )
    }
    if (this.#tables.streamsAside.size > 0) this.#world.tally("a projection went on past what it can't read")
  }

  /** Who reads the log has not come to its end. */
  unfinished(): ReadonlyArray<string> {
    const { runs, feed, streamsAside } = this.#tables
    // A projection that has not begun has no run yet.
    const behind = projections.filter((name) => {
      const run = runs.find((each) => each.live && each.name === name)
      return Number(run?.position ?? 0) < feed.length
    })
    const owes = [...streamsAside.values()].filter(
      ({ reader }) => liveGeneration(this.#tables, reader.name) === reader.generation
    )
    return [
      ...behind.map((name) => `${name} lags`),
      ...owes.map(({ reader, stream, versions }) => `${reader.name} owes ${stream} ${versions}`)
    ]
  }

  atTheEnd(): void {
    const { audit, health } = this.#tables
    const audited = new Set<string>()
    for (const { stream, version } of audit.get(liveGeneration(this.#tables, "audit") ?? 0)?.values() ?? []) {
      audited.add(`${stream} ${version}`)
    }
    let successes = 0
    for (const id of this.#ledger.keys()) {
      const facts = this.#tables.streams.get(id)!
      successes += facts.filter(({ name }) => name.startsWith("AttemptSucceeded@")).length
      this.#check(
        "I35 the audit trail has everything",
        audited.has(`${streamOf(id)} 1`),
        () => `${this.#world.nameOf(id)} is missing`
      )
    }
    const counted = [...(health.get(liveGeneration(this.#tables, "health") ?? 0)?.values() ?? [])]
      .flatMap(({ buckets }) => buckets)
      .reduce((sum, { succeeded }) => sum + succeeded, 0)
    this.#check("I35 each success is counted once", counted === successes, () => `${counted} of ${successes}`)
  }
}
