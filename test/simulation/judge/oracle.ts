/**
 * The judge. It believes what clients were told and what receivers got, reads every fact the moment it is
 * committed and keeps a ledger of its own in plain terms: it knows the law of a message by heart and does
 * not ask the code under test. Each law has a number, so that a failure can be talked about.
 *
 * Here is the law of a message. What clients, receivers, destinations, lines and replays may rely on, whose hands a
 * message is in and how it is shown stand beside it, each in a file of its own.
 */
import { Context, DateTime, Duration, Result } from "effect"
import type { Append, AppendResult } from "../../../src/application/ports/EventStore.ts"
import type { BatchId, Claim } from "../../../src/application/ports/Queue.ts"
import type { DestinationId, MessageId, ReplayId } from "../../../src/domain/ids.ts"
import type { FactOf, MessageFact, MessageQueued } from "../../../src/domain/message/facts.ts"
import { fromRecorded } from "../../../src/domain/message/recorded.ts"
import { factAt, Memory, type Tables } from "../../model/Memory.ts"
import { EPOCH } from "../clock.ts"
import type { Process } from "../process.ts"
import type { World } from "../world.ts"
import { Answers } from "./answers.ts"
import { Destinations } from "./destinations.ts"
import { Hands } from "./hands.ts"
import type { Entry } from "./ledger.ts"
import { Lines, lineName } from "./lines.ts"
import { Readers } from "./readers.ts"
import { ReplayJobs } from "./replayJobs.ts"
import { Requests } from "./requests.ts"
import { ASKED_MOST_MS, attemptsOf, endings, isDead, leastWaitAfter, waitAfter } from "./rules.ts"
import { Shown } from "./shown.ts"

const ofAWorker: ReadonlySet<MessageFact["type"]> = new Set([
  "AttemptStarted",
  "AttemptSucceeded",
  "AttemptFailed",
  "AttemptDeferred",
  "AttemptAbandoned",
  "AttemptUnresolved",
  "MessageExpired"
])
const millis = DateTime.toEpochMillis

export class Oracle {
  /** What clients and operators asked for, and what receivers got: whoever plays them tells it here. */
  readonly answers: Answers
  readonly requests: Requests
  readonly hands: Hands
  readonly readers: Readers
  readonly #world: World
  readonly #tables: Tables
  readonly #ledger = new Map<MessageId, Entry>()
  readonly #lines = new Lines()
  readonly #destinations: Destinations
  readonly #replayJobs: ReplayJobs
  readonly #shown: Shown
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
    this.readers = new Readers(world, this.#tables, this.#ledger)
    this.#shown = new Shown(world, this.readers)
    this.answers = new Answers(world, this.#ledger, this.#shown)
    this.requests = new Requests(world, this.#ledger, this.#lines)
    this.hands = new Hands(world, this.#tables, this.#ledger, this.#lines, this.#destinations)
  }

  #check(law: string, holds: boolean, explain: () => string): void {
    if (!holds) this.#world.violate(law, explain())
  }

  // ------------------------------------------------------------------------- what operators look around for

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
      return { id, lane: queued.destination, erased: erased || this.answers.isErasing(id) }
    })
  }

  // ------------------------------------------------------------------------------- what destinations ask for

  deferred(lane: DestinationId, wait: Duration.Duration): void {
    this.#destinations.deferred(lane, Duration.toMillis(wait))
  }

  /** The database has lost its last commits: leases, and what lanes were asked to wait. No fact is among them. */
  tookBack(): void {
    this.hands.tookBack()
    this.requests.tookBack()
    this.#destinations.tookBack()
    this.afterStoreCall()
  }

  handedOut(claim: Claim | null): void {
    for (const { lane } of claim?.messages ?? []) this.#destinations.handedOut(lane)
  }

  // ----------------------------------------------------------------------------------- what the store did

  beforeAppend(process: Process, entries: ReadonlyArray<Append>): void {
    this.#stale = entries.map(({ fence, facts: [first] }) => {
      const holder = fence === null ? null : this.#tables.claims.get(fence)?.worker
      // Whoever hurries a message claims it for the moment, and is no worker.
      return holder !== null && holder !== (first?.type === "MessageHurried" ? "hurry" : process.name)
    })
    for (const { messageId, facts, fence } of entries) {
      const [first] = facts
      const byReceipt = first?.type === "ReceiptRecorded"
      // Whoever looks for messages whose time is over ends them where they wait.
      const isOver =
        first?.type === "MessageExpired" || (first?.type === "MessageDeadLettered" && first.reason === "too old")
      for (const fact of facts) {
        if (!ofAWorker.has(fact.type) || byReceipt || isOver) continue
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
    const start = this.requests.startOf(id, epoch ?? 0, attempt)
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
          this.requests.started(process, messageId, fact.epoch, fact.attempt)
        }
      }
      this.#check("I24 a stale write has no effect", !this.#stale[index], () => this.#world.nameOf(messageId))
      this.#check("I8 versions are contiguous", result.version === expected + facts.length, () => messageId)
    }
  }

  /**
   * Reads what was committed since, and looks whether every message is still in somebody's hands. `released` is
   * the batches that the call gave up.
   */
  afterStoreCall(released: ReadonlyArray<BatchId> = []): void {
    const { feed, streams } = this.#tables
    this.#replayJobs.look()
    this.#destinations.look(this.#laneIds, (lane) => this.#lines.free(lane))
    for (; this.#read < feed.length; this.#read++) {
      const { stream, messageId, version } = feed[this.#read]!
      if (messageId !== null) {
        const row = streams.get(messageId)![version - 1]!
        const fact = Result.getOrThrow(fromRecorded(row))
        this.#fact(messageId, version, fact)
        const entry = this.#ledger.get(messageId)
        if (entry !== undefined) this.#shown.after(messageId, entry, fact, row.at)
        continue
      }
      const row = factAt(this.#tables, feed[this.#read]!)!
      if (stream.startsWith("circuit-")) this.#destinations.circuitFact(stream.slice(8) as DestinationId, row)
      if (stream.startsWith("replay-")) this.#replayJobs.journalFact(stream.slice(7), row)
    }
    this.hands.look(released)
    const run = this.#tables.runs.find(({ name, live }) => live && name === "messages")
    const viewsAt = Number(run?.position ?? 0)
    this.#check("I34 the projection moves forward", viewsAt >= this.#viewsAt, () => `${this.#viewsAt} to ${viewsAt}`)
    if (viewsAt > this.#viewsAt) this.#shown.listed(this.#tables, this.#viewsAt, viewsAt)
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
        this.#check("I12 attempts are bounded", fact.attempt <= attemptsOf(entry.queued.retry), what)
        this.#destinations.started(destination, id, what)
        this.#check("I21 only the head of a line goes", entry.line === null || this.#lines.isHead(entry.line, id), what)
        this.#check("I15 no attempt before its time", EPOCH + world.timeline.now >= entry.notBefore, what)
        entry.status = "SENDING"
        entry.attempt = fact.attempt
        entry.open = true
        break
      case "AttemptSucceeded":
        legal((entry.open || (entry.status === "QUEUED" && entry.proven)) && fact.attempt === entry.attempt)
        this.#check("I5 taken means answered with a yes", this.requests.isProven(id, entry), what)
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
            this.requests.answerTo(id, entry)?.deferMs == null,
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
        const answer = this.requests.answerTo(id, entry)
        const asked = answer?.deferMs ?? Number.NaN
        const isAsked = entry.deferrals < 5 ? wait === asked : wait >= asked
        this.#check("I31 put off as long as was asked", isAsked, what)
        const hasAge = entry.queued.retry.ageMaxMs !== undefined
        const least = entry.deferrals < 5 || hasAge ? 0 : leastWaitAfter(entry.deferrals)
        this.#check("I31 put off longer and longer", wait >= least, what)
        if (least > 1_000) this.#world.tally("a message was put off longer and longer")
        entry.deferrals += 1
        this.requests.putOff(id, entry)
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
        this.#check("I2 nothing is erased that was not asked for", this.answers.isErasing(id), what)
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
        const status = this.requests.answerTo(id, entry)?.status ?? 0
        const isRefused = (status >= 400 && status < 500) || this.answers.isErasing(id)
        this.#check("I5 refused means answered with a no", fact.by === "receipt" || isRefused, what)
        if (fact.by === "response") this.#dies(id, entry)
        entry.status = "FAILED"
        break
      }
      case "MessageDeadLettered":
        if (fact.reason === "too old") {
          legal(entry.status === "QUEUED")
          this.#check("I19 only what has an age grows too old", entry.queued.retry.ageMaxMs !== undefined, what)
        } else legal(entry.endingOwed)
        this.#check("I45 only what can't be settled stays unknown", fact.reason !== "outcome unknown" || !dedupes, what)
        this.#dies(id, entry)
        entry.status = "DEAD_LETTER"
        break
      case "MessageHurried":
        legal(entry.status === "QUEUED" && millis(fact.dueAt) < entry.notBefore)
        entry.queuedAt = version
        entry.notBefore = millis(fact.dueAt)
        break
      case "MessageDismissed":
        legal((entry.status === "FAILED" || entry.status === "DEAD_LETTER") && !entry.dismissed)
        entry.dismissed = true
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
        entry.deferrals = 0
        this.#replayJobs.replayed(id, fact)
        if (entry.line !== null) this.#lines.join(destination, entry.line, id)
        if (fact.edited) {
          entry.body = this.#tables.bodies.get(id) ?? ""
          const isTheirs = this.answers.isEditOf(id, entry.body)
          this.#check("I17 a replay's body is what somebody wrote", isTheirs, what)
        }
        entry.erased = false
        entry.underWayWhenErased = false
        entry.verdicts = new Set()
        entry.status = "QUEUED"
        entry.dismissed = false
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
    this.#check("I2 no receipt is recorded that was not told", this.requests.isTold(id, fact), what)
    if (epoch !== entry.epoch) return
    if (receipt !== "failed") entry.proven = true
    if (receipt === "delivered" || receipt === "read") entry.verdicts.add("delivered")
    if (receipt === "failed") entry.verdicts.add("failed")
  }

  #queued(id: MessageId, fact: MessageQueued): void {
    const body = this.answers.queued(fact, () => `${this.#world.nameOf(id)} for ${fact.correlationId}`)
    const line = fact.orderingKey === null ? null : lineName(fact.destination, fact.orderingKey)
    this.#ledger.set(id, {
      queued: fact,
      status: "QUEUED",
      version: 1,
      epoch: 1,
      attempt: 0,
      open: false,
      endingOwed: false,
      dismissed: false,
      notBefore: millis(fact.dueAt),
      queuedAt: 1,
      proven: false,
      verdicts: new Set(),
      doubted: false,
      deferrals: 0,
      line,
      body,
      erased: false,
      underWayWhenErased: false
    })
    if (line !== null) this.#lines.join(fact.destination, line, id)
    this.#world.tally("message NEW × MessageQueued → QUEUED")
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
    const asked = Math.min(this.requests.answerTo(id, entry)?.retryAfterMs ?? 0, ASKED_MOST_MS)
    // A receiver's wish that reached us must be kept; one whose answer was lost can't be.
    const known = fact.type === "AttemptFailed" && fact.status === 429 ? asked : 0
    const wanted = waitAfter(retry, entry.attempt)
    const shortest = Math.max(wanted.shortest, known)
    const longest = Math.max(wanted.longest, asked)
    this.#check(
      "I15 a wait is what the policy allows",
      wait >= shortest && wait <= longest,
      () => `${what()}: ${wait} ms`
    )
  }

  // -------------------------------------------------------------------------------------------- the end

  /** Messages that have not ended. */
  open(): ReadonlyArray<MessageId> {
    return [...this.#ledger].filter(([_, { status }]) => !endings.has(status)).map(([id]) => id)
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
      ...this.readers.unfinished(),
      ...this.#tables.runs.filter(({ live }) => !live).map(({ name }) => `${name} is being built`)
    ]
  }

  atTheEnd(): void {
    const { runs, feed } = this.#tables
    if (runs.some(({ name, generation }) => name === "messages" && generation > 1)) {
      this.#world.tally("the lists were built anew and swapped")
    }
    this.#check(
      "I8 each fact is shown once",
      new Set(feed.map((row) => `${row.stream} ${row.version}`)).size === feed.length,
      () => "feed"
    )
    this.answers.atTheEnd(this.#tables)
    this.#replayJobs.atTheEnd(
      (id) => this.#ledger.get(id)!.epoch,
      (id) => this.answers.isErasing(id)
    )
    this.#shown.listed(this.#tables, 0, this.#viewsAt)
    this.readers.atTheEnd()
    this.hands.atTheEnd()
  }
}
