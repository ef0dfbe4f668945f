/**
 * What receivers got and what they and providers said. A receiver's word is the truth here, whatever the records say:
 * what it took was taken, and where it would not drop a duplicate nothing may be sent to it twice blindly.
 */
import type { Doubted, OutboundMessage } from "../../../src/application/ports/Channels.ts"
import type { Receipt } from "../../../src/application/ports/WhatsAppReceipts.ts"
import type { MessageId } from "../../../src/domain/ids.ts"
import type { Process } from "../process.ts"
import type { Received } from "../receivers.ts"
import type { World } from "../world.ts"
import { attemptKey, type Entry, type Ledger } from "./ledger.ts"
import type { Lines } from "./lines.ts"

const receiptKey = (id: MessageId, { receipt, epoch }: { receipt: string; epoch: number | null }) =>
  `${id} ${receipt} ${epoch}`

export class Requests {
  readonly #world: World
  readonly #ledger: Ledger
  readonly #lines: Lines
  readonly #received = new Map<string, Received>()
  /** Messages and epochs of which a request was sent that a second one may not follow blindly. */
  readonly #binding = new Set<string>()
  /** Attempts of which somebody said, when asked, that they were taken. */
  readonly #confirmed = new Set<string>()
  readonly #toldReceipts = new Set<string>()
  readonly #takenInOrder = new Set<string>()
  /** Who started each attempt, and when. */
  readonly #starts = new Map<string, { readonly by: Process; readonly at: number }>()

  /** In milliseconds since the world began. */
  #leasesKnownFrom = 0

  constructor(world: World, ledger: Ledger, lines: Lines) {
    this.#world = world
    this.#ledger = ledger
    this.#lines = lines
  }

  #check(law: string, holds: boolean, explain: () => string): void {
    if (!holds) this.#world.violate(law, explain())
  }

  /** The start of an attempt is stored. */
  started(by: Process, id: MessageId, epoch: number, attempt: number): void {
    this.#starts.set(attemptKey(id, epoch, attempt), { by, at: this.#world.timeline.now })
  }

  startOf(id: MessageId, epoch: number, attempt: number) {
    return this.#starts.get(attemptKey(id, epoch, attempt))
  }

  /** The database has lost leases that were renewed: until they would have run out, no worker can know how long its own lasts. */
  tookBack(): void {
    this.#leasesKnownFrom = this.#world.timeline.now + this.#world.swarm.leaseMs
  }

  /** A worker is about to send: its clock has told it that nobody can have taken the message over. */
  begins({ messageId, epoch, attempt }: OutboundMessage): void {
    const entry = this.#ledger.get(messageId)
    if (entry === undefined || this.#world.timeline.now < this.#leasesKnownFrom) return
    const isOurs = entry.epoch === epoch && entry.attempt === attempt && entry.open
    this.#check(
      "I24 nothing is sent under a lease that was lost",
      isOurs,
      () => `${this.#world.nameOf(messageId)} attempt ${epoch}/${attempt}`
    )
  }

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
    this.#check("I17 what was accepted is what is sent", entry.queued.destination === destination, what)
    // Whoever lost its lease after it had begun to send goes on: nobody but the far side could stop it.
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

  isTold(id: MessageId, { receipt, epoch }: { readonly receipt: string; readonly epoch: number | null }): boolean {
    return [epoch, null].some((said) => this.#toldReceipts.has(receiptKey(id, { receipt, epoch: said })))
  }

  /** By its own answer or by what we were told when we asked; where a receipt told us, by any that was taken. */
  isProven(id: MessageId, { epoch, attempt, proven, verdicts }: Entry): boolean {
    const key = attemptKey(id, epoch, attempt)
    if (this.#received.get(key)?.status === 200 || this.#confirmed.has(key)) return true
    const byReceipt = proven || verdicts.size > 0
    return byReceipt && [...this.#received].some(([other, { took }]) => took && other.startsWith(id))
  }

  answerTo(id: MessageId, { epoch, attempt }: Entry): Received | undefined {
    return this.#received.get(attemptKey(id, epoch, attempt))
  }

  /** The receiver did not try it: its next request has the same number. */
  putOff(id: MessageId, { epoch, attempt }: Entry): void {
    this.#received.delete(attemptKey(id, epoch, attempt))
  }
}
