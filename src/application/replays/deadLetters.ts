/**
 * The list of dead letters, with the effect that a replay would have. The projection finds them, and their streams give
 * the details: a message that was just replayed is left out, one that just died may be missing.
 */
import { type DateTime, Effect } from "effect"
import { attemptsMaxOf, type RetryPolicy } from "../../domain/delivery/retry.ts"
import type { DestinationId, OrgId } from "../../domain/ids.ts"
import type { MessageQueued } from "../../domain/message/facts.ts"
import { isDead, type MessageView, viewOf } from "../../domain/message/view.ts"
import type { DeadLetterFilter } from "../../domain/replay/facts.ts"
import { loadReadable } from "../messages/listMessages.ts"
import { type Destination, Destinations, urlIn } from "../ports/Destinations.ts"
import type { PageRequest } from "../ports/errors.ts"
import { MessageViews } from "../ports/MessageViews.ts"

export interface DeadLetter {
  /** `contradicted`: a provider reported the message as delivered. */
  readonly message: MessageView
  readonly deadLetteredAt: DateTime.Utc
  readonly wouldReplayTo: {
    readonly destination: DestinationId
    /** Without query and user info, which may hold secrets. Null when the destination is removed or has no URL. */
    readonly url: string | null
    readonly exists: boolean
    readonly paused: boolean
    readonly hasBody: boolean
    readonly attemptsMax: number
    readonly retry: RetryPolicy
  }
}

export const listDeadLetters = Effect.fnUntraced(function* (
  orgId: OrgId | null,
  filter: DeadLetterFilter,
  page: PageRequest
) {
  const { items: found, nextCursor } = yield* (yield* MessageViews).deadLetters(orgId, filter, page)
  const streams = yield* loadReadable(found.map(({ id }) => id))
  const dead = found.flatMap(({ id }) => {
    const facts = streams.get(id)?.facts ?? []
    const message = viewOf(id, facts)
    const queued = facts[0]?.fact
    return message !== null && isDead(message.status) && queued?.type === "MessageQueued" ? [{ message, queued }] : []
  })
  const destinations = yield* destinationsOf(dead.map(({ message }) => message))
  return { items: dead.map(({ message, queued }) => deadLetter(message, queued, destinations)), nextCursor }
})

const deadLetter = (
  message: MessageView,
  { retry }: MessageQueued,
  destinations: ReadonlyMap<DestinationId, Destination>
): DeadLetter => {
  const known = destinations.get(message.destination)
  return {
    message,
    deadLetteredAt: message.endedAt!,
    wouldReplayTo: {
      destination: message.destination,
      url: known === undefined ? null : urlOf(known),
      exists: known !== undefined,
      paused: known?.paused ?? false,
      hasBody: !message.bodyErased,
      attemptsMax: attemptsMaxOf(retry),
      retry
    }
  }
}

const destinationsOf = Effect.fnUntraced(function* (messages: ReadonlyArray<MessageView>) {
  const destinations = yield* Destinations
  const found = new Map<DestinationId, Destination>()
  yield* Effect.forEach(
    new Map(messages.map(({ destination, orgId }) => [destination, orgId])),
    ([id, orgId]) =>
      Effect.map(destinations.get(orgId, id), (destination) => {
        if (destination !== null) found.set(id, destination)
      }),
    { discard: true, concurrency: 8 }
  )
  return found
})

const urlOf = (destination: Destination): string | null => {
  const url = urlIn(destination)
  return url && `${url.protocol}//${url.host}${url.pathname}`
}
