/**
 * Sends a destination the events that it missed. The message of an event and its destination has an id made of both, so
 * whatever crashes, and whoever else sends it, there is one. The message names the replay that made it: a stretch that
 * is repeated after a crash finds what it has done.
 *
 * The event's text must still be there, its time not be over, and the consent of its dossier not be missing.
 */
import { DateTime, Effect, Option } from "effect"
import type { EventId } from "../../domain/ids.ts"
import type { MissedEvents } from "../../domain/replay/facts.ts"
import { commandMessages } from "../command.ts"
import { objectionTo } from "../consents/consents.ts"
import { messagesOfEvents } from "../events/messageOfEvent.ts"
import { loadEvent } from "../events/readEvents.ts"
import { Destinations } from "../ports/Destinations.ts"
import type { ReplayJob } from "../ports/Replays.ts"

/** How many of them it has sent; the rest need not or can't be sent. Events are sent in the order they are given. */
export const sendMissed = Effect.fnUntraced(function* (
  { id: replayId, orgId }: ReplayJob,
  { to }: MissedEvents,
  missed: ReadonlyArray<EventId>
) {
  const destination = yield* (yield* Destinations).get(orgId, to)
  if (destination === null) return 0
  const { channel, settings } = destination
  const subscriber = { destination: to, channel, retry: settings.retry }
  const messageOf = yield* messagesOfEvents(orgId)
  const now = yield* DateTime.now
  const entries = yield* Effect.forEach(
    missed,
    Effect.fnUntraced(function* (id) {
      const event = yield* loadEvent(orgId, id)
      if (event === null || event.bodyErased) return Option.none()
      const { expiresAt, dossierId } = event
      if (expiresAt !== null && DateTime.isLessThanOrEqualTo(expiresAt, now)) return Option.none()
      if (dossierId !== null && (yield* objectionTo(orgId, dossierId, channel)) !== null) return Option.none()
      return Option.some(messageOf(event, subscriber, now, { replayId }))
    }),
    { concurrency: 8 }
  )
  const answers = yield* commandMessages(
    entries.flatMap((entry) =>
      Option.isSome(entry) ? [{ messageId: entry.value.messageId, entry: entry.value }] : []
    ),
    ({ entry }, stream) => {
      if (stream === undefined) return Effect.succeed({ entry, answer: true })
      const queued = stream.facts[0]?.fact
      return Effect.succeed({ entry: null, answer: queued?.type === "MessageQueued" && queued.replayId === replayId })
    },
    { tries: Number.POSITIVE_INFINITY }
  ).pipe(Effect.catchTag("Overtaken", Effect.die))
  return answers.filter((sent) => sent).length
})
