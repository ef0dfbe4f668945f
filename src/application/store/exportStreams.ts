/**
 * Every stream as lines of text, in one pass (see archiveFile.ts for the form): facts, and the idempotency keys that
 * keep a message from being accepted twice. Bodies and answers, which must stay erasable, come only on request.
 *
 * Facts that are written meanwhile may be in the export or not; no stream has a gap.
 */
import { Array as Arr, Effect, Stream } from "effect"
import type { LoggedFact } from "../ports/EventStore.ts"
import { type DataOfMessage, MessageData } from "../ports/MessageData.ts"
import { firstLine, lastLine, lineOf } from "./archiveFile.ts"
import { type Log, logStream } from "./logStream.ts"

export const exportStreams = (log: Log, withBodies: boolean) =>
  Stream.unwrap(
    Effect.map(MessageData, (dataOfMessages) => {
      let count = 0
      const linesOf = Effect.fnUntraced(function* (facts: Arr.NonEmptyReadonlyArray<LoggedFact>) {
        const opened = facts.flatMap(({ messageId, version }) =>
          messageId !== null && version === 1 ? [messageId] : []
        )
        const found = yield* dataOfMessages.load(opened)
        return Arr.map(facts, (fact) => {
          const data = fact.messageId !== null && fact.version === 1 ? found.get(fact.messageId) : undefined
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

const dataToExport = (data: DataOfMessage, withBodies: boolean): DataOfMessage =>
  withBodies ? data : { ...data, body: null, responses: [] }
