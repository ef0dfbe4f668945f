/**
 * The slots of rate limits that this process holds, and when they are by its own monotonic clock, whatever the clock of its
 * machine says. See domain/delivery/rateLimit.ts for what a slot is.
 *
 * A claim brings a slot with each message of such a lane. Which message takes which slot is decided when it is ready: one whose
 * start took long to store leaves its slot to nobody and takes the next one of the lane, and the message that is left without a
 * slot in the end goes back to the queue. So a process that stood still for a moment needs nothing from the store to go on.
 *
 * What the store's clock shows is estimated from the quickest of the last answers that say it.
 */
import { Duration, Effect } from "effect"
import { latenessOf, leadOf } from "../../domain/delivery/rateLimit.ts"
import type { DestinationId } from "../../domain/ids.ts"
import { type Claim, Queue, type Slot } from "../ports/Queue.ts"

/** How wrong a monotonic clock may go: a second in three hours. */
const DRIFT = 0.0001
/** How long a start takes, before there was one. */
const STORED_FIRST_MS = 50
/** What is left, at the next one, of the longest time that a start took. */
const FADING = 0.95
/** How far ahead the store is asked for a slot, at each further try: its answer may take long. */
const LEADS_MS = [10, 100, 1_000] as const
/** How many lanes may have left slots behind until these are looked through. */
const FORGET_ABOVE = 1_000

export interface Slots {
  /** Takes in what was handed out, asked and answered at these moments of the monotonic clock. */
  readonly claimed: (claim: Pick<Claim, "said" | "messages">, askedAt: number, answeredAt: number) => void
  /** When the lane's next attempt may begin, by the monotonic clock; at once where no slot is left to wait for. */
  readonly beginsAt: (lane: DestinationId) => number
  /** The lane's earliest slot that is not over; null when this process holds none. */
  readonly take: (lane: DestinationId) => Slot | null
  readonly isMissed: (slot: Slot) => boolean
  /** A start was stored in so many milliseconds. */
  readonly stored: (tookMs: number) => void
  /** Returns in the slot, or at once after it. */
  readonly until: (slot: Slot) => Effect.Effect<void>
  /** As `take` and, where this process holds none, from the store; null when none is near or this was tried often enough. */
  readonly next: (lane: DestinationId, like: Slot, tries: number) => Effect.Effect<Slot | null, never, Queue>
  /** Its message does not need it. */
  readonly leave: (lane: DestinationId, slot: Slot) => void
  /** Gives the lane's last slots back to the store, when so many messages are gone. A failure only loses them. */
  readonly giveBack: (lane: DestinationId, count: number) => Effect.Effect<void, never, Queue>
}

/** `now` is the monotonic clock in milliseconds. */
export const makeSlots = (now: () => number): Slots => {
  /** The earliest first. */
  const held = new Map<DestinationId, ReadonlyArray<Slot>>()
  /** Of the store's clock over the monotonic one, and how far off this may be. */
  let offset = 0
  let error = Number.POSITIVE_INFINITY
  let learntAt = 0
  let storedMs = STORED_FIRST_MS

  const learn = (askedAt: number, answeredAt: number, said: number) => {
    const [heard, unsure] = [said - (askedAt + answeredAt) / 2, (answeredAt - askedAt) / 2]
    const known = error + (answeredAt - learntAt) * DRIFT
    // Both can't be right: the store's clock was set, or it is another store.
    const isAnother = Math.abs(heard - offset) > unsure + known
    if (unsure > known && !isAnother) return
    offset = heard
    error = unsure
    learntAt = answeredAt
  }

  const leftMs = ({ at }: Slot) => at - offset - now()
  const isMissed = (slot: Slot) => -leftMs(slot) > latenessOf(slot.rate)

  const put = (lane: DestinationId, slots: ReadonlyArray<Slot>) =>
    slots.length === 0 ? held.delete(lane) : held.set(lane, slots)

  const still = (lane: DestinationId): ReadonlyArray<Slot> => {
    const slots = held.get(lane)
    if (slots === undefined) return []
    const first = slots.findIndex((slot) => !isMissed(slot))
    if (first === 0) return slots
    const left = first === -1 ? [] : slots.slice(first)
    put(lane, left)
    return left
  }

  const add = (lane: DestinationId, slots: ReadonlyArray<Slot>) =>
    put(
      lane,
      [...still(lane), ...slots].sort((a, b) => a.at - b.at)
    )

  const take = (lane: DestinationId) => {
    const [first, ...others] = still(lane)
    if (first === undefined) return null
    put(lane, others)
    return first
  }

  return {
    claimed: ({ said, messages }, askedAt, answeredAt) => {
      if (said === undefined) return
      learn(askedAt, answeredAt, said)
      if (held.size > FORGET_ABOVE) for (const lane of held.keys()) still(lane)
      for (const [lane, mine] of Map.groupBy(messages, (message) => message.lane))
        add(
          lane,
          mine.flatMap(({ terms }) => terms.slot ?? [])
        )
    },
    beginsAt: (lane) => {
      const first = still(lane)[0]
      return first === undefined ? Number.NEGATIVE_INFINITY : first.at - offset - leadOf(first.rate, storedMs)
    },
    take,
    isMissed,
    stored: (tookMs) => {
      storedMs = Math.max(tookMs, FADING * storedMs)
    },
    until: (slot) =>
      Effect.suspend(() => (leftMs(slot) > 0 ? Effect.sleep(Duration.millis(leftMs(slot))) : Effect.void)),
    next: Effect.fnUntraced(function* (lane, { rate }, tries) {
      const slot = take(lane)
      const lead = LEADS_MS[tries]
      if (slot !== null || lead === undefined) return slot
      const askedAt = now()
      const answer = yield* (yield* Queue)
        .nextSlot(lane, Duration.millis(lead))
        .pipe(Effect.catchTag("StoreUnavailable", () => Effect.succeed(null)))
      if (answer === null || answer.at === null) return null
      learn(askedAt, now(), answer.said)
      return { at: answer.at, rate }
    }),
    leave: (lane, slot) => add(lane, [slot]),
    giveBack: Effect.fnUntraced(function* (lane, count) {
      const slots = still(lane)
      const kept = Math.max(0, slots.length - count)
      const back = slots.slice(kept).map(({ at }) => at)
      put(lane, slots.slice(0, kept))
      if (back.length > 0) yield* Effect.ignore((yield* Queue).returnSlots(lane, back))
    })
  }
}
