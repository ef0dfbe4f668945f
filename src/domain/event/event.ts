/** An event: published once, and its body erased at most once, so there is no machine. */
import type { DateTime } from "effect"
import { foldOf } from "../fold.ts"
import type { EventId } from "../ids.ts"
import type { EventFact, EventPublished } from "./facts.ts"

export interface Event {
  readonly published: EventPublished | null
  readonly erased: boolean
}

export const initial: Event = { published: null, erased: false }

export const describe = ({ published, erased }: Event): string =>
  published === null ? "nothing" : erased ? "its erasure" : "its publication"

export const step = (event: Event, fact: EventFact): Event | null => {
  if (fact.type === "EventPublished") return event.published === null ? { published: fact, erased: false } : null
  return event.published !== null && !event.erased ? { ...event, erased: true } : null
}

export const { can, evolve, replay } = foldOf(initial, step, describe)

export interface EventView extends Omit<EventPublished, "type"> {
  readonly id: EventId
  readonly createdAt: DateTime.Utc
  readonly bodyErased: boolean
}

export const viewOf = (id: EventId, createdAt: DateTime.Utc, history: ReadonlyArray<EventFact>): EventView | null => {
  const { published, erased } = replay(history)
  if (published === null) return null
  const { type: _, ...said } = published
  return { id, ...said, createdAt, bodyErased: erased }
}

export const journalOf = (id: EventId) => `event-${id}` as const
