/**
 * The feed of an org: its own facts in the order of the log, without bodies and secrets. A message's fact comes with
 * the status after it and the message's addresses as its row has them, by which the filters go. Every fact comes at
 * least once; facts of one stream whose transactions overlapped may come out of order, which their versions show. A fact
 * whose stream can't be processed comes without its message, to subscribers whose filter needs none.
 */
import { Array as Arr, Effect } from "effect"
import type { OrgId } from "../../domain/ids.ts"
import type { MessageStatus } from "../../domain/message/machine.ts"
import { type MessageView, type StoredFact, timeline } from "../../domain/message/view.ts"
import { parking } from "../park.ts"
import type { LoggedFact, Position } from "../ports/EventStore.ts"
import type { StoreUnavailable } from "../ports/errors.ts"
import type { MessageFilter } from "../ports/MessageViews.ts"
import type { Parked } from "../ports/Parked.ts"
import { LogReader } from "./LogReader.ts"

const ofMessages = ["channel", "to", "dossierId", "correlationId", "status"] as const

/** An absent field selects all. A field of messages leaves out the facts of all other streams. */
export interface FeedFilter extends Pick<MessageFilter, (typeof ofMessages)[number]> {
  /** `message-<id>`, `circuit-<destination>`, … */
  readonly stream?: string
  readonly type?: string
}

export type FeedMessage = Pick<MessageView, "id" | "eventType" | (typeof ofMessages)[number]>

export interface FeedFact {
  readonly logged: LoggedFact
  /** Null for a fact that is not about a message, and where the message can't be read. */
  readonly message: FeedMessage | null
}

export interface FeedPage<A> {
  readonly items: ReadonlyArray<A>
  readonly position: Position | null
  /** The log has no newer facts at all, of any org. */
  readonly isEnd: boolean
}

const PAGE = 200

export const typeOf = ({ name }: Pick<LoggedFact, "name">): string => name.slice(0, name.indexOf("@"))

const TOGETHER = 25

export const readFeed = Effect.fnUntraced(function* <A>(
  orgId: OrgId,
  filter: FeedFilter,
  after: Position | null,
  tell: (fact: FeedFact) => A
): Effect.fn.Return<FeedPage<A>, StoreUnavailable, LogReader | Parked> {
  const log = yield* LogReader
  const facts = yield* log.read(after, PAGE)
  if (facts.length === 0) return { items: [], position: after, isEnd: true }
  const orgs = yield* log.orgs(facts)
  const mine = facts.filter(
    (fact) =>
      orgs.get(fact.stream) === orgId &&
      (filter.stream === undefined || fact.stream === filter.stream) &&
      (filter.type === undefined || typeOf(fact) === filter.type)
  )
  const items: Array<A> = []
  for (const [nth, some] of Arr.chunksOf(mine, TOGETHER).entries()) {
    if (nth > 0) yield* Effect.yieldNow
    const { answer, parked } = yield* parking(some, messagesOf)
    for (const logged of some) {
      const message = logged.messageId === null || parked.has(logged.stream) ? null : answer.get(logged)
      // The message was forgotten between the two reads.
      if (message === undefined) continue
      if (isWanted(filter, message)) items.push(tell({ logged, message }))
    }
  }
  return { items, position: facts.at(-1)!.position, isEnd: false }
})

const messagesOf = Effect.fnUntraced(function* (facts: ReadonlyArray<LoggedFact>) {
  const streams = yield* (yield* LogReader).streams(facts)
  return new Map(
    facts.flatMap((logged) => {
      const history = logged.messageId === null ? undefined : streams.get(logged.messageId)
      return history === undefined ? [] : [[logged, messageAt(logged, history)] as const]
    })
  )
})

const messageAt = ({ messageId, version }: LoggedFact, history: ReadonlyArray<StoredFact>): FeedMessage | null => {
  const queued = history[0]?.fact
  if (queued?.type !== "MessageQueued") return null
  const { channel, to, eventType, dossierId, correlationId } = queued
  const { status } = timeline(history.slice(0, version)).message
  return { id: messageId!, channel, to, eventType, dossierId, correlationId, status: status as MessageStatus }
}

const isWanted = (filter: FeedFilter, message: FeedMessage | null): boolean =>
  ofMessages.every((field) => filter[field] === undefined || message?.[field] === filter[field])
