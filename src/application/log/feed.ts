/**
 * The feed of an org: its facts in the order they are stored, for subscribers. It holds the org's own facts only, and
 * no bodies and no secrets, because facts hold none. A message's fact comes with the status after the fact, so a subscriber need not
 * fold, and with the message's addresses as its row has them: the filters go by these, and find no message by what was erased of it.
 *
 * Every fact comes at least once, in the order of the log. Facts of one stream may, very rarely, come out of order when
 * their transactions overlapped; their versions show it.
 *
 * A fact whose stream can't be processed comes as it is stored, without its message, to subscribers who choose by nothing that the
 * message would say.
 */
import { Array as Arr, Effect } from "effect"
import type { OrgId } from "../../domain/ids.ts"
import type { MessageStatus } from "../../domain/message/machine.ts"
import { type MessageView, type StoredFact, timeline } from "../../domain/message/view.ts"
import type { StoreUnavailable } from "../errors.ts"
import { parking } from "../park.ts"
import type { LoggedFact, Position } from "../ports/EventStore.ts"
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

/** The message after the fact. */
export type FeedMessage = Pick<MessageView, "id" | "eventType" | (typeof ofMessages)[number]>

export interface FeedFact {
  readonly logged: LoggedFact
  /** Null for a fact that is not about a message, and where the message can't be read. */
  readonly message: FeedMessage | null
}

export interface FeedPage<A> {
  readonly items: ReadonlyArray<A>
  /** The position after which the next page begins. */
  readonly position: Position | null
  /** The log has no newer facts at all, of any org. */
  readonly isEnd: boolean
}

/** Read at a time. */
const PAGE = 200

export const typeOf = ({ name }: Pick<LoggedFact, "name">): string => name.slice(0, name.indexOf("@"))

/** Told together; other fibers run before the next ones. */
const TOGETHER = 25

/** The org's matching facts among the next facts of the log, each as `tell` tells it. */
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

/** The message after each of these facts; of one that was forgotten meanwhile there is none. */
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
