/**
 * Reads an archive whole streams at a time. Memory holds a page of facts and the stream that the page ends in. The next
 * page is read while this one is processed.
 */
import { Effect } from "effect"
import { Archive } from "../ports/Archive.ts"
import type { LoggedFact } from "../ports/EventStore.ts"
import type { StoreUnavailable } from "../ports/errors.ts"

const FACTS_AT_ONCE = 4_000

export const eachStream = Effect.fnUntraced(function* <E, R>(
  visit: (streams: ReadonlyArray<ReadonlyArray<LoggedFact>>) => Effect.Effect<void, E, R>
): Effect.fn.Return<void, E | StoreUnavailable, R | Archive> {
  const archive = yield* Archive
  let begun: ReadonlyArray<LoggedFact> = []
  let page = yield* archive.byStream(null, FACTS_AT_ONCE)
  while (page.length > 0) {
    const streams = inStreams([...begun, ...page])
    begun = streams.pop()!
    const [next] = yield* Effect.all([archive.byStream(page.at(-1)!, FACTS_AT_ONCE), visit(streams)], {
      concurrency: 2
    })
    page = next
  }
  if (begun.length > 0) yield* visit([begun])
})

const inStreams = (facts: ReadonlyArray<LoggedFact>): Array<ReadonlyArray<LoggedFact>> => {
  const streams: Array<Array<LoggedFact>> = []
  for (const fact of facts) {
    const last = streams.at(-1)
    if (last?.[0]?.stream === fact.stream) last.push(fact)
    else streams.push([fact])
  }
  return streams
}
