/**
 * Exports every stream in one pass (archiveFile.ts): facts, and the idempotency keys that keep a message from being
 * accepted twice. Bodies and answers, which must stay erasable, come on request. Facts that are written meanwhile may
 * be missing; no stream has a gap.
 */
import { Array as Arr, Effect, Stream } from "effect"
import { eventOf } from "../../domain/streams.ts"
import type { LoggedFact } from "../ports/EventStore.ts"
import { MessageData } from "../ports/MessageData.ts"
import { type BesideFacts, firstLine, isOfMessage, lastLine, lineOf } from "./archiveFile.ts"
import { type Log, logStream } from "./logStream.ts"

export const exportStreams = (log: Log, withBodies: boolean) =>
  Stream.unwrap(
    Effect.map(MessageData, (dataOfMessages) => {
      let count = 0
      const linesOf = Effect.fnUntraced(function* (facts: Arr.NonEmptyReadonlyArray<LoggedFact>) {
        const first = facts.filter(({ version }) => version === 1)
        const opened = first.flatMap(({ messageId }) => messageId ?? [])
        const published = first.flatMap(({ stream }) => eventOf(stream) ?? [])
        const messages = yield* dataOfMessages.load(opened)
        const events = yield* dataOfMessages.loadEvents(published)
        const dataOf = ({ stream, messageId }: LoggedFact) => {
          const eventId = eventOf(stream)
          if (messageId !== null) return messages.get(messageId)
          return eventId === null ? undefined : events.get(eventId)
        }
        return Arr.map(facts, (fact) => {
          const data = fact.version === 1 ? dataOf(fact) : undefined
          count += 1
          return lineOf({
            position: count,
            fact,
            besideFacts: data === undefined ? null : dataToExport(data, withBodies)
          })
        })
      })
      return Stream.make(firstLine(withBodies)).pipe(
        Stream.concat(Stream.mapArrayEffect(logStream(log), linesOf)),
        Stream.concat(Stream.suspend(() => Stream.make(lastLine(count))))
      )
    })
  )

const dataToExport = (data: BesideFacts, withBodies: boolean): BesideFacts => {
  if (withBodies) return data
  return isOfMessage(data) ? { ...data, body: null, bodyOf: null, responses: [] } : { ...data, body: null }
}
