/**
 * Strikes off messages that are set aside although somebody can process them: a batch that had settled a message long ago sets it aside,
 * or a process of an older release does so while a newer one sends it. Where later facts move it in the queue, that ends it in their
 * transaction; a delivery without an ordering key moves nothing, and no append looks for what it may end. So a message is over here
 * that has ended, or was given another place since it was looked at. The names of facts say so, also of facts that can't be read here.
 */
import { Effect } from "effect"
import type { MessageId } from "../../domain/ids.ts"
import { placeSaidBy } from "../../domain/message/place.ts"
import { streamOf } from "../../domain/streams.ts"
import { Archive } from "../ports/Archive.ts"
import type { LoggedFact } from "../ports/EventStore.ts"
import { SetAside } from "../ports/SetAside.ts"

/** Looks at so many; answers where to go on, null after the last. */
export const endAsides = Effect.fnUntraced(function* (after: MessageId | null, limit: number) {
  const setAside = yield* SetAside
  const { messages, next } = yield* setAside.lookedAt(after, limit)
  if (messages.length > 0) {
    const streams = yield* (yield* Archive).streams(messages.map(({ messageId }) => streamOf(messageId)))
    const over = messages.filter(({ messageId, version }) => {
      const facts = streams.get(streamOf(messageId))
      // It was forgotten, so it had ended.
      return facts === undefined || hasEnded(facts) || (version !== null && isPlacedSince(facts, version))
    })
    if (over.length > 0) yield* setAside.end(over)
  }
  return next
})

export const hasEnded = (facts: ReadonlyArray<LoggedFact>): boolean =>
  facts.map(({ name }) => placeSaidBy(name)).findLast((place) => place !== null) === "Out"

const isPlacedSince = (facts: ReadonlyArray<LoggedFact>, since: number): boolean =>
  facts.some(({ version, name }) => version > since && placeSaidBy(name) !== null)
