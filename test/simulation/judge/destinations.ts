/**
 * What the owner of a destination may rely on: silence while it is paused, held or its circuit is open, one probe at a
 * time, no more requests than its rate limit says, and nothing for as long as it asked. Circuits are followed by
 * their facts, settings as their owner made them; how lanes keep them is not looked at.
 */
import { DateTime, Result } from "effect"
import type { CircuitFact } from "../../../src/domain/circuit/facts.ts"
import { fromRecorded } from "../../../src/domain/circuit/facts.ts"
import type { RateLimit } from "../../../src/domain/delivery/rateLimit.ts"
import type { DestinationId, MessageId } from "../../../src/domain/ids.ts"
import type { OnDeadLetter } from "../../../src/domain/message/queueChange.ts"
import type { RecordedFact } from "../../../src/domain/recorded.ts"
import type { Tables } from "../../model/Memory.ts"
import { EPOCH } from "../clock.ts"
import type { World } from "../world.ts"

export interface Settings {
  readonly paused: boolean
  readonly rateLimit: RateLimit | null
  readonly onDeadLetter: OnDeadLetter
}

type Status = "CLOSED" | "OPEN" | "HALF_OPEN" | "HELD"

interface State {
  status: Status
  /** The silence or the permit ends. */
  until: number
  probe: MessageId | null
  deferredUntil: number
  handedOutAt: number
  paused: boolean
  /** When somebody last let it go: it was reset, closed or resumed. */
  letGoAt: number
  limit: RateLimit | null
  /** When messages were handed out under this limit, in its last window. */
  recent: Array<number>
}

/** From where each fact may come, and where it leads. */
const moves: Record<CircuitFact["type"], { readonly from: ReadonlyArray<Status>; readonly to: Status }> = {
  CircuitOpened: { from: ["CLOSED"], to: "OPEN" },
  CircuitProbed: { from: ["OPEN", "HALF_OPEN"], to: "HALF_OPEN" },
  CircuitClosed: { from: ["HALF_OPEN"], to: "CLOSED" },
  CircuitReopened: { from: ["HALF_OPEN"], to: "OPEN" },
  CircuitHeld: { from: ["CLOSED", "OPEN", "HALF_OPEN"], to: "HELD" },
  CircuitReset: { from: ["OPEN", "HALF_OPEN", "HELD"], to: "CLOSED" }
}

export class Destinations {
  readonly #world: World
  readonly #tables: Tables
  readonly #states = new Map<DestinationId, State>()

  constructor(world: World, tables: Tables) {
    this.#world = world
    this.#tables = tables
  }

  #check(law: string, holds: boolean, explain: () => string): void {
    if (!holds) this.#world.violate(law, explain())
  }

  #of(lane: DestinationId): State {
    const known = this.#states.get(lane)
    if (known !== undefined) return known
    const { rateLimit: limit } = this.settingsOf(lane)
    const fresh: State = {
      ...{ status: "CLOSED", until: 0, probe: null, deferredUntil: 0, handedOutAt: 0 },
      ...{ paused: false, letGoAt: 0, limit, recent: [] }
    }
    this.#states.set(lane, fresh)
    return fresh
  }

  settingsOf(lane: DestinationId): Settings {
    const { paused, settings } = this.#tables.destinations.get(lane)!.destination
    return { ...settings, paused }
  }

  statusOf(lane: DestinationId): Status {
    return this.#of(lane).status
  }

  /** When it may have its next request; null while nobody can say, because a command must come first. */
  opensAt(lane: DestinationId): number | null {
    const { status, until, deferredUntil, paused, limit, handedOutAt } = this.#of(lane)
    if (status === "HELD" || paused) return null
    const interval = limit === null ? 0 : limit.periodMs / limit.limit
    return Math.max(status === "CLOSED" ? 0 : until, EPOCH + Math.max(deferredUntil, handedOutAt + interval))
  }

  letGoAt(lane: DestinationId): number {
    return this.#of(lane).letGoAt
  }

  circuitFact(lane: DestinationId, row: RecordedFact): void {
    const fact = Result.getOrThrow(fromRecorded(row))
    const state = this.#of(lane)
    const { from, to } = moves[fact.type]
    const now = EPOCH + this.#world.timeline.now
    const what = () => `${fact.type} on ${state.status} of ${lane}`
    this.#world.tally(`circuit ${state.status} × ${fact.type} → ${to}`)
    this.#check("I28 a circuit moves as its law says", from.includes(state.status), what)
    if (fact.type === "CircuitProbed") {
      // The store counts whole milliseconds.
      this.#check("I30 a silence or a permit is over before the next probe", Math.floor(now) >= state.until, what)
      state.probe = fact.probe
      state.until = DateTime.toEpochMillis(fact.expiresAt)
    }
    if (fact.type === "CircuitOpened" || fact.type === "CircuitReopened") {
      state.until = DateTime.toEpochMillis(fact.until)
    }
    if (to === "CLOSED") state.letGoAt = now
    state.status = to
  }

  /** An attempt is stored as started. */
  started(lane: DestinationId, id: MessageId, what: () => string): void {
    const { status, probe } = this.#of(lane)
    this.#check("I29 an open circuit is silent", status === "CLOSED" || status === "HALF_OPEN", what)
    this.#check("I30 one probe at a time", status !== "HALF_OPEN" || probe === id, what)
    this.#check("I29 a paused destination is silent", !this.settingsOf(lane).paused, what)
  }

  deferred(lane: DestinationId, millis: number): void {
    const state = this.#of(lane)
    state.deferredUntil = Math.max(state.deferredUntil, this.#world.timeline.now + millis)
    this.#world.tally("a lane was deferred")
  }

  /** A deferral, or a claim, may be among the commits that the database has lost. */
  tookBack(): void {
    for (const state of this.#states.values()) {
      state.deferredUntil = 0
      state.recent = []
    }
  }

  handedOut(lane: DestinationId): void {
    const state = this.#of(lane)
    const now = this.#world.timeline.now
    const early = state.deferredUntil - now
    state.handedOutAt = now
    this.#check("I31 a lane that was deferred hands out nothing", early <= 1, () => `${lane}: ${early} ms too early`)
    const { limit } = state
    if (limit === null) return
    // Of shorter periods as many as a second has.
    const periods = Math.ceil(1_000 / limit.periodMs)
    const most = periods * limit.limit
    state.recent = state.recent.filter((at) => at > now - periods * limit.periodMs)
    state.recent.push(now)
    this.#check(
      "I22 no window of a rate limit hands out more than its limit",
      state.recent.length <= most,
      () => `${lane}: ${state.recent.length} of ${most}`
    )
    if (state.recent.length === most) this.#world.tally("a rate limit was reached")
  }

  /** Settings may have changed; `freed` is told of each destination whose dead letters block no more. */
  look(lanes: ReadonlyArray<DestinationId>, freed: (lane: DestinationId) => void): void {
    for (const lane of lanes) {
      const { rateLimit, onDeadLetter, paused } = this.settingsOf(lane)
      const state = this.#of(lane)
      if (state.paused && !paused) state.letGoAt = EPOCH + this.#world.timeline.now
      state.paused = paused
      if (rateLimit !== state.limit) {
        // A limit that was changed counts from now on, and may end a deferral early.
        state.limit = rateLimit
        state.recent = []
        state.deferredUntil = 0
      }
      if (onDeadLetter === "skip") freed(lane)
    }
  }
}
