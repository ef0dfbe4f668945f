/**
 * What a message must look like to whoever asks, after each of its facts. Lists and single reads show the same.
 */
import type { DateTime } from "effect"
import type { DeliveryError } from "../../../src/domain/delivery/DeliveryError.ts"
import type { MessageId } from "../../../src/domain/ids.ts"
import type { MessageFact, MessageQueued } from "../../../src/domain/message/facts.ts"
import type { MessageView } from "../../../src/domain/message/view.ts"
import { liveViews } from "../../model/log/runs.ts"
import type { Tables } from "../../model/Memory.ts"
import type { World } from "../world.ts"
import type { Entry } from "./ledger.ts"
import type { Readers } from "./readers.ts"
import { attemptsOf, endings } from "./rules.ts"

/** What is always there; of what the provider says, the rest is judged below. */
type Row = Omit<MessageView, "contradicted" | "deliverAt" | "endsAt" | "lastAttemptAt" | "deliveredAt">

interface Story {
  readonly queued: MessageQueued
  readonly createdAt: DateTime.Utc
  expiresAt: DateTime.Utc | null
  nextAt: DateTime.Utc | null
  endedAt: DateTime.Utc | null
  lastError: DeliveryError | null
  readAt: DateTime.Utc | null
  /** The names a provider gave it, by epoch: in its answer, and in receipts. */
  readonly names: Array<{ answered: string | null; told: string | null }>
  /** A receipt once said the opposite of how it stood. */
  isContradicted: boolean
  /** Null: a receipt and the status may or may not be at odds. */
  readonly rows: Array<{ readonly row: Row; readonly contradicted: boolean | null }>
}

export class Shown {
  readonly #world: World
  readonly #readers: Readers
  readonly #stories = new Map<MessageId, Story>()

  constructor(world: World, readers: Readers) {
    this.#world = world
    this.#readers = readers
  }

  #check(law: string, holds: boolean, explain: () => string): void {
    if (!holds) this.#world.violate(law, explain())
  }

  /** A fact was committed, and its message is now as `entry` says. */
  after(id: MessageId, entry: Entry, fact: MessageFact, at: DateTime.Utc): void {
    const { queued, status, epoch, attempt, version, erased } = entry
    const story = this.#stories.get(id) ?? begun(queued, at)
    this.#stories.set(id, story)
    tell(story, fact, epoch)
    if (endings.has(status)) story.endedAt ??= at
    const name = story.names.findLast(({ answered, told }) => answered !== null || told !== null)
    const { orgId, channel, to, destination, eventType, templateCode, dossierId, orderingKey, correlationId } = queued
    const opposite = status === "DELIVERED" ? "failed" : "delivered"
    story.rows.push({
      row: {
        ...{ id, version, orgId, channel, to, destination, status, epoch },
        ...{ attempts: attempt, attemptsMax: attemptsOf(queued.retry) },
        nextAttemptAt: status === "QUEUED" ? story.nextAt : null,
        lastError: story.lastError,
        providerMessageId: name?.answered ?? name?.told ?? null,
        ...{ eventType, templateCode, dossierId, orderingKey, correlationId, metadata: queued.metadata },
        ...{ expiresAt: story.expiresAt, createdAt: story.createdAt, updatedAt: at, endedAt: story.endedAt },
        ...{ bodyErased: erased, readAt: story.readAt },
        ...(entry.dismissed && { dismissed: true })
      },
      contradicted: story.isContradicted || (endings.has(status) && entry.verdicts.has(opposite) ? null : false)
    })
  }

  /** Somebody is shown this. */
  judge(view: MessageView, law = "I9 what is shown is what happened"): void {
    const expected = this.#stories.get(view.id)?.rows[view.version - 1]
    const name = () => `${this.#world.nameOf(view.id)}@${view.version}`
    this.#check(law, expected !== undefined, () => `${name()} is shown and never was`)
    if (expected === undefined) return
    for (const [field, value] of Object.entries(expected.row)) {
      const shown = JSON.stringify(view[field as keyof Row])
      this.#check(
        law,
        shown === JSON.stringify(value),
        () => `${field} of ${name()} is ${shown}, not ${JSON.stringify(value)}`
      )
    }
    const { contradicted } = expected
    this.#check(
      law,
      contradicted === null || view.contradicted === contradicted,
      () => `${name()} is contradicted or not`
    )
  }

  /** The lists have read this much more of the log. */
  listed(tables: Tables, from: number, to: number): void {
    const law = "I33 each view is the fold of its stream"
    const views = liveViews(tables)
    const listed = new Map<MessageId, number>()
    for (const { messageId, version } of tables.feed.slice(from, to)) {
      if (messageId !== null) listed.set(messageId, version)
    }
    for (const [id, version] of listed) {
      const view = views.get(id)
      const isThere = (view?.version ?? 0) >= version || this.#readers.mayLack(id)
      this.#check(law, isThere, () => `${this.#world.nameOf(id)} lags`)
      if (view !== undefined) this.judge(view, law)
    }
  }
}

const begun = (queued: MessageQueued, at: DateTime.Utc): Story => ({
  ...{ queued, createdAt: at, expiresAt: queued.expiresAt, nextAt: null, endedAt: null, lastError: null },
  ...{ readAt: null, names: [{ answered: null, told: null }], isContradicted: false, rows: [] }
})

/** What a fact tells about it; `epoch` is the one it belongs to from then on. */
const tell = (story: Story, fact: MessageFact, epoch: number): void => {
  const name = story.names.at(-1)!
  switch (fact.type) {
    case "MessageQueued":
    case "AttemptDeferred":
    case "MessageHurried":
      story.nextAt = fact.dueAt
      break
    case "AttemptFailed":
    case "AttemptAbandoned":
      story.nextAt = fact.retryAt
      break
    case "AttemptSucceeded":
      name.answered = fact.providerMessageId ?? name.answered
      break
    case "ReceiptRecorded":
      if (fact.contradicts) story.isContradicted = true
      if ((fact.epoch ?? epoch) !== epoch) break
      name.told = fact.providerMessageId ?? name.told
      if (fact.receipt === "read") story.readAt ??= fact.reportedAt
      break
    case "MessageReplayed":
      story.nextAt = fact.replayedAt
      story.expiresAt = null
      story.endedAt = null
      story.readAt = null
      story.names.push({ answered: null, told: null })
  }
  story.lastError = errorAfter(fact, story.lastError)
}

/** What a receipt brings is the provider's story: it counts once the message fails by it. */
const errorAfter = (fact: MessageFact, before: DeliveryError | null): DeliveryError | null => {
  switch (fact.type) {
    case "AttemptSucceeded":
    case "MessageDelivered":
      return null
    case "AttemptAbandoned":
      return { code: "abandoned", message: fact.reason, retryable: true }
    case "AttemptFailed":
    case "AttemptDeferred":
    case "AttemptUnresolved":
    case "MessageFailed":
    case "MessageDeadLettered":
      return fact.error ?? before
    default:
      return before
  }
}
