/**
 * The judge. It believes what clients were told and what receivers got, reads every fact the moment it is
 * committed and keeps a ledger of its own in plain terms: it knows the law of a message by heart and does
 * not ask the code under test. Each law has a number, so that a failure can be talked about.
 */
import { Context, DateTime, Result } from "effect"
import { laneOf, visitableAt } from "../../src/adapters/memory/lanes.ts"
import { Memory, type Tables } from "../../src/adapters/memory/Memory.ts"
import type { MessageRequest } from "../../src/application/acceptMessage.ts"
import type { Append, AppendResult } from "../../src/application/ports/EventStore.ts"
import type { BatchId } from "../../src/application/ports/Queue.ts"
import type { DestinationId, MessageId, OrgId } from "../../src/domain/ids.ts"
import type { FactOf, MessageFact, MessageQueued } from "../../src/domain/message/facts.ts"
import type { MessageStatus } from "../../src/domain/message/machine.ts"
import { fromRecorded } from "../../src/domain/message/recorded.ts"
import { type MessageView, viewOf } from "../../src/domain/message/view.ts"
import { attemptsMaxOf, RETRY_AFTER_MAX_MS, retryWaitMs } from "../../src/domain/retry.ts"
import { EPOCH } from "./clock.ts"
import type { Process } from "./process.ts"
import type { Received } from "./receivers.ts"
import type { World } from "./world.ts"

/** A message as its committed facts describe it. */
interface Entry {
  readonly queued: MessageQueued
  status: MessageStatus
  version: number
  epoch: number
  attempt: number
  /** The attempt was started and not closed. */
  open: boolean
  /** The attempt was closed for good and its ending must come in the same append. */
  endingOwed: boolean
  notBefore: number
}

export interface Offer {
  readonly orgId: OrgId
  readonly request: MessageRequest
}

const endings: ReadonlySet<MessageStatus> = new Set(["DELIVERED", "FAILED", "DEAD_LETTER", "CANCELLED", "EXPIRED"])
const ofAWorker: ReadonlySet<MessageFact["type"]> = new Set([
  "AttemptStarted",
  "AttemptSucceeded",
  "AttemptFailed",
  "AttemptAbandoned",
  "MessageExpired"
])
const millis = DateTime.toEpochMillis
const attemptKey = (id: MessageId, epoch: number, attempt: number) => `${id} ${epoch}/${attempt}`

export class Oracle {
  readonly #world: World
  readonly #tables: Tables
  readonly #ledger = new Map<MessageId, Entry>()
  readonly #offers = new Map<string, Offer>()
  readonly #accepted = new Map<MessageId, Offer>()
  readonly #cancelled = new Set<MessageId>()
  readonly #received = new Map<string, Received>()
  /** The leases as they were after the last call. */
  #leases = new Map<BatchId, number>()
  /** Since when each waiting message has been in its lane. */
  #waitingSince = new Map<string, number>()
  /** Who started each attempt, and when. */
  readonly #starts = new Map<string, { readonly by: Process; readonly at: number }>()
  readonly #journalsRead = new Map<string, number>()
  #stale: ReadonlyArray<boolean> = []
  #read = 0
  #viewsAt = 0

  constructor(world: World) {
    this.#world = world
    this.#tables = Context.get(world.store, Memory).tables
  }

  #check(law: string, holds: boolean, explain: () => string): void {
    if (!holds) this.#world.violate(law, explain())
  }

  // ------------------------------------------------------------------------------------- what clients know

  /** A client is about to ask for this, with a correlation id nobody else uses. */
  offered(offer: Offer): void {
    this.#offers.set(offer.request.correlationId!, offer)
  }

  accepted(offer: Offer, view: MessageView): void {
    const { request } = offer
    this.#check("I1 accepted means stored", this.#ledger.has(view.id), () => `${view.id} was accepted`)
    for (const [id, other] of this.#accepted) {
      if (request.idempotencyKey !== null && sameKey(other, offer)) {
        this.#check("I16 one key, one message", id === view.id, () => `${request.idempotencyKey}: ${id}, ${view.id}`)
      }
    }
    const stored = this.#ledger.get(view.id)?.queued
    this.#check(
      "I16 a key answers only for its own request",
      stored === undefined || this.#offers.get(stored.correlationId!)?.request.body === request.body,
      () => `${request.correlationId} was answered with ${stored?.correlationId}`
    )
    this.#accepted.set(view.id, offer)
  }

  /** Right only where another request was made under the same key. */
  keyReused(offer: Offer): void {
    const others = [...this.#offers.values()].filter((other) => sameKey(other, offer))
    this.#check(
      "I16 a key is reused only by another request",
      others.some(({ request }) => request.body !== offer.request.body),
      () => `${offer.request.correlationId} was refused its own key`
    )
  }

  cancelled(id: MessageId): void {
    this.#cancelled.add(id)
    this.#check("I1 accepted means stored", this.#ledger.get(id)?.status === "CANCELLED", () => `${id} was cancelled`)
  }

  replayed(id: MessageId, epoch: number): void {
    this.#check("I1 accepted means stored", (this.#ledger.get(id)?.epoch ?? 0) >= epoch, () => `${id} was replayed`)
  }

  found(id: MessageId, view: MessageView | null): void {
    const entry = this.#ledger.get(id)
    this.#check("I1 a stored message is found", view !== null && entry !== undefined, () => `${id} was not found`)
  }

  // ---------------------------------------------------------------------------------- what receivers know

  received(received: Received): void {
    const { messageId, epoch, attempt, body, destination } = received.message
    const entry = this.#ledger.get(messageId)
    const what = () => `${this.#world.nameOf(messageId)} attempt ${epoch}/${attempt}`
    this.#check("I2 nothing is sent that was not accepted", entry !== undefined, what)
    if (entry === undefined) return
    const started = entry.epoch > epoch || (entry.epoch === epoch && entry.attempt >= attempt)
    this.#check("I11 an attempt is stored before it is sent", started, what)
    const key = attemptKey(messageId, epoch, attempt)
    this.#check("I11 an attempt is sent once", !this.#received.has(key), what)
    if ([...this.#received.keys()].some((other) => other.startsWith(messageId))) this.#world.tally("sent twice or more")
    this.#received.set(key, received)
    const offer = this.#offers.get(entry.queued.correlationId!)
    this.#check("I17 what was accepted is what is sent", offer?.request.body === body, what)
    this.#check("I17 what was accepted is what is sent", entry.queued.destination === destination, what)
  }

  // ----------------------------------------------------------------------------------- what the store did

  beforeAppend(process: Process, entries: ReadonlyArray<Append>): void {
    this.#stale = entries.map(({ fence }) => fence !== null && !this.#tables.claims.has(fence))
    for (const { messageId, facts, fence } of entries) {
      for (const fact of facts) {
        if (!ofAWorker.has(fact.type)) continue
        this.#check("I24 what a worker writes is fenced", fence !== null, () => `${fact.type} without a fence`)
        if (fact.type === "AttemptStarted" && fence !== null) this.#mayStart(messageId, fact, fence)
        if (fact.type === "AttemptAbandoned" && fence !== null && this.#tables.claims.has(fence)) {
          this.#mayAbandon(process, messageId, fact.attempt, fence)
        }
      }
    }
  }

  /** A claim is for one attempt: whoever holds it for another one must not start this one. */
  #mayStart(id: MessageId, { epoch, attempt }: FactOf<"AttemptStarted">, fence: BatchId): void {
    const holds = this.#tables.claims
      .get(fence)
      ?.messages.some((held) => held.messageId === id && held.epoch === epoch && held.attempt === attempt - 1)
    this.#check(
      "I23 only its holder starts an attempt",
      holds !== false,
      () => `${this.#world.nameOf(id)} ${epoch}/${attempt}`
    )
  }

  #mayAbandon(process: Process, id: MessageId, attempt: number, fence: BatchId): void {
    const epoch = this.#ledger.get(id)?.epoch
    const holders = [...this.#tables.claims].filter(([_, claim]) =>
      claim.messages.some(
        (held) =>
          held.messageId === id && held.epoch === epoch && (held.attempt === attempt - 1 || held.attempt === attempt)
      )
    )
    const start = this.#starts.get(attemptKey(id, epoch ?? 0, attempt))
    // Whoever was disturbed since it began the attempt may have lost it for good.
    const isWell = start?.by.alive === true && !start.by.stopping && start.by.disturbedUntil < start.at
    this.#check(
      "I23 a worker that is well keeps its messages",
      !isWell,
      () => `${this.#world.nameOf(id)} attempt ${attempt} of ${start?.by.name} by ${process.name}`
    )
    this.#check(
      "I24 only its holder abandons an attempt",
      holders.every(([batch]) => batch === fence),
      () => `${this.#world.nameOf(id)} attempt ${attempt} by batch ${fence}, held by ${holders.map(([batch]) => batch)}`
    )
  }

  afterAppend(process: Process, entries: ReadonlyArray<Append>, results: ReadonlyArray<AppendResult>): void {
    for (const [index, result] of results.entries()) {
      this.#world.tally(`an append was answered ${result.type}`)
      if (result.type !== "Appended") continue
      const { messageId, expected, facts } = entries[index]!
      for (const fact of facts) {
        if (fact.type === "AttemptStarted") {
          this.#starts.set(attemptKey(messageId, fact.epoch, fact.attempt), {
            by: process,
            at: this.#world.timeline.now
          })
        }
      }
      this.#check("I24 a stale write has no effect", !this.#stale[index], () => this.#world.nameOf(messageId))
      this.#check("I8 versions are contiguous", result.version === expected + facts.length, () => messageId)
    }
  }

  /**
   * Reads what was committed since, and looks whether every message is still in somebody's hands. `released` is
   * the batch that the call gave up.
   */
  afterStoreCall(released: BatchId | null = null): void {
    const { feed, streams } = this.#tables
    for (; this.#read < feed.length; this.#read++) {
      const { messageId, version } = feed[this.#read]!
      this.#fact(messageId, version, Result.getOrThrow(fromRecorded(streams.get(messageId)![version - 1]!)))
    }
    for (const [name, rows] of this.#tables.journals) {
      for (const row of rows.slice(this.#journalsRead.get(name) ?? 0))
        this.#world.tally(`fact ${row.name.split("@")[0]}`)
      this.#journalsRead.set(name, rows.length)
    }
    this.#hands()
    this.#holders(released)
    const viewsAt = Number(this.#tables.viewsAt ?? 0)
    this.#check("I34 the projection moves forward", viewsAt >= this.#viewsAt, () => `${this.#viewsAt} to ${viewsAt}`)
    this.#viewsAt = viewsAt
  }

  #fact(id: MessageId, version: number, fact: MessageFact): void {
    const world = this.#world
    world.tally(`fact ${fact.type}`)
    const entry = this.#ledger.get(id)
    const what = () =>
      `${world.nameOf(id)}@${version} ${fact.type} on ${entry?.status} ${entry?.epoch}/${entry?.attempt}`
    if (fact.type === "MessageQueued") {
      this.#check("I8 versions are contiguous", entry === undefined && version === 1, what)
      this.#queued(id, fact)
      return
    }
    this.#check("I8 versions are contiguous", version === (entry?.version ?? 0) + 1, what)
    if (entry === undefined) return
    entry.version = version
    const legal = (holds: boolean) => this.#check("I7 only legal transitions", holds, what)
    switch (fact.type) {
      case "AttemptStarted":
        legal(entry.status === "QUEUED" && fact.epoch === entry.epoch)
        this.#check("I14 attempts are numbered 1, 2, 3", fact.attempt === entry.attempt + 1, what)
        this.#check("I12 attempts are bounded", fact.attempt <= attemptsMaxOf(entry.queued.retry), what)
        this.#silence(id, entry.queued.destination, what)
        this.#check("I15 no attempt before its time", EPOCH + world.timeline.now >= entry.notBefore, what)
        entry.status = "SENDING"
        entry.attempt = fact.attempt
        entry.open = true
        break
      case "AttemptSucceeded":
        legal(entry.open && fact.attempt === entry.attempt)
        this.#check("I5 taken means answered with a yes", this.#answer(id, entry)?.status === 200, what)
        entry.open = false
        entry.status = "SENT"
        world.tally("status SENT")
        break
      case "AttemptFailed":
      case "AttemptAbandoned":
        legal(entry.open && fact.attempt === entry.attempt)
        entry.open = false
        if (fact.retryAt === null) {
          entry.endingOwed = true
        } else {
          entry.status = "QUEUED"
          entry.notBefore = millis(fact.retryAt)
          this.#wait(id, entry, version, fact, what)
        }
        break
      case "MessageDelivered":
        legal(entry.status === "SENT")
        entry.status = "DELIVERED"
        break
      case "MessageFailed": {
        legal(entry.endingOwed)
        const status = this.#answer(id, entry)?.status ?? 0
        this.#check("I5 refused means answered with a no", status >= 400 && status < 500, what)
        entry.status = "FAILED"
        break
      }
      case "MessageDeadLettered":
        legal(entry.endingOwed)
        entry.status = "DEAD_LETTER"
        break
      case "MessageCancelled":
        legal(entry.status === "QUEUED")
        entry.status = "CANCELLED"
        break
      case "MessageExpired":
        legal(entry.status === "QUEUED" && entry.queued.expiresAt !== null)
        entry.status = "EXPIRED"
        break
      case "MessageReplayed":
        legal(entry.status === "FAILED" || entry.status === "DEAD_LETTER")
        this.#check("I20 a replay opens the next epoch", fact.epoch === entry.epoch + 1, what)
        entry.status = "QUEUED"
        entry.epoch = fact.epoch
        entry.attempt = 0
        entry.notBefore = millis(fact.replayedAt)
        break
      default:
        world.violate("I7 only legal transitions", what())
    }
    if (endings.has(entry.status)) entry.endingOwed = false
    if (!entry.open) world.tally(`status ${entry.status}`)
    else world.tally("status SENDING")
  }

  /** While a circuit is open nothing starts, and while it finds out only its one probe does. */
  #silence(id: MessageId, lane: DestinationId, what: () => string): void {
    const { status } = laneOf(this.#tables, lane).standing
    const probe = status === "HALF_OPEN" ? (this.#tables.journals.get(`circuit-${lane}`)?.at(-1)?.data ?? "") : ""
    this.#check("I29 an open circuit is silent", status === "CLOSED" || status === "HALF_OPEN", what)
    this.#check("I30 one probe at a time", status !== "HALF_OPEN" || probe.includes(id), what)
  }

  #queued(id: MessageId, fact: MessageQueued): void {
    const offer = this.#offers.get(fact.correlationId ?? "")
    const what = () => `${this.#world.nameOf(id)} for ${fact.correlationId}`
    this.#check("I2 nothing is stored that was not asked for", offer !== undefined, what)
    for (const [other, { queued }] of this.#ledger) {
      const twice =
        queued.correlationId === fact.correlationId ||
        (offer !== undefined &&
          offer.request.idempotencyKey !== null &&
          sameKey(this.#offers.get(queued.correlationId!)!, offer))
      this.#check("I16 one key, one message", !twice, () => `${what()} beside ${this.#world.nameOf(other)}`)
    }
    this.#ledger.set(id, {
      queued: fact,
      status: "QUEUED",
      version: 1,
      epoch: 1,
      attempt: 0,
      open: false,
      endingOwed: false,
      notBefore: millis(fact.dueAt)
    })
    this.#world.tally("status QUEUED")
  }

  #answer(id: MessageId, { epoch, attempt }: Entry): Received | undefined {
    return this.#received.get(attemptKey(id, epoch, attempt))
  }

  /** The wait that was chosen lies between the policy's shortest and longest, or is what the receiver asked for. */
  #wait(
    id: MessageId,
    entry: Entry,
    version: number,
    fact: FactOf<"AttemptFailed" | "AttemptAbandoned">,
    what: () => string
  ): void {
    const { retry } = entry.queued
    const recordedAt = millis(this.#tables.streams.get(id)![version - 1]!.at)
    const wait = entry.notBefore - recordedAt
    const asked = Math.min(this.#answer(id, entry)?.retryAfterMs ?? 0, RETRY_AFTER_MAX_MS)
    // A receiver's wish that reached us must be kept; one whose answer was lost can't be.
    const known = fact.type === "AttemptFailed" && fact.status === 429 ? asked : 0
    const shortest = Math.max(retryWaitMs(retry, entry.attempt, 0), known)
    const longest = Math.max(retryWaitMs(retry, entry.attempt, 1), asked)
    this.#check(
      "I15 a wait is what the policy allows",
      wait >= shortest && wait <= longest,
      () => `${what()}: ${wait} ms`
    )
  }

  /**
   * Whoever waits is in a lane, and whoever is under way is in somebody's claim, each exactly once per attempt.
   * A message in nobody's hands would be lost; in two, it would be sent twice.
   */
  #hands(): void {
    const hands = new Map<string, number>()
    const count = ({ messageId, epoch, attempt }: { messageId: MessageId; epoch: number; attempt: number }) => {
      const key = attemptKey(messageId, epoch, attempt)
      hands.set(key, (hands.get(key) ?? 0) + 1)
    }
    const since = new Map<string, number>()
    for (const waiting of [...this.#tables.lanes.values()].flat()) {
      count(waiting)
      const key = attemptKey(waiting.messageId, waiting.epoch, waiting.attempt)
      since.set(key, this.#waitingSince.get(key) ?? EPOCH + this.#world.timeline.now)
    }
    this.#waitingSince = since
    for (const { messages } of this.#tables.claims.values()) messages.forEach(count)
    for (const [key, times] of hands) {
      const name = () => `${this.#world.nameOf(key.slice(0, 36) as MessageId)} ${key.slice(37)} is held ${times} times`
      this.#check("I23 one holder", times === 1, name)
    }
    for (const [id, entry] of this.#ledger) {
      const what = () => `${this.#world.nameOf(id)} is ${entry.status} ${entry.epoch}/${entry.attempt}`
      this.#check(
        "I14 every attempt ends in the append that closes it",
        !entry.endingOwed && entry.status !== "SENT",
        what
      )
      if (endings.has(entry.status)) continue
      const key = attemptKey(id, entry.epoch, entry.open ? entry.attempt - 1 : entry.attempt)
      this.#check("I6 nothing is in nobody's hands", hands.has(key), what)
    }
  }

  /** A lease ends by its release or by running out, never otherwise. */
  #holders(released: BatchId | null): void {
    const { claims } = this.#tables
    for (const [batch, until] of this.#leases) {
      const ended = claims.has(batch) || batch === released || until <= EPOCH + this.#world.timeline.now
      this.#check("I23 a living lease is respected", ended, () => `batch ${batch}`)
    }
    this.#leases = new Map([...claims].map(([batch, { until }]) => [batch, millis(until)]))
  }

  // -------------------------------------------------------------------------------------------- the end

  /** Nothing has gone wrong for a while: what is due starts, and leases that ran out are taken over. */
  whileHealthy(waitMax: number, scanMax: number): void {
    const now = EPOCH + this.#world.timeline.now
    for (const due of [...this.#tables.lanes.values()].flat()) {
      const since = this.#waitingSince.get(attemptKey(due.messageId, due.epoch, due.attempt)) ?? 0
      const opensAt = visitableAt(laneOf(this.#tables, due.lane)) ?? now
      const late = now - Math.max(millis(due.dueAt), since, opensAt)
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

  /** Names of the messages that have not come to an ending. */
  unfinished(): ReadonlyArray<string> {
    return [...this.#ledger]
      .filter(([_, { status }]) => !endings.has(status))
      .map(([id, { status, epoch, attempt }]) => `${this.#world.nameOf(id)} ${status} ${epoch}/${attempt}`)
  }

  /** What is still open although every message has ended: leases that were left behind, views that lag. */
  looseEnds(): ReadonlyArray<string> {
    return [
      ...[...this.#tables.claims.keys()].map((batch) => `batch ${batch} is held`),
      ...(this.#viewsAt < this.#tables.feed.length ? ["the views lag"] : [])
    ]
  }

  atTheEnd(): void {
    const { streams, lanes, claims, views, bodies, feed } = this.#tables
    this.#check(
      "I8 each fact is shown once",
      new Set(feed.map((row) => `${row.messageId} ${row.version}`)).size === feed.length,
      () => "feed"
    )
    for (const [id, offer] of this.#accepted) {
      this.#check("I1 accepted means stored", streams.has(id), () => `${id} is gone`)
      this.#check("I1 accepted means stored", bodies.get(id) === offer.request.body, () => `the body of ${id} is gone`)
    }
    for (const id of this.#cancelled) {
      this.#check("I13 cancelled stays cancelled", this.#ledger.get(id)?.status === "CANCELLED", () => id)
    }
    for (const [id, rows] of streams) {
      const facts = rows.map((row, index) => ({
        version: index + 1,
        at: row.at,
        fact: Result.getOrThrow(fromRecorded(row))
      }))
      const view = viewOf(id, facts)
      const entry = this.#ledger.get(id)
      this.#check(
        "I9 the fold agrees with the ledger",
        view?.status === entry?.status && view?.epoch === entry?.epoch,
        () => id
      )
      const same = JSON.stringify(view) === JSON.stringify(views.get(id))
      this.#check("I33 each view is the fold of its stream", same, () => `${this.#world.nameOf(id)}`)
    }
    this.#check("I6 nothing waits at the end", lanes.size === 0, () =>
      [...lanes.values()]
        .flat()
        .map((m) => this.#world.nameOf(m.messageId))
        .join(" ")
    )
    this.#check("I26 nothing is held at the end", claims.size === 0, () => [...claims.keys()].join(" "))
  }
}

const sameKey = (a: Offer, b: Offer) => a.orgId === b.orgId && a.request.idempotencyKey === b.request.idempotencyKey
