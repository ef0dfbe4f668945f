/**
 * Pages of messages. The list finds them; each view is folded from its stream up to the version that the list knows, so
 * it fits the filter. Forgotten and unreadable messages are left out.
 */
import { Effect } from "effect"
import type { MessageId, OrgId } from "../../domain/ids.ts"
import { viewOf } from "../../domain/message/view.ts"
import { EventStore, type Stream } from "../ports/EventStore.ts"
import type { PageRequest } from "../ports/errors.ts"
import { type MessageFilter, MessageViews } from "../ports/MessageViews.ts"

export const listMessages = Effect.fnUntraced(function* (
  orgId: OrgId | null,
  filter: MessageFilter,
  page: PageRequest
) {
  const { items, nextCursor } = yield* (yield* MessageViews).list(orgId, filter, page)
  const streams = yield* loadReadable(items.map(({ id }) => id))
  const views = items.flatMap(({ id, version }) => viewOf(id, streams.get(id)?.facts.slice(0, version) ?? []) ?? [])
  return { items: views, nextCursor }
})

export const loadReadable = Effect.fnUntraced(function* (ids: ReadonlyArray<MessageId>) {
  if (ids.length === 0) return new Map<MessageId, Stream>()
  const { loadMany } = yield* EventStore
  const alone = (id: MessageId) =>
    Effect.catchDefect(loadMany([id]), () => Effect.succeed(new Map<MessageId, Stream>()))
  return yield* Effect.catchDefect(loadMany(ids), () =>
    Effect.map(Effect.forEach(ids, alone), (all) => new Map(all.flatMap((some) => [...some])))
  )
})
