/**
 * Sends a destination the events that it missed. The id of a message is made of event and destination, so there is one,
 * and it names the replay, so a repeat after a crash finds it. Events without text, in time or consent are skipped.
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
