/**
 * Replays of many dead letters, judged by their requests and by what became of each message: a replay opens exactly one
 * new epoch of each dead letter in its set, unless somebody else did or there is nothing left to send, and its
 * journal accounts for all of them.
 */
import { DateTime, Result } from "effect"
import type { MessageId, ReplayId } from "../../../src/domain/ids.ts"
import type { FactOf } from "../../../src/domain/message/facts.ts"
import type { RecordedFact } from "../../../src/domain/recorded.ts"
import type { ReplayFact } from "../../../src/domain/replay/facts.ts"
import { fromRecorded } from "../../../src/domain/replay/facts.ts"
import type { Tables } from "../../model/Memory.ts"
import type { World } from "../world.ts"

type Status = "NEW" | "RUNNING" | "COMPLETED" | "CANCELLED"

interface Job {
  readonly id: ReplayId
  /** Its set, as it was when it was asked for: message and the epoch that had ended. Null until it was found. */
  items: ReadonlyMap<MessageId, number> | null
  status: Status
  accounted: number
  replayed: number
  /** What it did to each message. */
  readonly done: Map<MessageId, number>
}

const moves: Record<ReplayFact["type"], { readonly from: ReadonlyArray<Status>; readonly to: Status | null }> = {
  ReplayRequested: { from: ["NEW"], to: "RUNNING" },
  ReplayAdvanced: { from: ["RUNNING", "CANCELLED"], to: null },
  ReplayCompleted: { from: ["RUNNING"], to: "COMPLETED" },
  ReplayCancelled: { from: ["RUNNING"], to: "CANCELLED" }
}

export class ReplayJobs {
  readonly #world: World
  readonly #tables: Tables
  readonly #jobs = new Map<string, Job>()
  readonly #begun = new Set<string>()
  /** Requests by their idempotency key. */
  readonly #keys = new Map<string, string>()

  constructor(world: World, tables: Tables) {
    this.#world = world
    this.#tables = tables
  }

  #check(law: string, holds: boolean, explain: () => string): void {
    if (!holds) this.#world.violate(law, explain())
  }

  /** Sets down what was asked for since, and sets that are complete since. */
  look(): void {
    for (const [id, { items, job, idempotency }] of this.#tables.replays) {
      if (!this.#jobs.has(id)) {
        this.#jobs.set(id, { id, items: null, status: "NEW", accounted: 0, replayed: 0, done: new Map() })
        if (idempotency !== null) {
          const key = `${job.orgId} ${idempotency.key}`
          this.#check("I20 one key, one replay", !this.#keys.has(key), () => `${this.#keys.get(key)} and ${id}`)
          this.#keys.set(key, id)
        }
      }
      const known = this.#jobs.get(id)!
      if (known.items !== null) continue
      if (job.searching) {
        this.#world.tally("a replay was still searching")
        continue
      }
      this.#world.tally(items.length === 0 ? "a replay of none was asked for" : "a replay of some was asked for")
      this.#check("I20 a set is as large as was said", items.length === job.matched, () => id)
      known.items = new Map(
        items.flatMap((item) => ("messageId" in item ? [[item.messageId, item.epoch] as const] : []))
      )
      for (const [message, epoch] of known.items) {
        const what = () => `${this.#world.nameOf(message)}, epoch ${epoch}, in replay ${id}`
        const diedAt = this.#deathOf(message, epoch)
        const wasDead = diedAt !== null && DateTime.isLessThanOrEqualTo(diedAt, job.requestedAt)
        this.#check("I20 a set holds what was dead when it was asked for", "ids" in job.selection || wasDead, what)
      }
    }
  }

  /** When this epoch of the message ended badly; null where it did not. */
  #deathOf(id: MessageId, epoch: number): DateTime.Utc | null {
    let now = 1
    for (const { name, at } of this.#tables.streams.get(id) ?? []) {
      if (name.startsWith("MessageReplayed@")) now += 1
      if (now === epoch && /^Message(Failed|DeadLettered)@/.test(name)) return at
    }
    return null
  }

  journalFact(id: string, row: RecordedFact): void {
    const fact = Result.getOrThrow(fromRecorded(row))
    const job = this.#jobs.get(id)
    const what = () => `${fact.type} on ${job?.status} of replay ${id}`
    this.#check("I2 nobody replays what was not asked for", job !== undefined, what)
    if (job === undefined) return
    this.#check("I20 a replay begins when its set is complete", job.items !== null, what)
    const { from, to } = moves[fact.type]
    this.#world.tally(`replay ${job.status} × ${fact.type} → ${to ?? job.status}`)
    this.#check("I28 a replay moves as its law says", from.includes(job.status), what)
    if (fact.type === "ReplayAdvanced") {
      this.#check("I38 every dead letter is accounted for once", fact.from === job.accounted, what)
      job.accounted = fact.to
      job.replayed += fact.replayed
      if (fact.to < (job.items?.size ?? 0)) this.#world.tally("a replay had more than one stretch")
    }
    job.status = to ?? job.status
  }

  replayed(id: MessageId, { replayId, epoch }: FactOf<"MessageReplayed">): void {
    if (replayId === null) return
    const job = this.#jobs.get(replayId)
    const what = () => `${this.#world.nameOf(id)} to epoch ${epoch} by ${replayId}`
    this.#check("I38 a replay opens the epoch after the one that had ended", job?.items?.get(id) === epoch - 1, what)
    if (job === undefined) return
    this.#check("I38 a replay opens one epoch of a message", !job.done.has(id), what)
    job.done.set(id, epoch)
  }

  /** Somebody looks at its items. */
  isAtWork(id: string): void {
    this.#begun.add(id)
  }

  hasBegun(id: string): boolean {
    return this.#begun.has(id)
  }

  /** Replays that have not come to their end. */
  unfinished(): ReadonlyArray<string> {
    return [...this.#jobs.values()].flatMap(({ id, status }) =>
      status === "NEW" || status === "RUNNING" || this.#tables.replays.get(id)?.nextAt !== null
        ? [`replay ${id} is ${status}`]
        : []
    )
  }

  /** `epochOf` tells how often a message was opened, `isErased` whether there was nothing left to send. */
  atTheEnd(epochOf: (id: MessageId) => number, isErased: (id: MessageId) => boolean): void {
    for (const { id, status, items, accounted, replayed, done } of this.#jobs.values()) {
      if (status !== "COMPLETED" || items === null) continue
      const what = () => `replay ${id}: ${accounted} of ${items.size}, ${replayed} replayed, ${done.size} of them seen`
      this.#check("I38 every dead letter is accounted for once", accounted === items.size, what)
      // What it replayed before a crash and can't read when it comes to it again is counted as skipped.
      const unreadable = [...done.keys()].filter((message) => this.#world.wasUnreadable.has(message)).length
      const isTrue = replayed <= done.size && replayed >= done.size - unreadable
      this.#check("I38 as many were replayed as the journal says", isTrue, what)
      for (const [message, epoch] of items) {
        const left = () => `${this.#world.nameOf(message)} in replay ${id}`
        // A replay goes on without what it can't read, and says so.
        const mayBeLeft = isErased(message) || this.#world.wasUnreadable.has(message)
        this.#check("I38 no dead letter is left out", epochOf(message) > epoch || mayBeLeft, left)
      }
      if (done.size > 1) this.#world.tally("a replay replayed many")
    }
  }
}
