/**
 * The judge. It believes what clients were told and what receivers got, reads every fact the moment it is
 * committed and keeps a ledger of its own in plain terms: it knows the law of a message by heart and does
 * not ask the code under test. Each law has a number, so that a failure can be talked about.
 */
import { Context, DateTime, Duration, Result } from "effect"
import type { MessageRequest } from "../../src/application/accept/acceptMessage.ts"
import type { Doubted, OutboundMessage } from "../../src/application/ports/Channels.ts"
import type { Append, AppendResult } from "../../src/application/ports/EventStore.ts"
import type { AbandonedMessage, BatchId, Claim } from "../../src/application/ports/Queue.ts"
import type { Receipt } from "../../src/application/receipts/recordReceipt.ts"
import { attemptsMaxOf, RETRY_AFTER_MAX_MS, retryWaitMs } from "../../src/domain/delivery/retry.ts"
import type { DestinationId, MessageId, OrgId, ReplayId } from "../../src/domain/ids.ts"
import type { FactOf, MessageFact, MessageQueued } from "../../src/domain/message/facts.ts"
import type { MessageStatus } from "../../src/domain/message/machine.ts"
import { fromRecorded } from "../../src/domain/message/recorded.ts"
import { type MessageView, viewOf } from "../../src/domain/message/view.ts"
import { claimableAt, laneOf } from "../model/deliver/lanes.ts"
import { liveViews } from "../model/log/runs.ts"
import { Memory, type Tables } from "../model/Memory.ts"
import { EPOCH } from "./clock.ts"
import { Destinations } from "./destinations.ts"
import { Lines, lineName } from "./lines.ts"
import type { Process } from "./process.ts"
import type { Received } from "./receivers.ts"
import { ReplayJobs } from "./replayJobs.ts"
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
  /** The attempt is open and nobody works on it: whoever was asked, or a receipt, must tell what became of it. */
  doubted: boolean
  /** Line of its ordering key; null without one. */
  readonly line: string | null
  /** What is to be sent; a replay may bring another. */
  body: string
  erased: boolean
  /** An attempt was open when the body was erased, and may still send what it holds. */
  underWayWhenErased: boolean
  /** The attempt was closed for good and its ending must come in the same append. */
  endingOwed: boolean
  notBefore: number
  /** Its version when it last went into the queue: of two rows for one attempt, only that one is alive. */
  queuedAt: number
  /** A receipt said of this epoch that it was taken. */
  proven: boolean
  /** Receipts that settle this epoch, as far as they were recorded. */
  verdicts: Set<"delivered" | "failed">
}

export interface Offer {
  readonly orgId: OrgId
  readonly lane: DestinationId
  readonly request: MessageRequest
}

const endings: ReadonlySet<MessageStatus> = new Set(["DELIVERED", "FAILED", "DEAD_LETTER", "CANCELLED", "EXPIRED"])
const ofAWorker: ReadonlySet<MessageFact["type"]> = new Set([
  "AttemptStarted",
  "AttemptSucceeded",
  "AttemptFailed",
  "AttemptDeferred",
  "AttemptAbandoned",
  "AttemptUnresolved",
  "MessageExpired"
])
const isDead = (status: MessageStatus) => status === "FAILED" || status === "DEAD_LETTER"
const millis = DateTime.toEpochMillis
const rowKey = (id: MessageId, version: number) => `${id} @${version}`
const attemptKey = (id: MessageId, epoch: number, attempt: number) => `${id} ${epoch}/${attempt}`
const receiptKey = (id: MessageId, { receipt, epoch }: { receipt: string; epoch: number | null }) =>
  `${id} ${receipt} ${epoch}`

export class Oracle {
  readonly #world: World
  readonly #tables: Tables
  readonly #ledger = new Map<MessageId, Entry>()
  readonly #offers = new Map<string, Offer>()
  readonly #accepted = new Map<MessageId, Offer>()
  readonly #cancelled = new Set<MessageId>()
  readonly #received = new Map<string, Received>()
  /** Messages and epochs of which a request was sent that a second one may not follow blindly. */
  readonly #binding = new Set<string>()
  /** Attempts of which somebody said, when asked, that they were taken. */
  readonly #confirmed = new Set<string>()
  readonly #toldReceipts = new Set<string>()
  readonly #edits = new Map<MessageId, Set<string>>()
  readonly #erasing = new Set<MessageId>()
  readonly #erased = new Set<MessageId>()
  readonly #lines = new Lines()
  readonly #takenInOrder = new Set<string>()
  readonly #destinations: Destinations
  readonly #replayJobs: ReplayJobs
  /** The leases as they were after the last call. */
  #leases = new Map<BatchId, number>()
  /** Since when each waiting message has been in its lane. */
  #waitingSince = new Map<string, number>()
  /** Who started each attempt, and when. */
  readonly #starts = new Map<string, { readonly by: Process; readonly at: number }>()
  readonly #laneIds: ReadonlyArray<DestinationId>
  #stale: ReadonlyArray<boolean> = []
  #read = 0
  #viewsAt = 0

  constructor(world: World) {
    this.#world = world
    this.#tables = Context.get(world.store, Memory).tables
    this.#laneIds = world.lanes.map(({ id }) => id)
    this.#destinations = new Destinations(world, this.#tables)
    this.#replayJobs = new ReplayJobs(world, this.#tables)
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

  /** Somebody is about to replay it with this body, which nobody else uses. */
  editing(id: MessageId, body: string): void {
    this.#edits.set(id, (this.#edits.get(id) ?? new Set()).add(body))
  }

  erasing(id: MessageId): void {
    this.#erasing.add(id)
  }

  erased(id: MessageId): void {
    this.#erased.add(id)
    this.#world.tally("a body was erased")
  }

  /** Some dead letters and some that are none. */
  someMessages(): ReadonlyArray<MessageId> {
    const { dice } = this.#world
    return [...this.#ledger].filter(([_, { status }]) => dice.chance(isDead(status) ? 0.8 : 0.1)).map(([id]) => id)
  }

  /** The destination of each dead letter. */
  deadLetterLanes(): ReadonlyArray<DestinationId> {
    return [...this.#ledger.values()].flatMap(({ status, queued }) => (isDead(status) ? [queued.destination] : []))
  }

  isAtWork(replay: ReplayId): void {
    this.#replayJobs.isAtWork(replay)
  }

  hasBegun(replay: ReplayId): boolean {
    return this.#replayJobs.hasBegun(replay)
  }

  isInTrouble(lane: DestinationId): boolean {
    return this.#destinations.statusOf(lane) !== "CLOSED"
  }

  isHeld(lane: DestinationId): boolean {
    return this.#destinations.statusOf(lane) === "HELD"
  }

  /** Dead letters that others wait behind. */
  blockers() {
    return this.#lines.blockers().map((id) => {
      const { queued, erased } = this.#ledger.get(id)!
      return { id, lane: queued.destination, erased: erased || this.#erasing.has(id) }
    })
  }

  found(id: MessageId, view: MessageView | null): void {
    const entry = this.#ledger.get(id)
    this.#check("I1 a stored message is found", view !== null && entry !== undefined, () => `${id} was not found`)
  }

  // ---------------------------------------------------------------------------------- what receivers know

  received(process: Process, received: Received): void {
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
    this.#check("I17 what was accepted is what is sent", entry.queued.destination === destination, what)
    // Whoever lost its lease without noticing may still send: nobody but the far side could stop it.
    const isStale = entry.epoch !== epoch || entry.attempt !== attempt || !entry.open || entry.doubted
    if (isStale) {
      this.#world.tally("a request came from a worker that had lost its lease")
      return
    }
    this.#check("I17 what was accepted is what is sent", entry.body === body, what)
    this.#check("I40 what was erased is not sent", !entry.erased || entry.underWayWhenErased, what)
    this.#notBlindly(received, what)
    if (entry.line !== null && received.took && !this.#takenInOrder.has(`${messageId} ${epoch}`)) {
      this.#takenInOrder.add(`${messageId} ${epoch}`)
      this.#check("I21 a line is taken in its order", this.#lines.taken(entry.line, messageId), what)
      this.#world.tally("a message of a line was taken")
    }
    const start = this.#starts.get(key)
    if (start !== undefined && process.disturbedUntil < start.at) this.#destinations.requested(destination)
  }

  /** Where a duplicate would not be dropped, a second request needs somebody who said that the first was not taken. */
  #notBlindly({ message, declined }: Received, what: () => string): void {
    const { messageId, epoch, destination } = message
    if (this.#world.laneOf(destination).dedupes) return
    const key = `${messageId} ${epoch}`
    this.#check("I45 nothing that may have been taken is sent again", !this.#binding.has(key), what)
    if (!declined) this.#binding.add(key)
  }

  /** Somebody was asked what became of an attempt. */
  asked({ messageId, epoch, attempt }: Doubted, answer: "taken" | "notTaken" | "nobody" | "silence"): void {
    if (answer === "taken") this.#confirmed.add(attemptKey(messageId, epoch, attempt))
    if (answer === "notTaken") this.#binding.delete(`${messageId} ${epoch}`)
  }

  /** Whether the receiver did the work of this attempt. */
  wasTaken({ messageId, epoch, attempt }: Doubted): boolean {
    return this.#received.get(attemptKey(messageId, epoch, attempt))?.took === true
  }

  /** A provider is about to tell us. */
  told({ messageId, epoch }: OutboundMessage, { receipt, epoch: said }: Receipt): void {
    this.#toldReceipts.add(receiptKey(messageId, { receipt, epoch }))
    // It does not say which run it is about: whatever we make of that is not held against us.
    if (said === null) this.#toldReceipts.add(receiptKey(messageId, { receipt, epoch: null }))
  }

  // ------------------------------------------------------------------------------- what destinations ask for

  deferred(lane: DestinationId, wait: Duration.Duration): void {
    this.#destinations.deferred(lane, Duration.toMillis(wait))
  }

  gaveBack(lane: DestinationId, generation: number): void {
    if (this.#tables.journals.get(`circuit-${lane}`)?.length === generation) this.#destinations.gaveBack(lane)
  }

  handedOut(claim: Claim | null): void {
    for (const { lane } of claim?.messages ?? []) this.#destinations.handedOut(lane)
  }

  // ----------------------------------------------------------------------------------- what the store did

  beforeAppend(process: Process, entries: ReadonlyArray<Append>): void {
    this.#stale = entries.map(({ fence }) => fence !== null && this.#tables.claims.get(fence)?.worker !== process.name)
    for (const { messageId, facts, fence } of entries) {
      const byReceipt = facts[0]?.type === "ReceiptRecorded"
      for (const fact of facts) {
        if (!ofAWorker.has(fact.type) || byReceipt) continue
        this.#check("I24 what a worker writes is fenced", fence !== null, () => `${fact.type} without a fence`)
        if (fact.type === "AttemptStarted" && fence !== null) this.#mayStart(messageId, fact, fence)
        const givesUp =
          fact.type === "AttemptAbandoned" || (fact.type === "AttemptUnresolved" && fact.error.code === "abandoned")
        if (givesUp && fence !== null && this.#tables.claims.has(fence)) {
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
    const { epoch, queuedAt } = this.#ledger.get(id) ?? {}
    const holders = [...this.#tables.claims].filter(([_, claim]) =>
      claim.messages.some((held) => held.messageId === id && held.version >= (queuedAt ?? 0))
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
    const { feed, streams, journals } = this.#tables
    this.#replayJobs.look()
    this.#destinations.look(this.#laneIds, (lane) => this.#lines.free(lane))
    for (; this.#read < feed.length; this.#read++) {
      const { stream, messageId, version } = feed[this.#read]!
      if (messageId !== null) {
        this.#fact(messageId, version, Result.getOrThrow(fromRecorded(streams.get(messageId)![version - 1]!)))
        continue
      }
      const row = journals.get(stream)![version - 1]!
      if (stream.startsWith("circuit-")) this.#destinations.circuitFact(stream.slice(8) as DestinationId, row)
      if (stream.startsWith("replay-")) this.#replayJobs.journalFact(stream.slice(7), row)
    }
    this.#hands()
    this.#holders(released)
    const run = this.#tables.runs.find(({ name, live }) => live && name === "messages")
    const viewsAt = Number(run?.position ?? 0)
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
    const before = entry.status
    const { destination } = entry.queued
    const { channel, dedupes } = world.laneOf(destination)
    const legal = (holds: boolean) => this.#check("I7 only legal transitions", holds, what)
    switch (fact.type) {
      case "AttemptStarted":
        legal(entry.status === "QUEUED" && fact.epoch === entry.epoch)
        this.#check("I18 what is proven is not tried again", !entry.proven, what)
        this.#check("I14 attempts are numbered 1, 2, 3", fact.attempt === entry.attempt + 1, what)
        this.#check("I12 attempts are bounded", fact.attempt <= attemptsMaxOf(entry.queued.retry), what)
        this.#destinations.started(destination, id, what)
        this.#check("I21 only the head of a line goes", entry.line === null || this.#lines.isHead(entry.line, id), what)
        this.#check("I15 no attempt before its time", EPOCH + world.timeline.now >= entry.notBefore, what)
        entry.status = "SENDING"
        entry.attempt = fact.attempt
        entry.open = true
        break
      case "AttemptSucceeded":
        legal((entry.open || (entry.status === "QUEUED" && entry.proven)) && fact.attempt === entry.attempt)
        this.#check("I5 taken means answered with a yes", this.#wasTaken(id, entry), what)
        this.#stepsOut(id, entry)
        entry.open = false
        entry.doubted = false
        entry.status = "SENT"
        break
      case "AttemptFailed":
      case "AttemptAbandoned":
        legal(entry.open && fact.attempt === entry.attempt)
        // What was in doubt is not settled by giving up.
        legal(!(fact.type === "AttemptAbandoned" && (entry.doubted || !dedupes)))
        this.#check(
          "I31 what was put off counts for nothing",
          fact.retryAt === null ||
            fact.type === "AttemptAbandoned" ||
            entry.doubted ||
            this.#answer(id, entry)?.deferMs == null,
          what
        )
        entry.open = false
        entry.doubted = false
        if (fact.retryAt === null) {
          entry.endingOwed = true
        } else {
          entry.status = "QUEUED"
          entry.queuedAt = version
          entry.notBefore = millis(fact.retryAt)
          this.#wait(id, entry, version, fact, what)
        }
        break
      case "AttemptUnresolved":
        legal(entry.open && fact.attempt === entry.attempt && !dedupes)
        entry.doubted = true
        entry.queuedAt = version
        entry.notBefore = millis(fact.reconcileAt)
        break
      case "AttemptDeferred": {
        legal(entry.open && fact.attempt === entry.attempt && !entry.doubted)
        const wait = millis(fact.dueAt) - millis(this.#tables.streams.get(id)![version - 1]!.at)
        this.#check("I31 put off as long as was asked", wait === this.#answer(id, entry)?.deferMs, what)
        this.#received.delete(attemptKey(id, entry.epoch, entry.attempt))
        entry.underWayWhenErased = false
        entry.open = false
        entry.status = "QUEUED"
        entry.attempt -= 1
        entry.queuedAt = version
        entry.notBefore = millis(fact.dueAt)
        break
      }
      case "ReceiptRecorded":
        this.#receipt(id, entry, fact, what)
        break
      case "MessageBodyErased":
        this.#check("I2 nothing is erased that was not asked for", this.#erasing.has(id), what)
        legal(!entry.erased)
        entry.erased = true
        entry.underWayWhenErased = entry.open && !entry.doubted
        break
      case "MessageDelivered":
        legal(entry.status === "SENT")
        this.#check(
          "I5 delivered means proven",
          fact.proof === "response" ? channel !== "whatsapp" : entry.verdicts.has("delivered"),
          what
        )
        entry.status = "DELIVERED"
        break
      case "MessageFailed": {
        legal(fact.by === "response" ? entry.endingOwed : entry.status === "SENT" && entry.verdicts.has("failed"))
        const status = this.#answer(id, entry)?.status ?? 0
        const isRefused = (status >= 400 && status < 500) || this.#erasing.has(id)
        this.#check("I5 refused means answered with a no", fact.by === "receipt" || isRefused, what)
        if (fact.by === "response") this.#dies(id, entry)
        entry.status = "FAILED"
        break
      }
      case "MessageDeadLettered":
        legal(entry.endingOwed)
        this.#check("I45 only what can't be settled stays unknown", fact.reason !== "outcome unknown" || !dedupes, what)
        this.#dies(id, entry)
        entry.status = "DEAD_LETTER"
        break
      case "MessageCancelled":
        legal(entry.status === "QUEUED")
        this.#stepsOut(id, entry)
        entry.status = "CANCELLED"
        break
      case "MessageExpired":
        legal(entry.status === "QUEUED" && entry.queued.expiresAt !== null)
        this.#stepsOut(id, entry)
        entry.status = "EXPIRED"
        break
      case "MessageReplayed":
        legal(entry.status === "FAILED" || entry.status === "DEAD_LETTER")
        this.#check("I20 a replay opens the next epoch", fact.epoch === entry.epoch + 1, what)
        this.#check("I40 what was erased is not replayed", fact.edited || !entry.erased, what)
        this.#replayJobs.replayed(id, fact)
        if (entry.line !== null) this.#lines.join(destination, entry.line, id)
        if (fact.edited) {
          entry.body = this.#tables.bodies.get(id) ?? ""
          const isTheirs = this.#edits.get(id)?.has(entry.body) === true
          this.#check("I17 a replay's body is what somebody wrote", isTheirs, what)
        }
        entry.erased = false
        entry.underWayWhenErased = false
        entry.verdicts = new Set()
        entry.status = "QUEUED"
        entry.epoch = fact.epoch
        entry.attempt = 0
        entry.proven = false
        entry.queuedAt = version
        entry.notBefore = millis(fact.replayedAt)
        break
      default:
        world.violate("I7 only legal transitions", what())
    }
    if (endings.has(entry.status)) entry.endingOwed = false
    world.tally(`message ${before} × ${fact.type} → ${entry.status}`)
  }

  #stepsOut(id: MessageId, { line }: Entry): void {
    if (line !== null) this.#lines.leave(line, id)
  }

  #dies(id: MessageId, { line, queued: { destination } }: Entry): void {
    if (line !== null) this.#lines.die(line, id, this.#destinations.settingsOf(destination).onDeadLetter === "block")
  }

  /** It must have been told, and proves or settles what it is about, if that is this run. */
  #receipt(id: MessageId, entry: Entry, fact: FactOf<"ReceiptRecorded">, what: () => string): void {
    const { receipt, epoch } = fact
    const isTold = [epoch, null].some((said) => this.#toldReceipts.has(receiptKey(id, { receipt, epoch: said })))
    this.#check("I2 no receipt is recorded that was not told", isTold, what)
    if (epoch !== entry.epoch) return
    if (receipt !== "failed") entry.proven = true
    if (receipt === "delivered" || receipt === "read") entry.verdicts.add("delivered")
    if (receipt === "failed") entry.verdicts.add("failed")
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
    const line = fact.orderingKey === null ? null : lineName(fact.destination, fact.orderingKey)
    this.#ledger.set(id, {
      queued: fact,
      status: "QUEUED",
      version: 1,
      epoch: 1,
      attempt: 0,
      open: false,
      endingOwed: false,
      notBefore: millis(fact.dueAt),
      queuedAt: 1,
      proven: false,
      verdicts: new Set(),
      doubted: false,
      line,
      body: offer?.request.body ?? "",
      erased: false,
      underWayWhenErased: false
    })
    if (line !== null) this.#lines.join(fact.destination, line, id)
    this.#world.tally("message NEW × MessageQueued → QUEUED")
  }

  /** By its own answer or by what we were told when we asked; where a receipt told us, by any that was taken. */
  #wasTaken(id: MessageId, { epoch, attempt, proven, verdicts }: Entry): boolean {
    const key = attemptKey(id, epoch, attempt)
    if (this.#received.get(key)?.status === 200 || this.#confirmed.has(key)) return true
    const byReceipt = proven || verdicts.size > 0
    return byReceipt && [...this.#received].some(([other, { took }]) => took && other.startsWith(id))
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
      const since = this.#waitingSince.get(this.#rowKey(due)) ?? 0
      const opensAt = claimableAt(laneOf(this.#tables, due.lane)) ?? now
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

  /** Names of the messages that have not come to an ending. */
  unfinished(): ReadonlyArray<string> {
    return [...this.#ledger]
      .filter(([_, { status, line }]) => !endings.has(status) && (line === null || !this.#lines.isBlocked(line)))
      .map(([id, { status, epoch, attempt }]) => `${this.#world.nameOf(id)} ${status} ${epoch}/${attempt}`)
  }

  /** What is still open although every message has ended: leases that were left behind, views that lag. */
  looseEnds(): ReadonlyArray<string> {
    return [
      ...this.#replayJobs.unfinished(),
      ...[...this.#tables.claims.keys()].map((batch) => `batch ${batch} is held`),
      ...(this.#viewsAt < this.#tables.feed.length ? ["the views lag"] : []),
      ...this.#tables.runs.filter(({ live }) => !live).map(({ name }) => `${name} is being built`)
    ]
  }

  atTheEnd(): void {
    const { streams, lanes, lines, claims, bodies, responses, feed } = this.#tables
    const views = liveViews(this.#tables)
    if (this.#tables.runs.some(({ name, generation }) => name === "messages" && generation > 1)) {
      this.#world.tally("the lists were built anew and swapped")
    }
    const projected = new Map<MessageId, number>()
    for (const { messageId, version } of feed.slice(0, this.#viewsAt)) {
      if (messageId !== null) projected.set(messageId, version)
    }
    this.#check(
      "I8 each fact is shown once",
      new Set(feed.map((row) => `${row.stream} ${row.version}`)).size === feed.length,
      () => "feed"
    )
    for (const [id, offer] of this.#accepted) {
      this.#check("I1 accepted means stored", streams.has(id), () => `${id} is gone`)
      const { body, erased } = this.#ledger.get(id)!
      const isOurs = this.#erasing.has(id) || bodies.get(id) === body
      this.#check("I1 accepted means stored", isOurs, () => `the body of ${offer.request.correlationId} is gone`)
      const left = erased && this.#erased.has(id) && (bodies.has(id) || responses.has(id))
      this.#check("I40 what was erased is gone", !left, () => `something of ${this.#world.nameOf(id)} is left`)
    }
    this.#replayJobs.atTheEnd(
      (id) => this.#ledger.get(id)!.epoch,
      (id) => this.#erasing.has(id)
    )
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
      // While the last workers stop a receipt may still come, which nobody projects any more.
      const shown = views.get(id)
      const upTo = shown?.version ?? 0
      const same = JSON.stringify(viewOf(id, facts.slice(0, upTo)) ?? undefined) === JSON.stringify(shown)
      this.#check("I33 each view is the fold of its stream", same && upTo >= (projected.get(id) ?? 0), () =>
        this.#world.nameOf(id)
      )
    }
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

const sameKey = (a: Offer, b: Offer) => a.orgId === b.orgId && a.request.idempotencyKey === b.request.idempotencyKey
