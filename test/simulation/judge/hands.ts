/**
 * Whose hands each message is in. Whoever waits is in a lane, whoever is under way is in somebody's claim, each once
 * per attempt, and leases end by their release or by running out. Nothing that is due waits for ever.
 */
import { DateTime } from "effect"
import type { AbandonedMessage, BatchId } from "../../../src/application/ports/Queue.ts"
import type { MessageId } from "../../../src/domain/ids.ts"
import type { Tables } from "../../model/Memory.ts"
import { EPOCH } from "../clock.ts"
import type { Process } from "../process.ts"
import type { World } from "../world.ts"
import type { Destinations } from "./destinations.ts"
import type { Entry, Ledger } from "./ledger.ts"
import type { Lines } from "./lines.ts"
import { endings } from "./rules.ts"

const millis = DateTime.toEpochMillis
const rowKey = (id: MessageId, version: number) => `${id} @${version}`

export class Hands {
  readonly #world: World
  readonly #tables: Tables
  readonly #ledger: Ledger
  readonly #lines: Lines
  readonly #destinations: Destinations
  /** The leases as they were after the last call. */
  #leases = new Map<BatchId, number>()
  /** Since when each waiting message has been in its lane. */
  #waitingSince = new Map<string, number>()

  constructor(world: World, tables: Tables, ledger: Ledger, lines: Lines, destinations: Destinations) {
    this.#world = world
    this.#tables = tables
    this.#ledger = ledger
    this.#lines = lines
    this.#destinations = destinations
  }

  #check(law: string, holds: boolean, explain: () => string): void {
    if (!holds) this.#world.violate(law, explain())
  }

  /** After each call of the store. `released` are the batches that the call gave up. */
  look(released: ReadonlyArray<BatchId>): void {
    this.#hands()
    this.#holders(released)
  }

  /** A row that was put back may carry a version that says more than it did: receipts and erasures move nobody. */
  #rowKey({ messageId, version }: AbandonedMessage): string {
    const queuedAt = this.#ledger.get(messageId)?.queuedAt ?? 0
    return rowKey(messageId, version > queuedAt ? queuedAt : version)
  }

  /**
   * Whoever waits is in a lane, and whoever is under way is in somebody's claim, each exactly once per attempt.
   * A message in nobody's hands would be lost; in two, it would be sent twice.
   */
  #hands(): void {
    const hands = new Map<string, number>()
    const count = (row: AbandonedMessage) => {
      const key = this.#rowKey(row)
      hands.set(key, (hands.get(key) ?? 0) + 1)
    }
    const since = new Map<string, number>()
    for (const waiting of [...this.#tables.lanes.values()].flat()) {
      count(waiting)
      const key = this.#rowKey(waiting)
      since.set(key, this.#waitingSince.get(key) ?? EPOCH + this.#world.timeline.now)
    }
    this.#waitingSince = since
    for (const { messages } of this.#tables.claims.values()) messages.forEach(count)
    // What is parked is in the operator's hands, also where a batch that had lost its lease parked it.
    for (const stream of this.#tables.parked.keys()) {
      const messageId = stream.replace("message-", "") as MessageId
      const entry = this.#ledger.get(messageId)
      if (entry === undefined || endings.has(entry.status)) continue
      if (entry.line !== null && this.#lines.isBehind(entry.line, messageId)) continue
      const key = rowKey(messageId, entry.queuedAt)
      if (!hands.has(key)) hands.set(key, 1)
    }
    for (const [key, times] of hands) {
      const name = () => `${this.#world.nameOf(key.slice(0, 36) as MessageId)} ${key.slice(37)} is held ${times} times`
      this.#check("I23 one holder", times === 1, name)
    }
    for (const [id, entry] of this.#ledger) {
      const what = () => `${this.#world.nameOf(id)} is ${entry.status} ${entry.epoch}/${entry.attempt}`
      this.#check(
        "I14 every attempt ends in the append that closes it",
        !entry.endingOwed && (entry.status !== "SENT" || this.#waitsForReceipt(entry)),
        what
      )
      if (endings.has(entry.status) || entry.status === "SENT") continue
      const isBehind = entry.line !== null && this.#lines.isBehind(entry.line, id)
      this.#check(
        isBehind ? "I21 who stands behind waits in the line" : "I6 nothing is in nobody's hands",
        hands.has(rowKey(id, entry.queuedAt)) !== isBehind,
        what
      )
    }
  }

  /** Taken, and only a receipt can tell the rest. */
  #waitsForReceipt({ queued: { destination }, proven }: Entry): boolean {
    return this.#world.laneOf(destination).channel === "whatsapp" || proven
  }

  /** The leases are what they were before the commits that the database has lost. */
  tookBack(): void {
    this.#leases = new Map()
  }

  /** A lease ends by its release or by running out, never otherwise. */
  #holders(released: ReadonlyArray<BatchId>): void {
    const { claims } = this.#tables
    for (const [batch, until] of this.#leases) {
      const ended = claims.has(batch) || released.includes(batch) || until <= EPOCH + this.#world.timeline.now
      this.#check("I23 a living lease is respected", ended, () => `batch ${batch}`)
    }
    this.#leases = new Map([...claims].map(([batch, { until }]) => [batch, millis(until)]))
  }

  /** Nothing has gone wrong for a while: what is due starts, and leases that ran out are taken over. */
  whileHealthy(waitMax: number, scanMax: number): void {
    const now = EPOCH + this.#world.timeline.now
    for (const due of [...this.#tables.lanes.values()].flat()) {
      const since = this.#waitingSince.get(this.#rowKey(due)) ?? 0
      const opensAt = this.#destinations.opensAt(due.lane) ?? now
      const late = now - Math.max(millis(due.dueAt), since, opensAt, this.#destinations.letGoAt(due.lane))
      this.#check(
        "I15 what is due starts",
        late <= waitMax,
        () => `${this.#world.nameOf(due.messageId)}: ${late} ms late`
      )
    }
    for (const [batch, { until }] of this.#tables.claims) {
      const silent = now - millis(until)
      this.#check("I25 what was abandoned is recovered", silent <= scanMax, () => `batch ${batch}: ${silent} ms`)
    }
  }

  /** A worker that was asked to stop has stopped. `clean`: nothing went wrong while it did. */
  stopped(worker: Process, clean: boolean): void {
    if (!clean) return
    const left = [...this.#tables.claims].filter(([_, claim]) => claim.worker === worker.name)
    this.#check(
      "I26 a graceful stop leaves no lease",
      left.length === 0,
      () => `${worker.name}: ${left.map(([b]) => b)}`
    )
    this.#world.tally("a worker stopped cleanly")
  }

  atTheEnd(): void {
    const { lanes, lines, claims } = this.#tables
    this.#check("I6 nothing waits at the end", lanes.size === 0, () =>
      [...lanes.values()]
        .flat()
        .map((m) => this.#world.nameOf(m.messageId))
        .join(" ")
    )
    const state = [...lines.values()].flat().filter(({ state }) => state !== "DEAD")
    this.#check("I21 nobody stands in line at the end", state.length === 0, () =>
      state.map(({ message }) => this.#world.nameOf(message.messageId)).join(" ")
    )
    this.#check("I26 nothing is held at the end", claims.size === 0, () => [...claims.keys()].join(" "))
  }
}
