/**
 * What clients and operators asked for and what they were answered. An answer is a promise: what was accepted is
 * stored and stays, a key stands for one message, what was cancelled stays cancelled, what was erased is gone.
 */
import type { MessageRequest } from "../../../src/application/accept/acceptMessage.ts"
import type { DestinationId, MessageId, OrgId } from "../../../src/domain/ids.ts"
import type { MessageQueued } from "../../../src/domain/message/facts.ts"
import type { MessageView } from "../../../src/domain/message/view.ts"
import type { Tables } from "../../model/Memory.ts"
import type { World } from "../world.ts"
import type { Ledger } from "./ledger.ts"
import type { Shown } from "./shown.ts"

export interface Offer {
  readonly orgId: OrgId
  readonly lane: DestinationId
  readonly request: MessageRequest
}

export class Answers {
  readonly #world: World
  readonly #ledger: Ledger
  readonly #shown: Shown
  /** Requests by their correlation id. */
  readonly #offers = new Map<string, Offer>()
  readonly #accepted = new Map<MessageId, Offer>()
  readonly #cancelled = new Set<MessageId>()
  readonly #edits = new Map<MessageId, Set<string>>()
  readonly #erasing = new Set<MessageId>()
  readonly #erased = new Set<MessageId>()

  constructor(world: World, ledger: Ledger, shown: Shown) {
    this.#world = world
    this.#ledger = ledger
    this.#shown = shown
  }

  #check(law: string, holds: boolean, explain: () => string): void {
    if (!holds) this.#world.violate(law, explain())
  }

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
    this.#shown.judge(view)
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

  found(id: MessageId, view: MessageView | null): void {
    const entry = this.#ledger.get(id)
    this.#check("I1 a stored message is found", view !== null && entry !== undefined, () => `${id} was not found`)
    if (view !== null) this.#shown.judge(view)
  }

  /** Somebody asked for its body to be erased. */
  isErasing(id: MessageId): boolean {
    return this.#erasing.has(id)
  }

  /** Somebody wrote this body for a replay of it. */
  isEditOf(id: MessageId, body: string): boolean {
    return this.#edits.get(id)?.has(body) === true
  }

  /** The body of a message that is stored now: somebody must have asked for it, and under its key only once. */
  queued(fact: MessageQueued, what: () => string): string {
    const offer = this.#offers.get(fact.correlationId ?? "")
    this.#check("I2 nothing is stored that was not asked for", offer !== undefined, what)
    for (const [other, { queued }] of this.#ledger) {
      const twice =
        queued.correlationId === fact.correlationId ||
        (offer !== undefined &&
          offer.request.idempotencyKey !== null &&
          sameKey(this.#offers.get(queued.correlationId!)!, offer))
      this.#check("I16 one key, one message", !twice, () => `${what()} beside ${this.#world.nameOf(other)}`)
    }
    return offer?.request.body ?? ""
  }

  atTheEnd({ streams, bodies, responses }: Tables): void {
    for (const [id, offer] of this.#accepted) {
      this.#check("I1 accepted means stored", streams.has(id), () => `${id} is gone`)
      const { body, erased } = this.#ledger.get(id)!
      const isOurs = this.#erasing.has(id) || bodies.get(id) === body
      this.#check("I1 accepted means stored", isOurs, () => `the body of ${offer.request.correlationId} is gone`)
      const left = erased && this.#erased.has(id) && (bodies.has(id) || responses.has(id))
      this.#check("I40 what was erased is gone", !left, () => `something of ${this.#world.nameOf(id)} is left`)
    }
    for (const id of this.#cancelled) {
      this.#check("I13 cancelled stays cancelled", this.#ledger.get(id)?.status === "CANCELLED", () => id)
    }
  }
}

const sameKey = (a: Offer, b: Offer) => a.orgId === b.orgId && a.request.idempotencyKey === b.request.idempotencyKey
